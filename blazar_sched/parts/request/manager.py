# SPDX-License-Identifier: Apache-2.0
"""Lease requests: projects that wait until a lease finds room.

A request waits while no start in the range of the request has room. As soon as
there is room, a loop books the lease. Each request keeps one window free: that
at the start that the request is estimated to get, or at its latest start if
the estimate is later. The lease of a request overlaps no such window of
a request ahead that competes for the same hosts, so that small requests cannot
keep a large request waiting for ever. A request without an estimate keeps no
window free. A request may displace the flexible leases of requests of a lower
priority. The order of the requests is in the ledger, and each commit checks
the order, so several managers may book at once.

The loop searches for one request at a time, for a bounded time for each
project, and rests for most of the time.
"""

from collections import Counter
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from collections.abc import Set
import contextlib
import dataclasses
import functools
import itertools
import uuid

from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.domain import lease as lease_rules
from blazar_sched.domain import plural
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.notification import Notification
from blazar_sched.parts.request import models
from blazar_sched.parts.request import placing
from blazar_sched.parts.request.calls import LEASE_REQUESTS
from blazar_sched.parts.request.exception import LeaseRequestNotFound
from blazar_sched.parts.request.exception import MaxWaitingRequests
from blazar_sched.parts.request.lease_request import BOOKED
from blazar_sched.parts.request.lease_request import CANCELLED
from blazar_sched.parts.request.lease_request import LAPSED
from blazar_sched.parts.request.lease_request import LeaseRequest
from blazar_sched.parts.request.lease_request import next_number
from blazar_sched.parts.request.lease_request import PRIORITIES
from blazar_sched.parts.request.placing import RequestedLease
from blazar_sched.parts.request.search import Moment
from blazar_sched.parts.request.search import RequestSearch
from blazar_sched.placing import lease_placing
from blazar_sched.placing.window_search import Budget
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.service import loop
from blazar_sched.service.booking import idempotency
from blazar_sched.service.booking.booking import Bookings
from blazar_sched.service.booking.search import Booking
from blazar_sched.service.booking.search import check_on_hosts
from blazar_sched.service.booking.search import SECONDS
from blazar_sched.service.booking.search import WindowSearch
from blazar_sched.service.bus import payload
from blazar_sched.service.bus.calls import Values
from blazar_sched.service.enforcement.base import LeaseChange
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.ledger.tx import Tx
from blazar_sched.service.manager import paging
from blazar_sched.service.manager.manager import Manager
from blazar_sched.service.manager.running import Running
from blazar_sched.service.metrics import Metrics

LOG = log.getLogger(__name__)

# How many times as long as a pass took, in processor time, the loop rests.
REST = 20
# The most leases that are moved for a request: other commits wait meanwhile.
MAX_MOVED_LEASES = 10
# The most seconds from the first to the last start of a request.
MAX_START_RANGE = 366 * 86400
# The namespace of the ids that follow from idempotency keys.
_NAMESPACE = uuid.UUID('3b0c5a52-6d2e-4c7b-9a0e-5f2a1c4d7e90')

# A lease request waits; is a lease now; its lease was moved; has waited too
# long; was cancelled.
NOTIFICATIONS = CREATE, BOOK, MOVE, LAPSE, DELETE = (
    'request.create', 'request.book', 'request.move', 'request.lapse',
    'request.delete',
)
# The notification that a request waits no more, by its status.
_ENDED = {BOOKED: BOOK, LAPSED: LAPSE, CANCELLED: DELETE}


class LeaseRequests(loop.Looped):
    """The operations on lease requests, and the loop that books leases.

    :param monotonic: returns monotonic seconds
    """

    def __init__(
        self, bookings: Bookings, search: WindowSearch,
        monotonic: Callable[[], float], metrics: Metrics,
    ) -> None:
        self._conf = bookings.conf.manager
        self._bookings = bookings
        self._ledger = bookings.ledger
        self._enforcement = bookings.enforcement
        self._requests = RequestSearch(bookings, search)
        self._search = search
        self._monotonic = monotonic
        # The moment of the last search for room, and when the next search may
        # begin.
        self._searched: Moment | None = None
        self._rested_at = 0.0
        self._late = loop.Objects[LeaseRequest]('lapsed requests', metrics)
        self._waiting = loop.Objects[LeaseRequest]('lease requests', metrics)
        self._loop = loop.Loop('lease requests', self.step)

    def create(self, values: Values, key: str | None = None) -> Values:
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
        now = self._bookings.now()
        new = _new(values, key, now)
        made = _made(self._ledger, new)
        if made is None:
            self._check(new, now)
            first = self._enforcement.first_start(new.project_id, now)
            new = dataclasses.replace(new, start=max(new.start, first))
            made, is_new = self._ledger.write(lambda tx: self._add(tx, new))
            if is_new:
                self._book_first(made, now)
        return self.get(made.id, None, anew=False)

    def get(
        self, request_id: str, project_id: str | None, anew: bool = True
    ) -> Values:
        """Return a lease request, with the start that it may expect.

        :param anew: whether to search although there is an estimate
        :raises LeaseRequestNotFound: if the project has no such request
        """
        found = self._ledger.run(models.get, request_id, project_id)
        waiting = self._ledger.run(models.waiting)
        now = self._bookings.now()
        if not found.is_waiting:
            return {**_shown(found, waiting), 'estimate': None}
        if anew or not self._requests.is_estimated(found):
            for requested in self._requests.requested_leases([found], now):
                # Without a turn, the last estimate is the answer.
                with contextlib.suppress(exception.TooManyRequests):
                    self._requests.estimate(
                        requested, self._requests.ahead(found, waiting, now),
                        now, self._requests.moment(now), self._search.budget(),
                        found.project_id,
                    )
        return {
            **_shown(found, waiting),
            'estimate': self._requests.last_estimate(found),
        }

    def list(self, project_id: str | None) -> list[Values]:
        """Return the lease requests of a project, or all, by id."""
        waiting = self._ledger.run(models.waiting)
        return [
            _shown(each, waiting)
            for each in self._ledger.run(models.list_, project_id)
        ]

    def delete(self, request_id: str, project_id: str | None) -> None:
        """Wait for room no longer.

        :raises LeaseRequestNotFound: if the project has no such request
        :raises InvalidStatus: if the request has stopped waiting
        """
        now = self._bookings.now()

        def work(tx: Tx) -> None:
            request = tx.run(models.get, request_id, project_id)
            if not request.is_waiting:
                raise exception.InvalidStatus(
                    f'a lease request that is {request.status} cannot be '
                    'cancelled',
                    field='status',
                )
            _ended(tx, request, CANCELLED, now)

        self._ledger.write(work)
        self.search_again()

    def step(self) -> float:
        """End the requests that have waited too long, and book the others.

        Room is searched for when the ledger has a new revision, but not
        before the loop has rested.
        """
        now = self._bookings.now()
        waiting = self._ledger.run(models.waiting)
        late = [each for each in waiting if each.wait_until <= now]
        self._late.each(
            ((each.id, each) for each in late),
            lambda each: self._lapse(each, now), now,
        )
        if late:
            self._searched = None
        if waiting and self._monotonic() >= self._rested_at:
            at = self._requests.moment(now)
            if at != self._searched:
                self._searched = at
                began = self._search.thread_time()
                self._book_all(
                    [each for each in waiting if each not in late], now, at
                )
                took = self._search.thread_time() - began
                self._rested_at = self._monotonic() + REST * took
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
        if new.latest_start - new.start > MAX_START_RANGE:
            raise exception.InvalidInput(
                'latest_start_date must be at most '
                f'{MAX_START_RANGE // 86400} days after start_date',
                field='latest_start_date',
            )
        last = self._requests.lease(new, new.latest_start, now)
        check_on_hosts(last)
        project = self._enforcement.project(self._ledger, new.project_id)
        for each in self._requests.requested_leases(
            self._ledger.run(models.waiting, new.project_id), now
        ):
            project.add(each.lease, {})
        try:
            self._enforcement.check_limits(
                self._ledger, LeaseChange(last, None, now), project
            )
        except (
            exception.MinStartLead,
            exception.MaxStartHorizon,
            exception.MaxEndHorizon,
        ) as e:
            e.field = e.kwargs['field'] = 'latest_start_date'
            raise
        suitable = self._ledger.read_replica(
            lambda replica: placing.suitable_hosts(replica, last)
        )
        lacking = placing.lacking(suitable, self._conf.overcommit_reservations)
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
        by_turns = self._conf.requests_by_turns
        waiting = tx.run(models.waiting, None if by_turns else new.project_id)
        own = [r for r in waiting if r.project_id == new.project_id]
        if len(own) >= most:
            raise MaxWaitingRequests(
                f'{plural.counted(most, "lease request")} of a project may '
                'wait at most',
                field='wait_until',
            )
        new = dataclasses.replace(new, number=next_number(
            new, waiting, tx.run(models.last_number), by_turns
        ))
        tx.run(models.put, new)
        _notify(tx, CREATE, new)
        return new, True

    def _lapse(self, late: LeaseRequest, now: int) -> None:
        def work(tx: Tx) -> bool:
            request = tx.run(models.get, late.id, None)
            if request.is_waiting:
                _ended(tx, request, LAPSED, now)
            return request.is_waiting

        if self._ledger.write(work):
            for each in self._requests.requested_leases([late], now):
                self._bookings.refuse(each.lease)

    def _book_first(self, request: LeaseRequest, now: int) -> None:
        """Book the lease of a new request, if there is room.

        The loop books the lease if the search takes too long.
        """
        waiting = [
            each for each in self._ledger.run(models.waiting)
            if each.turn < request.turn
        ]
        budget, left = self._search.budget(), len(waiting) + 1
        at = self._requests.moment(now)
        ahead: list[RequestedLease] = []
        booked = False
        with contextlib.suppress(exception.TooManyRequests):
            for each in self._requests.requested_leases(waiting, now):
                self._requests.estimate(
                    each, ahead, now, at, budget.part(left), request.project_id
                )
                ahead += self._requests.kept(each)
                left -= 1
            booked = self._book(
                self._requests.requested_lease(request, now), ahead,
                {each.id for each in waiting}, now, at, budget,
                request.project_id,
            )
        if not booked:
            self.search_again()

    def _book_all(
        self, waiting: Sequence[LeaseRequest], now: int, at: Moment
    ) -> None:
        """Book the leases of the requests, in their order, that have room.

        The requests of one project share one budget.

        :param at: the moment of the search
        """
        ahead: list[RequestedLease] = []
        seen: set[str] = set()
        counts = Counter(each.project_id for each in waiting)

        def book(request: LeaseRequest) -> None:
            seconds = SECONDS / counts[request.project_id]
            try:
                for requested in self._requests.requested_leases(
                    [request], now
                ):
                    if not self._book(
                        requested, ahead, seen, now, at,
                        self._search.budget(seconds),
                    ):
                        ahead.extend(self._requests.kept(requested))
            finally:
                seen.add(request.id)

        self._waiting.each(((each.id, each) for each in waiting), book, now)
        self._requests.forget_all_but(seen)

    def _book(
        self, requested: RequestedLease, ahead: Sequence[RequestedLease],
        seen: Set[str], now: int, at: Moment, budget: Budget,
        project_id: str | None = None,
    ) -> bool:
        """Book the lease of a request, if there is room.

        :param ahead: the requests ahead in the windows that they keep free
        :param seen: the ids of all requests ahead
        :param at: the moment of the search
        :param project_id: the project whose turn the searches need
        :returns: whether the requests behind need not keep away from the
            window of the request
        :raises TooManyRequests: if too many searches run or wait already
        """
        request = requested.request
        start = self._requests.estimate(
            requested, ahead, now, at, budget, project_id
        )
        try:
            if start is None or start > request.latest_start:
                return self._make_room(requested, ahead, seen, now, budget)
            booked = self._search.book(
                self._requests.starts(requested, ahead, (start, start), now),
                lambda booking: self._ledger.commit(
                    lambda tx: self._put(tx, requested, seen, booking, now)
                ),
            )
        except exception.LimitExceeded as e:
            # There is room: the requests behind do not wait for a project
            # that has too much.
            LOG.info('Lease request %s waits: %s', request.id, e)
            return True
        except exception.Conflict as e:
            LOG.warning('Lease request %s waits: %s', request.id, e)
            return False
        if not booked:
            return False
        self._bookings.runner.wake()
        return True

    def _make_room(
        self, requested: RequestedLease, ahead: Sequence[RequestedLease],
        seen: Set[str], now: int, budget: Budget,
    ) -> bool:
        """Book the lease of a request in place of leases that can be moved.

        As few leases as possible are moved, those of the last requests first.

        :returns: as `_book`
        """
        movable = self._movable(self._ledger, requested.request, now)
        if not movable:
            return False
        movable = self._ledger.read_replica(
            lambda replica: self._requests.competing(
                replica, requested, movable
            )
        )
        waiting = self._ledger.run(models.waiting)
        for count in range(1, min(len(movable), MAX_MOVED_LEASES) + 1):
            if budget.is_spent:
                break
            leaving = [
                (each, self._requests.ahead(each.request, waiting, now))
                for each in reversed(movable[:count])
            ]
            # One query for each number: no commit waits for all of them.
            starts = self._ledger.read_replica(functools.partial(
                self._starts, requested=requested, ahead=ahead,
                leaving=leaving, now=now,
            ))
            if starts is None:
                continue
            with contextlib.suppress(exception.NotEnoughHostsAvailable):
                booked = self._ledger.commit(functools.partial(
                    self._put_in_place, requested=requested, seen=seen,
                    moving=[each for each, _ in leaving], starts=starts,
                    now=now,
                ))
                if booked:
                    self._bookings.runner.wake()
                    return True
            break
        return False

    def _starts(
        self, replica: state.Replica, requested: RequestedLease,
        ahead: Sequence[RequestedLease],
        leaving: Sequence[tuple[RequestedLease, Sequence[RequestedLease]]],
        now: int,
    ) -> Sequence[int] | None:
        """Return the starts of a request and of leases that leave for it.

        A lease keeps its window if the window has room on other hosts.

        :param ahead: the requests ahead in the windows that they keep free
        :param leaving: the leases, with the requests ahead of them likewise
        :returns: None if one of the leases finds no room in time
        """
        reader = self._search.fixed(replica, self._ledger)
        found = []
        with replica.changing() as put:
            put(
                record.removal(allocation)
                for each, _ in leaving
                for allocation in _allocations(replica, each.lease)
            )
            for each, others in [(requested, ahead), *leaving]:
                at, request = each.lease.start, each.request
                within = max(request.start, now), request.latest_start
                searches = [self._requests.starts(each, others, within, now)]
                if each is not requested:
                    searches.insert(
                        0, self._requests.starts(each, (), (at, at), now)
                    )
                starts = (search(reader) for search in searches)
                start = next((at for at in starts if at is not None), None)
                if start is None:
                    return None
                lease = dataclasses.replace(
                    each.lease, start=start, end=start + request.duration
                )
                try:
                    placed, displaced = self._bookings.writer.place(
                        replica, lease, now
                    )
                except exception.NotEnoughHostsAvailable:
                    return None
                put(map(record.encode, itertools.chain(*placed.values())))
                put(map(record.encode, displaced))
                found.append(start)
        return found

    def _movable(
        self, source: Reader, request: LeaseRequest, now: int
    ) -> Sequence[RequestedLease]:
        """Return the leases that may be moved for a request, the last first.

        A lease whose hosts are being vacated is not moved any more, nor is a
        lease whose owner has given it a window of its own.
        """
        found = []
        for each in source.run(models.flexible):
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
        self, tx: PlacingTx, requested: RequestedLease, seen: Set[str],
        moving: Sequence[RequestedLease], starts: Sequence[int], now: int,
    ) -> bool:
        """Write the lease of a request, and the moved leases.

        :param moving: the leases to move
        :param starts: the start of the request, and those of the moved leases
        :returns: False if the leases have changed meanwhile, or as `_put`
        :raises NotEnoughHostsAvailable: if one of the leases finds no room
            any more
        """
        movable = self._movable(tx, requested.request, now)
        if any(each not in movable for each in moving):
            return False
        held = [
            self._bookings.writer.release(tx, each.lease, now)
            for each in moving
        ]
        if not self._put(tx, requested, seen, lambda tx: starts[0], now):
            return False
        for each, before, at in zip(moving, held, starts[1:], strict=True):
            _notify(tx, MOVE, each.request)
            self._move(tx, each.lease, before, at, now)
        return True

    def _move(
        self, tx: PlacingTx, lease: Lease, held: lease_placing.Allocations,
        start: int, now: int,
    ) -> None:
        """Place a lease that was released anew at a start.

        :param held: the allocations that the lease had
        :raises NotEnoughHostsAvailable: if there is no room, or if a limit
            forbids the lease in another window
        """
        change = self._bookings.writer.move(tx, lease, held, start, now)
        # The request was for any of its starts.
        granted = dataclasses.replace(
            lease, start=change.lease.start, end=change.lease.end
        )
        try:
            self._enforcement.check_limits(
                tx, dataclasses.replace(change, granted=granted)
            )
        except exception.LimitExceeded as e:
            raise exception.NotEnoughHostsAvailable(str(e)) from e

    def _put(
        self, tx: PlacingTx, requested: RequestedLease, seen: Set[str],
        booking: Booking[int | None], now: int,
    ) -> bool:
        """Write the lease of a request, and what has become of the request.

        :returns: False if the request cannot be booked now: it waits no more,
            another request has come ahead of it, or there is no room
        """
        request = tx.run(models.get, requested.request.id, None)
        if not request.is_waiting or any(
            each.turn < request.turn and each.id not in seen
            for each in tx.run(models.waiting)
        ):
            return False
        start = booking(tx)
        if start is None:
            return False
        lease = self._bookings.add(
            tx, self._requests.lease(request, start, now), now,
            asked_at=request.created_at,
        )
        _ended(tx, request, BOOKED, now, lease.id)
        return True


def _new(values: Values, key: str | None, now: int) -> LeaseRequest:
    """Return a new request; the id follows from the idempotency key, if any.
    """
    id_ = idempotency.new_id(_NAMESPACE, values['project_id'], key)
    requested = {
        **values, 'start': lease_rules.soon(values['start'], now, 'start_date')
    }
    return LeaseRequest(
        id=id_, digest=idempotency.digest(values), created_at=now, **requested
    )


def _made(source: Reader, new: LeaseRequest) -> LeaseRequest | None:
    """Return the request that the same idempotency key has made, else None.

    :raises IdempotencyKeyReused: if the key was used for another request
    """
    try:
        made = source.run(models.get, new.id, None)
    except LeaseRequestNotFound:
        return None
    idempotency.require_same(made.digest, new.digest)
    return made


def _allocations(replica: state.Replica, lease: Lease) -> Iterable[Allocation]:
    """Return all allocations of a lease."""
    held = lease_placing.allocations_of(replica, lease)
    return itertools.chain(*held.values())


def _ended(
    tx: Tx, request: LeaseRequest, status: str, now: int,
    lease_id: str | None = None,
) -> None:
    """Write that a request waits no more, and notify of it."""
    ended = dataclasses.replace(
        request, status=status, lease_id=lease_id, updated_at=now
    )
    tx.run(models.put, ended)
    _notify(tx, _ENDED[status], ended)


def _shown(request: LeaseRequest, waiting: Iterable[LeaseRequest]) -> Values:
    """Return a request with its position, from 1, among those that wait."""
    position = None
    if request.is_waiting:
        position = 1 + sum(each.turn < request.turn for each in waiting)
    return {**dataclasses.asdict(request), 'position': position}


def _notify(tx: Tx, event_type: str, request: LeaseRequest) -> None:
    """Notify of a lease request; the type is from above."""
    tx.notifications.append(Notification(
        event_type, request.project_id, lambda: _payload(request)
    ))


def _payload(request: LeaseRequest) -> Values:
    """Return the payload of a notification of a lease request."""
    return {
        'request_id': request.id,
        'name': request.name,
        'user_id': request.user_id,
        'project_id': request.project_id,
        'start_date': payload.date(request.start),
        'latest_start_date': payload.date(request.latest_start),
        'duration': request.duration,
        'wait_until': payload.date(request.wait_until),
        'priority': PRIORITIES[request.priority],
        'status': request.status,
        'lease_id': request.lease_id,
    }


def start(manager: Manager) -> Running:
    """Answer the calls for lease requests, and book their leases."""
    requests = LeaseRequests(
        manager.bookings, manager.search, manager.monotonic, manager.metrics
    )

    def create(values: Values, idempotency_key: str | None = None) -> Values:
        manager.flavors.learn(values['reservations'])
        return requests.create(values, idempotency_key)

    return Running(
        {
            'create_lease_request': create,
            **paging.answers(LEASE_REQUESTS, requests),
        },
        (requests,),
    )
