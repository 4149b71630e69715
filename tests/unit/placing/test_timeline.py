# SPDX-License-Identifier: Apache-2.0
"""Tracks, ranks, shares and what is free, beside brute force."""

import random

import pytest

from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import Host
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.window import Window
from blazar_sched.placing import timeline
from blazar_sched.placing.timeline import Bar
from blazar_sched.placing.timeline import FreeShares
from blazar_sched.placing.timeline import Groups
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
        tracks = list(timeline.tracks(windows))
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
    assert timeline.after(groups.keys, None, 2) == ['9', '10']
    # A marker need not be there any more.
    assert timeline.after(groups.keys, '9', 2) == ['10', '1' * 40]
    assert timeline.after(groups.keys, '3', 1) == ['9']
    assert timeline.after(groups.keys, 'y', 9) == ['²', '']


@pytest.mark.parametrize('amounts, whole, share', [
    ({'VCPU': 2, 'MEMORY_MB': 1}, False, 0.5),
    ({'VCPU': 1, 'MEMORY_MB': 3}, False, 0.75),
    ({'CUSTOM_GPU': 1}, False, 1),
    ({'CUSTOM_FPGA': 1, 'VCPU': 1}, False, 0.25),
    ({'VCPU': 9}, False, 1),
    ({}, True, 1),
    ({}, False, 0),
])
def test_the_share_is_that_of_the_class_with_the_most(amounts, whole, share):
    one = host('a', VCPU=4, MEMORY_MB=4, CUSTOM_GPU=1)
    assert timeline.share(one, amounts, whole) == share


def test_a_group_has_one_bar_for_each_reservation():
    one = Bar('lease', 0, 9, 0.5, 'p', 'l', 'r')
    two = Bar('lease', 0, 9, 1, 'p', 'l', 'other')
    assert timeline.merged([one, two, one], 4) == [
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
    ) == [
        [(1, 2), (1, 1)],
        [(0.875, 0), (1, 1)],
        [(0.875, 0), (1, 1)],
    ]
    # A host that has gone meanwhile has nothing free.
    replica.apply(2, [('host', 'c', None)])
    assert shares.query(replica.indexes, [Window(0, 9)]) == [
        [(1, 2), (0, 0)]
    ]
    assert FreeShares([]).query(replica.indexes, [Window(0, 9)]) == [[]]
