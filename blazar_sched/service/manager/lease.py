# SPDX-License-Identifier: Apache-2.0
"""Leases: create, update and delete, each in one commit or not at all."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import hashlib
import itertools
import json
from typing import Any
import uuid

from oslo_config import cfg

from blazar_sched.domain import event as event_
from blazar_sched.domain import exception
from blazar_sched.domain import lease as lease_
from blazar_sched.domain import reservation as reservation_
from blazar_sched.domain import states
from blazar_sched.domain import window as window_
from blazar_sched.service import resources
from blazar_sched.service.ledger import ledger as ledger_
from blazar_sched.service.manager import event as runner_
from blazar_sched.service.manager import placing

NOW = 'now'
DEFAULT = 'default'
MAX_RESERVATIONS = 100
# Many clients know minutes only: this minute's start is now.
GRACE = 60
# Who asks is no part of what is asked for.
_CALLER = ('project_id', 'user_id')
# How long a delete waits for what is in Nova to go, and how often it looks.
DELETE_WAITS = 60
DELETE_WAIT = 0.5


class Leases:
    """The leases.

    :param clock: returns the time in epoch seconds
    :param wait: sleeps for seconds
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        ledger: ledger_.Ledger,
        drivers: resources.Drivers,
        runner: runner_.Runner,
        clock: Callable[[], float],
        wait: Callable[[float], object],
    ) -> None:
        self._conf = conf
        self._ledger = ledger
        self._drivers = drivers
        self._runner = runner
        self._clock = clock
        self._wait = wait

    def create(
        self, values: Mapping[str, Any], key: str | None = None
    ) -> lease_.Lease:
        """Place and record a new lease.

        :param key: of the request, in its project: asked again with the same
            values, it is answered with the lease that it made
        :raises InvalidInput: naming the field that is wrong
        :raises NotEnoughHostsAvailable: if a reservation finds no room
        :raises IdempotencyKeyReused: if the key has made another lease
        """
        project_id = values['project_id']
        digest = _digest(values)
        # First of all: what was asked in time may be late by now.
        made = key and _made(self._ledger, project_id, key, digest)
        if made:
            return made
        now = int(self._clock())
        lease = self._new(values, now)

        def work(tx: Any) -> lease_.Lease:
            made = key and _made(tx, project_id, key, digest)
            if made:
                return made
            tx.replica.advance(now)
            placed = placing.place(tx.replica, lease, lease.window)
            tx.add_lease(lease, itertools.chain(*placed.values()))
            self._book(tx, lease, lease.window)
            if key is not None:
                tx.put_key(project_id, key, lease.id, digest)
            return lease

        created = self._ledger.commit(work)
        if lease.start == now:
            self._runner.poke()
        return created

    def update(
        self,
        lease_id: str,
        project_id: str | None,
        values: Mapping[str, Any],
    ) -> lease_.Lease:
        """Change a lease: all that is asked for, or nothing.

        :raises LeaseNotFound: if the project has no such lease
        :raises InvalidStatus: if it is changing already, or over
        :raises CantUpdateParameter: if what is asked for is fixed by now
        :raises InvalidInput: naming the field that is wrong
        :raises NotEnoughHostsAvailable: if the change finds no room
        """
        now = int(self._clock())

        def work(tx: Any) -> lease_.Lease:
            old = tx.lease(lease_id, project_id)
            _check_changeable(old, values)
            new = self._changed(old, values, now)
            if not set(values) - {'name'}:
                tx.put_lease(new)
                return new
            tx.replica.advance(now)
            held = placing.held(tx.replica, old)
            placed = _place(tx, old, new, held, now)
            new = self._planned(old, new, values, now, _grown(held, placed))
            tx.put_lease(new)
            for reservation_id, allocations in placed.items():
                tx.put_allocations(reservation_id, allocations)
            self._book(tx, new, _what_is_left(new, now))
            return new

        updated = self._ledger.commit(work)
        self._runner.poke()
        return updated

    def delete(self, lease_id: str, project_id: str | None) -> None:
        """Delete a lease, once what it has in other services is gone.

        That may go on after the answer; the lease is DELETING until then.

        :raises LeaseNotFound: if the project has no such lease
        :raises InvalidStatus: while one of its events is in progress
        :raises Unavailable: if other services do not give up what it has
        """
        now = int(self._clock())

        def work(tx: Any) -> event_.Event | None:
            lease = tx.lease(lease_id, project_id)
            _check_idle(lease)
            if lease.status in (
                states.LEASE_PENDING,
                states.LEASE_TERMINATED,
            ):
                tx.delete_lease(lease_id)
                return None
            end = _end_now(lease, now)
            tx.put_lease(
                dataclasses.replace(
                    lease,
                    status=states.LEASE_DELETING,
                    events=(end,),
                    updated_at=now,
                )
            )
            return end

        end = self._ledger.commit(work)
        if end is not None:
            self._finish_delete(lease_id, end)

    def _new(self, values: Mapping[str, Any], now: int) -> lease_.Lease:
        window = window_.Window(
            _soon(values['start'], now, 'start_date'), values['end']
        )
        before_end = self._before_end(values['before_end'], window)
        id_ = str(uuid.uuid4())
        return lease_.Lease(
            id=id_,
            name=values['name'],
            project_id=values['project_id'],
            user_id=values['user_id'],
            start=window.start,
            end=window.end,
            status=states.LEASE_PENDING,
            reservations=self._reservations(
                id_, values['project_id'], values['reservations'], now
            ),
            events=_events(id_, window, before_end, now),
            created_at=now,
        )

    def _book(
        self, tx: Any, lease: lease_.Lease, window: window_.Window
    ) -> None:
        """Have each driver allocate what is on no host."""
        for reservation in lease.reservations:
            self._drivers[reservation.resource_type].book(
                tx, lease, reservation, window
            )

    def _finish_delete(self, lease_id: str, end: event_.Event) -> None:
        """Do the lease's end here, or wait while the runner does."""
        for _ in range(DELETE_WAITS):
            over = self._runner.run(end)
            try:
                lease = self._ledger.lease(lease_id)
            except exception.LeaseNotFound:
                return
            if over and lease.status == states.LEASE_ERROR:
                raise exception.Unavailable(
                    f'what lease {lease_id} has in other services cannot be '
                    'removed: see the log, then delete it again'
                )
            if self._runner.stopping:
                return
            self._wait(DELETE_WAIT)

    def _reservations(
        self,
        lease_id: str,
        project_id: str,
        asked: Sequence[Mapping[str, Any]],
        now: int,
    ) -> tuple[reservation_.Reservation, ...]:
        if not 1 <= len(asked) <= MAX_RESERVATIONS:
            raise exception.InvalidInput(
                f'a lease has 1 to {MAX_RESERVATIONS} reservations',
                field='reservations',
            )
        made = []
        for values in asked:
            parameters = dict(values)
            resource_type = parameters.pop('resource_type', None)
            driver = self._drivers[resource_type]
            made.append(
                reservation_.Reservation(
                    id=str(uuid.uuid4()),
                    lease_id=lease_id,
                    resource_type=resource_type,
                    status=states.RESERVATION_PENDING,
                    parameters=driver.validate(parameters, project_id),
                    created_at=now,
                )
            )
        return tuple(made)

    def _before_end(
        self, asked: int | str | None, window: window_.Window
    ) -> int | None:
        if asked == DEFAULT:
            seconds = 60 * self._conf.manager.minutes_before_end_lease
            if not seconds or window.end == window_.FOREVER:
                return None
            return max(window.start, window.end - seconds)
        if asked is not None and not window.start <= asked <= window.end:
            raise exception.InvalidInput(
                'before_end_date must be inside the lease',
                field='before_end_date',
            )
        return asked

    def _changed(
        self, old: lease_.Lease, values: Mapping[str, Any], now: int
    ) -> lease_.Lease:
        """Return the lease with its name, window and reservations changed."""
        window = _changed_window(old, values, now)
        return dataclasses.replace(
            old,
            name=values.get('name', old.name),
            start=window.start,
            end=window.end,
            reservations=self._changed_reservations(
                old, values.get('reservations', ()), now
            ),
            updated_at=now,
        )

    def _changed_reservations(
        self,
        old: lease_.Lease,
        changes: Sequence[Mapping[str, Any]],
        now: int,
    ) -> tuple[reservation_.Reservation, ...]:
        by_id = {r.id: r for r in old.reservations}
        for values in changes:
            change = dict(values)
            reservation = by_id.get(change.pop('id', None))
            if reservation is None:
                raise exception.InvalidInput(
                    'a change of a reservation needs the id of one of the '
                    "lease's",
                    field='reservations',
                )
            resource_type = reservation.resource_type
            if change.pop('resource_type', resource_type) != resource_type:
                raise exception.CantUpdateParameter(
                    'resource_type cannot be changed', field='resource_type'
                )
            parameters = self._drivers[resource_type].update(
                reservation.parameters,
                change,
                old.status == states.LEASE_ACTIVE,
                old.project_id,
            )
            if parameters != reservation.parameters:
                by_id[reservation.id] = dataclasses.replace(
                    reservation, parameters=parameters, updated_at=now
                )
        return tuple(by_id.values())

    def _planned(
        self,
        old: lease_.Lease,
        new: lease_.Lease,
        values: Mapping[str, Any],
        now: int,
        grown: bool,
    ) -> lease_.Lease:
        """Return the changed lease with the events that it needs.

        :param grown: whether an active lease got more: then what its start
            does is due again, for all of it
        """
        if 'before_end' in values:
            asked = values['before_end']
        elif new.end == old.end:
            asked = old.before_end and max(new.start, old.before_end)
        elif window_.FOREVER in (old.end, new.end):
            asked = DEFAULT
        else:
            # As long before the end as it was.
            asked = old.before_end and max(
                new.start, old.before_end + new.end - old.end
            )
        before_end = self._before_end(asked, new.window)
        events = _events(old.id, new.window, before_end, now, old.events)
        if grown and old.status == states.LEASE_ACTIVE:
            events = tuple(
                dataclasses.replace(e, status=states.EVENT_UNDONE)
                if e.event_type == event_.START_LEASE
                else e
                for e in events
            )
        return dataclasses.replace(new, events=events)


def _digest(values: Mapping[str, Any]) -> str:
    """Return what tells a request for a lease from others of its project.

    Of the values as they were asked for: 'now' is the same whenever it is.
    """
    asked = {k: v for k, v in values.items() if k not in _CALLER}
    text = json.dumps(asked, sort_keys=True, separators=(',', ':'))
    return hashlib.sha256(text.encode()).hexdigest()


def _made(
    source: Any, project_id: str, key: str, digest: str
) -> lease_.Lease | None:
    """Return the lease that an idempotency key has made, None if none.

    :param source: the ledger, or a commit
    :raises IdempotencyKeyReused: if it was another request's
    """
    found = source.lease_by_key(project_id, key)
    if found is None:
        return None
    lease_id, known = found
    if known != digest:
        raise exception.IdempotencyKeyReused(
            'the key was used for another request', field='Idempotency-Key'
        )
    try:
        lease: lease_.Lease = source.lease(lease_id)
    except exception.LeaseNotFound:
        # Deleted since, and the key with it.
        return None
    return lease


def _soon(at: int | str, now: int, field: str) -> int:
    """Return a time that must not be past, this minute being now."""
    if at == NOW:
        return now
    if type(at) is not int or at < now - GRACE:
        raise exception.InvalidInput(
            f'{field} must not be past', field=field
        )
    return max(at, now)


def _check_idle(lease: lease_.Lease) -> None:
    if any(e.status == states.EVENT_IN_PROGRESS for e in lease.events):
        raise exception.InvalidStatus(
            'an event of the lease is in progress: try again', field='status'
        )


def _check_changeable(lease: lease_.Lease, values: Mapping[str, Any]) -> None:
    _check_idle(lease)
    if lease.status not in (states.LEASE_PENDING, states.LEASE_ACTIVE) and (
        set(values) - {'name'}
    ):
        raise exception.InvalidStatus(
            f'a lease that is {lease.status} can only be renamed',
            field='status',
        )


def _changed_window(
    old: lease_.Lease, values: Mapping[str, Any], now: int
) -> window_.Window:
    started = old.status != states.LEASE_PENDING
    start, end = old.start, old.end
    asked = values.get('start', start)
    if asked != start and started:
        # A client that knows minutes only names the same start so.
        if asked == NOW or asked // GRACE != start // GRACE:
            raise exception.CantUpdateParameter(
                'the start of a lease that has started cannot be changed',
                field='start_date',
            )
    elif asked != start:
        start = _soon(asked, now, 'start_date')
    if values.get('end', end) != end:
        end = _soon(values['end'], now, 'end_date')
        if started:
            end = max(end, start + 1)
    return window_.Window(start, end)


def _what_is_left(lease: lease_.Lease, now: int) -> window_.Window:
    # Of one that is ended now, its last second.
    return window_.Window(
        max(lease.start, min(now, lease.end - 1)), lease.end
    )


def _place(
    tx: Any,
    old: lease_.Lease,
    new: lease_.Lease,
    held: placing.Allocations,
    now: int,
) -> placing.Allocations:
    """Return the allocations of a changed lease.

    What asks for less of the same needs no room: it is never refused.
    """
    if new.reservations == old.reservations:
        if new.window == old.window:
            return held
        if old.start <= new.start and new.end <= old.end:
            return placing.move(held, new.window)
    return placing.place(
        tx.replica,
        new,
        _what_is_left(new, now),
        active=old.status == states.LEASE_ACTIVE,
    )


def _grown(old: placing.Allocations, new: placing.Allocations) -> bool:
    """Tell whether there is more on any host than there was."""

    def sizes(many: placing.Allocations) -> set[Any]:
        return {
            (a.reservation_id, a.host, *sorted(a.amounts.items()))
            for held in many.values()
            for a in held
        }

    return not sizes(new) <= sizes(old)


def _events(
    lease_id: str,
    window: window_.Window,
    before_end: int | None,
    now: int,
    old: Sequence[event_.Event] = (),
) -> tuple[event_.Event, ...]:
    """Return a lease's events; one that is not moved stays as it is."""
    times = {event_.START_LEASE: window.start}
    if before_end is not None:
        times[event_.BEFORE_END_LEASE] = before_end
    if window.end != window_.FOREVER:
        times[event_.END_LEASE] = window.end
    known = {e.event_type: e for e in old}
    return tuple(
        _event(lease_id, type_, at, now, known.get(type_))
        for type_, at in times.items()
    )


def _event(
    lease_id: str,
    event_type: str,
    at: int,
    now: int,
    old: event_.Event | None,
) -> event_.Event:
    if old is None:
        return event_.Event(
            id=str(uuid.uuid4()),
            lease_id=lease_id,
            event_type=event_type,
            time=at,
            status=states.EVENT_UNDONE,
            created_at=now,
        )
    if old.time == at:
        return old
    return dataclasses.replace(
        old, time=at, status=states.EVENT_UNDONE, updated_at=now
    )


def _end_now(lease: lease_.Lease, now: int) -> event_.Event:
    """Return the lease's end event, due now."""
    known = {e.event_type: e for e in lease.events}
    end = _event(
        lease.id, event_.END_LEASE, now, now, known.get(event_.END_LEASE)
    )
    return dataclasses.replace(end, status=states.EVENT_UNDONE)
