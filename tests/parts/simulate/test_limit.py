# SPDX-License-Identifier: Apache-2.0
"""The limit on small traces with known answers, and what is told by it."""

import pytest

from blazar_sched.parts.simulate import limit
from blazar_sched.parts.simulate import policy
from blazar_sched.parts.simulate import result
from blazar_sched.parts.simulate import simulation
from blazar_sched.parts.simulate import tables
from blazar_sched.parts.simulate import trace
from tests.parts.simulate import test_simulation as small

DAY, END, START = small.DAY, small.END, small.START


def played(*instances, hosts=None, bookings=None):
    return limit.play(simulation.Scenario(
        hosts or [small.host('a'), small.host('b')], instances,
        [small.whole()] if bookings is None else bookings, 1, small.SPAN, {},
    ))


def test_an_instance_has_parts_of_all_hosts():
    found = played(small.instance(0, DAY, vcpus=16))
    assert not found.refused
    assert found.utilisation == (16 + 8) / (16 * 4)


def test_a_lease_is_known_before_it_is_booked_and_so_is_every_lifetime():
    late = small.whole(at=DAY)
    long = small.instance(0, 3 * DAY, trace.UNBOUNDED, vcpus=9)
    assert played(long, bookings=[late]).refused == {trace.UNBOUNDED: 1}
    short = small.instance(0, 2 * DAY, trace.UNBOUNDED, vcpus=9)
    assert not played(short, bookings=[late]).refused


def test_preemptible_instances_that_came_last_yield_to_a_lease():
    guests = [
        small.instance(at, END, trace.PREEMPTIBLE, vcpus=5) for at in range(3)
    ]
    found = played(*guests, small.instance(END, 1))
    assert found.evicted == {trace.PREEMPTIBLE: 2}
    assert not found.refused
    # Only what is there now can be in the way of another instance.
    found = played(*guests, small.instance(START - 1, DAY, vcpus=2))
    assert found.refused == {trace.BOUNDED: 1}


def counted(name, refused, asked=10, gpus=0, kind=trace.BOUNDED):
    found = result.Result(name, gpu_utilisation=0.5)
    for number in range(asked):
        each = small.instance(0, 3600, kind, vcpus=2, gpus=gpus)
        found.count(each)
        if number < refused:
            found.refuse(each)
    return found


@pytest.mark.row('F122')
def test_the_way_from_the_pool_to_the_limit():
    pool, ours, best = (counted(name, n) for name, n in (
        ('freepool', 5), ('ours', 2), ('limit', 1)
    ))
    for each in (pool, ours, best):
        each.compare(pool, best)
    assert [each.vcpu_way for each in (pool, ours, best)] == [0, 0.75, 1]
    assert ours.gpu_way is None
    assert ours.refused_gib_hours == 1


@pytest.mark.row('F122')
def test_a_class_is_worse_by_its_share_if_enough_is_asked():
    assert small_worse(ours=3, pool=2, asked=10)
    assert not small_worse(ours=2, pool=2, asked=10)
    assert not small_worse(ours=3, pool=2, asked=9)


def small_worse(ours, pool, asked):
    pool, ours = (
        counted('freepool', pool, asked), counted('ours', ours, asked)
    )
    ours.compare(pool, counted('limit', 0, asked))
    shown = [str(each) for each in tables.scenes([7], [ours])][1:]
    assert shown == len(ours.worse) * [
        'seed 7, more refused than by freepool: '
        'bounded, ≤ 8 VCPUs, 0 GPUs, ≤ 1 days'
    ]
    return ours.worse


def test_the_limit_is_compared_last():
    assert policy.compared()[-1] == policy.LIMIT
