# SPDX-License-Identifier: Apache-2.0
"""The search for the starts that lease requests can get."""

from collections.abc import Iterable
from collections.abc import Sequence
from collections.abc import Set
import dataclasses

from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.domain.lease import Lease
from blazar_sched.parts.request import placing
from blazar_sched.parts.request.lease_request import LeaseRequest
from blazar_sched.parts.request.placing import RequestedLease
from blazar_sched.placing.window_search import Budget
from blazar_sched.placing.window_search import Starts
from blazar_sched.replica import state
from blazar_sched.service.booking import draft
from blazar_sched.service.booking.booking import Bookings
from blazar_sched.service.booking.search import check_on_hosts
from blazar_sched.service.booking.search import DEFAULT_RANGE
from blazar_sched.service.booking.search import first_window
from blazar_sched.service.booking.search import WindowSearch
from blazar_sched.service.ledger.at_one_revision import Query
from blazar_sched.service.ledger.at_one_revision import ReplicaReader

LOG = log.getLogger(__name__)

# The seconds after which room is searched for although no revision is new.
INTERVAL = 60

# A revision, and a number of intervals.
Moment = tuple[int, int]


class RequestSearch:
    """The search for starts that delay no request ahead.

    A request keeps one window free: that at the start that the request was
    last estimated to get, or at its latest start if the estimate is later.
    """

    def __init__(self, bookings: Bookings, search: WindowSearch) -> None:
        self._bookings = bookings
        self._search = search
        # The last estimate of each waiting request, by its id.
        self._estimates: dict[str, int | None] = {}
        # The hash of what the search for an estimate depends on, by the same
        # id.
        self._searched: dict[str, int] = {}

    def starts(
        self, requested: RequestedLease, ahead: Sequence[RequestedLease],
        within: Starts, now: int,
    ) -> Query[int | None]:
        """Return the search for the first start that a request can get.

        :param ahead: the requests ahead in the windows that they keep free
        :param within: the range of the starts
        """
        writer = self._bookings.writer
        check_on_hosts(requested.lease)

        def search(reader: ReplicaReader) -> int | None:
            for starts in reader(lambda replica: placing.starts(
                replica, requested, ahead, within, writer.options
            )):
                window = first_window(
                    writer, requested.lease, starts, now, reader
                )
                if window is not None:
                    return window.start
            return None

        return search

    def competing(
        self, replica: state.Replica, requested: RequestedLease,
        others: Iterable[RequestedLease],
    ) -> list[RequestedLease]:
        """Return the other requests whose leases may use the same hosts."""
        return placing.competing(
            replica, requested.lease, others, self._bookings.writer.options
        )

    def requested_lease(
        self, request: LeaseRequest, now: int
    ) -> RequestedLease:
        """Return a request with its lease at the first start.

        :raises InvalidInput: naming the field that is wrong
        """
        start = max(request.start, now)
        return RequestedLease(request, self.lease(request, start, now))

    def requested_leases(
        self, requests: Iterable[LeaseRequest], now: int
    ) -> Sequence[RequestedLease]:
        """Return requests with their leases, without those now invalid.

        A flavor, for example, may have been deleted in the meantime.
        """
        found = []
        for each in requests:
            try:
                found.append(self.requested_lease(each, now))
            except exception.InvalidInput as e:
                LOG.info('Lease request %s waits: %s', each.id, e)
        return found

    def lease(self, request: LeaseRequest, start: int, now: int) -> Lease:
        """Return the lease of a request at a start.

        :raises InvalidInput: naming the field that is wrong
        """
        return self._bookings.drafts.new(
            {
                'name': request.name,
                'project_id': request.project_id,
                'user_id': request.user_id,
                'start': start,
                'end': start + request.duration,
                'before_end': draft.DEFAULT,
                'reservations': request.reservations,
            },
            now,
        )

    def estimate(
        self, requested: RequestedLease, ahead: Sequence[RequestedLease],
        now: int, at: Moment, budget: Budget, project_id: str | None = None,
    ) -> int | None:
        """Return the start that a request can get, also after its range.

        If the search takes too long, the last estimate stays. Nothing is
        searched for at a moment at which the same was searched for.

        :param ahead: the requests ahead in the windows that they keep free
        :param at: the moment that `moment` returned
        :param project_id: the project whose turn the search needs
        :raises TooManyRequests: if too many searches run or wait already
        """
        request = requested.request
        first = max(request.start, now)
        last = max(request.latest_start, first) + DEFAULT_RANGE
        known, found = self.last_estimate(request), None
        searched = hash((
            at, *((each.request.id, each.lease.window) for each in ahead)
        ))
        if self._searched.get(request.id) == searched and (
            known is None or known >= first
        ):
            return known
        if not budget.is_spent:
            found = self._search.result(
                self.starts(requested, ahead, (first, last), now), project_id,
                budget,
            )
        if found is not None or not budget.is_spent:
            self._estimates[request.id] = found
            self._searched[request.id] = searched
        return self.last_estimate(request)

    def moment(self, now: int) -> Moment:
        """Return what is new whenever the estimates may be others.

        A flavor, for example, may change without a new revision.
        """
        return self._bookings.ledger.newest()[1], now // INTERVAL

    def is_estimated(self, request: LeaseRequest) -> bool:
        """Tell whether a search for a request has been completed."""
        return request.id in self._estimates

    def last_estimate(self, request: LeaseRequest) -> int | None:
        """Return the last estimate of a request."""
        return self._estimates.get(request.id)

    def forget_all_but(self, waiting: Set[str]) -> None:
        """Forget the estimates of all but the requests with some ids."""
        for id_ in self._estimates.keys() - waiting:
            self._estimates.pop(id_, None)
            self._searched.pop(id_, None)

    def kept(self, requested: RequestedLease) -> list[RequestedLease]:
        """Return a request with its lease in each window that it keeps free.

        These are the last window and, ahead of it, the window of the estimate:
        the request is about to be booked, but may still lose the room.

        :returns: no request if there is no estimate
        """
        request = requested.request
        estimate = self.last_estimate(request)
        if estimate is None:
            return []
        return [
            RequestedLease(request, dataclasses.replace(
                requested.lease, start=start, end=start + request.duration
            ))
            for start in sorted({
                min(estimate, request.latest_start), request.latest_start
            })
        ]

    def ahead(
        self, request: LeaseRequest, waiting: Iterable[LeaseRequest], now: int
    ) -> Sequence[RequestedLease]:
        """Return the requests ahead in the windows that they keep free."""
        return [
            kept
            for each in self.requested_leases(
                (each for each in waiting if each.turn < request.turn), now
            )
            for kept in self.kept(each)
        ]
