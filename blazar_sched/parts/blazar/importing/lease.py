# SPDX-License-Identifier: Apache-2.0
"""Conversion of Blazar's leases to leases of this service."""

from collections.abc import Iterable
from collections.abc import Sequence

from blazar_sched.domain import event as event_rules
from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.event import BEFORE_END_LEASE
from blazar_sched.domain.event import END_LEASE
from blazar_sched.domain.event import Event
from blazar_sched.domain.event import START_LEASE
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import Window
from blazar_sched.parts.blazar import tables as blazar

# The statuses of a lease's reservations, start event and end event, for each
# status of the lease.
_STATUSES = {
    states.LEASE_PENDING: (
        states.RESERVATION_PENDING, states.EVENT_UNDONE, states.EVENT_UNDONE,
    ),
    states.LEASE_ACTIVE: (
        states.RESERVATION_ACTIVE, states.EVENT_DONE, states.EVENT_UNDONE,
    ),
    states.LEASE_TERMINATED: (
        states.RESERVATION_DELETED, states.EVENT_DONE, states.EVENT_DONE,
    ),
}  # fmt: skip
_KNOWN = (START_LEASE, BEFORE_END_LEASE, END_LEASE)


def check(
    row: blazar.Row, reservations: Iterable[blazar.Row],
    events: Iterable[blazar.Row],
) -> None:
    """Refuse a lease that is in a transition, or that is inconsistent.

    :raises Conflict: if Blazar has to finish a transition first
    :raises InvalidInput: if the lease is incomplete or contradicts itself
    """
    status = row['status']
    statuses = {e['event_type']: e['status'] for e in _first(events).values()}
    if status not in states.LEASE_STABLE or (
        states.EVENT_IN_PROGRESS in statuses.values()
    ):
        raise exception.Conflict(
            f'the lease is {status}: wait until Blazar has changed the status '
            'or delete the lease in Blazar'
        )
    for needed in (START_LEASE, END_LEASE):
        if needed not in statuses:
            raise exception.InvalidInput(f'the lease has no {needed} event')
    if row['project_id'] is None:
        raise exception.InvalidInput('the lease has no project')
    if status == states.LEASE_ERROR:
        return
    reserved, start, end = _STATUSES[status]
    if {r['status'] for r in reservations} - {reserved} or (
        statuses[START_LEASE], statuses[END_LEASE]
    ) != (start, end):
        raise exception.InvalidInput(
            f'the lease is {status}, but its reservations or events are not'
        )


def unknown_events(events: Iterable[blazar.Row]) -> list[blazar.Row]:
    """Return the events that clients have sent, which are never processed."""
    events = list(events)
    kept = {e['id'] for e in _first(events).values()}
    return [e for e in events if e['id'] not in kept]


def from_row(
    row: blazar.Row, reservations: Sequence[Reservation],
    events: Iterable[blazar.Row], now: int, lead_time: int,
) -> Lease:
    """Return a Blazar lease that `check` accepts as a lease of this service.

    :param lead_time: the seconds before the lease's start from which its
        hosts are vacated
    :raises InvalidInput: if the window of the lease is out of range
    """
    start = row['start_date']
    # A lease that ended in the minute of its start has no length in Blazar.
    window = Window(start, max(row['end_date'], start + 1))
    return Lease(
        id=row['id'], name=row['name'], project_id=row['project_id'],
        user_id=row['user_id'] or '', start=window.start, end=window.end,
        status=row['status'], degraded=row['degraded'],
        trust_id=row['trust_id'], reservations=tuple(reservations),
        events=_events(row, events, window, now, lead_time),
        created_at=row['created_at'], updated_at=row['updated_at'],
    )


def _first(events: Iterable[blazar.Row]) -> dict[str, blazar.Row]:
    """Return by event type the events that Blazar processes."""
    found: dict[str, blazar.Row] = {}
    for event in events:
        if event['event_type'] in _KNOWN:
            found.setdefault(event['event_type'], event)
    return found


def _events(
    row: blazar.Row, rows: Iterable[blazar.Row], window: Window, now: int,
    lead_time: int,
) -> tuple[Event, ...]:
    first = _first(rows)
    times = {START_LEASE: window.start, END_LEASE: window.end}
    before_end = None
    if BEFORE_END_LEASE in first:
        asked = first[BEFORE_END_LEASE]['time']
        before_end = min(max(window.start, asked), window.end)
        times[BEFORE_END_LEASE] = before_end
    vacates = (
        row['status'] == states.LEASE_PENDING
        and lead_time
        and window.start > now
    )
    return event_rules.plan(
        row['id'], window, before_end, now,
        [_event(e, times[type_], row) for type_, e in first.items()],
        max(now, window.start - lead_time) if vacates else None,
    )


def _event(event: blazar.Row, at: int, lease: blazar.Row) -> Event:
    status = event['status']
    if (
        event['event_type'] == START_LEASE
        and lease['status'] == states.LEASE_ERROR
        and status == states.EVENT_UNDONE
    ):
        # Blazar no longer starts such a lease.
        status = states.EVENT_ERROR
    return Event(
        id=event['id'], lease_id=event['lease_id'],
        event_type=event['event_type'], time=at, status=status,
        created_at=event['created_at'], updated_at=event['updated_at'],
    )
