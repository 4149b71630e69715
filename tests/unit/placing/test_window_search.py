# SPDX-License-Identifier: Apache-2.0
"""Windows with room, against every window that there is."""

from concurrent import futures
import dataclasses
import threading

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.group_limit import GroupLimit
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window
from blazar_sched.placing import lease_placing
from blazar_sched.placing import window_limits
from blazar_sched.placing.options import Options
from blazar_sched.placing.window_search import Bounds
from blazar_sched.placing.window_search import Budget
from blazar_sched.placing.window_search import Edges
from blazar_sched.placing.window_search import edges
from blazar_sched.placing.window_search import Search
from blazar_sched.placing.window_search import UNLIMITED
from tests.unit.placing.placements import HOSTS
from tests.unit.placing.placements import make_lease
from tests.unit.placing.placements import PHYSICAL
from tests.unit.placing.placements import Placements
from tests.unit.placing.placements import RESERVATIONS
from tests.unit.placing.placements import WINDOWS

pytestmark = pytest.mark.more

# Nothing is booked after this time, see placements.WINDOWS.
LAST = 18


def aligned(step):
    return lambda at: -(-at // step) * step


BOUNDS = st.builds(
    lambda first, span, least, more, latest, step: Bounds(
        first, first + span, least, FOREVER if more is None else least + more,
        FOREVER if latest is None else first + latest, aligned(step),
    ),
    st.integers(0, 6), st.integers(0, 14), st.integers(1, 5),
    st.sampled_from([0, 0, 1, 4, None]),
    st.sampled_from([None, None, 3, 9, 14]), st.sampled_from([1, 1, 2, 5]),
)
BOOKED = st.lists(st.tuples(WINDOWS, RESERVATIONS), min_size=1, max_size=5)
OPTIONS = st.builds(Options, st.sampled_from([0, 0, 1, 2]))


def parts(window):
    """Return the two windows that lack a second of a window, if any."""
    end = min(window.end, LAST + 20)
    return [
        Window(start, until)
        for start, until in (
            (window.start + 1, window.end), (window.start, end - 1),
        )
        if start < until
    ]


class Asked:
    """A lease to be, and every window in which it would find room."""

    kind = Search

    def __init__(self, world, wanted, bounds, options, limits=None):
        self.lease = make_lease('asked', 'mine', Window(0, 1), wanted)
        self._world = world
        self._options = options
        self._bounds = bounds
        self._limits = limits

    def competes(self):
        """Tell whether the reservations of the lease compete for hosts.

        A window may be missed then: see placing.window_search. A window with
        room may have a part without room.
        """
        if len(self.lease.reservations) == 1:
            return False
        last = LAST + 20
        with_room = [
            Window(start, end)
            for start in range(self._bounds.first, last - 1)
            for end in [*range(start + 1, last), FOREVER]
            if self.count(start, end)
        ]
        return not all(
            self.has_room(part) for window in with_room
            for part in parts(window)
        )

    def has_room(self, window):
        return self.count(window.start, window.end) > 0

    def place(self, window):
        return lease_placing.place(
            self._world.replica, self.lease, window, options=self._options
        )

    def search(self, budget=UNLIMITED):
        limits = {
            None: {},
            'by trial': {'first_start': self.first_start},
            'by index': {
                'first_start': self.first_start_by_index,
                'last_end': self.last_end_by_index,
            },
        }
        return self.kind(
            self._bounds, self.place,
            lambda: edges(
                self._world.replica, self.lease, self._bounds, self._options
            ),
            **limits[self._limits], budget=budget,
        )

    def first_start_by_index(self, at):
        return window_limits.first_start(
            self._world.replica, self.lease, at, self._bounds.least,
            self._options,
        )

    def last_end_by_index(self, start):
        return window_limits.last_end(
            self._world.replica, self.lease, start, self._options
        )

    def first_start(self, at):
        """Return a start before which there is no room, by trying each."""
        return next(
            (
                start for start in range(at, LAST + 20)
                if self.count(start, start + self._bounds.least)
            ),
            None,
        )

    def count(self, start, end):
        """Return the number of allocations in a window, 0 for no room."""
        try:
            placed = self.place(Window(start, end))
        except exception.NotEnoughHostsAvailable:
            return 0
        return sum(map(len, placed.values()))

    def starts(self):
        first, last = self._bounds.first, self._bounds.last
        return [
            at for at in range(first, last + 1) if self._bounds.align(at) == at
        ]

    def ends(self, start):
        """Return the ends allowed at a start, the last one first."""
        last = self._bounds.last_end(start)
        ends = [FOREVER] if last == FOREVER else []
        finite = min(last, LAST + 20)
        return ends + list(range(finite, start + self._bounds.least - 1, -1))

    def longest_end(self, start):
        return next(
            (end for end in self.ends(start) if self.count(start, end)), None
        )


def booked(hosts, leases, overcommit, most=None):
    limits = () if most is None else [GroupLimit('all hosts', max=most)]
    world = Placements(hosts, overcommit, limits)
    for number, (window, wanted) in enumerate(leases):
        world.place(make_lease(f'l{number}', 'mine', window, wanted), window)
    return world


# Some hosts need no cleaning, whatever the options say.
CLEANED_HOSTS = st.builds(
    lambda hosts, times: [
        dataclasses.replace(host, cleaning_time=time)
        for host, time in zip(hosts, times, strict=True)
    ],
    HOSTS, st.tuples(*3 * [st.sampled_from([None, None, 0])]),
)
WORLDS = st.builds(
    booked, CLEANED_HOSTS, BOOKED, st.booleans(),
    st.sampled_from([None, None, 1, 2]),
)
LIMITS = pytest.mark.parametrize('limits', [None, 'by trial', 'by index'])
SEARCHES = given(
    world=WORLDS, wanted=RESERVATIONS, bounds=BOUNDS, options=OPTIONS,
    distance=st.integers(1, 4),
)


@pytest.mark.row('F26')
@settings(max_examples=400, deadline=None)
@SEARCHES
@LIMITS
def test_windows_have_the_earliest_start_and_the_latest_end(
    limits, world, wanted, bounds, options, distance
):
    asked = Asked(world, wanted, bounds, options, limits)
    found = asked.search().earliest(3, distance)
    expected, at = [], bounds.first
    for start in asked.starts():
        end = asked.longest_end(start)
        if start >= at and end is not None and len(expected) < 3:
            expected.append((start, end))
            at = start + distance
    assert all(asked.has_room(each.window) for each in found)
    assert (
        [(f.window.start, f.window.end) for f in found] == expected
        or asked.competes()
    )


def unbounded(bounds):
    return dataclasses.replace(
        bounds, most=FOREVER, latest_end=FOREVER, align=int
    )


@settings(max_examples=300, deadline=None)
@SEARCHES
def test_no_limit_is_too_strict(world, wanted, bounds, options, distance):
    bounds = unbounded(bounds)
    asked = Asked(world, wanted, bounds, options)
    for start in range(bounds.first, bounds.last + 1):
        first = asked.first_start(start)
        if first is not None:
            assert asked.first_start_by_index(start) <= first
        if asked.count(start, start + bounds.least):
            end = asked.longest_end(start) or 0
            assert asked.last_end_by_index(start) >= end


OF_HOSTS = given(
    world=st.builds(
        booked, CLEANED_HOSTS,
        st.lists(st.tuples(WINDOWS, st.tuples(PHYSICAL)), max_size=5),
        st.booleans(),
    ),
    wanted=st.tuples(PHYSICAL), bounds=BOUNDS, options=OPTIONS,
)


@settings(max_examples=300, deadline=None)
@OF_HOSTS
def test_the_limits_of_hosts_are_exact(world, wanted, bounds, options):
    bounds = unbounded(bounds)
    asked = Asked(world, wanted, bounds, options)
    for start in range(bounds.first, bounds.last + 1):
        if asked.count(start, start + bounds.least):
            assert asked.last_end_by_index(start) == asked.longest_end(start)


@settings(max_examples=300, deadline=None)
@given(
    world=WORLDS, wanted=RESERVATIONS, bounds=BOUNDS, options=OPTIONS,
    most=st.integers(0, 6),
)
@pytest.mark.parametrize('limits', [None, 'by index'])
def test_what_a_search_finds_in_time_is_what_is_first(
    limits, world, wanted, bounds, options, most
):
    """The search tries nothing once its budget is spent, and says where."""
    asked = Asked(world, wanted, bounds, options, limits)
    every = [each.window for each in asked.search().earliest(3, 1)]
    tries, place = [], asked.place
    asked.place = lambda window: tries.append(window) or place(window)
    search = asked.search(Budget(lambda: len(tries), most))
    found = [each.window for each in search.earliest(3, 1)]
    # At one start, three windows are tried before the budget is looked at.
    assert len(tries) <= most + 3
    until = search.searched_until
    assert until is not None or found == every
    starts = [each.start for each in found]
    assert starts == [each.start for each in every[:len(found)]]
    assert all(each.start >= until for each in every[len(found):])


def test_a_search_that_waits_for_its_edges_keeps_no_search_waiting():
    """A search in a commit would wait for a search that waits for the commit.
    """
    waiting, other_is_done = threading.Event(), threading.Event()

    def wait():
        waiting.set()
        other_is_done.wait(10)
        return Edges((), ())

    def refuse(window):
        raise exception.NotEnoughHostsAvailable('no room')

    def search(read):
        return Search(Bounds(0, 8, 1, 1), refuse, read).earliest(1, 1)

    with futures.ThreadPoolExecutor(2) as pool:
        pool.submit(search, wait)
        assert waiting.wait(10)
        other = pool.submit(search, lambda: Edges((), ()))
        try:
            assert other.result(5) == []
        finally:
            other_is_done.set()
