# SPDX-License-Identifier: Apache-2.0
"""Tracks, ranks and what is free, beside brute force."""

import random

import pytest

from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import Host
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.window import Window
from blazar_sched.parts.timeline import row
from blazar_sched.parts.timeline.row import FreeShares
from blazar_sched.parts.timeline.row import Groups
from blazar_sched.placing.bar import Bar
from blazar_sched.replica import record
from blazar_sched.replica.accounting import LedgerAccounting
from blazar_sched.replica.state import Replica


def host(uuid, **inventory):
    return Host(
        uuid=uuid, id='1', hypervisor_hostname=uuid,
        inventory={name: Inventory(n) for name, n in inventory.items()},
    )


def test_tracks_are_as_few_as_possible():
    chance = random.Random(5)
    for _ in range(50):
        windows = sorted(
            (start, start + chance.randrange(1, 9))
            for start in (chance.randrange(20) for _ in range(12))
        )
        tracks = list(row.tracks(windows))
        at_once = max(
            sum(start <= at < end for start, end in windows)
            for at in range(30)
        )
        assert len(set(tracks)) == max(tracks) + 1 == at_once
        for track in set(tracks):
            own = [w for w, t in zip(windows, tracks, strict=True)
                   if t == track]
            assert all(a[1] <= b[0] for a, b in zip(own, own[1:],
                                                    strict=False))


def test_rows_are_ordered_by_number_and_the_row_without_a_value_is_last():
    some = host('a')
    keys = ['10', 'x', '', '9', '1' * 40, '²']
    groups = Groups((key, some) for key in keys)
    assert groups.keys == ['9', '10', '1' * 40, 'x', '²', '']
    assert row.after(groups.keys, None, 2) == ['9', '10']
    # A marker need not be there any more.
    assert row.after(groups.keys, '9', 2) == ['10', '1' * 40]
    assert row.after(groups.keys, '3', 1) == ['9']
    assert row.after(groups.keys, 'y', 9) == ['²', '']


def test_a_group_has_one_bar_for_each_reservation():
    one = Bar('lease', 0, 9, 0.5, 'p', 'l', 'r')
    two = Bar('lease', 0, 9, 1, 'p', 'l', 'other')
    assert row.merged([one, two, one], 4) == [
        Bar('lease', 0, 9, 0.25, 'p', 'l', 'r'),
        Bar('lease', 0, 9, 0.25, 'p', 'l', 'other'),
    ]


def test_a_host_of_which_only_another_class_is_taken_is_not_free():
    hosts = [
        host('a', VCPU=4, CUSTOM_GPU=2), host('b', VCPU=4, CUSTOM_GPU=2),
        host('c', VCPU=4),
    ]
    reservation = record.Reservation(
        'r', 'l', 'p', 'flavor:instance', 10, 20, {'CUSTOM_GPU': 1}
    )
    replica = Replica(LedgerAccounting)
    replica.apply(1, map(record.encode, [
        *hosts, reservation,
        Allocation('x', 'r', 'a', 10, 20, {'CUSTOM_GPU': 1}, False),
        Allocation('y', 'r', 'b', 10, 20,
                   {'CUSTOM_GPU': 1, 'VCPU': 1}, False),
    ]))
    groups = Groups([('1', hosts[0]), ('1', hosts[1]), ('2', hosts[2])])
    shares = FreeShares([groups.in_service(key) for key in groups.keys])
    assert shares.query(
        replica.indexes, [Window(0, 10), Window(0, 11), Window(19, 30)]
    ) == [[(1, 2), (1, 1)], [(0.5, 0), (1, 1)], [(0.5, 0), (1, 1)]]
    # A host that has gone meanwhile has nothing free.
    replica.apply(2, [('host', 'c', None)])
    assert shares.query(replica.indexes, [Window(0, 9)]) == [[(1, 2), (0, 0)]]
    assert FreeShares([]).query(replica.indexes, [Window(0, 9)]) == [[]]


CLASSES = ('VCPU', 'CUSTOM_GPU', 'CUSTOM_NIC')


def random_world(chance):
    """Return hosts, and the allocations on them, which fit."""
    hosts = [
        host(f'h{n}', VCPU=8, **{
            name: chance.randint(1, 4) for name in CLASSES[1:]
            if chance.random() < 0.6
        })
        for n in range(4)
    ]
    allocations = []
    for n in range(12):
        on = chance.choice(hosts)
        start = chance.randrange(20)
        amounts = {
            name: chance.randint(1, on.capacity(name))
            for name in CLASSES if name in on.inventory
            and chance.random() < 0.6
        } if chance.random() < 0.8 else {}
        new = Allocation(
            f'a{n}', f'r{n}', on.uuid, start, start + chance.randint(1, 10),
            amounts, not amounts,
        )
        if all(fits(on, [*allocations, new], at) for at in range(40)):
            allocations.append(new)
    return hosts, allocations


def taken(allocations, uuid, at):
    """Return the allocations that are on a host at a time."""
    return [a for a in allocations if a.host == uuid and a.start <= at < a.end]


def fits(on, allocations, at):
    here = taken(allocations, on.uuid, at)
    if any(a.whole for a in here):
        return len(here) == 1
    return all(
        sum(a.amounts.get(name, 0) for a in here) <= on.capacity(name)
        for name in CLASSES
    )


def free_by_brute_force(hosts, allocations, part, name):
    """Return the free share of a class throughout a part."""
    free = 0
    for on in hosts:
        seen = [
            taken(allocations, on.uuid, at)
            for at in range(part.start, part.end)
        ]
        if not any(a.whole for here in seen for a in here):
            free += on.capacity(name) - max(
                sum(a.amounts.get(name, 0) for a in here) for here in seen
            )
    return free / sum(on.capacity(name) for on in hosts)


@pytest.mark.parametrize('seed', range(40))
def test_free_shares_are_those_of_each_class(seed):
    chance = random.Random(seed)
    hosts, allocations = random_world(chance)
    replica = Replica(LedgerAccounting)
    replica.apply(1, map(record.encode, [
        *hosts,
        *(
            record.Reservation(
                a.reservation_id, f'l{a.id}', 'p', 'virtual:instance', a.start,
                a.end, a.amounts,
            )
            for a in allocations
        ),
        *allocations,
    ]))
    groups = Groups((chance.choice('12'), each) for each in hosts)
    rows = [groups.in_service(key) for key in groups.keys]
    parts = [Window(0, 5), Window(5, 16), Window(16, 40)]
    for name in (*CLASSES, None):
        found = FreeShares(rows, name).query(replica.indexes, parts)
        for part, shares in zip(parts, found, strict=True):
            for key, (share, _) in zip(groups.keys, shares, strict=True):
                members = groups.hosts(key)
                assert share == min((
                    free_by_brute_force(members, allocations, part, each)
                    for each in CLASSES
                    if name in (None, each)
                    and any(each in on.inventory for on in members)
                ), default=0), (name, part, key)
