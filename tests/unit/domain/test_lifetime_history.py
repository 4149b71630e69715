# SPDX-License-Identifier: Apache-2.0
"""Expected remaining lifetimes, against the mean of the lifetimes."""

import statistics

from hypothesis import given
from hypothesis import strategies as st
import pytest

from blazar_sched.domain import lifetime_history
from blazar_sched.domain import window
from blazar_sched.domain.instance import Instance

HOUR, DAY = 3600, 86400
LIFETIMES = st.lists(
    st.integers(60, 365 * DAY - HOUR), min_size=1, max_size=50
)


def history(*lifetimes):
    empty = lifetime_history.LifetimeHistory('p/1/512')
    return lifetime_history.add(empty, lifetimes, 5)


def is_about(found, mean):
    """A bucket spans a factor of the square root of 2."""
    return mean / 2 ** 0.26 - 1 <= found <= mean * 2 ** 0.26 + 1


@given(LIFETIMES)
def test_new_instance_is_expected_to_live_as_long_as_others(lifetimes):
    found = lifetime_history.remaining(history(*lifetimes), 0)
    assert is_about(found, statistics.mean(lifetimes))


@given(LIFETIMES, st.sampled_from(lifetime_history.EDGES))
def test_older_instance_is_expected_to_live_as_long_as_the_survivors(
    lifetimes, age
):
    survivors = [each for each in lifetimes if each >= age]
    found = lifetime_history.remaining(history(*lifetimes), age)
    if survivors:
        assert is_about(age + found, statistics.mean(survivors))
    else:
        assert found == age


@given(LIFETIMES, st.integers(0, 10 * 365 * DAY))
def test_nothing_is_expected_to_have_ended(lifetimes, age):
    assert lifetime_history.remaining(history(*lifetimes), age) >= 1


@pytest.mark.parametrize('lifetime', [0, 1, 59, 10 * 365 * DAY])
def test_extreme_lifetimes_are_counted(lifetime):
    counts = history(lifetime).counts
    assert sum(counts) == lifetime_history.UNIT
    assert counts[-1 if lifetime else 0] or lifetime in (1, 59)


def test_expectation_follows_a_change_of_habit():
    habit = history(*[30 * DAY] * 5000)
    habit = lifetime_history.add(habit, [HOUR] * 5000, 6)
    assert lifetime_history.remaining(habit, 0) < 2 * DAY
    assert sum(habit.counts) <= lifetime_history.LIMIT
    assert habit.ended_at == 6


def test_one_long_lifetime_in_thousands_is_remembered():
    habit = history(300 * DAY, *[HOUR] * 3000)
    assert lifetime_history.remaining(habit, DAY) > 100 * DAY


def test_size_and_project_are_told_apart():
    size = {'VCPU': 2, 'MEMORY_MB': 512}
    ids = {
        lifetime_history.id_of(project, amounts)
        for project in ('p', 'q')
        for amounts in (size, {**size, 'VCPU': 1}, {**size, 'MEMORY_MB': 1})
    }
    assert len(ids) == 6
    assert lifetime_history.id_of('p', {**size, 'DISK_GB': 9}) in ids


@pytest.mark.parametrize(
    'counted, fields',
    [
        (True, {}),
        (False, {'created': 0}),
        (False, {'end': 99}),
        (False, {'claim': 'r'}),
        (False, {'preemptible': True}),
    ],
)
def test_only_ends_that_nobody_has_set_are_counted(counted, fields):
    known = {'created': 7, 'end': window.FOREVER, **fields}
    one = Instance('i', 'h', 'p', {'VCPU': 1}, **known)
    assert lifetime_history.is_counted(one) == counted
