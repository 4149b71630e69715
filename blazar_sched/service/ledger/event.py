# SPDX-License-Identifier: Apache-2.0
"""Events in SQL, and the claims that they are done under."""

from collections import defaultdict
import dataclasses
from typing import Any
import uuid

import sqlalchemy as sa

from blazar_sched.domain import event
from blazar_sched.domain import lease
from blazar_sched.domain import states
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows


def from_row(row: Any) -> event.Event:
    return event.Event(
        id=row.id,
        lease_id=row.lease_id,
        event_type=row.event_type,
        time=row.time,
        status=row.status,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def put(connection: sa.Connection, new: lease.Lease) -> None:
    """Make the lease's events those of `new`; claims stay as they are."""
    rows.replace(
        connection,
        models.Event,
        models.Event.lease_id == new.id,
        [
            {**dataclasses.asdict(e), 'lease_id': new.id, 'position': position}
            for position, e in enumerate(new.events)
        ],
    )


def _free(now: int) -> sa.ColumnElement[bool]:
    """Nobody does it: not begun, or its claim has run out."""
    return sa.or_(
        models.Event.status == states.EVENT_UNDONE,
        sa.and_(
            models.Event.status == states.EVENT_IN_PROGRESS,
            models.Event.until <= now,
        ),
    )


def due(now: int) -> sa.ColumnElement[bool]:
    return sa.and_(_free(now), models.Event.time <= now)


def list_due(
    connection: sa.Connection, now: int
) -> dict[str, list[event.Event]]:
    """Return the events to be done at `now`, by lease."""
    found = defaultdict(list)
    for row in connection.execute(sa.select(models.Event).where(due(now))):
        found[row.lease_id].append(from_row(row))
    return found


def next_time(connection: sa.Connection) -> int | None:
    """Return when the next event is due, or the next claim runs out."""
    at = sa.case(
        (models.Event.status == states.EVENT_UNDONE, models.Event.time),
        else_=models.Event.until,
    )
    to_do = (states.EVENT_UNDONE, states.EVENT_IN_PROGRESS)
    first: int | None = connection.scalar(
        sa.select(sa.func.min(at)).where(models.Event.status.in_(to_do))
    )
    return first


def claim(
    connection: sa.Connection, event_id: str, owner: str, now: int, until: int
) -> str | None:
    """Take an event that nobody does; return the token, None if refused.

    One row changed is the proof.
    """
    token = str(uuid.uuid4())
    changed = connection.execute(
        sa.update(models.Event)
        .where(models.Event.id == event_id, _free(now))
        .values(
            status=states.EVENT_IN_PROGRESS,
            owner=owner,
            token=token,
            until=until,
        )
    )
    return token if changed.rowcount == 1 else None


def finish(
    connection: sa.Connection, event_id: str, token: str, status: str
) -> bool:
    """Give the event its status, and its claim up, if `token` holds it."""
    changed = connection.execute(
        sa.update(models.Event)
        .where(
            models.Event.id == event_id,
            models.Event.status == states.EVENT_IN_PROGRESS,
            models.Event.token == token,
        )
        .values(status=status, owner=None, token=None, until=None)
    )
    return changed.rowcount == 1
