# SPDX-License-Identifier: Apache-2.0
"""Lease requests: projects that wait until a lease finds room.

A request waits while no start in the range of the request has room. As soon as
there is room, a loop books the lease. A request never takes room that a
request ahead could use: the lease of a request overlaps no window of a request
ahead that competes for the same hosts, so that small requests cannot keep a
large request waiting for ever. A request may displace the flexible leases of
requests of a lower priority. The order of the requests is in the ledger, and
each commit checks the order, so several managers may book at once.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
import contextlib
import dataclasses
import functools
from typing import Any
import uuid

from oslo_config import cfg
from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.domain import lease as lease_rules
from blazar_sched.domain import plural
from blazar_sched.domain import states
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.lease_request import LeaseRequest
from blazar_sched.placing import lease_placing
from blazar_sched.placing import lease_request
from blazar_sched.placing.lease_request import RequestedLease
from blazar_sched.service import loop
from blazar_sched.service import resources
from blazar_sched.service.bus.notifier import LEASE_CREATE
from blazar_sched.service.bus.notifier import LEASE_UPDATE
from blazar_sched.service.bus.notifier import Notifier
from blazar_sched.service.bus.notifier import REQUEST_BOOK
from blazar_sched.service.bus.notifier import REQUEST_CREATE
from blazar_sched.service.bus.notifier import REQUEST_DELETE
from blazar_sched.service.bus.notifier import REQUEST_LAPSE
from blazar_sched.service.bus.notifier import REQUEST_MOVE
from blazar_sched.service.enforcement import Enforcement
from blazar_sched.service.enforcement.base import LeaseChange
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.ledger.tx import Tx
from blazar_sched.service.manager import idempotency
from blazar_sched.service.manager.lease_writer import LeaseWriter
from blazar_sched.service.manager.request_search import RequestSearch
from blazar_sched.service.manager.runner import Runner
from blazar_sched.service.manager.window_search import Booking
from blazar_sched.service.manager.window_search import check_on_hosts
from blazar_sched.service.manager.window_search import in_commit
from blazar_sched.service.manager.window_search import WindowSearch

LOG = log.getLogger(__name__)

# The seconds after which room is searched for although no revision is new.
INTERVAL = 60
# The most leases that are moved for a request: other commits wait meanwhile.
MOST_MOVED = 10
# The namespace of the ids that follow from idempotency keys.
_NAMESPACE = uuid.UUID('3b0c5a52-6d2e-4c7b-9a0e-5f2a1c4d7e90')

_Shown = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class _Booked:
    """A request that was booked, with its lease.

    :param moved: the requests whose leases were moved, with these leases
    """

    request: LeaseRequest
    lease: Lease
    moved: list[tuple[LeaseRequest, Lease]] = dataclasses.field(
        default_factory=list
    )


class LeaseRequests(loop.Looped):
    """The operations on lease requests, and the loop that books leases.

    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        ledger: Ledger,
        drivers: resources.Drivers,
        runner: Runner,
        notifier: Notifier,
        enforcement: Enforcement,
        search: WindowSearch,
        writer: LeaseWriter,
        clock: Callable[[], float],
    ) -> None:
        self._conf = conf.manager
        self._ledger = ledger
        self._requests = RequestSearch(conf, drivers, search)
        self._runner = runner
        self._notifier = notifier
        self._enforcement = enforcement
        self._search = search
        self._writer = writer
        self._clock = clock
        # The revision and the interval of the last search for room.
        self._searched: tuple[int, int] | None = None
        self._loop = loop.Loop('lease requests', self.step)

    def create(
        self, values: Mapping[str, Any], key: str | None = None
    ) -> _Shown:
        """Create a lease request, and book its lease if there is room.

        :param key: the idempotency key of the request, unique in its project
        :raises InvalidInput: naming the field that is wrong
        :raises NotEnoughHostsAvailable: if the hosts are too few, whatever is
            on them
        :raises LimitExceeded: if too many requests of the project wait, or if
            a limit forbids the lease
        :raises IdempotencyKeyReused: if the key was used for another request
        """
        if self._enforcement.is_external:
            raise exception.InvalidInput(
                'this cloud asks another service about each lease, so that '
                'no lease request can wait',
                field='wait_until',
            )
        now = int(self._clock())
        new = _new(values, key, now)
        made = _made(self._ledger, new)
        if made is None:
            self._check(new, now)
            made, is_new = self._ledger.write(lambda tx: self._add(tx, new))
            if is_new:
                self._notifier.lease_request(REQUEST_CREATE, made)
                self._book_first(made, now)
        return self.get(made.id, None)

    def get(self, request_id: str, project_id: str | None) -> _Shown:
        """Return a lease request, with the start that it may expect.

        :raises LeaseRequestNotFound: if the project has no such request
        """
        found: LeaseRequest = self._ledger.lease_request(
            request_id, project_id
        )
        waiting = self._ledger.waiting_requests()
        now = int(self._clock())
        return {
            **_shown(found, waiting),
            'estimate': self._requests.estimate(found, waiting, now),
        }

    def list(self, project_id: str | None) -> list[_Shown]:
        """Return the lease requests of a project, or all, by id."""
        waiting = self._ledger.waiting_requests()
        return [
            _shown(each, waiting)
            for each in self._ledger.lease_requests(project_id)
        ]

    def cancel(self, request_id: str, project_id: str | None) -> None:
        """Wait for room no longer.

        :raises LeaseRequestNotFound: if the project has no such request
        :raises InvalidStatus: if the request has stopped waiting
        """
        now = int(self._clock())

        def work(tx: Tx) -> LeaseRequest:
            request = tx.lease_request(request_id, project_id)
            if not request.is_waiting:
                raise exception.InvalidStatus(
                    f'a lease request that is {request.status} cannot be '
                    'cancelled',
                    field='status',
                )
            return _ended(tx, request, states.REQUEST_CANCELLED, now)

        cancelled = self._ledger.write(work)
        self._notifier.lease_request(REQUEST_DELETE, cancelled)
        self.search_again()

    def step(self) -> float:
        """End the requests that have waited too long, and book the others.

        Room is searched for at each new revision of the ledger.
        """
        now = int(self._clock())
        waiting = self._ledger.waiting_requests()
        late = [each for each in waiting if each.wait_until <= now]
        for each in late:
            self._lapse(each, now)
        if waiting:
            at = self._ledger.newest()[1], now // INTERVAL
            if late or at != self._searched:
                self._searched = at
                self._book_all(
                    [each for each in waiting if each not in late], now
                )
        return loop.PAUSE

    def search_again(self) -> None:
        """Search for room at this revision, too: the requests have changed."""
        self._searched = None
        self._loop.wake()

    def _check(self, new: LeaseRequest, now: int) -> None:
        """Refuse a request that can never be booked.

        :raises BlazarSchedError: as `create`
        """
        new.check(now)
        requested = self._requests.requested_lease(new, now)
        check_on_hosts(requested.lease)
        self._enforcement.check_limits(
            self._ledger, LeaseChange(requested.lease, None, now)
        )
        suitable = self._ledger.read_replica(
            lambda replica: lease_request.suitable_hosts(
                replica, requested.lease
            )
        )
        lacking = lease_request.lacking(
            suitable, self._conf.overcommit_reservations
        )
        if lacking is not None:
            raise exception.NotEnoughHostsAvailable(
                lacking, field='reservations'
            )

    def _add(self, tx: Tx, new: LeaseRequest) -> tuple[LeaseRequest, bool]:
        """Write a new request, unless the request was made before.

        :returns: the request, and whether it is new
        """
        made = _made(tx, new)
        if made is not None:
            return made, False
        most = self._conf.max_waiting_requests
        if len(tx.waiting_requests(new.project_id)) >= most:
            raise exception.MaxWaitingRequests(
                f'{plural.counted(most, "lease request")} of a project may '
                'wait at most',
                field='wait_until',
            )
        new = dataclasses.replace(new, number=tx.last_request_number() + 1)
        tx.put_lease_request(new)
        return new, True

    def _lapse(self, late: LeaseRequest, now: int) -> None:
        def work(tx: Tx) -> LeaseRequest | None:
            request = tx.lease_request(late.id, None)
            if not request.is_waiting:
                return None
            return _ended(tx, request, states.REQUEST_LAPSED, now)

        lapsed = self._ledger.write(work)
        if lapsed is not None:
            self._notifier.lease_request(REQUEST_LAPSE, lapsed)

    def _book_first(self, request: LeaseRequest, now: int) -> None:
        """Book the lease of a new request, if there is room."""
        waiting = [
            each for each in self._ledger.waiting_requests()
            if each.turn < request.turn
        ]
        seen = {each.id for each in waiting}
        ahead = self._requests.requested_leases(waiting, now)
        requested = self._requests.requested_lease(request, now)
        if not self._book(requested, ahead, seen, now):
            self.search_again()

    def _book_all(self, waiting: Sequence[LeaseRequest], now: int) -> None:
        """Book the leases of the requests, in their order, that have room."""
        ahead: list[RequestedLease] = []
        seen: set[str] = set()
        for request in waiting:
            for requested in self._requests.requested_leases([request], now):
                if not self._book(requested, ahead, seen, now):
                    ahead.append(requested)
            seen.add(request.id)

    def _book(
        self,
        requested: RequestedLease,
        ahead: Sequence[RequestedLease],
        seen: Set[str],
        now: int,
    ) -> bool:
        """Book the lease of a request, if there is room.

        :param ahead: the requests ahead that wait for room
        :param seen: the ids of all requests ahead
        :returns: whether the requests behind need not keep away from the
            windows of the request
        """
        search = self._requests.starts(requested, ahead, now)
        try:
            if self._search.result(search) is None:
                return self._make_room(requested, ahead, seen, now)
            booked = self._search.book(
                search,
                lambda booking: self._ledger.commit(
                    lambda tx: self._put(tx, requested, seen, booking, now)
                ),
            )
        except exception.LimitExceeded as e:
            # There is room: the requests behind do not wait for a project
            # that has too much.
            LOG.info('Lease request %s waits: %s', requested.request.id, e)
            return True
        except exception.Conflict as e:
            LOG.warning('Lease request %s waits: %s', requested.request.id, e)
            return False
        if booked is None:
            return False
        self._announce(booked)
        return True

    def _announce(self, booked: _Booked) -> None:
        self._notifier.lease_request(REQUEST_BOOK, booked.request)
        self._notifier.lease(LEASE_CREATE, booked.lease)
        for request, lease in booked.moved:
            self._notifier.lease_request(REQUEST_MOVE, request)
            self._notifier.lease(LEASE_UPDATE, lease)
        self._runner.wake()

    def _make_room(
        self,
        requested: RequestedLease,
        ahead: Sequence[RequestedLease],
        seen: Set[str],
        now: int,
    ) -> bool:
        """Book the lease of a request in place of leases that can be moved.

        As few leases as possible are moved, those of the last requests first.

        :returns: as `_book`
        """
        movable = self._movable(self._ledger, requested.request, now)
        most = self._ledger.read_replica(
            lambda replica: len(
                self._requests.competing(replica, requested, movable)
            )
        )
        for count in range(1, min(most, MOST_MOVED) + 1):
            with contextlib.suppress(exception.NotEnoughHostsAvailable):
                booked = self._ledger.commit(functools.partial(
                    self._put_in_place, requested=requested, ahead=ahead,
                    seen=seen,
                    count=count, now=now,
                ))
                if booked is not None:
                    self._announce(booked)
                    return True
        return False

    def _movable(
        self, source: Reader, request: LeaseRequest, now: int
    ) -> Sequence[RequestedLease]:
        """Return the leases that may be moved for a request, the last first.

        A lease whose hosts are being vacated is not moved any more, nor is a
        lease whose owner has given it a window of its own.
        """
        found = []
        for each in source.flexible_requests():
            if each.priority >= request.priority:
                continue
            # Outside a commit, the lease may have been deleted meanwhile.
            with contextlib.suppress(exception.LeaseNotFound):
                lease = source.lease(str(each.lease_id))
                if (
                    lease.is_idle
                    and now + self._conf.vacate_lead_time < lease.start
                    and each.may_have(lease.window)
                    and lease.window.overlaps(request.span)
                ):
                    found.append(RequestedLease(each, lease))
        return found

    def _put_in_place(
        self,
        tx: PlacingTx,
        requested: RequestedLease,
        ahead: Sequence[RequestedLease],
        seen: Set[str],
        count: int,
        now: int,
    ) -> _Booked | None:
        """Write the lease of a request, and the moved leases.

        :param count: the number of leases to move
        :raises NotEnoughHostsAvailable: if one of the leases finds no room in
            the range of starts of its own request
        """
        replica = tx.replica
        movable = self._movable(tx, requested.request, now)
        moving = self._requests.competing(replica, requested, movable)[:count]
        search = self._requests.starts(requested, ahead, now)
        held = {
            each.lease.id: lease_placing.allocations_of(replica, each.lease)
            for each in moving
        }
        with (
            replica.indexes.removed(
                allocation
                for placed in held.values()
                for many in placed.values()
                for allocation in many
            ),
            lease_placing.remembering(replica) as keep,
        ):
            booked = self._put(
                tx, requested, seen, functools.partial(in_commit, search), now,
                keep,
            )
            if booked is None:
                return None
            moved = [
                (
                    each.request,
                    self._move(tx, each, held[each.lease.id], keep, now),
                )
                for each in reversed(moving)
            ]
        return dataclasses.replace(booked, moved=moved)

    def _move(
        self,
        tx: PlacingTx,
        requested: RequestedLease,
        held: lease_placing.Allocations,
        keep: lease_placing.Keep,
        now: int,
    ) -> Lease:
        """Place a lease anew in the range of starts of its request.

        The lease keeps its window if the window has room on other hosts.

        :param held: the allocations that the lease has
        :raises NotEnoughHostsAvailable: if there is no room, or if a limit
            forbids the lease in another window
        """
        request, lease = requested.request, requested.lease
        ahead = self._requests.requested_leases(
            (
                each for each in tx.waiting_requests()
                if each.turn < request.turn
            ),
            now,
        )
        searches = (
            self._requests.starts(
                requested, (), now, (lease.start, lease.start)
            ),
            self._requests.starts(requested, ahead, now),
        )
        starts = (in_commit(search, tx) for search in searches)
        start = next((at for at in starts if at is not None), None)
        if start is None:
            raise exception.NotEnoughHostsAvailable(
                f'lease {lease.id} cannot be moved'
            )
        change, displaced = self._writer.move(tx, lease, held, start, now)
        try:
            self._enforcement.check_limits(tx, change)
        except exception.LimitExceeded as e:
            raise exception.NotEnoughHostsAvailable(str(e)) from e
        keep(change.placed, displaced)
        return change.lease

    def _put(
        self,
        tx: PlacingTx,
        requested: RequestedLease,
        seen: Set[str],
        booking: Booking[int | None],
        now: int,
        keep: lease_placing.Keep | None = None,
    ) -> _Booked | None:
        """Write the lease of a request, and what has become of the request.

        :param keep: told what the lease has got
        :returns: None if the request cannot be booked now: it waits no more,
            another request has come ahead of it, or there is no room
        """
        request = tx.lease_request(requested.request.id, None)
        if not request.is_waiting or any(
            each.turn < request.turn and each.id not in seen
            for each in tx.waiting_requests()
        ):
            return None
        start = booking(tx)
        if start is None:
            return None
        lease = self._requests.lease(request, start, now)
        placed, displaced = self._writer.add(tx, lease, now)
        if keep is not None:
            keep(placed, displaced)
        self._enforcement.check_limits(
            tx, LeaseChange(lease, None, now, placed)
        )
        ended = _ended(tx, request, states.REQUEST_BOOKED, now, lease.id)
        return _Booked(ended, lease)


def _new(
    values: Mapping[str, Any], key: str | None, now: int
) -> LeaseRequest:
    """Return a new request; the id follows from the idempotency key, if any.
    """
    id_ = idempotency.new_id(_NAMESPACE, values['project_id'], key)
    requested = {
        **values, 'start': lease_rules.soon(values['start'], now, 'start_date')
    }
    return LeaseRequest(
        id=id_, digest=idempotency.digest(values), created_at=now,
        **requested,
    )


def _made(source: Reader, new: LeaseRequest) -> LeaseRequest | None:
    """Return the request that the same idempotency key has made, else None.

    :raises IdempotencyKeyReused: if the key was used for another request
    """
    try:
        made: LeaseRequest = source.lease_request(new.id, None)
    except exception.LeaseRequestNotFound:
        return None
    idempotency.require_same(made.digest, new.digest)
    return made


def _ended(
    tx: Tx,
    request: LeaseRequest,
    status: str,
    now: int,
    lease_id: str | None = None,
) -> LeaseRequest:
    """Write that a request waits no more; return the request."""
    ended = dataclasses.replace(
        request, status=status, lease_id=lease_id, updated_at=now
    )
    tx.put_lease_request(ended)
    return ended


def _shown(
    request: LeaseRequest, waiting: Iterable[LeaseRequest]
) -> _Shown:
    """Return a request with its position, from 1, among those that wait."""
    position = None
    if request.is_waiting:
        position = 1 + sum(each.turn < request.turn for each in waiting)
    return {**dataclasses.asdict(request), 'position': position}
