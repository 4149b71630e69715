# SPDX-License-Identifier: Apache-2.0
"""LifetimeFilter with `unbounded = relocate`, host by host."""

import dataclasses

import pytest

from blazar_sched.domain import window
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.instance import Stay
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.worker import process
from tests.unit.worker.test_decision import a_host
from tests.unit.worker.test_decision import a_host_state
from tests.unit.worker.test_decision import a_request
from tests.unit.worker.test_decision import a_reservation
from tests.unit.worker.test_decision import an_allocation
from tests.unit.worker.test_decision import decide
from tests.unit.worker.test_decision import HOUR
from tests.unit.worker.test_decision import id_of
from tests.unit.worker.test_decision import NOW

DAY = 86400
OPTIONS = {
    'unbounded': 'relocate', 'relocation_lead': 600,
    'relocation_shortest_stay': 600, 'relocation_notice': DAY,
    'relocation_headroom': 0.0, 'relocation_large_headroom': 0.0,
    'relocation_local_disks': True,
}


@pytest.fixture(autouse=True)
def relocation():
    for name, value in OPTIONS.items():
        process.CONF.set_override(name, value, 'blazar_sched')
    yield
    for name in OPTIONS:
        process.CONF.clear_override(name, 'blazar_sched')


@pytest.fixture
def option():
    """Set an option of ``[blazar_sched]``."""
    def set_(name, value):
        process.CONF.set_override(name, value, 'blazar_sched')

    return set_


def a_replica(*nouns):
    replica = state.Replica(accounting.SchedulerAccounting, relocating=True)
    replica.advance(NOW)
    replica.load(7, map(record.encode, nouns))
    return replica


def leased(on, start=2 * DAY, hours=24, vcpus=0, gpus=0):
    """Return a reservation of a host, or of a part, with its allocation."""
    of = a_reservation(on, start, start + hours * HOUR)
    return of, an_allocation(on, on, of, vcpus, gpus)


def passing(replica, host_states, spec):
    found, _ = decide(replica, host_states, spec)
    return [each.nodename for each in found]


def states(*numbers, **fields):
    return [a_host_state(n, **fields) for n in numbers]


def test_a_host_passes_if_another_one_has_room_later():
    replica = a_replica(a_host(0), a_host(1), *leased(0))

    assert passing(replica, states(0), a_request()) == ['c0']


def test_a_host_that_nova_does_not_offer_now_may_be_the_later_one():
    """Host c1 is full now, by a server that ends before it is needed."""
    there = Instance(
        id_of('instance', 9), id_of('host', 1), 'p', {'VCPU': 8}, NOW + DAY
    )
    replica = a_replica(a_host(0), a_host(1), there, *leased(0))
    assert passing(replica, states(0), a_request()) == ['c0']

    forever = dataclasses.replace(there, end=window.FOREVER)
    replica = a_replica(a_host(0), a_host(1), forever, *leased(0))
    assert passing(replica, states(0), a_request()) == []


def test_a_place_that_is_booked_is_taken():
    path = (
        Stay(id_of('host', 0), NOW, NOW + 2 * DAY),
        Stay(id_of('host', 1), NOW + 2 * DAY - 600, window.FOREVER),
    )
    booked = Instance(
        id_of('instance', 9), id_of('host', 0), 'p', {'VCPU': 8}, path=path
    )
    replica = a_replica(a_host(0), a_host(1), booked, *leased(0))

    assert passing(replica, states(1), a_request()) == []
    short = a_request(lifetime='1d')
    assert passing(replica, states(1), short) == ['c1']


@pytest.mark.parametrize('other', [
    {'unbounded': 'never'}, {'hold': 'dedicated'}, {'disabled': True},
    {'reservable': False}, {'availability_zone': 'other'},
    {'unbounded': 'assume:1d'},
])
def test_not_every_host_takes_relocated_instances(other):
    replica = a_replica(a_host(0), a_host(1, **other), *leased(0))

    assert passing(replica, states(0), a_request()) == []


def test_a_host_of_its_own_policy(option):
    option('unbounded', 'never')
    hosts = [a_host(0, unbounded='relocate'), a_host(1), a_host(2)]
    replica = a_replica(*hosts, *leased(0))

    # The other hosts follow the cloud, and take no unbounded instances.
    assert passing(replica, states(0, 1, 2), a_request()) == ['c0']


def test_an_instance_that_cannot_be_moved_is_refused(option):
    replica = a_replica(a_host(0), a_host(1))
    assert passing(replica, states(0, 1), a_request()) == ['c0', 'c1']

    option('relocation_local_disks', False)
    assert passing(replica, states(0, 1), a_request()) == []
    volume = a_request(root_gb=0)
    assert passing(replica, states(0, 1), volume) == ['c0', 'c1']
    said = a_request(root_gb=0, movable='false')
    assert passing(replica, states(0, 1), said) == []


def test_a_long_lifetime_is_relocated_too(option):
    option('max_backfill_lifetime', DAY)
    replica = a_replica(a_host(0), a_host(1), *leased(0))

    long = a_request(lifetime='3d')
    assert passing(replica, states(0), long) == ['c0']
    option('unbounded', 'never')
    assert passing(replica, states(0), long) == []


@pytest.mark.parametrize('headroom, vcpus, found', [
    (0.5, 4, ['c0']), (0.5, 5, []), (0.0, 5, ['c0']),
])
def test_headroom_is_kept_of_all_hosts_together(
    option, headroom, vcpus, found
):
    option('relocation_headroom', headroom)
    replica = a_replica(a_host(0), a_host(1), *leased(1, vcpus=4))

    assert passing(replica, states(0), a_request(vcpus)) == found


def test_no_headroom_is_kept_of_short_lifetimes(option):
    option('relocation_headroom', 1.0)
    replica = a_replica(a_host(0))

    assert passing(replica, states(0), a_request()) == []
    short = a_request(lifetime='1h')
    assert passing(replica, states(0), short) == ['c0']


def test_other_resource_classes_need_a_path_too():
    hosts = [a_host(0, gpus=2), a_host(1, gpus=1)]
    lease = leased(0, gpus=2)

    replica = a_replica(*hosts, *lease)
    assert passing(replica, states(0), a_request(gpus=1)) == ['c0']
    assert passing(replica, states(0), a_request(gpus=2)) == []
    assert passing(replica, states(0), a_request()) == ['c0']


def test_the_reason_tells_of_paths_and_of_headroom(option):
    far = a_host(1, availability_zone='other')
    replica = a_replica(a_host(0), far, *leased(0))
    _, told = decide(replica, states(0), a_request())
    assert 'no relocation path' in told[-1]['hosts']['c0']

    option('relocation_headroom', 1.0)
    _, told = decide(replica, states(0), a_request())
    assert 'headroom' in told[-1]['hosts']['c0']


def test_an_instance_passes_where_it_has_its_own_allocation():
    """The live migration along a path."""
    path = (
        Stay(id_of('host', 0), NOW - DAY, NOW + 600),
        Stay(id_of('host', 1), NOW, window.FOREVER),
    )
    own = Instance(
        id_of('instance', 0), id_of('host', 0), 'p1',
        {'VCPU': 8, 'MEMORY_MB': 512, 'DISK_GB': 1}, path=path, movable=True,
    )
    replica = a_replica(a_host(0), a_host(1), own, *leased(0, start=600))

    assert passing(replica, states(1), a_request(8)) == ['c1']
    other = a_request(1, number=5)
    assert passing(replica, states(1), other) == []
