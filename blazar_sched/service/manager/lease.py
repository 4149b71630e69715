# SPDX-License-Identifier: Apache-2.0
"""Leases: create, update and delete, each in one commit or not at all."""

from collections.abc import Callable
from collections.abc import Iterable
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
from blazar_sched.service import enforcement as enforcement_
from blazar_sched.service import resources
from blazar_sched.service.ledger import ledger as ledger_
from blazar_sched.service.manager import event as runner_
from blazar_sched.service.manager import notifier as notifier_
from blazar_sched.service.manager import placing

DEFAULT = 'default'
MAX_RESERVATIONS = 100
# Who asks is no part of what is asked for.
_CALLER = ('project_id', 'user_id', 'trust_id')
# How long a delete waits for what is in Nova to go, and how often it looks.
DELETE_WAITS = 60
DELETE_WAIT = 0.5
# The same of a create that has the id of a server group to tell.
OPEN_WAITS = 25
OPEN_WAIT = 0.2
_OPENING = (states.LEASE_PENDING, states.LEASE_STARTING)


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
        notifier: notifier_.Notifier,
        enforcement: enforcement_.Enforcement,
        clock: Callable[[], float],
        wait: Callable[[float], object],
    ) -> None:
        self._conf = conf
        self._ledger = ledger
        self._drivers = drivers
        self._runner = runner
        self._notifier = notifier
        self._enforcement = enforcement
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
        inquiry = self._enforcement.inquiry(now)

        def work(tx: Any) -> lease_.Lease:
            made = key and _made(tx, project_id, key, digest)
            if made:
                return made
            tx.replica.advance(now)
            placed = placing.place(
                tx.replica, lease, lease.window, apart=self._apart
            )
            tx.add_lease(lease, itertools.chain(*placed.values()))
            self._book(tx, lease, lease.window)
            if key is not None:
                tx.put_key(project_id, key, lease.id, digest)
            inquiry.check(tx, lease)
            return lease

        created = inquiry.commit(work)
        if created is lease:
            self._notifier.lease(notifier_.LEASE_CREATE, created)
        if lease.start == now:
            self._runner.poke()
            if any(map(_has_group, created.reservations)):
                return self._opened(created)
        return created

    def update(
        self,
        lease_id: str,
        project_id: str | None,
        values: Mapping[str, Any],
    ) -> lease_.Lease:
        """Change a lease: all that is asked for, or nothing.

        One of the `reservations` in `values` that has an id changes that
        one, or removes it where it has ``remove: True``; one that has a
        resource_type and no id is added.

        :raises LeaseNotFound: if the project has no such lease
        :raises InvalidStatus: if it is changing already, or over
        :raises CantUpdateParameter: if what is asked for is fixed by now
        :raises InvalidInput: naming the field that is wrong
        :raises NotEnoughHostsAvailable: if the change finds no room
        """
        now = int(self._clock())
        inquiry = self._enforcement.inquiry(now)

        def work(tx: Any) -> tuple[lease_.Lease, lease_.Lease]:
            old = tx.lease(lease_id, project_id)
            _check_changeable(old, values)
            new = self._changed(old, values, now)
            if new != old:
                new = dataclasses.replace(new, updated_at=now)
                new = self._put(tx, old, new, now)
                inquiry.check(tx, new, old)
            return old, new

        old, new = inquiry.commit(work)
        if new != old:
            self._notifier.lease(notifier_.LEASE_UPDATE, new)
            if _untold(old, new):
                self._notifier.lease(notifier_.BEFORE_END_STOP, new)
            self._runner.poke()
        return new

    def delete(self, lease_id: str, project_id: str | None) -> None:
        """Delete a lease, once what it has in other services is gone.

        That may go on after the answer; the lease is DELETING until then.

        :raises LeaseNotFound: if the project has no such lease
        :raises InvalidStatus: while one of its events is in progress
        :raises Unavailable: if other services do not give up what it has
        """
        now = int(self._clock())

        def work(tx: Any) -> tuple[Any, ...]:
            lease = tx.lease(lease_id, project_id)
            _check_idle(lease)
            if lease.status in (
                states.LEASE_PENDING,
                states.LEASE_TERMINATED,
            ):
                ended = self._enforcement.ending(tx, lease)
                tx.delete_lease(lease_id)
                return lease, None, ended
            end = event_.end_now(lease_id, now, lease.events)
            tx.put_lease(
                dataclasses.replace(
                    lease,
                    status=states.LEASE_DELETING,
                    events=(end,),
                    updated_at=now,
                )
            )
            return lease, end, None

        lease, end, ended = self._ledger.commit(work)
        if end is not None:
            self._finish_delete(lease_id, end)
            return
        ended()
        self._notifier.lease(notifier_.LEASE_DELETE, lease)
        self._runner.end_trust(lease)

    def _new(self, values: Mapping[str, Any], now: int) -> lease_.Lease:
        window = window_.Window(
            lease_.soon(values['start'], now, 'start_date'), values['end']
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
            trust_id=values.get('trust_id'),
            reservations=_checked(
                self._new_reservation(id_, values['project_id'], asked, now)
                for asked in values['reservations']
            ),
            events=event_.plan(id_, window, before_end, now),
            created_at=now,
        )

    @property
    def _apart(self) -> int:
        """Seconds that must be between two reservations of a host."""
        minutes: int = self._conf.manager.cleaning_time
        return 60 * minutes

    def _book(
        self, tx: Any, lease: lease_.Lease, window: window_.Window
    ) -> None:
        """Have each driver allocate what is on no host."""
        for reservation in lease.reservations:
            self._drivers[reservation.resource_type].book(
                tx, lease, reservation, window
            )

    def _opened(self, lease: lease_.Lease) -> lease_.Lease:
        """Return the lease as it is once it is open, if that is soon.

        Who is to boot into a server group needs its id from the answer, and
        it is the start that makes it.
        """
        for _ in range(OPEN_WAITS):
            try:
                lease = self._ledger.lease(lease.id)
            except exception.LeaseNotFound:
                break
            if lease.status not in _OPENING or self._runner.stopping:
                break
            self._wait(OPEN_WAIT)
        return lease

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

    def _new_reservation(
        self,
        lease_id: str,
        project_id: str,
        values: Mapping[str, Any],
        now: int,
    ) -> reservation_.Reservation:
        parameters = dict(values)
        resource_type = parameters.pop('resource_type', None)
        driver = self._drivers[resource_type]
        use = reservation_.take_use(resource_type, parameters)
        return reservation_.Reservation(
            id=str(uuid.uuid4()),
            lease_id=lease_id,
            resource_type=resource_type,
            status=states.RESERVATION_PENDING,
            parameters=driver.validate(parameters, project_id),
            created_at=now,
            **use,
        )

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
        """Return the lease as it is asked for."""
        renamed = dataclasses.replace(old, name=values.get('name', old.name))
        if not set(values) - {'name'}:
            return renamed
        window = lease_.changed_window(old, values, now)
        return dataclasses.replace(
            renamed,
            start=window.start,
            end=window.end,
            reservations=self._changed_reservations(
                old, values.get('reservations', ()), now
            ),
            events=event_.plan(
                old.id,
                window,
                self._changed_before_end(old, values, window),
                now,
                old.events,
            ),
        )

    def _changed_before_end(
        self,
        old: lease_.Lease,
        values: Mapping[str, Any],
        window: window_.Window,
    ) -> int | None:
        known = old.before_end
        if 'before_end' in values:
            asked = values['before_end']
        elif window.end != old.end and window_.FOREVER in (
            old.end,
            window.end,
        ):
            asked = DEFAULT
        else:
            # As long before the end as it was.
            asked = known and max(
                window.start, known + window.end - old.end
            )
        return self._before_end(asked, window)

    def _changed_reservations(
        self,
        old: lease_.Lease,
        changes: Sequence[Mapping[str, Any]],
        now: int,
    ) -> tuple[reservation_.Reservation, ...]:
        by_id = {r.id: r for r in old.reservations}
        for values in changes:
            if 'id' not in values and 'resource_type' in values:
                new = self._new_reservation(
                    old.id, old.project_id, values, now
                )
                by_id[new.id] = new
                continue
            known = by_id.get(values.get('id'))
            if known is None:
                raise exception.InvalidInput(
                    'a change of a reservation needs the id of one of the '
                    "lease's",
                    field='reservations',
                )
            if values.get('remove'):
                del by_id[known.id]
                continue
            by_id[known.id] = self._changed_reservation(
                old, known, values, now
            )
        return _checked(by_id.values())

    def _changed_reservation(
        self,
        lease: lease_.Lease,
        old: reservation_.Reservation,
        values: Mapping[str, Any],
        now: int,
    ) -> reservation_.Reservation:
        changes = {
            k: v for k, v in values.items() if k not in ('id', 'remove')
        }
        if changes.pop('resource_type', old.resource_type) != (
            old.resource_type
        ):
            raise exception.CantUpdateParameter(
                'resource_type cannot be changed', field='resource_type'
            )
        use = reservation_.take_use(old.resource_type, changes)
        new = dataclasses.replace(
            old,
            parameters=self._drivers[old.resource_type].update(
                old.parameters,
                changes,
                lease.status == states.LEASE_ACTIVE,
                lease.project_id,
            ),
            **use,
        )
        return new if new == old else dataclasses.replace(new, updated_at=now)

    def _put(
        self, tx: Any, old: lease_.Lease, new: lease_.Lease, now: int
    ) -> lease_.Lease:
        """Write a changed lease, and place it if it needs that."""
        if (new.window, new.reservations) == (old.window, old.reservations):
            tx.put_lease(new)
            return new
        tx.replica.advance(now)
        held = placing.held(tx.replica, old)
        placed = _place(tx, old, new, held, now, self._apart)
        if old.status == states.LEASE_ACTIVE:
            if new.reservations != old.reservations or _grown(held, placed):
                # What its start does is due again, for all of it.
                events = event_.start_again(new.events)
                new = dataclasses.replace(new, events=events)
            leaving = lease_.leaving(old, new, now)
            if leaving is not None:
                tx.split_lease(leaving)
        tx.put_lease(new)
        for reservation_id, allocations in placed.items():
            tx.put_allocations(reservation_id, allocations)
        self._book(tx, new, new.left(now))
        return new


def _has_group(reservation: reservation_.Reservation) -> bool:
    return reservation.parameters.get('affinity') is not None


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


def _checked(
    reservations: Iterable[reservation_.Reservation],
) -> tuple[reservation_.Reservation, ...]:
    """Return the reservations of a lease, unless they are too many."""
    all_ = tuple(reservations)
    if len(all_) > MAX_RESERVATIONS:
        raise exception.InvalidInput(
            f'a lease has at most {MAX_RESERVATIONS} reservations',
            field='reservations',
        )
    return all_


def _untold(old: lease_.Lease, new: lease_.Lease) -> bool:
    """Tell whether the owner was told of an end that is another now."""
    told = {
        e.id
        for e in old.events
        if e.event_type == event_.BEFORE_END_LEASE
        and e.status == states.EVENT_DONE
    }
    return any(
        e.id in told and e.status == states.EVENT_UNDONE for e in new.events
    )


def _place(
    tx: Any,
    old: lease_.Lease,
    new: lease_.Lease,
    held: placing.Allocations,
    now: int,
    apart: int,
) -> placing.Allocations:
    """Return the allocations of a changed lease.

    What asks for less of the same needs no room: it is never refused.
    """
    asked = {r.id: r.parameters for r in old.reservations}
    shrinks = old.start <= new.start and new.end <= old.end
    return placing.place(
        tx.replica,
        new,
        new.left(now),
        held,
        active=old.status == states.LEASE_ACTIVE,
        settled={
            r.id
            for r in new.reservations
            if shrinks and asked.get(r.id) == r.parameters
        },
        apart=apart,
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
