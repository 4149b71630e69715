# SPDX-License-Identifier: Apache-2.0
"""The drawn leases have the requested share."""

from collections import Counter
import random

import pytest

from blazar_sched.parts.simulate import lease
from blazar_sched.parts.simulate import trace

HOSTS = [trace.Host(f'h{n}', 32, 65536) for n in range(20)]
SPAN = 60 * lease.DAY


def drawn(seed=1, **options):
    load = lease.Load(**options)
    return lease.draw(load, HOSTS, SPAN, random.Random(seed))


def host_seconds(booking):
    [reservation] = booking.lease.reservations
    demand = reservation.demand
    hosts = demand.most * (1 if demand.whole else demand.slot['VCPU'] / 32)
    return hosts * (min(SPAN, booking.lease.end) - booking.lease.start)


@pytest.mark.parametrize('share', [0.1, 0.3, 0.6])
def test_leases_take_the_share_and_hardly_more(share):
    taken = sum(map(host_seconds, drawn(share=share)))
    whole = len(HOSTS) * SPAN
    most = 4 * lease.MAX_DURATION / whole
    assert share <= taken / whole <= share + most


def test_leases_are_booked_ahead_in_order():
    bookings = drawn(ahead=(1, 14))
    aheads = [each.lease.start - each.at for each in bookings]
    assert min(aheads) >= lease.DAY
    assert max(aheads) <= 14 * lease.DAY
    assert [each.at for each in bookings] == sorted(
        each.at for each in bookings
    )


@pytest.mark.parametrize('whole, kinds', [
    (0, {'virtual:instance'}), (1, {'physical:host'}),
])
def test_their_kind_can_be_chosen(whole, kinds):
    assert kinds == {
        each.lease.reservations[0].resource_type for each in drawn(whole=whole)
    }


def test_half_of_the_leases_of_instances_have_gpus_if_there_are_any():
    hosts = [trace.Host(f'h{n}', 32, 65536, gpus=4) for n in range(20)]
    found = lease.draw(lease.Load(whole=0.5), hosts, SPAN, random.Random(1))
    kinds = Counter(each.lease.reservations[0].resource_type for each in found)
    assert kinds['physical:host'] and kinds['virtual:instance']
    share = kinds['flavor:instance'] / (
        kinds['flavor:instance'] + kinds['virtual:instance']
    )
    assert 0.3 < share < 0.7


def test_the_same_seed_draws_the_same():
    assert drawn(seed=5) == drawn(seed=5) != drawn(seed=6)


def test_more_tries_make_a_more_level_load():
    def peak(tries):
        steps = sorted(
            (at, sign * host_seconds(each) / (
                min(SPAN, each.lease.end) - each.lease.start
            ))
            for each in drawn(tries=tries)
            for at, sign in ((each.lease.start, 1), (each.lease.end, -1))
        )
        level = highest = 0
        for _, step in steps:
            level += step
            highest = max(highest, level)
        return highest

    assert peak(tries=5) < peak(tries=1)


def test_no_lease_is_drawn_where_no_lease_can_be_booked():
    load = lease.Load(ahead=(2, 3))
    assert lease.draw(load, HOSTS, lease.DAY, random.Random(1)) == []
