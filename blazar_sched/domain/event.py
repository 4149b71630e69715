# SPDX-License-Identifier: Apache-2.0
"""An event: a planned transition of a lease."""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import uuid

from blazar_sched.domain import states
from blazar_sched.domain import window as window_

START_LEASE = 'start_lease'
BEFORE_END_LEASE = 'before_end_lease'
END_LEASE = 'end_lease'
VACATE_HOSTS = 'vacate_hosts'

# At one instant what ends makes room for what starts.
ORDER = (BEFORE_END_LEASE, END_LEASE, VACATE_HOSTS, START_LEASE)


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """`time` is when it is due; `status` is one of domain.states's."""

    id: str
    lease_id: str
    event_type: str
    time: int
    status: str
    created_at: int | None = None
    updated_at: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Claim:
    """Under which an event is done.

    `token` tells it from every other claim; `until` is the owner's own idea
    of when it runs out, and changes whenever it renews the claim.
    """

    owner: str
    token: str
    until: int


def plan(
    lease_id: str,
    window: window_.Window,
    before_end: int | None,
    now: int,
    old: Iterable[Event] = (),
    vacate: int | None = None,
) -> tuple[Event, ...]:
    """Return a lease's events; one that is not moved stays as it is.

    :param before_end: when the owner is told of the end, None for never
    :param vacate: when its hosts begin to be vacated, None for never
    """
    times = {START_LEASE: window.start}
    if vacate is not None:
        times[VACATE_HOSTS] = vacate
    if before_end is not None:
        times[BEFORE_END_LEASE] = before_end
    if window.end != window_.FOREVER:
        times[END_LEASE] = window.end
    known = {e.event_type: e for e in old}
    return tuple(
        _move(known, lease_id, type_, at, now) for type_, at in times.items()
    )


def end_now(lease_id: str, now: int, old: Iterable[Event]) -> Event:
    """Return a lease's end event, due now."""
    known = {e.event_type: e for e in old}
    end = _move(known, lease_id, END_LEASE, now, now)
    return dataclasses.replace(end, status=states.EVENT_UNDONE)


def start_again(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return the events with the start to be done once more."""
    return _with(START_LEASE, states.EVENT_UNDONE, events)


def started(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return the events with nothing to be done at the start."""
    return _with(START_LEASE, states.EVENT_DONE, events)


def vacate_again(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return the events with the vacating, if any, to be done once more."""
    return _with(VACATE_HOSTS, states.EVENT_UNDONE, events)


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
    known: Mapping[str, Event],
    lease_id: str,
    event_type: str,
    at: int,
    now: int,
) -> Event:
    """Return the event of a type at another time, or a new one."""
    old = known.get(event_type)
    if old is None:
        return Event(
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
