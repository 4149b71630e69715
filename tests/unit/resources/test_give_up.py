# SPDX-License-Identifier: Apache-2.0
"""The slots that a reservation of instances gives up."""

import dataclasses
import itertools
import types
import uuid

import hypothesis
from hypothesis import strategies
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import decode
from blazar_sched.domain.demand import VIRTUAL_INSTANCE
from blazar_sched.domain.host import Host
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.placement import Placement
from blazar_sched.service.clients.placement import resource_class
from blazar_sched.service.resources import base
from blazar_sched.service.resources import instance
from tests.standins.cloud import CloudApi


def slots(amount, **parameters):
    return {
        'resource_type': 'virtual:instance', 'vcpus': 2, 'memory_mb': 512,
        'disk_gb': 1, 'amount': amount, **parameters,
    }


def give_up(cloud, placement, names, id_, held, amount, failing=()):
    """Run the driver; return the slots left by host, None if refused."""
    services = dict.fromkeys(f.name for f in dataclasses.fields(base.Services))
    replica = types.SimpleNamespace(reservations={})
    services |= {
        'nova': Nova(cloud),
        'placement': placement,
        'ledger': types.SimpleNamespace(
            claiming=lambda ids: [], read_replica=lambda query: query(replica)
        ),
    }
    driver = instance.InstanceResource(base.Services(**services))
    reservation = Reservation(
        id_, 'lease', 'active', decode(VIRTUAL_INSTANCE, slots(amount))
    )
    lease = Lease('lease', 'x', 'project', 'user', 0, 1, 'ACTIVE')
    allocations = [
        Allocation(name, id_, name, 0, 1, reservation.demand.times(count))
        for name, count in zip(names, held, strict=True)
    ]
    hosts = {name: Host(name, '1', name) for name in names}
    try:
        kept = driver.give_up(
            base.Part(lease, reservation, allocations, hosts, failing)
        )
    except exception.CantUpdateParameter:
        return None
    left = {a.host: a.amounts['VCPU'] // 2 for a in kept}
    return tuple(left.get(name, 0) for name in names)


SIZES = strategies.lists(
    strategies.integers(1, 4), min_size=1, max_size=4
).flatmap(lambda held: strategies.tuples(
    strategies.just(held),
    strategies.tuples(*(strategies.integers(0, n) for n in held)),
    strategies.integers(1, sum(held))
))


@hypothesis.settings(deadline=None, max_examples=60)
@hypothesis.given(SIZES)
def test_as_many_hosts_come_free_as_can(sizes):
    """The reference is every other way to give up as many slots."""
    held, used, amount = sizes
    names = [f'host-{n}' for n in range(len(held))]
    cloud = CloudApi(*names)
    placement = Placement(cloud)
    id_ = str(uuid.uuid4())
    class_ = resource_class(id_)
    placement.create_resource_class(class_)
    for name, count, taken in zip(names, held, used, strict=True):
        placement.set_inventory(cloud.uuid(name), name, class_, count)
        for _ in range(taken):
            assert cloud.take_slot(str(uuid.uuid4()), name, class_)
    left = give_up(cloud, placement, names, id_, held, amount)
    ways = [
        way
        for way in itertools.product(
            *(range(u, n + 1) for u, n in zip(used, held, strict=True))
        )
        if sum(way) == amount
    ]
    if left is None:
        assert sum(used) > amount
        return
    assert left in ways
    assert left.count(0) == max(way.count(0) for way in ways)
    assert left == tuple(cloud.total(name, class_) for name in names)


@pytest.mark.parametrize('failing, amount, left', [
    ('', 3, (0, 3)), ('1', 3, (2, 1)), ('1', 4, (2, 2)), ('0', 3, (0, 3)),
])
def test_failing_hosts_come_free_first(failing, amount, left):
    names = ['host-0', 'host-1']
    cloud = CloudApi(*names)
    placement = Placement(cloud)
    id_ = str(uuid.uuid4())
    class_ = resource_class(id_)
    placement.create_resource_class(class_)
    for name, count in zip(names, (2, 3), strict=True):
        placement.set_inventory(cloud.uuid(name), name, class_, count)
    assert give_up(
        cloud, placement, names, id_, (2, 3), amount,
        {f'host-{n}' for n in failing},
    ) == left
