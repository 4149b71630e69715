# SPDX-License-Identifier: Apache-2.0
"""Extensions: how far a lease can be prolonged.

The latest end is searched for ahead of a last transaction, which confirms that
the end is accepted, and that the next second is not.
"""

from collections.abc import Callable
from collections.abc import Mapping
import contextlib
import functools
from typing import Any
from typing import TypeVar

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain.lease import Lease
from blazar_sched.service.booking.booking import Bookings
from blazar_sched.service.booking.end_search import EndSearch
from blazar_sched.service.booking.end_search import Extension
from blazar_sched.service.booking.end_search import Refusal
from blazar_sched.service.booking.lease import Leases
from blazar_sched.service.ledger.at_one_revision import MAX_REPEATS
from blazar_sched.service.ledger.at_one_revision import Outdated
from blazar_sched.service.ledger.tx import PlacingTx

T = TypeVar('T')


class Extensions:
    """The operations that find the latest end of a lease."""

    def __init__(self, bookings: Bookings, leases: Leases) -> None:
        self._ledger = bookings.ledger
        self._leases = leases

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
        search = self._leases.end_search(lease_id, project_id, {}, end)
        found = self._settle(search, self._ledger.dry_run)
        refusal = found.refusal or Refusal()
        return {
            'end': found.end,
            'limited_by': refusal.by,
            'reservation': refusal.offer.get('reservation'),
            'available': refusal.offer.get('available'),
            'searched_until': found.searched_until,
        }

    def update(
        self, lease_id: str, project_id: str | None, values: Mapping[str, Any],
        dry_run: bool = False, offering: bool = False, names: bool = False,
    ) -> Lease:
        """Change a lease to end as late as possible, by ``values['end']``.

        If the lease cannot end later than it does, the refusal is that of an
        update with the end in `values`. The parameters are those of
        `Leases.update`.

        :raises BlazarSchedError: as `Leases.update`
        :raises Unavailable: if the search is given up because it takes too
            long
        """
        asked = values['end']

        def update(settle: Callable[[PlacingTx], Extension]) -> Lease:
            def choose_end(tx: PlacingTx) -> dict[str, int]:
                found = settle(tx)
                if found.searched_until is not None:
                    raise exception.Unavailable(
                        'the search for the latest end was given up because '
                        'it took too long; the lease could end at '
                        f'{duration.format_time(found.end)}',
                        field='end_date',
                    )
                later = found.end > found.present
                return {'end': found.end if later else asked}

            return self._leases.update(
                lease_id, project_id, values, dry_run, offering, choose_end,
                names,
            )

        return self._settle(
            self._leases.end_search(lease_id, project_id, {}, asked), update
        )

    def _settle(
        self, search: EndSearch,
        do: Callable[[Callable[[PlacingTx], Extension]], T],
    ) -> T:
        """Return ``do(settle)``; `settle` finds the extension in a commit.

        The end is searched ahead of the commit. If other commits keep changing
        it, a short search is made in the commit at last.

        :raises TooManyRequests: if too many searches run or wait already
        """
        for _ in range(MAX_REPEATS):
            settle = functools.partial(search.extension, end=search.ahead())
            with contextlib.suppress(Outdated):
                return do(settle)
        return do(search.extension)
