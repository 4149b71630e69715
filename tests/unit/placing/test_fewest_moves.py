# SPDX-License-Identifier: Apache-2.0
"""The allocations that leave a host, compared with every choice."""

import itertools
import math

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from blazar_sched.domain import window
from blazar_sched.domain.allocation import Allocation
from blazar_sched.placing import fewest_moves

TIMES = 8
GPU = 'CUSTOM_GPU'
CLASSES = ('VCPU', 'MEMORY_MB', GPU)


def make(id, start, end, whole=False, **amounts):
    return Allocation(
        id, f'of {id}', 'host', start, end,
        {} if whole else {c: n for c, n in amounts.items() if n}, whole,
    )


def slots(id, start, end, vcpus):
    return make(id, start, end, VCPU=vcpus)


def ids(many):
    return [a.id for a in many]


class TestLeaving:
    def test_a_whole_host_takes_nothing_of_what_shrinks(self):
        movable = [make('a', 0, 5, whole=True)]
        assert fewest_moves.choose({}, [], movable, 0) == []

    def test_endless_allocation_leaves_for_an_endless_server(self):
        movable = [slots('a', 50, window.FOREVER, 2)]
        server = make('s', 0, window.FOREVER, VCPU=1)
        assert (
            fewest_moves.choose({'VCPU': 2}, [server], movable, 0) == movable
        )

    def test_many_allocations_leave_week_by_week(self):
        """Each of a hundred weeks has a choice of its own."""
        movable = [
            slots(f'{week}-{n}', week, week + 1, n)
            for week in range(100)
            for n in (1, 2, 3)
        ]
        gone = fewest_moves.choose({'VCPU': 4}, [], movable, 0)
        assert ids(gone) == [f'{week}-2' for week in range(100)]


def amounts(draw):
    drawn = {c: draw(st.integers(0, 4)) for c in CLASSES}
    return drawn if any(drawn.values()) else {'VCPU': 1}


@st.composite
def allocations(draw, prefix, most):
    made = []
    for n in range(draw(st.integers(0, most))):
        start = draw(st.integers(0, TIMES - 1))
        end = draw(st.integers(start + 1, TIMES))
        whole = draw(st.integers(0, 4)) == 0
        made.append(make(
            f'{prefix}{n}', start, end, whole,
            **({} if whole else amounts(draw)),
        ))
    return made


CAPACITY = st.fixed_dictionaries({c: st.integers(0, 8) for c in CLASSES})


def fits(each, capacity, there, now):
    """Tell whether allocations fit, second by second."""
    for at in range(max(each.start, now), each.end):
        others = [a for a in there if a is not each and a.start <= at < a.end]
        if others and (each.whole or any(a.whole for a in others)):
            return False
        for c, n in each.amounts.items():
            if n + sum(a.amounts.get(c, 0) for a in others) > capacity[c]:
                return False
    return True


def size(many):
    return (
        len(many),
        sum(a.whole for a in many),
        *(
            sum(a.amounts.get(c, 0) for a in many)
            for c in ('VCPU', 'MEMORY_MB', 'DISK_GB')
        ),
    )


def best(capacity, fixed, movable, now):
    """Return the size of the smallest set that may leave."""
    def is_enough(gone):
        stays = [a for a in movable if a not in gone]
        return all(fits(a, capacity, [*fixed, *stays], now) for a in stays)

    return min(
        size(gone)
        for count in range(len(movable) + 1)
        for gone in itertools.combinations(movable, count)
        if is_enough(gone)
    )


@settings(max_examples=400, deadline=None)
@given(
    CAPACITY, allocations('f', 3), allocations('m', 7), st.integers(0, TIMES)
)
def test_fewest_allocations_leave_then_the_smallest(
    capacity, fixed, movable, now
):
    gone = fewest_moves.choose(capacity, fixed, movable, now)
    assert size(gone) == best(capacity, fixed, movable, now)
    stays = [a for a in movable if a not in gone]
    for each in stays:
        assert fits(each, capacity, [*fixed, *stays], now)
    # Allocations can leave one after the other: each blocks until it leaves.
    for each in gone:
        assert not fits(each, capacity, [*fixed, *stays, each], now)


@settings(max_examples=100, deadline=None)
@given(
    CAPACITY, allocations('f', 3), allocations('m', 7), st.integers(0, TIMES)
)
def test_greedy_choice_frees_enough_and_no_more(capacity, fixed, movable, now):
    exact, fewest_moves.EXACT = fewest_moves.EXACT, 0
    try:
        gone = fewest_moves.choose(capacity, fixed, movable, now)
    finally:
        fewest_moves.EXACT = exact
    stays = [a for a in movable if a not in gone]
    for each in stays:
        assert fits(each, capacity, [*fixed, *stays], now)
    for each in gone:
        assert not fits(each, capacity, [*fixed, *stays, each], now)


def test_greedy_choice_takes_the_allocation_that_gives_most(monkeypatch):
    """The smallest allocations are not first: many would have to leave."""
    monkeypatch.setattr(fewest_moves, 'EXACT', 0)
    small = [slots(f'small{n}', 0, 5, 1) for n in range(10)]
    large = slots('large', 0, 5, 10)
    gone = fewest_moves.choose({'VCPU': 10}, [], [*small, large], 0)
    assert ids(gone) == ['large']


@settings(max_examples=100, deadline=None)
@given(allocations('m', 7), st.integers(1, 6))
def test_greedy_choice_keeps_its_bound(movable, capacity):
    """The bound has g, the most that one allocation gives back."""
    only = [
        slots(a.id, a.start, a.end, a.amounts['VCPU'])
        for a in movable
        if a.amounts.get('VCPU')
    ]
    fewest = fewest_moves.choose({'VCPU': capacity}, [], only, 0)
    exact, fewest_moves.EXACT = fewest_moves.EXACT, 0
    try:
        gone = fewest_moves.choose({'VCPU': capacity}, [], only, 0)
    finally:
        fewest_moves.EXACT = exact
    # An allocation gives back its amount at each instant with a shortage.
    most = max((a.amounts['VCPU'] * TIMES for a in only), default=1)
    assert len(gone) <= (1 + math.log(most)) * len(fewest)
