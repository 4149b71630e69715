# SPDX-License-Identifier: Apache-2.0
"""Extensions: how far a lease can be prolonged.

An end is tried by a dry run of the update, so that hosts, floating IPs and
limits count as they do in the update. The last end that is accepted is found
by bisection: a longer lease never finds room more easily, except where
reservations of one lease compete for hosts, or instances are relocated for the
lease. Each try has a transaction of its own, so that no commit waits for the
whole search; a last transaction confirms that the end is accepted, and that
the next second is not. A search that has taken too long is given up, and says
so.
"""

from collections.abc import Callable
from collections.abc import Mapping
import contextlib
import dataclasses
import functools
from typing import Any
from typing import Protocol
from typing import TypeVar

from blazar_sched.domain import exception
from blazar_sched.domain import lease as lease_rules
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import TIME_LIMIT
from blazar_sched.placing import offer as offer_search
from blazar_sched.service.booking.booking import Bookings
from blazar_sched.service.booking.lease import Leases
from blazar_sched.service.booking.window_search import SECONDS_IN_COMMIT
from blazar_sched.service.booking.window_search import WindowSearch
from blazar_sched.service.ledger.tx import PlacingTx

T = TypeVar('T')

# How often a search is made ahead of the transaction that confirms its result.
SEARCHES = 3
# Why a later end is refused.
CAPACITY = 'capacity'
POLICY = 'policy'
_NO_ROOM = (
    exception.NotEnoughHostsAvailable,
    exception.NotEnoughFloatingIPAvailable,
    exception.Uncountable,
)


class _Outdated(Exception):
    """The result of a search that is not true any more."""


class _DryRun(Protocol):
    """Do work in a transaction, and write nothing."""

    def __call__(self, work: Callable[[PlacingTx], T]) -> T: ...


@dataclasses.dataclass(frozen=True, slots=True)
class _Refusal:
    """The refusal of an end.

    :param by: CAPACITY or POLICY
    :param offer: the room that there is; see placing.offer
    """

    by: str | None = None
    offer: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Extension:
    """How far a lease can be prolonged, at one revision of the ledger.

    :param present: the end of the lease
    :param end: the latest end that is accepted, the present end if no later
        one is
    :param refusal: the refusal of the next end, None if `end` is as late as
        requested, or if the search was given up
    :param searched_until: the first end that was not tried, None if the search
        is complete
    """

    present: int
    end: int
    refusal: _Refusal | None
    searched_until: int | None = None


class Extensions:
    """The operations that find the latest end of a lease."""

    def __init__(
        self, bookings: Bookings, leases: Leases, windows: WindowSearch
    ) -> None:
        self._bookings = bookings
        self._leases = leases
        self._windows = windows

    def get(
        self, lease_id: str, project_id: str | None, end: int
    ) -> dict[str, Any]:
        """Return how far a lease can be prolonged.

        Filters that query another service are not called.

        :param end: the latest end to consider, FOREVER for any end
        :raises LeaseNotFound: if the project has no such lease
        :raises InvalidStatus: if the lease is already changing, or is over
        :raises InvalidInput: if `end` is past, and later than the lease's end
        """
        search = self._search(lease_id, project_id, end)
        found = self._settle(search, self._bookings.ledger.dry_run)
        refusal = found.refusal or _Refusal()
        return {
            'end': found.end,
            'limited_by': refusal.by,
            'reservation': refusal.offer.get('reservation'),
            'available': refusal.offer.get('available'),
            'searched_until': found.searched_until,
        }

    def update(
        self,
        lease_id: str,
        project_id: str | None,
        values: Mapping[str, Any],
        dry_run: bool = False,
        offering: bool = False,
    ) -> Lease:
        """Change a lease to end as late as possible, by ``values['end']``.

        If the lease cannot end later than it does, the refusal is that of an
        update with the end in `values`. The parameters are those of
        `Leases.update`.

        :raises BlazarSchedError: as `Leases.update`
        """
        asked = values['end']

        def update(settle: Callable[[PlacingTx], Extension]) -> Lease:
            def choose_end(tx: PlacingTx) -> dict[str, int]:
                found = settle(tx)
                later = found.end > found.present
                return {'end': found.end if later else asked}

            return self._leases.update(
                lease_id, project_id, values, dry_run, offering, choose_end
            )

        return self._settle(self._search(lease_id, project_id, asked), update)

    def _search(
        self, lease_id: str, project_id: str | None, end: int
    ) -> 'Search':
        return Search(
            self._bookings, self._leases, self._windows, lease_id, project_id,
            end,
        )

    def _settle(
        self,
        search: 'Search',
        do: Callable[[Callable[[PlacingTx], Extension]], T],
    ) -> T:
        """Return ``do(settle)``; `settle` finds the extension in a commit.

        The end is searched ahead of the commit. If other commits keep changing
        it, a short search is made in the commit at last.

        :raises TooManyRequests: if too many searches run or wait already
        """
        for _ in range(SEARCHES):
            settle = functools.partial(search.extension, end=search.ahead())
            with contextlib.suppress(_Outdated):
                return do(settle)
        return do(search.extension)


class Search:
    """The search for the latest end of one lease.

    :param end: the latest end to consider
    """

    def __init__(
        self,
        bookings: Bookings,
        leases: Leases,
        windows: WindowSearch,
        lease_id: str,
        project_id: str | None,
        end: int,
    ) -> None:
        self._ledger = bookings.ledger
        self._leases = leases
        self._enforcement = bookings.enforcement
        self._lease_id = lease_id
        self._project_id = project_id
        self._end = end
        self._now = bookings.now()
        self._windows = windows
        self._budget = windows.budget()

    def ahead(self) -> int:
        """Return the latest end, by tries at different revisions.

        O(log of the seconds to the asked end) dry runs.
        """
        lease = self._leases.matched(self._lease_id, self._project_id)
        with self._windows.turn(lease.project_id):
            self._budget = self._windows.budget()
            return self._latest(lease, self._ledger.dry_run)

    def extension(self, tx: PlacingTx, end: int | None = None) -> Extension:
        """Return the extension at the revision of a transaction.

        :param end: the result of a search; without it, search here
        :raises _Outdated: if `end` is not the latest end any more
        """
        old = tx.owned_lease(self._lease_id, self._project_id)
        dry_run = functools.partial(self._ledger.dry_run, within=tx)
        if end is None:
            self._budget = self._windows.budget(SECONDS_IN_COMMIT)
            end = self._latest(old, dry_run)
        if end != old.end and self._refusal(dry_run, end):
            raise _Outdated
        if end == self._asked(old):
            return Extension(old.end, end, None)
        later = self._next(end)
        refusal = self._refusal(dry_run, later)
        if refusal is None and not self._budget.is_spent:
            raise _Outdated
        return Extension(
            old.end, end, refusal, None if refusal else later
        )

    def _latest(self, old: Lease, dry_run: _DryRun) -> int:
        asked = self._asked(old)

        def fits(end: int) -> bool:
            return (
                not self._budget.is_spent
                and self._refusal(dry_run, end) is None
            )

        if asked == old.end or fits(asked):
            return asked
        first = self._next(old.end)
        if not fits(first):
            return old.end
        return offer_search.last(fits, first, min(asked, TIME_LIMIT) - 1)

    def _asked(self, old: Lease) -> int:
        """Return the latest end to consider, not before the present end."""
        if self._end <= old.end:
            return old.end
        return lease_rules.soon(self._end, self._now, 'end_date')

    def _next(self, end: int) -> int:
        """Return the first end after another that an update may ask for."""
        later = end + 1 if end + 1 < TIME_LIMIT else FOREVER
        return max(later, self._now)

    def _refusal(self, dry_run: _DryRun, end: int) -> _Refusal | None:
        """Return the refusal of an update with an end; None if accepted."""
        def work(tx: PlacingTx) -> _Refusal | None:
            change = self._leases.prolong(
                tx, self._lease_id, self._project_id, end, self._now
            )
            try:
                self._enforcement.check_limits(tx, change)
            except exception.BlazarSchedError:
                return _Refusal(POLICY)
            return None

        try:
            return dry_run(work)
        except _NO_ROOM as e:
            offer = getattr(e, 'offer', None)
            return _Refusal(CAPACITY, offer or {})
