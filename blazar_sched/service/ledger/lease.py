# SPDX-License-Identifier: Apache-2.0
"""Leases in SQL, with the reservations and events that they own."""

from collections import defaultdict
from collections.abc import Callable
import dataclasses
from typing import Any

import sqlalchemy as sa

from blazar_sched.domain import event as event_
from blazar_sched.domain import exception
from blazar_sched.domain import lease
from blazar_sched.replica import record
from blazar_sched.service.ledger import event
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import reservation


def get(
    connection: sa.Connection, lease_id: str, project_id: str | None
) -> lease.Lease:
    """Return a lease, of `project_id` if that is given.

    :raises LeaseNotFound: if it is not there, or another project's
    """
    found = _find(connection, lease_id)
    if found is None or project_id not in (None, found.project_id):
        raise exception.LeaseNotFound(f'no lease {lease_id}')
    return found


def _find(connection: sa.Connection, lease_id: str) -> lease.Lease | None:
    if not models.is_id(lease_id):
        return None
    found = _select(connection, models.Lease.id == lease_id)
    return found[0] if found else None


def list_(
    connection: sa.Connection, project_id: str | None
) -> list[lease.Lease]:
    """Return all leases, or a project's, the oldest first."""
    if project_id is None:
        return _select(connection, sa.true())
    return _select(connection, models.Lease.project_id == project_id)


def list_due(
    connection: sa.Connection, now: int
) -> list[tuple[event_.Event, lease.Lease]]:
    """Return the events to be done at `now`, in order, with their lease."""
    due = event.list_due(connection, now)
    owners = sa.select(models.Event.lease_id).where(event.due(now))
    pairs = [
        (e, owner)
        for owner in _select(connection, models.Lease.id.in_(owners))
        for e in due[owner.id]
    ]
    return sorted(
        pairs,
        key=lambda pair: (
            pair[0].time,
            event_.ORDER.index(pair[0].event_type),
        ),
    )


def _select(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> list[lease.Lease]:
    """Return leases in three queries at most, however many there are."""
    found = connection.execute(
        sa.select(models.Lease).where(condition)
    ).all()
    if not found:
        return []
    reservations = _owned(
        connection, models.Reservation, condition, reservation.from_row
    )
    events = _owned(connection, models.Event, condition, event.from_row)
    leases = [
        lease.Lease(
            id=row.id,
            name=row.name,
            project_id=row.project_id,
            user_id=row.user_id,
            start=row.start,
            end=row.end,
            status=row.status,
            degraded=row.degraded,
            trust_id=row.trust_id,
            reservations=tuple(reservations[row.id]),
            events=tuple(events[row.id]),
            created_at=row.created_at,
            updated_at=row.updated_at,
        )
        for row in found
    ]
    # Not by SQL: databases differ on where NULL goes.
    return sorted(leases, key=lambda noun: (noun.created_at or 0, noun.id))


def _owned(
    connection: sa.Connection,
    model: type[models.Reservation] | type[models.Event],
    condition: sa.ColumnElement[bool],
    from_row: Callable[[Any], Any],
) -> dict[str, list[Any]]:
    """Return what the leases where `condition` holds own, by lease."""
    query = (
        sa.select(model)
        .join(models.Lease)
        .where(condition)
        .order_by(model.position)
    )
    by_lease = defaultdict(list)
    for row in connection.execute(query):
        by_lease[row.lease_id].append(from_row(row))
    return by_lease


def put(connection: sa.Connection, new: lease.Lease) -> list[record.Record]:
    """Insert or update a lease and what it owns; return the records."""
    old = _find(connection, new.id)
    row = dataclasses.asdict(new)
    del row['reservations'], row['events']
    if old is None:
        connection.execute(sa.insert(models.Lease).values(row))
    else:
        connection.execute(
            sa.update(models.Lease)
            .where(models.Lease.id == new.id)
            .values(row)
        )
    records = reservation.put(connection, old, new)
    event.put(connection, new)
    return records


def delete(connection: sa.Connection, lease_id: str) -> list[record.Record]:
    """Delete a lease and what it owns; return the records.

    :raises LeaseNotFound: if it is not there
    """
    old = get(connection, lease_id, None)
    records = reservation.drop(connection, [r.id for r in old.reservations])
    connection.execute(
        sa.delete(models.Event).where(models.Event.lease_id == lease_id)
    )
    connection.execute(
        sa.delete(models.Lease).where(models.Lease.id == lease_id)
    )
    return records


def set_status(
    connection: sa.Connection,
    lease_id: str,
    status: str,
    degraded: bool | None,
) -> None:
    """Set the status and, unless it is None, the flag.

    :raises LeaseNotFound: if it is not there
    """
    values: dict[str, Any] = {'status': status}
    if degraded is not None:
        values['degraded'] = degraded
    changed = connection.execute(
        sa.update(models.Lease)
        .where(models.Lease.id == lease_id)
        .values(values)
    )
    if changed.rowcount != 1:
        raise exception.LeaseNotFound(f'no lease {lease_id}')
