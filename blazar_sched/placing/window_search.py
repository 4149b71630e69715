# SPDX-License-Identifier: Apache-2.0
"""The search for windows in which a lease finds room.

For one choice of hosts, the starts with room form intervals. Each interval
begins with the search, or where an entry on one of the hosts ends and the host
is clean again: at an *opening*. The first start with room is therefore found
exactly by trying the openings alone. In the same way, the last end with room
is the last end that may be asked for, or a *closing*: a time at which a host
must be free for the next entry. A longer lease never finds room more easily,
so the last end is found by bisection of the closings.

Where reservations of one lease compete for the same hosts, the choice depends
on the free hosts: with fewer of them, the first reservation may leave the host
that the second one needs. A window that has room for this reason alone may be
missed.
"""

import bisect
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import itertools

from blazar_sched.domain import exception
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import TIME_LIMIT
from blazar_sched.domain.window import Window
from blazar_sched.placing.lease_placing import Allocations
from blazar_sched.placing.options import DEFAULT_OPTIONS
from blazar_sched.placing.options import Options
from blazar_sched.replica import state
from blazar_sched.replica.indexes import distinct

# The first and the last start of a range of starts.
Starts = tuple[int, int]
# Returns the allocations of the lease over a window.
Attempt = Callable[[Window], Allocations]
# The most windows that one search tries.
MAX_ATTEMPTS = 500


class Budget:
    """The time that a search may still take, alone or with other searches.

    :param clock: returns the seconds of processor time of this thread
    """

    def __init__(self, clock: Callable[[], float], seconds: float) -> None:
        self._clock = clock
        self._until = clock() + seconds

    @property
    def is_spent(self) -> bool:
        return self._clock() >= self._until

    def part(self, count: int) -> 'Budget':
        """Return an equal part for the next of a number of searches."""
        return Budget(self._clock, (self._until - self._clock()) / count)


# The budget of a search that only MAX_ATTEMPTS ends.
UNLIMITED = Budget(float, 1)


@dataclasses.dataclass(frozen=True, slots=True)
class Bounds:
    """The windows that a search considers.

    :param first: the first start
    :param last: the last start
    :param least: the least length in seconds, FOREVER for windows without end
    :param most: the greatest length in seconds, FOREVER for any length
    :param latest_end: the last end, FOREVER for any end
    :param align: returns the first start that people want, at or after a time
    """

    first: int
    last: int
    least: int
    most: int
    latest_end: int = FOREVER
    align: Callable[[int], int] = int

    def least_end(self, start: int) -> int:
        """Return the first end of a window with a start, FOREVER for none."""
        return FOREVER if self.least == FOREVER else start + self.least

    def last_end(self, start: int) -> int:
        """Return the last end of a window with a start, FOREVER for none."""
        end = FOREVER if self.most == FOREVER else start + self.most
        end = min(end, self.latest_end)
        return FOREVER if end == FOREVER else min(end, TIME_LIMIT - 1)

    @property
    def around(self) -> Window:
        """A window around all windows that are considered."""
        end = max(self.last_end(self.last), self.last + 1)
        return Window(self.first, end if end < TIME_LIMIT else FOREVER)


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """A window with room, and the allocations that a lease would get."""

    window: Window
    placed: Allocations

    @property
    def count(self) -> int:
        """The number of allocations."""
        return sum(map(len, self.placed.values()))


@dataclasses.dataclass(frozen=True, slots=True)
class Edges:
    """The openings and the closings of what a lease may use, in order."""

    openings: Sequence[int]
    closings: Sequence[int]


def edges(
    replica: state.Replica, lease: Lease, bounds: Bounds,
    options: Options = DEFAULT_OPTIONS, others: Sequence[Edges] = (),
) -> Edges:
    """Return the openings and closings of what a lease may use.

    Openings and closings that no window within the bounds can have are left
    out.

    O(number of all entries).

    :param others: the edges of what is not on hosts
    """
    openings: list[Sequence[int]] = [each.openings for each in others]
    closings: list[Sequence[int]] = [each.closings for each in others]
    starts: Sequence[int]
    ends: Sequence[int]
    for group in replica.indexes.groups:
        starts, ends = group.edges(bounds.around)
        openings.append(ends)
        closings.append(starts)
    for seconds, hosts in _by_cleaning_time(replica, lease, options).items():
        starts, ends = replica.indexes.edges(
            hosts, bounds.around.widened(seconds)
        )
        openings.append([end + seconds for end in ends] if seconds else ends)
        closings.append(
            [start - seconds for start in starts] if seconds else starts
        )
    return Edges(distinct(openings), distinct(closings))


class Search:
    """A search for windows in which one lease finds room.

    The limits only make the search faster: see placing.window_limits.

    :param attempt: raises NotEnoughHostsAvailable for a window without room
    :param edges: returns the edges; called when the search needs them
    :param first_start: returns a start before which the lease finds no room
        at or after a time, None if the lease finds no room at all
    :param last_end: returns an end after which the lease finds no room from a
        start
    :ivar searched_until: the first start at which the search has not tried
        every window, because the budget is spent or after MAX_ATTEMPTS; None
        if the search is complete
    """

    def __init__(
        self, bounds: Bounds, attempt: Attempt, edges: Callable[[], Edges],
        first_start: Callable[[int], int | None] = int,
        last_end: Callable[[int], int] = lambda start: FOREVER,
        budget: Budget = UNLIMITED,
    ) -> None:
        self.searched_until: int | None = None
        self._bounds = bounds
        self._attempt = attempt
        self._read_edges = edges
        self._known_edges: Edges | None = None
        self._first_start = first_start
        self._last_end = last_end
        self._budget = budget
        self._attempts = 0

    @property
    def _edges(self) -> Edges:
        # Not a cached_property: before Python 3.12, its lock is shared by all
        # searches, and a search that waits for the ledger would hold it.
        if self._known_edges is None:
            self._known_edges = self._read_edges()
        return self._known_edges

    def earliest(self, limit: int, distance: int) -> list[Found]:
        """Return windows in the order of their starts, each as long as it can.

        O(starts tried · log closings) attempts.

        :param limit: the most windows to return
        :param distance: the least seconds between two starts
        """
        found: list[Found] = []
        at = self._bounds.first
        while (
            len(found) < limit
            and at <= self._bounds.last
            and self._may_attempt(at)
        ):
            first = self._first(at)
            if first is None:
                break
            found.append(first)
            at = first.window.start + distance
        return found

    def _first(self, at: int) -> Found | None:
        """Return the first window with room that starts at a time or later.

        The edges are read only if the limits do not lead to the window.
        """
        found = self._longest_at(self._bounds.align(at))
        if found is not None:
            return found
        lower = self._first_start(at)
        if lower is None:
            return None
        if lower > at:
            found = self._longest_at(self._bounds.align(lower))
        return found or next(self._from(lower), None)

    def _from(self, at: int) -> Iterator[Found]:
        """Yield the windows with room that start at a time or an opening."""
        lower: int | None = at
        for start in self._starts(at):
            if lower is None or not self._may_attempt(start):
                return
            if start < lower:
                continue
            found = self._longest_at(start)
            if found is not None:
                yield found
            else:
                lower = self._first_start(start)

    def _may_attempt(self, start: int) -> bool:
        """Tell whether a start may be tried, and note if not."""
        if self._attempts < MAX_ATTEMPTS and not self._budget.is_spent:
            return True
        if self.searched_until is None or start < self.searched_until:
            self.searched_until = start
        return False

    def _starts(self, at: int) -> Iterator[int]:
        """Yield the starts to try, in order."""
        openings = self._edges.openings
        later = itertools.islice(
            openings, bisect.bisect_right(openings, at), None
        )
        start = -1
        for time in itertools.chain([at], later):
            if time <= start:
                continue
            start = self._bounds.align(time)
            if start > self._bounds.last:
                return
            yield start

    def _longest_at(self, start: int) -> Found | None:
        """Return the longest window with room that begins at a start."""
        end = self._bounds.last_end(start)
        least_end = self._bounds.least_end(start)
        if start > self._bounds.last or end < least_end:
            return None
        if end > least_end:
            end = min(end, self._last_end(start))
            if end < least_end:
                return None
        found = self._fitting(start, end)
        if found is not None or end == least_end:
            return found
        found = self._fitting(start, least_end)
        if found is None:
            return None
        closings = self._edges.closings
        low = bisect.bisect_right(closings, least_end)
        high = bisect.bisect_left(closings, end)
        while low < high and self._may_attempt(start):
            middle = (low + high) // 2
            longer = self._fitting(start, closings[middle])
            if longer is None:
                high = middle
            else:
                found, low = longer, middle + 1
        return found

    def _fitting(self, start: int, end: int) -> Found | None:
        window = Window(start, end)
        self._attempts += 1
        try:
            return Found(window, self._attempt(window))
        except exception.NotEnoughHostsAvailable:
            return None


def _by_cleaning_time(
    replica: state.Replica, lease: Lease, options: Options
) -> dict[int, set[str]]:
    """Return the hosts that a lease may use by cleaning time in seconds."""
    found: dict[int, set[str]] = defaultdict(set)
    for each in options.alternatives():
        for reservation in lease.reservations:
            if not reservation.demand.is_on_hosts(active=False):
                continue
            candidates = replica.catalog.candidates(
                reservation, lease.project_id, each.default
            )
            for seconds, part in candidates.parts(
                replica.indexes.main,
                each.cleaning_time_of(reservation.resource_type),
            ):
                found[seconds].update(part.hosts)
    return found
