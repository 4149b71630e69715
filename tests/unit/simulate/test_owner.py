# SPDX-License-Identifier: Apache-2.0
"""Owners that use a part of what they reserve, with known answers."""

import dataclasses
import random

import pytest

from blazar_sched.simulate import lease
from blazar_sched.simulate import owner
from blazar_sched.simulate import policy
from blazar_sched.simulate import trace
from tests.unit.simulate.test_simulation import END
from tests.unit.simulate.test_simulation import host
from tests.unit.simulate.test_simulation import HOUR
from tests.unit.simulate.test_simulation import instance
from tests.unit.simulate.test_simulation import played
from tests.unit.simulate.test_simulation import slots
from tests.unit.simulate.test_simulation import START

NO_LENDING = policy.without(policy.LENDING)


def hosts(*uses):
    """Return the booking of three whole hosts, with the uses by its owner."""
    return lease.Booking(0, lease._lease(
        0, START, END, lease._hosts(3)
    ), tuple((START + at, units) for at, units in uses))


def spot(after, lifetime=20 * HOUR, vcpus=8):
    return instance(START + after, lifetime, trace.PREEMPTIBLE, vcpus)


def play(booking, *instances, by=policy.OURS):
    return played(
        *instances, by=by, bookings=[booking], pool=3,
        hosts=[host(name) for name in 'abc'],
    )


def test_a_host_beside_use_and_reserve_is_lent():
    booking = hosts((0, 1))
    found = play(booking, spot(HOUR), spot(2 * HOUR))
    assert found.refused == {trace.PREEMPTIBLE: 1}
    assert found.unused_vcpu_hours == 2 * 8 * 24
    assert found.borrowed_vcpu_hours == 8 * 20
    found = play(booking, spot(HOUR), spot(2 * HOUR), by=NO_LENDING)
    assert found.refused == {trace.PREEMPTIBLE: 2}
    assert found.borrowed_vcpu_hours == 0


def test_nothing_is_lent_at_the_start():
    found = play(hosts((0, 1)), spot(owner.AFTER - 1))
    assert found.refused == {trace.PREEMPTIBLE: 1}


def test_the_owner_takes_one_host_after_the_other_at_once():
    found = play(
        hosts((0, 1), (10 * HOUR, 1), (12 * HOUR, 1)), spot(HOUR)
    )
    assert found.owner_waits == [0, 0, 0]
    assert found.recalled == {trace.PREEMPTIBLE: 1}
    assert found.bursts == found.unserved == 0


def test_a_burst_beyond_the_reserve_waits_for_the_recall():
    found = play(hosts((0, 1), (10 * HOUR, 2)), spot(HOUR))
    assert found.owner_waits == [0, 0, owner.INTERVAL + owner.NOTICE]
    assert found.bursts == 1


def test_slots_are_lent_too():
    booking = dataclasses.replace(slots(8), uses=((START, 2),))
    found = play(booking, *(spot(HOUR + n, vcpus=1) for n in range(24)))
    # The owner has taken two at once: two are in use, two are the reserve.
    assert found.refused == {trace.PREEMPTIBLE: 4}
    assert found.borrowed_vcpu_hours == pytest.approx(4 * 20, abs=0.1)


@pytest.mark.parametrize('absent, late', [(0, 0), (1, 0), (0, 1), (0.5, 0.5)])
def test_each_unit_is_used_once_at_most(absent, late):
    rng = random.Random(1)
    booking = slots(16)
    for _ in range(50):
        uses = owner.draw(booking, absent, late, rng)
        count = sum(units for _, units in uses)
        assert count <= 16
        assert absent or count == 16
        assert absent < 1 or uses == ()
        assert late or {at for at, _ in uses} <= {START}
        assert all(START <= at < END for at, _ in uses)
        assert late < 1 or len(uses) in (1, 16)


def test_leases_that_start_together_have_room_beside_each_other():
    """The first start evicts nobody: the second one knows of both leases."""
    bookings = [
        dataclasses.replace(
            each, lease=dataclasses.replace(
                each.lease, id=f'lease-{n}', reservations=(
                    dataclasses.replace(each.lease.reservations[0], id=f'{n}'),
                ),
            ), uses=((START, 4),),
        )
        for n, each in enumerate([slots(4), slots(4)])
    ]
    found = played(spot(-HOUR, vcpus=2), bookings=bookings)
    assert found.evicted == {trace.PREEMPTIBLE: 1}
    assert found.owner_waits == 8 * [0]
