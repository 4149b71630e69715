# SPDX-License-Identifier: Apache-2.0
"""The search for the windows of offers."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any

from blazar_sched.domain import exception
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import TIME_LIMIT
from blazar_sched.domain.window import Window
from blazar_sched.parts.offer import best_limits
from blazar_sched.parts.offer.best_search import BestSearch
from blazar_sched.placing.window_search import Bounds
from blazar_sched.placing.window_search import Found
from blazar_sched.service.booking.booking import Bookings
from blazar_sched.service.booking.lease_writer import LeaseWriter
from blazar_sched.service.booking.search import bounds_of
from blazar_sched.service.booking.search import check_on_hosts
from blazar_sched.service.booking.search import LeaseSearch
from blazar_sched.service.ledger.at_one_revision import Query
from blazar_sched.service.ledger.at_one_revision import ReplicaReader


@dataclasses.dataclass(frozen=True, slots=True)
class LeaseWindow:
    """A window with room for a lease.

    :param lease: the lease, in any window
    :param alternative: the position of the lease's reservations in the request
    """

    lease: Lease
    alternative: int
    found: Found

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
        """Return the number of hosts, or of other resources, with room."""
        return reservation.demand.count(self.found.placed[reservation.id])


@dataclasses.dataclass(frozen=True, slots=True)
class Windows:
    """The windows with room at one revision, the best first.

    :param searched_until: the start at which the search was given up, None if
        all starts were searched
    :param nearest: what there is room for at the first start, None if there
        are windows
    """

    found: list[LeaseWindow]
    searched_until: int | None
    nearest: dict[str, Any] | None


def windows(bookings: Bookings, values: Mapping[str, Any]) -> Query[Windows]:
    """Return the search for windows for a lease, or for an alternative.

    :param values: the fields of a request for offers
    :raises InvalidInput: naming the field that is wrong
    """
    now = bookings.now()
    bounds = _bounds(values, now)
    leases = [
        bookings.drafts.new(
            {
                'name': '', 'project_id': values['project_id'],
                'user_id': values['user_id'], 'before_end': None,
                'start': bounds.first, 'end': bounds.first + bounds.least,
                'reservations': reservations,
            },
            now,
        )
        for reservations in values['alternatives']
    ]
    for lease in leases:
        check_on_hosts(lease, bookings.drivers.searched)
    return lambda reader: _windows(
        bookings.writer, values, leases, bounds, now, reader
    )


def _bounds(values: Mapping[str, Any], now: int) -> Bounds:
    bounds = bounds_of(values, now)
    most = values.get('max_duration') or bounds.least
    if most < bounds.least:
        raise exception.InvalidInput(
            'max_duration must not be less than duration', field='max_duration'
        )
    latest_end = values.get('latest_end')
    return dataclasses.replace(
        bounds, most=most,
        latest_end=FOREVER if latest_end is None else latest_end,
    )


# The sort keys of offers, by what the client calls the best.
_KEYS: dict[str, Callable[[Found], int]] = {
    'earliest': lambda found: found.window.start,
    'longest': lambda found: -found.window.duration,
    'most': lambda found: -found.count,
}


def _windows(
    writer: LeaseWriter, values: Mapping[str, Any], leases: Sequence[Lease],
    bounds: Bounds, now: int, reader: ReplicaReader,
) -> Windows:
    limit, best = values['limit'], values['best']
    found, until = [], []
    for alternative, lease in enumerate(leases):
        search = OfferSearch(
            writer, lease, bounds, now, reader, len(leases) - alternative
        )
        found += [
            LeaseWindow(lease, alternative, each)
            for each in search.best(best, limit, values['distance'])
        ]
        until.append(search.searched_until)
    found.sort(key=lambda offer: _KEYS[best](offer.found))
    return Windows(
        found[:limit],
        min((at for at in until if at is not None), default=None),
        None if found else OfferSearch(
            writer, leases[0], bounds, now, reader
        ).nearest(),
    )


class OfferSearch(LeaseSearch):
    """The search for the best windows of one lease."""

    _kind = BestSearch
    _search: BestSearch

    def best(self, by: str, limit: int, distance: int) -> list[Found]:
        search = {
            'earliest': self._search.earliest,
            'longest': self._search.longest,
            'most': self._search.most,
        }[by]
        return search(limit, distance)

    def _limits(self, bounds: Bounds) -> dict[str, Any]:
        return super()._limits(bounds) | {
            'limits': lambda: self._read(
                lambda replica: best_limits.read(
                    replica, self._lease, bounds.first, bounds.last,
                    bounds.least, self._options,
                )
            ),
        }

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
            bounds, first=start, last=start, least=1, most=bounds.least
        )).earliest(1, 1)
        return {
            'reservation': offer.get('reservation'),
            'available': offer.get('available'),
            'message': offer.get('message'),
            'duration': shorter[0].window.duration if shorter else None,
        }
