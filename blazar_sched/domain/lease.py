# SPDX-License-Identifier: Apache-2.0
"""A lease: the contract of a project over one window."""

from collections.abc import Mapping
import dataclasses
from typing import Any
import uuid

from blazar_sched.domain import event
from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.demand import Lifetime
from blazar_sched.domain.event import Event
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import Window

NOW = 'now'
# Many clients send whole minutes: the start of this minute counts as now.
GRACE = 60
# The values of a lease that can be changed in any status.
DESCRIBING = {'name', 'labels'}


@dataclasses.dataclass(frozen=True, slots=True)
class Lease:
    """A lease with its reservations and events, as the ledger holds it.

    A part that books leases that recur gives each lease the id of its series,
    and the name of its occurrence: the local time of its start, as the series
    has planned it. `labels` are as in domain.label.
    `changes` is the number of changes that the ledger has written.
    `needs_approval` has the refusals of approval filters, if any, with which
    the lease was held as an offer, and `approved_by` is the id of the user who
    has lifted these limits, for what the lease was then and nothing more.
    """

    id: str
    name: str
    project_id: str
    user_id: str
    start: int
    end: int
    status: str
    degraded: bool = False
    trust_id: str | None = None
    series_id: str | None = None
    occurrence: str | None = None
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    reservations: tuple[Reservation, ...] = ()
    events: tuple[Event, ...] = ()
    created_at: int | None = None
    updated_at: int | None = None
    changes: int = dataclasses.field(default=0, compare=False)
    needs_approval: str | None = None
    approved_by: str | None = None

    @property
    def window(self) -> Window:
        return Window(self.start, self.end)

    @property
    def is_offer(self) -> bool:
        """Whether the lease is a held offer, which was not accepted yet."""
        return self.status == states.LEASE_CREATING

    @property
    def is_waiting(self) -> bool:
        """Whether the lease is a held offer that waits for approval."""
        return (
            self.is_offer
            and self.needs_approval is not None
            and self.approved_by is None
        )

    @property
    def held_until(self) -> int | None:
        """When a held offer lapses, None for any other lease."""
        return self._time_of(event.LAPSE_OFFER)

    @property
    def before_end(self) -> int | None:
        """When the owner is notified of the coming end, None for never."""
        return self._time_of(event.BEFORE_END_LEASE)

    @property
    def ending(self) -> str:
        """The identifier of the coming end, which changes with its times.

        What is done for one end is not done for another end.
        """
        times = (self.before_end, self._time_of(event.END_LEASE))
        return '.'.join(str(at) for at in times if at is not None)

    @property
    def vacate(self) -> int | None:
        """When the lease's hosts begin to be vacated, None for never."""
        return self._time_of(event.VACATE_HOSTS)

    @property
    def is_lifetime(self) -> bool:
        """Whether the lease is that of an instance's own lifetime."""
        return any(
            isinstance(r.demand, Lifetime)
            for r in self.reservations
        )

    @property
    def is_limited(self) -> bool:
        """Whether the limits of what a project may have apply to the lease.

        The lifetime of a server that has started takes no more than any
        server does. A lifetime that starts later holds room ahead, as other
        leases do.
        """
        return not self.is_lifetime or self.status == states.LEASE_PENDING

    @property
    def in_progress(self) -> bool:
        """Whether an event of the lease is being done."""
        return any(e.status == states.EVENT_IN_PROGRESS for e in self.events)

    def ending_with(self, on_end: str) -> list[str]:
        """Return the ids of the reservations with this value of `on_end`."""
        return [each.id for each in self.reservations if each.on_end == on_end]

    @property
    def is_idle(self) -> bool:
        """Whether no event is being done, except for vacating the hosts.

        Vacating the hosts of a lease goes on for minutes, and other work need
        not wait for it.
        """
        return all(
            e.status != states.EVENT_IN_PROGRESS
            or e.event_type == event.VACATE_HOSTS
            for e in self.events
        )

    def is_within(self, granted: 'Lease') -> bool:
        """Tell whether the lease is no more than it was when it was granted.

        What was approved, or admitted by the limits, is the window with the
        reservations: a later window is another one, and so is a reservation
        that takes the place of another.
        """
        known = {r.id: r for r in granted.reservations}
        return granted.window.includes(self.window) and all(
            r.id in known and r.is_within(known[r.id])
            for r in self.reservations
        )

    def _time_of(self, event_type: str) -> int | None:
        for e in self.events:
            if e.event_type == event_type:
                return e.time
        return None

    def left(self, now: int) -> Window:
        """Return the remaining window; the last second if it ends by now."""
        return Window(max(self.start, min(now, self.end - 1)), self.end)


def soon(at: int | str, now: int, field: str) -> int:
    """Return a time that must not be past, where this minute counts as now.

    :raises InvalidInput: naming `field`, if the time is past
    """
    if at == NOW:
        return now
    if not isinstance(at, int) or at < now - GRACE:
        raise exception.InvalidInput(
            f'{field} must not be in the past', field=field
        )
    return max(at, now)


def new_window(values: Mapping[str, Any], now: int) -> Window:
    """Return the window from `start` to `end`, or of a `duration`.

    :raises InvalidInput: naming the date that is wrong
    """
    start = soon(values['start'], now, 'start_date')
    duration = values.get('duration')
    end = values['end'] if duration is None else start + duration
    return Window(start, end)


def changed_window(old: Lease, values: Mapping[str, Any], now: int) -> Window:
    """Return a lease's window after a change by `values`.

    The values are `start`, and `end` or `duration`.

    :raises CantUpdateParameter: if the lease has started and its start would
        change
    :raises InvalidInput: naming the date that is wrong
    """
    started = old.status != states.LEASE_PENDING
    start, end = old.start, old.end
    asked = values.get('start', start)
    if asked != start and started:
        # A client that sends whole minutes names the same start in this way.
        if asked == NOW or asked // GRACE != start // GRACE:
            raise exception.CantUpdateParameter(
                'the start of a lease that has started cannot be changed',
                field='start_date',
            )
    elif asked != start:
        start = soon(asked, now, 'start_date')
    asked = values.get('end', end)
    if 'duration' in values:
        asked = start + values['duration']
        if asked < now - GRACE:
            raise exception.InvalidInput(
                'duration must not lead to an end in the past',
                field='duration',
            )
    if asked != end:
        end = soon(asked, now, 'end_date')
        if started:
            end = max(end, start + 1)
    return Window(start, end)


def leaving(old: Lease, new: Lease, now: int) -> Lease | None:
    """Return the lease of the reservations that a change removes, else None.

    A reservation that has been opened has to be ended before it can be
    removed. The reservations removed from an active lease therefore move to a
    lease of their own, which is being deleted from the start. The trust of the
    lease's creator stays with the lease that goes on, and only that lease is
    the occurrence of a series.

    :raises InvalidStatus: if a removed reservation is still to be opened
    """
    kept = {r.id for r in new.reservations}
    gone = [r for r in old.reservations if r.id not in kept]
    if not gone:
        return None
    starts = any(
        e.event_type == event.START_LEASE and e.status == states.EVENT_UNDONE
        for e in old.events
    )
    if starts and any(r.status == states.RESERVATION_PENDING for r in gone):
        raise exception.InvalidStatus(
            'a reservation that is being started cannot be removed: retry '
            'later',
            field='reservations',
        )
    id_ = str(uuid.uuid4())
    return dataclasses.replace(
        ending_now(old, now), id=id_, trust_id=None, series_id=None,
        occurrence=None,
        reservations=tuple(dataclasses.replace(r, lease_id=id_) for r in gone),
        events=(event.end_now(id_, now, ()),), created_at=now, updated_at=None,
    )


def ending_now(old: Lease, now: int) -> Lease:
    """Return the lease as it is while it is being deleted.

    The window ends with this second: a server that comes to the hosts of the
    lease later does not belong to the lease, however long the deletion takes.
    A lifetime has its one server whatever its window is.
    """
    end = old.end
    if old.start <= now and not old.is_lifetime:
        end = min(old.end, now + 1)
    return dataclasses.replace(
        old, end=end, status=states.LEASE_DELETING, updated_at=now
    )
