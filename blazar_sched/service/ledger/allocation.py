# SPDX-License-Identifier: Apache-2.0
"""Allocations in SQL."""

from collections import Counter
from collections import defaultdict
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools
from typing import Any
import uuid

import sqlalchemy as sa

from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.window import Window
from blazar_sched.placing.bar import Use
from blazar_sched.replica import record
from blazar_sched.service.ledger import instance
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows

# The allocations, and then those that are over.
EVER = (models.Allocation, models.PastAllocation)


def from_row(row: Any) -> Allocation:
    return Allocation(
        id=row.id, reservation_id=row.reservation_id, host=row.host,
        start=row.start, end=row.end, amounts=row.amounts, whole=row.whole,
    )


def list_(
    connection: sa.Connection, reservation_id: str | None = None,
    lease_id: str | None = None, host: str | None = None,
    after: int | None = None, hosts: Collection[str] | None = None,
    past: bool = False,
) -> list[tuple[Allocation, str]]:
    """Return allocations with their lease ids, sorted by start and id.

    :param host: the UUID of a host
    :param after: leave out the allocations that ended at or before this time
    :param hosts: the UUIDs of hosts
    :param past: whether the allocations that are over are returned too
    """
    ids = [i for i in (reservation_id, lease_id, host) if i is not None]
    if not all(map(models.is_id, ids)):
        return []
    asked = {
        'reservation_id': reservation_id, 'lease_id': lease_id, 'host': host,
        'after': after, 'hosts': hosts,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    found: list[tuple[Allocation, str]] = []
    for held in EVER if past else EVER[:1]:
        rows_ = connection.execute(_query(held, *given), given)
        found += [(from_row(row), row.lease_id) for row in rows_]
    return sorted(found, key=lambda each: (each[0].start, each[0].id))


@functools.cache
def _query(
    held: type[models.Allocation | models.PastAllocation], *given: str
) -> sa.Executable:
    """Return the query of `list_` for the conditions that are given."""
    owner = models.Reservation
    conditions = {
        'reservation_id': owner.id == sa.bindparam('reservation_id'),
        'lease_id': owner.lease_id == sa.bindparam('lease_id'),
        'host': held.host == sa.bindparam('host'),
        'after': held.end > sa.bindparam('after'),
        'hosts': held.host.in_(sa.bindparam('hosts', expanding=True)),
    }
    wanted = (conditions[name] for name in given)
    return sa.select(held, owner.lease_id).join(owner).where(*wanted)


def uses(
    connection: sa.Connection, window: Window, limit: int,
    hosts: Collection[str] | None = None, project_id: str | None = None,
) -> list[Use]:
    """Return the allocations in a window with their leases, by start.

    The allocations that are over are returned too.

    :param limit: the maximum number of allocations
    :param hosts: the UUIDs of the hosts, None for all
    :param project_id: the project that owns the leases, None for any
    """
    found: list[Use] = []
    for held in EVER:
        query = (
            sa.select(
                held, models.Reservation.resource_type,
                models.Reservation.lease_id, models.Lease.project_id,
                models.Lease.name, models.Lease.status, models.Lease.degraded,
            )
            .join(
                models.Reservation,
                models.Reservation.id == held.reservation_id,
            )
            .join(models.Lease, models.Lease.id == models.Reservation.lease_id)
            .where(held.start < window.end, held.end > window.start)
            .order_by(held.start, held.id)
            .limit(limit)
        )
        if hosts is not None:
            query = query.where(held.host.in_(hosts))
        if project_id is not None:
            query = query.where(models.Lease.project_id == project_id)
        found += [
            Use(
                from_row(row), row.resource_type, row.lease_id,
                row.project_id, row.name, row.status, row.degraded,
            )
            for row in connection.execute(query)
        ]
    found.sort(key=lambda use: (use.allocation.start, use.allocation.id))
    return found[:limit]


def put(
    connection: sa.Connection, reservation_id: str,
    wanted: Iterable[Allocation], now: int = 0,
) -> list[record.Record]:
    """Replace the allocations of a reservation, as `put_all` does."""
    return put_all(connection, {reservation_id: wanted}, now)


def put_all(
    connection: sa.Connection, wanted: Mapping[str, Iterable[Allocation]],
    now: int = 0,
) -> list[record.Record]:
    """Replace the allocations of reservations; return records.

    An allocation that goes on has the start that it has had, unless the lease
    starts later now. An allocation that has begun and does not go on is over
    at `now`, if not before; so is what a smaller allocation has given up. The
    servers on a host that a reservation no longer has are accounted for
    individually.

    :param wanted: the allocations, by the id of the reservation
    """
    parents = models.Allocation.reservation_id.in_(wanted)
    held = defaultdict(list)
    for each in _select(connection, parents):
        held[each.reservation_id].append(each)
    starts = connection.execute(
        sa.select(models.Reservation.id, models.Lease.start)
        .join(models.Lease)
        .where(models.Reservation.id.in_(wanted))
    )
    first = {row.id: row.start for row in starts}
    over: list[Allocation] = []
    gone: list[str] = []
    added: list[Allocation] = []
    records: list[record.Record] = []
    moved: list[str] = []
    for id_, allocations in wanted.items():
        old = {a.id: a for a in held[id_]}
        since = {a.host: a.start for a in old.values()}
        new = {
            a.id: dataclasses.replace(
                a, start=max(first[id_], min(a.start, since[a.host]))
            )
            if a.host in since else a
            for a in allocations
        }
        after = {a.host: a.amounts for a in new.values()}
        over += [
            dataclasses.replace(a, end=min(a.end, now), amounts=dict(lost))
            for a in old.values()
            if (lost := Counter(a.amounts) - Counter(after.get(a.host, {})))
            or a.host not in after
        ]
        gone += [a.id for a in old.values() if new.get(a.id) != a]
        added += [a for a in new.values() if old.get(a.id) != a]
        records += [record.removal(a) for a in old.values() if a.id not in new]
        if since.keys() != after.keys():
            moved.append(id_)
    _keep_past(connection, over)
    # Rows are deleted and inserted, not updated: two allocations that swap
    # hosts would briefly share a host, which the table does not allow.
    if gone:
        connection.execute(
            sa.delete(models.Allocation).where(models.Allocation.id.in_(gone))
        )
    records += add(connection, added)
    if moved:
        records += instance.bind(connection, models.Instance.claim.in_(moved))
    return records


def add(
    connection: sa.Connection, new: Sequence[Allocation]
) -> list[record.Record]:
    """Insert allocations; return the records."""
    rows.add(connection, models.Allocation, list(map(rows.columns, new)))
    return list(map(record.encode, new))


def cut(
    connection: sa.Connection, reservation_ids: Collection[str], end: int
) -> list[record.Record]:
    """Cut the reservations' allocations to end by `end`; return records."""
    beyond = sa.and_(
        models.Allocation.reservation_id.in_(reservation_ids),
        models.Allocation.end > end,
    )
    found = _select(connection, beyond)
    connection.execute(
        sa.update(models.Allocation).where(beyond).values(end=end)
    )
    return [record.encode(dataclasses.replace(a, end=end)) for a in found]


def _keep_past(connection: sa.Connection, over: Sequence[Allocation]) -> None:
    rows.add(
        connection, models.PastAllocation,
        [
            {**rows.columns(a), 'id': str(uuid.uuid4())}
            for a in over if a.start < a.end
        ],
    )


def drop(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> list[record.Record]:
    """Delete the allocations that match `condition`; return records."""
    gone = _select(connection, condition)
    connection.execute(sa.delete(models.Allocation).where(condition))
    return list(map(record.removal, gone))


def _select(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> list[Allocation]:
    query = sa.select(models.Allocation).where(condition)
    return [from_row(row) for row in connection.execute(query)]
