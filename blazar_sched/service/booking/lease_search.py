# SPDX-License-Identifier: Apache-2.0
"""The search for the windows in which one lease finds room."""

import dataclasses
from typing import Any

from blazar_sched.domain import exception
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.window import TIME_LIMIT
from blazar_sched.domain.window import Window
from blazar_sched.placing import window_limits
from blazar_sched.placing import window_search
from blazar_sched.placing.lease_placing import Allocations
from blazar_sched.replica import state
from blazar_sched.service.booking import lease_writer
from blazar_sched.service.booking.lease_writer import LeaseWriter
from blazar_sched.service.ledger.at_one_revision import ReplicaReader


class LeaseSearch:
    """The search for one lease.

    :param lease: the reservations and the project
    :param left: the number of searches, with this one, that share the budget
    """

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
            bounds, first=start, last=start, least=1, most=bounds.least
        )).earliest(1, 1)
        return {
            'reservation': offer.get('reservation'),
            'available': offer.get('available'),
            'message': offer.get('message'),
            'duration': shorter[0].window.duration if shorter else None,
        }

    def _searching(self, bounds: window_search.Bounds) -> window_search.Search:
        return window_search.Search(
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
            'limits': lambda: self._read(
                lambda replica: window_limits.read(
                    replica, lease, bounds.first, bounds.last, bounds.least,
                    options,
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
    found = LeaseSearch(writer, lease, bounds, now, reader).best(
        'earliest', 1, 1
    )
    return found[0].window if found else None
