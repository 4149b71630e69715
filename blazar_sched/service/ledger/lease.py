# SPDX-License-Identifier: Apache-2.0
"""Leases in SQL, with their reservations and events."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import functools
from typing import Any

import sqlalchemy as sa

from blazar_sched.domain import event as event_rules
from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.lease import Lease
from blazar_sched.replica import record
from blazar_sched.service.ledger import allocation
from blazar_sched.service.ledger import event
from blazar_sched.service.ledger import idempotency
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import off_hosts
from blazar_sched.service.ledger import reservation
from blazar_sched.service.ledger import rows

# Not "is not over": only a list of statuses is looked up in the index.
IS_OPEN = models.Lease.status.in_(states.LEASE_OPEN)
IS_OFFER = models.Lease.status == states.LEASE_CREATING
_SET = (
    sa.update(models.Lease)
    .where(models.Lease.id == sa.bindparam('key'))
    .values(changes=models.Lease.changes + 1)
)


def get(connection: sa.Connection, lease_id: str) -> Lease:
    """Return a lease, or a held offer.

    :raises LeaseNotFound: if there is no such lease
    """
    found = find(connection, lease_id)
    if found is None:
        raise _not_found(lease_id)
    return found


def owned(
    connection: sa.Connection, lease_id: str, project_id: str | None
) -> Lease:
    """Return a lease, of the project `project_id` if given.

    :raises LeaseNotFound: if there is no such lease, if the lease belongs to
        another project, or if it is a held offer
    """
    found = find(connection, lease_id, project_id, is_offer=False)
    if found is None:
        raise _not_found(lease_id)
    return found


def find(
    connection: sa.Connection, lease_id: str, project_id: str | None = None,
    is_offer: bool | None = None,
) -> Lease | None:
    """Return a lease or a held offer, None if there is none.

    The project is part of the query, so that another project's lease takes no
    longer to refuse than an unknown id.

    :param project_id: the project of the lease, None for any
    :param is_offer: True for a held offer, False for a lease, None for either
    """
    if not models.is_id(lease_id):
        return None
    given = {'lease_id': lease_id, 'project_id': project_id}
    query, *contents = _queries(project_id is not None, is_offer)
    found = connection.execute(query, given).all()
    return _leases(connection, found, contents, given)[0] if found else None


@functools.cache
def _queries(
    of_project: bool, is_offer: bool | None
) -> tuple[sa.Select[Any], ...]:
    """Return the queries of `find`, which take long to build."""
    lease = models.Lease
    conditions = [lease.id == sa.bindparam('lease_id')]
    if of_project:
        conditions.append(lease.project_id == sa.bindparam('project_id'))
    if is_offer is not None:
        conditions.append(IS_OFFER if is_offer else ~IS_OFFER)
    condition = sa.and_(*conditions)
    return sa.select(lease).where(condition), *_contents(condition)


def _contents(condition: sa.ColumnElement[bool]) -> list[sa.Select[Any]]:
    """Return the queries for reservations and events of matching leases."""
    return [
        sa.select(*columns)
        .join(models.Lease)
        .where(condition)
        .order_by(model.position)
        for model, columns in (
            (models.Reservation, [models.Reservation]),
            (models.Event, event.COLUMNS),
        )
    ]


def _not_found(lease_id: str) -> exception.LeaseNotFound:
    return exception.LeaseNotFound(f'lease {lease_id} not found')


def offers(connection: sa.Connection, project_id: str | None) -> list[Lease]:
    """Return the held offers by id, of the project `project_id` if given."""
    condition = IS_OFFER
    if project_id is not None:
        condition = sa.and_(condition, models.Lease.project_id == project_id)
    return select(connection, condition, (models.Lease.id,))


def vacated(connection: sa.Connection) -> list[str]:
    """Return the ids of the pending leases whose hosts have been vacated."""
    query = (
        sa.select(models.Lease.id)
        .join(models.Event, models.Event.lease_id == models.Lease.id)
        .where(
            models.Lease.status == states.LEASE_PENDING,
            models.Event.event_type == event_rules.VACATE_HOSTS,
            models.Event.status == states.EVENT_DONE,
        )
    )
    return list(connection.scalars(query))


def select(
    connection: sa.Connection, condition: sa.ColumnElement[bool],
    order: Sequence[sa.SQLColumnExpression[Any]] = (),
    limit: int | None = None, bare: bool = False,
) -> list[Lease]:
    """Return leases in at most three queries, however many leases match.

    :param bare: whether the reservations and the events are left out
    """
    found = connection.execute(
        sa.select(models.Lease).where(condition).order_by(*order).limit(limit)
    ).all()
    if not found:
        return []
    if limit is not None:
        condition = models.Lease.id.in_([row.id for row in found])
    if bare:
        condition = sa.false()
    return _leases(connection, found, _contents(condition), {})


def _leases(
    connection: sa.Connection, found: Iterable[Any],
    contents: Iterable[sa.Select[Any]], given: Mapping[str, Any],
) -> list[Lease]:
    of_reservations, of_events = contents
    reservations = reservation.by_lease(
        connection.execute(of_reservations, given)
    )
    events = event.by_lease(connection.execute(of_events, given))
    return [
        Lease(
            id=row.id, name=row.name, project_id=row.project_id,
            user_id=row.user_id, start=row.start, end=row.end,
            status=row.status, degraded=row.degraded, trust_id=row.trust_id,
            series_id=row.series_id, occurrence=row.occurrence,
            labels=row.labels, reservations=tuple(reservations[row.id]),
            events=tuple(events[row.id]),
            created_at=None if row.created_at < 0 else row.created_at,
            updated_at=row.updated_at, changes=row.changes,
            needs_approval=row.needs_approval, approved_by=row.approved_by,
        )
        for row in found
    ]


def open_(connection: sa.Connection, project_id: str) -> list[Lease]:
    """Return a project's leases that are neither over nor being deleted."""
    return select(connection, _is_open(project_id))


def whole_hosts(
    connection: sa.Connection, project_id: str
) -> list[tuple[str, str]]:
    """Return the hosts that the leases of `open_` have, but not in part.

    :returns: pairs of the id of a lease and the UUID of a host
    """
    query = (
        sa.select(models.Lease.id, models.Allocation.host)
        .select_from(models.Lease)
        .join(models.Reservation)
        .join(models.Allocation)
        .where(_is_open(project_id), models.Allocation.whole)
    )
    return [(row.id, row.host) for row in connection.execute(query)]


def _is_open(project_id: str) -> sa.ColumnElement[bool]:
    return sa.and_(
        models.Lease.project_id == project_id, IS_OPEN,
        models.Lease.status != states.LEASE_DELETING,
    )


def started(connection: sa.Connection, first: int, last: int) -> list[Lease]:
    """Return the active leases that have started in a range of times.

    :param first: the first start, in epoch seconds
    :param last: the last start
    """
    return select(
        connection,
        sa.and_(
            models.Lease.status == states.LEASE_ACTIVE,
            models.Lease.start.between(first, last),
        ),
        (models.Lease.start, models.Lease.id),
    )


def with_type(connection: sa.Connection, resource_type: str) -> list[Lease]:
    """Return the leases with a reservation of a resource type.

    The leases are sorted by start. Terminated leases are left out.
    """
    reserved = sa.select(models.Reservation.lease_id).where(
        models.Reservation.resource_type == resource_type
    )
    return select(
        connection, sa.and_(models.Lease.id.in_(reserved), IS_OPEN),
        (models.Lease.start, models.Lease.id),
    )


def on_hosts(
    connection: sa.Connection, hosts: Collection[str], after: int
) -> list[Lease]:
    """Return the leases that have allocations on hosts, sorted by id.

    :param hosts: the UUIDs of the hosts
    :param after: leave out the allocations that ended at or before this time
    """
    placed = (
        sa.select(models.Reservation.lease_id)
        .join(models.Allocation)
        .where(
            models.Allocation.host.in_(hosts), models.Allocation.end > after
        )
    )
    return select(connection, models.Lease.id.in_(placed), (models.Lease.id,))


def put(
    connection: sa.Connection, new: Lease, old: Lease | None = None
) -> list[record.Record]:
    """Replace a lease, its reservations and its events by those of `new`.

    The servers that use the lease's reservations end with the lease from then
    on. The allocations of a reservation that `new` omits are deleted with the
    reservation, and its servers are accounted for individually.

    :param old: the lease as it is, if the transaction has read it
    :returns: the records of what has changed
    """
    old = old or find(connection, new.id)
    if old is None:
        return add(connection, new, ())
    row = _row(new)
    del row['changes']
    connection.execute(_SET, {'key': new.id, **row})
    records = reservation.put(connection, old, new)
    event.put(connection, new)
    return records


def add(
    connection: sa.Connection, new: Lease, allocations: Iterable[Allocation]
) -> list[record.Record]:
    """Insert a new lease with its contents; return the records."""
    return add_all(connection, [new], allocations)


def add_all(
    connection: sa.Connection, new: Sequence[Lease],
    allocations: Iterable[Allocation],
) -> list[record.Record]:
    """Insert new leases with their contents; return the records.

    Nothing is read, and each table takes one statement, however many leases
    there are, so that other commits wait less.
    """
    rows.add(connection, models.Lease, list(map(_row, new)))
    records = reservation.add(connection, new)
    event.add(connection, new)
    return records + allocation.add(connection, list(allocations))


def split(connection: sa.Connection, new: Lease) -> list[record.Record]:
    """Insert a lease that takes its reservations from another lease.

    The reservations stay as they were, with everything that belongs to them.

    :returns: the records of what has changed
    """
    rows.add(connection, models.Lease, [_row(new)])
    event.add(connection, [new])
    return reservation.move(connection, new)


def _row(lease: Lease) -> dict[str, Any]:
    row = rows.columns(lease)
    del row['reservations'], row['events']
    if lease.created_at is None:
        row['created_at'] = -1
    return row


def delete(connection: sa.Connection, lease_id: str) -> list[record.Record]:
    """Delete a lease with its contents; return the records.

    :raises LeaseNotFound: if there is no such lease
    """
    get(connection, lease_id)
    return delete_all(connection, [lease_id])


def delete_all(
    connection: sa.Connection, ids: Collection[str]
) -> list[record.Record]:
    """Delete leases with their contents; return the records.

    Leases that are over have no records.
    """
    reserved = connection.scalars(
        sa.select(models.Reservation.id)
        .where(models.Reservation.lease_id.in_(ids))
    ).all()
    records = reservation.drop(connection, reserved)
    idempotency.forget_leases(connection, ids)
    connection.execute(
        sa.delete(models.Event).where(models.Event.lease_id.in_(ids))
    )
    connection.execute(sa.delete(models.Lease).where(models.Lease.id.in_(ids)))
    return records


def set_status(
    connection: sa.Connection, lease_id: str, status: str, now: int,
    degraded: bool | None = None,
) -> None:
    """Set the lease's status, and its `degraded` flag unless that is None.

    :raises LeaseNotFound: if there is no such lease
    """
    values = {'key': lease_id, 'status': status, 'updated_at': now}
    if degraded is not None:
        values['degraded'] = degraded
    changed = connection.execute(_SET, values)
    if changed.rowcount != 1:
        raise _not_found(lease_id)


def cut(connection: sa.Connection, ended: Lease) -> list[record.Record]:
    """Cut a lease's allocations to end with the lease; return the records."""
    ids = [reservation.id for reservation in ended.reservations]
    off_hosts.cut_allocations(connection, ids, ended.end)
    return allocation.cut(connection, ids, ended.end)
