# SPDX-License-Identifier: Apache-2.0
"""An event: a planned transition of a lease."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import uuid

from blazar_sched.domain import states
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window

START_LEASE = 'start_lease'
AFTER_START_LEASE = 'after_start_lease'
BEFORE_END_LEASE = 'before_end_lease'
END_LEASE = 'end_lease'
VACATE_HOSTS = 'vacate_hosts'
# The only event of a held offer, which is a lease that was not accepted yet.
LAPSE_OFFER = 'lapse_offer'

# The events of a lease, in the order in which they are done, also at one
# instant.
OF_LEASE = (
    VACATE_HOSTS, START_LEASE, AFTER_START_LEASE, BEFORE_END_LEASE, END_LEASE
)
ORDER = (*OF_LEASE, LAPSE_OFFER)
# The events of a lease that Blazar has.
BLAZARS = (BEFORE_END_LEASE, END_LEASE, START_LEASE)
_OPENING = (VACATE_HOSTS, START_LEASE)


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """A planned transition of a lease.

    `time` is when the event is due; `status` is a status of domain.states.
    """

    id: str
    lease_id: str
    event_type: str
    time: int
    status: str
    created_at: int | None = None
    updated_at: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Claim:
    """The claim under which an event is done.

    `token` distinguishes the claim from every other claim; `until` is the time
    at which the claim expires by the owner's own clock, and changes whenever
    the owner renews the claim.
    """

    owner: str
    token: str
    until: int


def due_order(
    events: Iterable[Event]
) -> Callable[[Event], tuple[int, bool, int, str]]:
    """Return the key by which due events are sorted.

    The events of one lease are in their ORDER. At one instant the leases
    that end come before the leases that start, which need the room.
    """
    opening = {
        (e.time, e.lease_id) for e in events if e.event_type in _OPENING
    }
    return lambda e: (
        e.time,
        (e.time, e.lease_id) in opening,
        ORDER.index(e.event_type),
        e.id,
    )


def plan(
    lease_id: str, window: Window, before_end: int | None, now: int,
    old: Iterable[Event] = (), vacate: int | None = None,
    after_start: bool = False,
) -> tuple[Event, ...]:
    """Return the events of a lease; an event that is not moved is unchanged.

    The event before_end_lease belongs to one end only: it is due again for
    another end.

    :param before_end: when the owner is notified of the end, None for never
    :param vacate: when the lease's hosts begin to be vacated, None for never
    :param after_start: whether something is done once the lease has started
    """
    times = {START_LEASE: window.start}
    if after_start:
        times[AFTER_START_LEASE] = window.start
    if vacate is not None:
        times[VACATE_HOSTS] = vacate
    if before_end is not None:
        times[BEFORE_END_LEASE] = before_end
    if window.end != FOREVER:
        times[END_LEASE] = window.end
    known = {e.event_type: e for e in old}
    events = tuple(
        _move(known, lease_id, type_, at, now) for type_, at in times.items()
    )
    if known.get(END_LEASE) in events or END_LEASE not in times:
        return events
    return _with(BEFORE_END_LEASE, states.EVENT_UNDONE, events)


def lapse(
    lease_id: str, at: int, now: int, old: Iterable[Event] = ()
) -> Event:
    """Return the event by which a held offer lapses."""
    known = {e.event_type: e for e in old}
    return _move(known, lease_id, LAPSE_OFFER, at, now)


def end_now(lease_id: str, now: int, old: Iterable[Event]) -> Event:
    """Return the end event of a lease, due now."""
    known = {e.event_type: e for e in old}
    end = _move(known, lease_id, END_LEASE, now, now)
    return dataclasses.replace(end, status=states.EVENT_UNDONE)


def start_again(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return the events with the start event to be done again."""
    return _with(START_LEASE, states.EVENT_UNDONE, events)


def started(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return the events with the start event marked as done."""
    return _with(START_LEASE, states.EVENT_DONE, events)


def vacate_again(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return the events with the event vacate_hosts, if any, undone again."""
    return _with(VACATE_HOSTS, states.EVENT_UNDONE, events)


def announce_again(
    events: Iterable[Event], at: int, now: int
) -> tuple[Event, ...]:
    """Return the events with before_end_lease, if any, due again at `at`."""
    return tuple(
        dataclasses.replace(
            e, time=at, status=states.EVENT_UNDONE, updated_at=now
        )
        if e.event_type == BEFORE_END_LEASE
        else e
        for e in events
    )


def _with(
    event_type: str, status: str, events: Iterable[Event]
) -> tuple[Event, ...]:
    return tuple(
        dataclasses.replace(e, status=status)
        if e.event_type == event_type
        else e
        for e in events
    )


def _move(
    known: Mapping[str, Event], lease_id: str, event_type: str, at: int,
    now: int,
) -> Event:
    """Return the event of a type at another time, or a new event."""
    old = known.get(event_type)
    if old is None:
        return Event(
            id=str(uuid.uuid4()), lease_id=lease_id, event_type=event_type,
            time=at, status=states.EVENT_UNDONE, created_at=now,
        )
    if old.time == at:
        return old
    return dataclasses.replace(
        old, time=at, status=states.EVENT_UNDONE, updated_at=now
    )
