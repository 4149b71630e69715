# SPDX-License-Identifier: Apache-2.0
"""The search for the starts that lease requests can get."""

from collections.abc import Iterable
from collections.abc import Sequence

from oslo_config import cfg
from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.lease_request import LeaseRequest
from blazar_sched.domain.lease_request import Starts
from blazar_sched.placing import lease_request
from blazar_sched.placing.lease_request import RequestedLease
from blazar_sched.replica import state
from blazar_sched.service import resources
from blazar_sched.service.manager import draft
from blazar_sched.service.manager import placing_options
from blazar_sched.service.manager.window_search import DEFAULT_RANGE
from blazar_sched.service.manager.window_search import Search
from blazar_sched.service.manager.window_search import WindowSearch

LOG = log.getLogger(__name__)


class RequestSearch:
    """The search for starts that delay no request ahead."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        drivers: resources.Drivers,
        search: WindowSearch,
    ) -> None:
        self._conf = conf.manager
        self._drafts = draft.Drafts(conf, drivers)
        self._search = search

    def starts(
        self,
        requested: RequestedLease,
        ahead: Sequence[RequestedLease],
        now: int,
        within: Starts | None = None,
    ) -> Search[int | None]:
        """Return the search for the first start that a request can get.

        :param ahead: the requests ahead that wait for room
        :param within: the range of the starts, that of the request by default
        """
        options = placing_options.read(self._conf)
        request = requested.request
        starts = within or (max(request.start, now), request.latest_start)
        return self._search.first_of(
            requested.lease,
            lambda replica: lease_request.starts(
                replica, requested, ahead, starts, options
            ),
            now,
        )

    def competing(
        self,
        replica: state.Replica,
        requested: RequestedLease,
        others: Iterable[RequestedLease],
    ) -> list[RequestedLease]:
        """Return the other requests whose leases may use the same hosts."""
        return lease_request.competing(
            replica, requested.lease, others, placing_options.read(self._conf)
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
        return self._drafts.new(
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
        self,
        request: LeaseRequest,
        waiting: Iterable[LeaseRequest],
        now: int,
    ) -> int | None:
        """Return the first start with room, also after the latest start."""
        if not request.is_waiting:
            return None
        ahead = [each for each in waiting if each.turn < request.turn]
        first = max(request.start, now)
        within = first, max(request.latest_start, first) + DEFAULT_RANGE
        for requested in self.requested_leases([request], now):
            return self._search.result(
                self.starts(
                    requested, self.requested_leases(ahead, now), now, within
                )
            )
        return None
