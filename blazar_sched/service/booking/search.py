# SPDX-License-Identifier: Apache-2.0
"""The search for windows in which a lease would find room.

Windows are searched for a request for offers, for a lease that is to begin at
the first start with room, and for a lease that is refused for lack of
capacity.

A search takes a bounded time, and says where it has stopped. One search runs
at a time in a manager, and few wait for their turn, so that the searches of
one project keep neither the threads of the API nor other projects waiting.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import time
from types import MappingProxyType
from typing import Any
from typing import TypeVar

from blazar_sched.domain import alignment
from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain import lease as lease_rules
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.window import TIME_LIMIT
from blazar_sched.domain.window import Window
from blazar_sched.placing import window_limits
from blazar_sched.placing import window_search
from blazar_sched.placing.lease_placing import Allocations
from blazar_sched.placing.window_search import Budget
from blazar_sched.replica import state
from blazar_sched.service import turns
from blazar_sched.service.booking import lease_writer
from blazar_sched.service.booking.booking import Bookings
from blazar_sched.service.booking.lease_writer import LeaseWriter
from blazar_sched.service.ledger import at_one_revision
from blazar_sched.service.ledger.at_one_revision import FixedReader
from blazar_sched.service.ledger.at_one_revision import Query
from blazar_sched.service.ledger.at_one_revision import ReplicaReader
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx

T = TypeVar('T')
R = TypeVar('R')
# Returns what was found, in this commit.
Booking = Callable[[PlacingTx], T]

# The seconds of processor time of the searches of one request, and of a search
# for which commits wait, half of them for the last attempt to place a lease.
SECONDS = 0.5
SECONDS_IN_COMMIT = 0.04
# The most searches that run or wait in a manager, of a project and of all, and
# the seconds that a search waits: its caller does not wait much longer.
MAX_PROJECT_SEARCHES = turns.MAX_OF_ONE
MAX_SEARCHES = turns.MAX
WAIT = turns.WAIT
# The seconds from the first to the last start, unless the client says.
DEFAULT_RANGE = 90 * 86400


class WindowSearch:
    """The search for windows with room for a lease that is not created yet.

    :param thread_time: returns the processor time of this thread in seconds
    """

    def __init__(
        self, bookings: Bookings,
        thread_time: Callable[[], float] = time.thread_time,
    ) -> None:
        self._bookings = bookings
        self._ledger = bookings.ledger
        self.thread_time = thread_time
        self._turns = turns.Turns('searches for windows')

    @contextlib.contextmanager
    def turn(self, project_id: str | None) -> Iterator[None]:
        """Wait for the turn of a search of a project, and keep the turn.

        :param project_id: None for a search of the manager, which has no turn
        :raises TooManyRequests: if too many searches run or wait already
        """
        if project_id is None:
            yield
            return
        with self._turns.take(
            project_id, MAX_PROJECT_SEARCHES, MAX_SEARCHES, WAIT
        ):
            yield

    def budget(self, seconds: float = SECONDS) -> Budget:
        """Return the budget of a search that begins now in this thread."""
        return Budget(self.thread_time, seconds)

    def first(
        self, values: Mapping[str, Any], lease: Lease, now: int
    ) -> Query[int]:
        """Return the search for the first start at which a lease finds room.

        If no start has room, the search finds the first start of all. A search
        that is given up raises NotEnoughHostsAvailable.

        :param values: the fields of a request for a lease, with the range of
            starts
        :param lease: the lease at any start
        :raises InvalidInput: naming the field that is wrong
        """
        check_on_hosts(lease, self._bookings.drivers.searched)
        bounds = bounds_of(values, now)
        allowed = self._bookings.enforcement.first_start(lease.project_id, now)
        if bounds.first < allowed <= bounds.last:
            bounds = dataclasses.replace(bounds, first=allowed)
        start = bounds.align(bounds.first)
        if start > bounds.last:
            raise exception.InvalidInput(
                'there is no aligned start from start_date to '
                'latest_start_date',
                field='align',
            )

        def search(reader: ReplicaReader) -> int:
            lease_search = LeaseSearch(
                self._bookings.writer, lease, bounds, now, reader
            )
            found = lease_search.earliest()
            until = lease_search.searched_until
            if found is None and until is not None:
                raise exception.NotEnoughHostsAvailable(
                    'no start has room before '
                    f'{duration.format_time(until)}, where the search was '
                    'given up because it took too long',
                    field='start_date',
                )
            return start if found is None else found.window.start

        return search

    def with_start(
        self, refusal: exception.NotEnoughHostsAvailable, lease: Lease,
        now: int,
    ) -> exception.NotEnoughHostsAvailable:
        """Return the refusal of a new lease with the first start with room.

        There is no start in the refusal of a lease that requests more than
        resources on hosts, or if none is found within the budget of a search.
        While too many others search, the refusal is returned as it is.
        """
        found = None
        if all(r.demand.is_on_hosts(active=False) for r in lease.reservations):
            try:
                found = self.result(
                    lambda reader: first_window(
                        self._bookings.writer, lease,
                        (lease.start, TIME_LIMIT - 1), now, reader,
                    ),
                    lease.project_id,
                )
            except exception.TooManyRequests:
                return refusal
        return with_window(refusal, found)

    def result(
        self, search: Query[T], project_id: str | None = None,
        budget: Budget | None = None,
    ) -> T:
        """Return the result of a search at one revision of the ledger.

        No commit waits for the whole search, unless commits come in between
        again and again; the search is given up early then.

        :param project_id: the project whose turn the search needs
        :raises TooManyRequests: as `turn`
        """
        with self.turn(project_id):
            return at_one_revision.find(
                self._ledger, search, budget or self.budget(),
                self._short_budget,
            )[0]

    def book(
        self, search: Query[T], book: Callable[[Booking[T]], R],
        project_id: str | None = None, budget: Budget | None = None,
    ) -> R:
        """Book what a search finds, at the revision at which it is found.

        No commit waits for the search, unless other commits come between the
        search and the booking again and again. What a long search finds is
        booked then if it still has room.

        :param book: makes a commit of what its argument returns in the commit
        :param project_id: the project whose turn the search needs
        :raises TooManyRequests: as `turn`
        """
        budget = budget or self.budget()
        for _ in range(at_one_revision.MAX_REPEATS):
            with self.turn(project_id):
                found, reader = at_one_revision.find(
                    self._ledger, search, budget, self._short_budget
                )

            def confirmed(
                tx: PlacingTx, found: T = found, reader: ReplicaReader = reader
            ) -> T:
                at_one_revision.confirm(reader, tx)
                return found

            with contextlib.suppress(at_one_revision.Outdated):
                return book(confirmed)
            if budget.is_spent:
                break
        else:
            return book(lambda tx: search(self.fixed(tx.replica, tx)))
        return book(lambda tx: found)

    def fixed(self, replica: state.Replica, source: Reader) -> FixedReader:
        """Return a reader for a short search, for which commits wait."""
        return FixedReader(replica, source, self._short_budget())

    def _short_budget(self) -> Budget:
        return self.budget(SECONDS_IN_COMMIT / 2)


def with_window(
    refusal: exception.NotEnoughHostsAvailable, window: Window | None
) -> exception.NotEnoughHostsAvailable:
    """Return a refusal with a window that has room."""
    return exception.NotEnoughHostsAvailable(
        refusal.args[0], refusal.field,
        {
            **(refusal.offer or {}),
            'start': window and window.start,
            'end': window and window.end,
        },
    )


def bounds_of(values: Mapping[str, Any], now: int) -> window_search.Bounds:
    """Return the windows of a length that begin in a range of starts.

    :param values: the fields of a request with the range
    :raises InvalidInput: naming the field that is wrong
    """
    first = lease_rules.soon(values['start'], now, 'start_date')
    last = values['latest_start']
    if last is None:
        last = first + DEFAULT_RANGE
    if last < first:
        raise exception.InvalidInput(
            'latest_start_date must not be before start_date',
            field='latest_start_date',
        )
    align = values.get('align')
    length = values['duration']
    return window_search.Bounds(
        first, min(last, TIME_LIMIT - 1), length, length,
        align=int if align is None else alignment.parse(align, 'align'),
    )


def check_on_hosts(
    lease: Lease, others: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Refuse reservations of which no room is known ahead of time.

    :param others: what is searched for beside what is on hosts: its name, by
        resource type
    :raises InvalidInput: naming `reservations`
    """
    if not all(
        r.demand.is_on_hosts(active=False) or r.resource_type in others
        for r in lease.reservations
    ):
        *names, last = 'hosts', 'instances', *others.values()
        what = f'{", ".join(names)} and {last}'
        raise exception.InvalidInput(
            f'windows are searched for {what} only', field='reservations'
        )


class LeaseSearch:
    """The search for one lease.

    :param lease: the reservations and the project
    :param left: the number of searches, with this one, that share the budget
    """

    _kind = window_search.Search

    def __init__(
        self, writer: LeaseWriter, lease: Lease, bounds: window_search.Bounds,
        now: int, reader: ReplicaReader, left: int = 1,
    ) -> None:
        self._lease = lease
        self._bounds = bounds
        self._now = now
        self._read = reader
        self._budget = reader.budget.part(left)
        self._options = writer.options
        self._rules = writer.rules
        self._others = reader.beside(
            lambda source: writer.free_off_hosts(source, lease, now)
        )
        self._search = self._searching(bounds)

    @property
    def searched_until(self) -> int | None:
        return self._search.searched_until

    def earliest(self) -> window_search.Found | None:
        """Return the first window with room, None if none was found."""
        return next(iter(self._search.earliest(1, 1)), None)

    def _searching(self, bounds: window_search.Bounds) -> window_search.Search:
        return self._kind(
            bounds,
            self._attempt,
            lambda: self._read(
                lambda replica: window_search.edges(
                    replica, self._lease, bounds, self._options,
                    [each.edges() for each in self._others],
                )
            ),
            budget=self._budget,
            # Displacement may find room beyond any limit.
            **({} if self._rules is not None else self._limits(bounds)),
        )

    def _attempt(self, window: Window) -> Allocations:
        # Commits wait for the query of the replica, and not for this.
        found = (each.lacking(window) for each in self._others)
        refusal = next((each for each in found if each is not None), None)

        def place(replica: state.Replica) -> Allocations:
            if refusal is not None:
                raise refusal
            lease = dataclasses.replace(
                self._lease, start=window.start, end=window.end
            )
            placed, _ = lease_writer.place(
                replica, lease, self._now, self._options, self._rules
            )
            return placed

        return self._read(place)

    def _limits(self, bounds: window_search.Bounds) -> dict[str, Any]:
        """Return the limits as arguments of the search."""
        lease, options = self._lease, self._options

        def first_start(at: int) -> int | None:
            first = at
            for each in self._others:
                later = each.first_start(at, bounds.least)
                if later is None:
                    return None
                first = max(first, later)
            return self._read(
                lambda replica: window_limits.first_start(
                    replica, lease, first, bounds.least, options
                )
            )

        return {
            'first_start': first_start,
            'last_end': lambda start: self._read(
                lambda replica: window_limits.last_end(
                    replica, lease, start, options
                )
            ),
        }


def first_window(
    writer: LeaseWriter, lease: Lease, starts: window_search.Starts, now: int,
    reader: ReplicaReader,
) -> Window | None:
    """Return the first window in which a lease finds room, None if none.

    :param lease: the lease in any window
    :param starts: the first start and the last
    """
    first, last = starts
    length = lease.window.duration
    bounds = window_search.Bounds(
        first, min(last, TIME_LIMIT - 1), length, length
    )
    found = LeaseSearch(writer, lease, bounds, now, reader).earliest()
    return found.window if found else None
