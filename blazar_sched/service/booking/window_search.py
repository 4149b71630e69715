# SPDX-License-Identifier: Apache-2.0
"""The search for windows in which a lease would find room.

Windows are searched for a request for offers, for a lease that is to begin at
the first start with room, and for a lease that is refused for lack of
capacity.

A search takes a bounded time, and says where it has stopped. One search runs
at a time in a manager, and few wait for their turn, so that the searches of
one project keep neither the threads of the API nor other projects waiting.
"""

from collections import Counter
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import functools
import threading
import time
from typing import Any
from typing import TypeVar

from oslo_config import cfg

from blazar_sched.domain import alignment
from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain import lease as lease_rules
from blazar_sched.domain import states
from blazar_sched.domain import window
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.floating_ip import Use
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.lease_request import Starts
from blazar_sched.domain.relocation import Rules
from blazar_sched.domain.reservation import FLOATING_IP
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import TIME_LIMIT
from blazar_sched.domain.window import Window
from blazar_sched.placing import displacement
from blazar_sched.placing import floating_ip
from blazar_sched.placing import lease_placing
from blazar_sched.placing import offer as offer_search
from blazar_sched.placing import window_limits
from blazar_sched.placing import window_search
from blazar_sched.placing.options import Options
from blazar_sched.placing.window_search import Budget
from blazar_sched.replica import state
from blazar_sched.service.booking import placing_options
from blazar_sched.service.booking.booking import Bookings
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx

T = TypeVar('T')
R = TypeVar('R')

# How often a search is begun anew because of a commit.
SEARCHES = 3
# The seconds of processor time of the searches of one request, and of a search
# for which commits wait.
SECONDS = 0.5
SECONDS_IN_COMMIT = 0.2
# The most searches that run or wait in a manager, of a project and of all, and
# the seconds that a search waits: its caller does not wait much longer.
MAX_PROJECT_SEARCHES = 4
MAX_SEARCHES = 8
WAIT = 10.0
# The seconds from the first to the last start, unless the client says.
DEFAULT_RANGE = 90 * 86400


class WindowSearch:
    """The search for windows with room for a lease that is not created yet.

    :param thread_time: returns the processor time of this thread in seconds
    """

    def __init__(
        self,
        bookings: Bookings,
        thread_time: Callable[[], float] = time.thread_time,
    ) -> None:
        self._conf = bookings.conf
        self._bookings = bookings
        self._ledger = bookings.ledger
        self.thread_time = thread_time
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self._searches: Counter[str] = Counter()

    @contextlib.contextmanager
    def turn(self, project_id: str | None) -> Iterator[None]:
        """Wait for the turn of a search of a project, and keep the turn.

        :param project_id: None for a search of the manager, which has no turn
        :raises TooManyRequests: if too many searches run or wait already
        """
        if project_id is None:
            yield
            return
        with self._lock:
            if (
                self._searches[project_id] >= MAX_PROJECT_SEARCHES
                or self._searches.total() >= MAX_SEARCHES
            ):
                raise _too_many()
            self._searches[project_id] += 1
        try:
            if not self._turn.acquire(timeout=WAIT):
                raise _too_many()
            try:
                yield
            finally:
                self._turn.release()
        finally:
            with self._lock:
                self._searches -= Counter([project_id])

    def budget(self, seconds: float = SECONDS) -> Budget:
        """Return the budget of a search that begins now in this thread."""
        return Budget(self.thread_time, seconds)

    def windows(self, values: Mapping[str, Any]) -> 'Search[Windows]':
        """Return the search for windows for a lease, or for an alternative.

        :param values: the fields of a request for offers
        :raises InvalidInput: naming the field that is wrong
        """
        now = self._bookings.now()
        bounds = _bounds(values, now)
        leases = [
            self._bookings.drafts.new(
                {
                    'name': '', 'project_id': values['project_id'],
                    'user_id': values['user_id'], 'before_end': None,
                    'start': bounds.first,
                    'end': bounds.first + bounds.least,
                    'reservations': reservations,
                },
                now,
            )
            for reservations in values['alternatives']
        ]
        for lease in leases:
            check_on_hosts(lease, or_floating_ips=True)
        return lambda reader: self._windows(
            values, leases, bounds, now, reader
        )

    def first(
        self, values: Mapping[str, Any], lease: Lease, now: int
    ) -> 'Search[int]':
        """Return the search for the first start at which a lease finds room.

        If no start has room, the search finds the first start of all. A search
        that is given up raises NotEnoughHostsAvailable.

        :param values: the fields of a request for a lease, with the range of
            starts
        :param lease: the lease at any start
        :raises InvalidInput: naming the field that is wrong
        """
        check_on_hosts(lease, or_floating_ips=True)
        bounds = _bounds(values, now)
        start = bounds.align(bounds.first)
        if start > bounds.last:
            raise exception.InvalidInput(
                'there is no aligned start from start_date to '
                'latest_start_date',
                field='align',
            )

        def search(reader: ReplicaReader) -> int:
            lease_search = _LeaseSearch(self._conf, lease, bounds, now, reader)
            found = lease_search.best('earliest', 1, 1)
            until = lease_search.searched_until
            if not found and until is not None:
                raise exception.NotEnoughHostsAvailable(
                    'no start has room before '
                    f'{duration.format_time(until)}, where the search was '
                    'given up because it took too long',
                    field='start_date',
                )
            return found[0].window.start if found else start

        return search

    def first_of(
        self,
        lease: Lease,
        ranges: Callable[[state.Replica], Iterable[Starts]],
        now: int,
    ) -> 'Search[int | None]':
        """Return the search for the first start in ranges that has room.

        The search finds None if no start has room.

        :param lease: the lease at any start
        :param ranges: returns the ranges of starts, in their order
        :raises InvalidInput: naming the field that is wrong
        """
        check_on_hosts(lease)
        length = lease.window.duration

        def search(reader: ReplicaReader) -> int | None:
            for first, last in reader(ranges):
                bounds = window_search.Bounds(
                    first, min(last, TIME_LIMIT - 1), length, length
                )
                found = _LeaseSearch(
                    self._conf, lease, bounds, now, reader
                ).best('earliest', 1, 1)
                if found:
                    return found[0].window.start
            return None

        return search

    def result(
        self,
        search: 'Search[T]',
        project_id: str | None = None,
        budget: Budget | None = None,
    ) -> T:
        """Return the result of a search at one revision of the ledger.

        No commit waits for the whole search, unless commits come in between
        again and again; the search is given up early then.

        :param project_id: the project whose turn the search needs
        :raises TooManyRequests: as `turn`
        """
        with self.turn(project_id):
            return self._at_one_revision(search, budget or self.budget())[0]

    def book(
        self,
        search: 'Search[T]',
        book: 'Callable[[Booking[T]], R]',
        project_id: str | None = None,
        budget: Budget | None = None,
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
        for _ in range(SEARCHES):
            with self.turn(project_id):
                found, reader = self._at_one_revision(search, budget)
            with contextlib.suppress(_Outdated):
                return book(functools.partial(_still_true, found, reader))
            if budget.is_spent:
                break
        else:
            return book(lambda tx: search(self.fixed(tx.replica, tx)))
        return book(lambda tx: found)

    def fixed(self, replica: state.Replica, source: Reader) -> '_FixedReader':
        """Return a reader for a short search, for which commits wait."""
        return _FixedReader(replica, source, self.budget(SECONDS_IN_COMMIT))

    def _at_one_revision(
        self, search: 'Search[T]', budget: Budget
    ) -> tuple[T, 'ReplicaReader']:
        """Return the result of a search, and the reader of the search.

        If commits come in between, the search is repeated, and the last
        repetition is one query of the replica, for which other commits wait.
        """
        for _ in range(SEARCHES):
            reader = _NewestReader(self._ledger, budget)
            found = search(reader)
            is_one = len(reader.revisions) == 1
            if is_one and reader.is_unchanged(self._ledger):
                return found, reader
            if budget.is_spent:
                break

        def still(replica: state.Replica) -> tuple[T, ReplicaReader]:
            reader = self.fixed(replica, self._ledger)
            return search(reader), reader

        return self._ledger.read_replica(still)

    def _windows(
        self,
        values: Mapping[str, Any],
        leases: Sequence[Lease],
        bounds: window_search.Bounds,
        now: int,
        reader: 'ReplicaReader',
    ) -> 'Windows':
        limit, best = values['limit'], values['best']
        found, until = [], []
        for alternative, lease in enumerate(leases):
            search = _LeaseSearch(
                self._conf, lease, bounds, now, reader,
                len(leases) - alternative,
            )
            found += [
                (each, alternative)
                for each in search.best(best, limit, values['distance'])
            ]
            until.append(search.searched_until)
        found.sort(key=lambda offer: _KEYS[best](offer[0]))
        return Windows(
            [
                Found(leases[alternative], alternative, each)
                for each, alternative in found[:limit]
            ],
            min((at for at in until if at is not None), default=None),
            None if found else _LeaseSearch(
                self._conf, leases[0], bounds, now, reader
            ).nearest(),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """A window with room for a lease.

    :param lease: the lease, in any window
    :param alternative: the position of the lease's reservations in the request
    """

    lease: Lease
    alternative: int
    found: window_search.Found

    @property
    def window(self) -> Window:
        return self.found.window

    @property
    def in_window(self) -> Lease:
        """The lease in the window."""
        return dataclasses.replace(
            self.lease, start=self.window.start, end=self.window.end
        )

    def count(self, reservation: Reservation) -> int:
        """Return the number of hosts, instances or floating IPs with room."""
        return count(reservation, self.found.placed[reservation.id])


@dataclasses.dataclass(frozen=True, slots=True)
class Windows:
    """The windows with room at one revision, the best first.

    :param searched_until: the start at which the search was given up, None if
        all starts were searched
    :param nearest: what there is room for at the first start, None if there
        are windows
    """

    found: list[Found]
    searched_until: int | None
    nearest: dict[str, Any] | None


class _SearchReads:
    """The data that a search has read: revisions and uses of floating IPs.

    The replica has no floating IPs, and their changes make no revision.

    :param source: where the uses of floating IPs are read
    :param budget: the budget of the search
    """

    def __init__(self, source: Reader, budget: Budget) -> None:
        self.budget = budget
        self.revisions: set[int] = set()
        self._source = source
        self._uses: dict[tuple[tuple[str, ...], int], list[Use]] = {}

    def floating_ip_uses(self, lease: Lease, after: int) -> list[Use]:
        """Return the uses of the floating IPs that a lease may get.

        :param after: the time by which the uses that are left out end
        """
        networks = floating_ip.networks(lease)
        if not networks:
            return []
        key = tuple(networks), after
        if key not in self._uses:
            self._uses[key] = self._source.floating_ip_uses(*key)
        return self._uses[key]

    def is_unchanged(self, source: Reader) -> bool:
        """Tell whether the uses of floating IPs are still the same."""
        return all(
            source.floating_ip_uses(*key) == uses
            for key, uses in self._uses.items()
        )


class _NewestReader(_SearchReads):
    """A reader of the replica, at the newest revision at each call."""

    def __init__(self, ledger: Ledger, budget: Budget) -> None:
        super().__init__(ledger, budget)
        self._ledger = ledger

    def __call__(self, query: Callable[[state.Replica], T]) -> T:
        def read(replica: state.Replica) -> T:
            self.revisions.add(replica.revision)
            return query(replica)

        return self._ledger.read_replica(read)


class _FixedReader(_SearchReads):
    """A reader of a replica that does not change during the search."""

    def __init__(
        self, replica: state.Replica, source: Reader, budget: Budget
    ) -> None:
        super().__init__(source, budget)
        self.revisions.add(replica.revision)
        self._replica = replica

    def __call__(self, query: Callable[[state.Replica], T]) -> T:
        return query(self._replica)


class _LeaseSearch:
    """The search for one lease.

    :param lease: the reservations and the project
    :param left: the number of searches, with this one, that share the budget
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        lease: Lease,
        bounds: window_search.Bounds,
        now: int,
        reader: 'ReplicaReader',
        left: int = 1,
    ) -> None:
        self._lease = lease
        self._bounds = bounds
        self._now = now
        self._read = reader
        self._budget = reader.budget.part(left)
        self._options = placing_options.read(conf.manager)
        self._rules = placing_options.rules(conf)
        self._uses = reader.floating_ip_uses(lease, now)
        self._search = self._searching(bounds)

    @property
    def searched_until(self) -> int | None:
        return self._search.searched_until

    def best(
        self, by: str, limit: int, distance: int
    ) -> list[window_search.Found]:
        search = {
            'earliest': self._search.earliest,
            'longest': self._search.longest,
            'most': self._search.most,
        }[by]
        return search(limit, distance)

    def nearest(self) -> dict[str, Any] | None:
        """Return what the first start has room for; None for no start."""
        bounds = self._bounds
        start = bounds.align(bounds.first)
        if start + bounds.least >= TIME_LIMIT:
            return None
        try:
            self._attempt(Window(start, start + bounds.least))
        except exception.NotEnoughHostsAvailable as e:
            offer = {**(e.offer or {}), 'message': e.args[0]}
        else:
            # The window is refused by the bounds only.
            offer = {}
        shorter = self._searching(dataclasses.replace(
            bounds, first=start, last=start, least=1, most=bounds.least,
        )).earliest(1, 1)
        return {
            'reservation': offer.get('reservation'),
            'available': offer.get('available'),
            'message': offer.get('message'),
            'duration': shorter[0].window.duration if shorter else None,
        }

    def _searching(
        self, bounds: window_search.Bounds
    ) -> window_search.Search:
        return window_search.Search(
            bounds,
            self._attempt,
            lambda: self._read(
                lambda replica: window_search.edges(
                    replica, self._lease, bounds, self._options, self._uses
                )
            ),
            budget=self._budget,
            # Displacement may find room beyond any limit.
            **({} if self._rules is not None else self._limits(bounds)),
        )

    def _attempt(self, window: Window) -> lease_placing.Allocations:
        # Commits wait for the query of the replica, and not for this.
        lacking = floating_ip.lacking(self._uses, self._lease, window)

        def place(replica: state.Replica) -> lease_placing.Allocations:
            if lacking is not None:
                raise exception.NotEnoughHostsAvailable(
                    'there are too few floating IPs', offer=lacking
                )
            replica.advance(self._now)
            return _place(
                replica, self._lease, window, self._options, self._now,
                self._rules,
            )

        return self._read(place)

    def _limits(self, bounds: window_search.Bounds) -> dict[str, Any]:
        """Return the limits as arguments of the search."""
        lease, options = self._lease, self._options

        def first_start(at: int) -> int | None:
            first = floating_ip.first_start(
                self._uses, lease, at, bounds.least
            )
            if first is None:
                return None
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
            'limits': lambda: self._read(
                lambda replica: window_limits.read(
                    replica, lease, bounds.first, bounds.last, bounds.least,
                    options,
                )
            ),
        }


class _Outdated(Exception):
    """A window was found in a ledger that has changed since."""


def _still_true(found: T, reader: 'ReplicaReader', tx: PlacingTx) -> T:
    """Return the result of a search.

    :raises _Outdated: if the ledger has changed since
    """
    is_newest = reader.revisions == {tx.replica.revision}
    if not is_newest or not reader.is_unchanged(tx):
        raise _Outdated
    return found


def count(
    reservation: Reservation, allocations: Collection[Allocation]
) -> int:
    """Return how many hosts, instances or floating IPs a reservation gets.

    :param allocations: the allocations on hosts
    """
    if reservation.resource_type == FLOATING_IP:
        amount: int = reservation.parameters['amount']
        return amount
    return lease_placing.count(reservation, allocations)


# A reader of the replica for a search, which records the revisions.
ReplicaReader = _NewestReader | _FixedReader
# Returns what a search finds with a reader.
Search = Callable[[ReplicaReader], T]
# Returns what was found, in this commit.
Booking = Callable[[PlacingTx], T]


# The sort keys of offers, by what the client calls the best.
_KEYS: dict[str, Callable[[window_search.Found], int]] = {
    'earliest': lambda found: found.window.start,
    'longest': lambda found: -found.window.duration,
    'most': lambda found: -found.count,
}


def _bounds(
    values: Mapping[str, Any], now: int
) -> window_search.Bounds:
    first = lease_rules.soon(values['start'], now, 'start_date')
    last = values['latest_start']
    if last is None:
        last = first + DEFAULT_RANGE
    if last < first:
        raise exception.InvalidInput(
            'latest_start_date must not be before start_date',
            field='latest_start_date',
        )
    least = values['duration']
    most = values.get('max_duration') or least
    if most < least:
        raise exception.InvalidInput(
            'max_duration must not be less than duration',
            field='max_duration',
        )
    align, latest_end = values.get('align'), values.get('latest_end')
    return window_search.Bounds(
        first, min(last, TIME_LIMIT - 1), least, most,
        FOREVER if latest_end is None else latest_end,
        int if align is None else alignment.parse(align, 'align'),
    )


def check_on_hosts(lease: Lease, or_floating_ips: bool = False) -> None:
    """Refuse reservations of which no room is known ahead of time.

    :param or_floating_ips: whether floating IPs are searched for, too
    :raises InvalidInput: naming `reservations`
    """
    if not all(
        r.is_on_hosts(active=False)
        or or_floating_ips and r.resource_type == FLOATING_IP
        for r in lease.reservations
    ):
        what = (
            'hosts, instances and floating IPs' if or_floating_ips
            else 'hosts and instances'
        )
        raise exception.InvalidInput(
            f'windows are searched for {what} only', field='reservations'
        )


def with_start(
    refusal: exception.NotEnoughHostsAvailable,
    ledger: Ledger,
    lease: Lease,
    options: Options,
    now: int,
    rules: Rules | None,
    budget: Budget = window_search.UNLIMITED,
) -> exception.NotEnoughHostsAvailable:
    """Return the refusal of a new lease with a start that has room.

    No offer is made to a lease that requests more than resources on hosts, or
    if no start is found within the budget.
    """
    start = _start(ledger, lease, options, now, rules, budget)
    end = None if start is None else _end(lease, start)
    offer = {**(refusal.offer or {}), 'start': start, 'end': end}
    return exception.NotEnoughHostsAvailable(
        refusal.args[0], refusal.field, offer
    )


def with_end(
    refusal: exception.NotEnoughHostsAvailable,
    old: Lease,
    new: Lease,
    fits: Callable[[int], bool],
    budget: Budget,
) -> exception.NotEnoughHostsAvailable:
    """Return the refusal of a changed lease with a later end that has room.

    The end is the last one that is found within the budget.

    No offer is made where the change would also be refused without a later
    end, or to a lease that has more than resources on hosts.

    :param old: the lease as it is
    :param new: the lease as requested
    :param fits: tells whether the changed lease would find room with another
        end
    """
    active = old.status == states.LEASE_ACTIVE
    end = old.end
    if (
        end < new.end
        and all(r.is_on_hosts(active) for r in new.reservations)
        and fits(end)
    ):
        end = offer_search.last(
            lambda later: not budget.is_spent and fits(later),
            end, min(new.end, window.TIME_LIMIT - 1),
        )
    found = end > old.end
    offer = {
        **(refusal.offer or {}),
        'start': new.start if found else None,
        'end': end if found else None,
    }
    return exception.NotEnoughHostsAvailable(
        refusal.args[0], refusal.field, offer
    )


def _start(
    ledger: Ledger,
    lease: Lease,
    options: Options,
    now: int,
    rules: Rules | None,
    budget: Budget,
) -> int | None:
    if not all(r.is_on_hosts(active=False) for r in lease.reservations):
        return None
    first: int | None = lease.start
    if rules is None:
        # Displacement may find room before any such bound.
        first = ledger.read_replica(
            lambda replica: window_limits.first_start(
                replica, lease, lease.start, lease.window.duration, options
            )
        )
    if first is None:
        return None
    # One query for each start: no other commit waits for the whole search.
    return offer_search.search(
        lambda at: not budget.is_spent and ledger.read_replica(
            lambda replica: _fits(replica, lease, at, options, now, rules)
        ),
        first,
    )


def _fits(
    replica: state.Replica,
    lease: Lease,
    at: int,
    options: Options,
    now: int,
    rules: Rules | None,
) -> bool:
    end = _end(lease, at)
    if window.TIME_LIMIT <= end != window.FOREVER:
        return False
    try:
        _place(replica, lease, Window(at, end), options, now, rules)
    except exception.NotEnoughHostsAvailable:
        return False
    return True


def _place(
    replica: state.Replica,
    lease: Lease,
    window: Window,
    options: Options,
    now: int,
    rules: Rules | None,
) -> lease_placing.Allocations:
    """Return the allocations that a lease would get in a window.

    :raises NotEnoughHostsAvailable: if there is no room
    """
    moved = dataclasses.replace(lease, start=window.start, end=window.end)
    placed, _ = displacement.place(
        replica, moved, window, now, rules,
        lambda: lease_placing.place(replica, moved, window, options=options),
        options,
    )
    return placed


def _too_many() -> exception.TooManyRequests:
    return exception.TooManyRequests(
        'too many searches for windows are in progress: retry later'
    )


def _end(lease: Lease, start: int) -> int:
    if lease.end == window.FOREVER:
        return window.FOREVER
    return start + lease.window.duration
