# SPDX-License-Identifier: Apache-2.0
"""A start that fits is found by few queries."""

from hypothesis import given
from hypothesis import strategies as st
import pytest

from blazar_sched.domain import window
from blazar_sched.placing import offer

FAR = offer.STEP * (2**offer.TRIES - 1)


@given(st.integers(0, 10**9), st.integers(0, FAR))
def test_search_finds_the_first_start_if_all_later_starts_fit(start, wait):
    questions = []

    def fits(at):
        questions.append(at)
        return at >= start + wait

    assert offer.search(fits, start) == start + wait
    assert len(questions) <= 60


@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 100 * offer.STEP), min_size=1, max_size=9),
)
def test_search_finds_a_start_that_fits_after_one_that_does_not(
    start, lengths
):
    """Capacity is freed and used again, and is free at the end."""
    borders = [start + sum(lengths[:n]) for n in range(len(lengths) + 1)]

    def fits(at):
        passed = sum(border <= at for border in borders)
        return at >= borders[-1] or passed % 2 == 0

    found = offer.search(fits, start)
    assert fits(found)
    assert found == start or not fits(found - 1)


@pytest.mark.parametrize('start', [0, window.TIME_LIMIT - 2])
def test_none_where_there_is_none_in_sight(start):
    assert offer.search(lambda at: False, start) is None
