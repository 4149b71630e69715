# SPDX-License-Identifier: Apache-2.0
"""The search for the latest end of a lease.

An end is tried by placing the lease in a dry run, and by the limits, so that
hosts, floating IPs and limits count as they do in the update. The last end
that is accepted is found by bisection: a longer lease never finds room more
easily, except where reservations of one lease compete for hosts, or instances
are relocated for the lease. Each try has a transaction of its own, so that no
commit waits for the whole search. A search that has taken too long is given
up, and says so.
"""

from collections.abc import Callable
from collections.abc import Mapping
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
from blazar_sched.service.booking.booking import Bookings
from blazar_sched.service.booking.search import SECONDS_IN_COMMIT
from blazar_sched.service.booking.search import WindowSearch
from blazar_sched.service.enforcement.base import LeaseChange
from blazar_sched.service.ledger.at_one_revision import Outdated
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx

T = TypeVar('T')

# Why a later end is refused.
CAPACITY = 'capacity'
POLICY = 'policy'
_NO_ROOM = (exception.NoRoom, exception.Uncountable)


class _DryRun(Protocol):
    """Do work in a transaction, and write nothing."""

    def __call__(self, work: Callable[[PlacingTx], T]) -> T: ...


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """The refusal of an end.

    :param by: CAPACITY or POLICY
    :param offer: the room that there is, as for NotEnoughHostsAvailable
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
    refusal: Refusal | None
    searched_until: int | None = None


class EndSearch:
    """The search for the latest end of one lease.

    :param end: the latest end to consider
    :param change: returns the change of a lease to another end, with the
        allocations that the lease would get, and asks no filter
    """

    def __init__(
        self, bookings: Bookings, windows: WindowSearch, lease_id: str,
        project_id: str | None, end: int,
        change: Callable[[PlacingTx, Lease, int], LeaseChange],
    ) -> None:
        self._ledger = bookings.ledger
        self._enforcement = bookings.enforcement
        self._windows = windows
        self._lease_id = lease_id
        self._project_id = project_id
        self._end = end
        self._change = change
        self._now = bookings.now()
        self._budget = windows.budget()

    def ahead(self) -> int:
        """Return the latest end, by tries at different revisions.

        O(log of the seconds to the asked end) dry runs.

        :returns: the present end if no later end is accepted; if the search
            is given up, an end that is accepted
        :raises TooManyRequests: if too many searches run or wait already
        """
        lease = self._read(self._ledger)
        with self._windows.turn(lease.project_id):
            self._budget = self._windows.budget()
            return self._latest(
                lease, self._tries(self._ledger, lease, self._ledger.dry_run)
            )

    @property
    def is_given_up(self) -> bool:
        """Whether there was no time for further tries."""
        return self._budget.is_spent

    def extension(self, tx: PlacingTx, end: int | None = None) -> Extension:
        """Return the extension at the revision of a transaction.

        :param end: the result of a search; without it, search here
        :raises Outdated: if `end` is not the latest end any more
        """
        old = self._read(tx)
        refusal = self._tries(
            tx, old, functools.partial(self._ledger.dry_run, within=tx)
        )
        if end is None:
            self._budget = self._windows.budget(SECONDS_IN_COMMIT)
            end = self._latest(old, refusal)
        if end != old.end and refusal(end):
            raise Outdated
        if end == self._asked(old):
            return Extension(old.end, end, None)
        later = self._next(end)
        refused = refusal(later)
        if refused is None and not self.is_given_up:
            raise Outdated
        return Extension(old.end, end, refused, None if refused else later)

    def _read(self, source: Reader) -> Lease:
        return source.owned_lease(self._lease_id, self._project_id)

    def _latest(
        self, old: Lease, refusal: Callable[[int], Refusal | None]
    ) -> int:
        asked = self._asked(old)

        def fits(end: int) -> bool:
            return not self.is_given_up and refusal(end) is None

        if asked == old.end or fits(asked):
            return asked
        first = self._next(old.end)
        if not fits(first):
            return old.end
        return last(fits, first, min(asked, TIME_LIMIT) - 1)

    def _asked(self, old: Lease) -> int:
        """Return the latest end to consider, not before the present end."""
        if self._end <= old.end:
            return old.end
        return lease_rules.soon(self._end, self._now, 'end_date')

    def _next(self, end: int) -> int:
        """Return the first end after another that an update may ask for."""
        later = end + 1 if end + 1 < TIME_LIMIT else FOREVER
        return max(later, self._now)

    def _tries(
        self, source: Reader, old: Lease, dry_run: _DryRun
    ) -> Callable[[int], Refusal | None]:
        """Return a function that returns the refusal of an end, if any.

        :param source: where the leases of the project are read from, once
        """
        project = self._enforcement.project(source, old.project_id)

        def work(end: int, tx: PlacingTx) -> Refusal | None:
            change = self._change(tx, old, end)
            try:
                self._enforcement.check_limits(tx, change, project)
            except exception.BlazarSchedError:
                return Refusal(POLICY)
            return None

        def refusal(end: int) -> Refusal | None:
            try:
                return dry_run(functools.partial(work, end))
            except _NO_ROOM as e:
                offer = getattr(e, 'offer', None)
                return Refusal(CAPACITY, offer or {})

        return refusal


def last(fits: Callable[[int], bool], end: int, latest: int) -> int:
    """Return the last end that fits, if a later end never fits more easily.

    :param end: an end that fits
    :param latest: the last end to try
    """
    while end < latest:
        middle = (end + latest + 1) // 2
        if fits(middle):
            end = middle
        else:
            latest = middle - 1
    return end
