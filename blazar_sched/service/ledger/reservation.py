# SPDX-License-Identifier: Apache-2.0
"""Reservations in SQL, which are written together with their lease."""

from collections import defaultdict
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import itertools
from typing import Any

import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain import window
from blazar_sched.domain.demand import decode
from blazar_sched.domain.demand import Instances
from blazar_sched.domain.demand import Lifetime
from blazar_sched.domain.demand import PLACED
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import LEAVABLE
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.reservation import WAITED_FOR
from blazar_sched.replica import record
from blazar_sched.service.ledger import allocation
from blazar_sched.service.ledger import instance
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import off_hosts
from blazar_sched.service.ledger import rows

# Not "is not deleted": only a list of statuses is looked up in the index.
IS_OPEN = models.Reservation.status.in_(states.RESERVATION_OPEN)


def from_row(row: Any) -> Reservation:
    return Reservation(
        id=row.id, lease_id=row.lease_id, status=row.status,
        demand=decode(row.resource_type, row.parameters),
        missing_resources=row.missing_resources,
        resources_changed=row.resources_changed, projects=tuple(row.projects),
        on_end=row.on_end, magnetic=row.magnetic, labels=row.labels,
        product=row.product or '', made=row.made, created_at=row.created_at,
        updated_at=row.updated_at,
    )


def by_lease(rows_: Iterable[Any]) -> dict[str, list[Reservation]]:
    """Return the reservations in rows by lease."""
    found = defaultdict(list)
    for row in rows_:
        found[row.lease_id].append(from_row(row))
    return found


def list_lacking(connection: sa.Connection) -> list[str]:
    """Return the ids of the leases that lack reserved resources.

    Only reservations of hosts, or of resources on hosts, are considered.
    Leases that are over are left out. The oldest lease is first.
    """
    query = (
        sa.select(models.Lease.id)
        .where(
            models.Lease.id.in_(
                sa.select(models.Reservation.lease_id).where(
                    models.Reservation.missing_resources,
                    models.Reservation.resource_type.in_(PLACED), IS_OPEN,
                )
            )
        )
        .order_by(models.Lease.created_at, models.Lease.id)
    )
    return list(connection.scalars(query))


def to_record(
    reserved: Reservation, project_id: str, start: int, end: int
) -> record.Reservation:
    """Return the replica's record of the reservation `reserved`."""
    demand = reserved.demand
    return record.Reservation(
        id=reserved.id, lease_id=reserved.lease_id, project_id=project_id,
        resource_type=reserved.resource_type, start=start, end=end,
        slot=dict(demand.slot) if isinstance(demand, Instances) else None,
        projects=reserved.projects, magnetic=reserved.magnetic,
        aggregate=reserved.made.get('aggregate_uuid'),
        former_projects=tuple(
            sorted(
                set(reserved.made.get('projects', ()))
                - {project_id, *reserved.projects}
            )
        ),
        on_end=(
            demand.on_end
            if isinstance(demand, Lifetime) else reserved.on_end
        ),
        cleared=tuple(reserved.made.get('cleared', ())),
        in_the_way=tuple(reserved.made.get('in_the_way', ())),
        waits=WAITED_FOR in reserved.made,
        leavable=tuple(reserved.made.get(LEAVABLE, ())),
        labels=dict(reserved.labels),
    )


def put(
    connection: sa.Connection, old: Lease, new: Lease
) -> list[record.Record]:
    """Replace the lease's reservations by those of `new`; return records."""
    before, after = _records(old), _records(new)
    gone = {r.id for r in old.reservations}
    gone -= {r.id for r in new.reservations}
    records = drop(connection, sorted(gone)) if gone else []
    records += map(_gone, before.keys() - after.keys() - gone)
    rows.change(connection, models.Reservation, _rows(old), _rows(new))
    records += [
        record.encode(recorded) for id_, recorded in after.items()
        if before.get(id_) != recorded
    ]
    return records + instance.set_ends(connection, {
        id_: _last(recorded) for id_, recorded in after.items()
        if id_ in before and _last(before[id_]) != _last(recorded)
    })


def _last(recorded: record.Reservation) -> int:
    """Return the end time of a reservation's servers."""
    return window.FOREVER if recorded.keeps else recorded.end


def add(
    connection: sa.Connection, new: Collection[Lease]
) -> list[record.Record]:
    """Insert the reservations of new leases; return the records."""
    rows.add(
        connection, models.Reservation, list(itertools.chain(*map(_rows, new)))
    )
    return [
        record.encode(recorded)
        for lease in new
        for recorded in _records(lease).values()
    ]


def move(connection: sa.Connection, new: Lease) -> list[record.Record]:
    """Move the reservations of `new` to that lease; return the records."""
    connection.execute(
        sa.update(models.Reservation)
        .where(models.Reservation.id.in_([r.id for r in new.reservations]))
        .values(lease_id=new.id)
    )
    after = _records(new)
    records: list[record.Record] = list(map(record.encode, after.values()))
    return records + instance.set_ends(
        connection, {id_: _last(each) for id_, each in after.items()}
    )


def _rows(owner: Lease) -> list[dict[str, Any]]:
    return [
        {**reservation.encode(), 'lease_id': owner.id, 'position': position}
        for position, reservation in enumerate(owner.reservations)
    ]


def _records(lease: Lease) -> dict[str, record.Reservation]:
    return {
        r.id: to_record(r, lease.project_id, lease.start, lease.end)
        for r in lease.reservations
        if r.status in states.RESERVATION_OPEN
    }


def _gone(reservation_id: str) -> record.Record:
    return record.RESERVATION, reservation_id, None


def drop(
    connection: sa.Connection, ids: Collection[str]
) -> list[record.Record]:
    """Delete reservations and their allocations.

    Servers that still use the reservations become ordinary servers. Replicas
    have no record of the reservations that are over.
    """
    known = connection.scalars(
        sa.select(models.Reservation.id)
        .where(models.Reservation.id.in_(ids), IS_OPEN)
    ).all()
    records = allocation.drop(
        connection, models.Allocation.reservation_id.in_(ids)
    )
    records += instance.release(connection, ids, window.FOREVER)
    off_hosts.drop_allocations(connection, ids)
    connection.execute(
        sa.delete(models.PastAllocation)
        .where(models.PastAllocation.reservation_id.in_(ids))
    )
    connection.execute(
        sa.delete(models.Reservation).where(models.Reservation.id.in_(ids))
    )
    records += map(_gone, known)
    return records


def _update(
    connection: sa.Connection, changes: Sequence[dict[str, Any]]
) -> None:
    """Update the columns of reservations, which are named by `id`.

    One statement, however many reservations there are. All changes are of the
    same columns.
    """
    if not changes:
        return
    columns = changes[0].keys() - {'id'}
    connection.execute(
        sa.update(models.Reservation)
        .where(models.Reservation.id == sa.bindparam('key'))
        .values({name: sa.bindparam(f'new_{name}') for name in columns}),
        [
            {'key': each['id'], **{f'new_{c}': each[c] for c in columns}}
            for each in changes
        ],
    )


def set_made(
    connection: sa.Connection, made: Mapping[str, Mapping[str, Any]],
    missing: Mapping[str, bool] | None = None,
) -> list[record.Record]:
    """Write only the objects that were created for reservations.

    :param made: the objects, by the id of the reservation
    :param missing: the new flags of missing resources, likewise; the others
        keep their flags
    :returns: the records that have changed
    :raises NotFound: if there is no such reservation
    """
    if not made:
        return []
    _require(connection, made)
    before = records(connection, made)
    _update(connection, [
        {'id': id_, 'made': dict(each)} for id_, each in made.items()
    ])
    _update(connection, [
        {'id': id_, 'missing_resources': flag}
        for id_, flag in (missing or {}).items()
    ])
    return [
        record.encode(each) for id_, each in records(connection, made).items()
        if each != before[id_]
    ]


def set_leavable(
    connection: sa.Connection, found: Mapping[str, Sequence[str]]
) -> list[record.Record]:
    """Write the hosts that reservations can leave; return the records.

    :param found: the uuids of the hosts, by the id of each reservation to
        write
    """
    if not found:
        return []
    made = connection.execute(
        sa.select(models.Reservation.id, models.Reservation.made)
        .where(models.Reservation.id.in_(found))
    )
    return set_made(connection, {
        id_: {**old, LEAVABLE: found[id_]} for id_, old in made
    })


def set_status(
    connection: sa.Connection, ids: Collection[str], status: str, now: int
) -> list[record.Record]:
    """Write a status of reservations.

    The allocations of reservations that are over are deleted.

    :returns: the records of what has changed
    :raises NotFound: if there is no such reservation
    """
    if not ids:
        return []
    _require(connection, ids)
    connection.execute(
        sa.update(models.Reservation)
        .where(models.Reservation.id.in_(ids))
        .values(status=status, updated_at=now)
    )
    if status != states.RESERVATION_DELETED:
        return []
    off_hosts.drop_allocations(connection, ids)
    return [
        *allocation.put_all(connection, dict.fromkeys(ids, ()), now),
        *map(_gone, ids),
    ]


def _require(connection: sa.Connection, ids: Collection[str]) -> None:
    """Refuse reservations that there are not.

    :raises NotFound: naming the first of them
    """
    known = connection.scalars(
        sa.select(models.Reservation.id).where(models.Reservation.id.in_(ids))
    ).all()
    for id_ in ids:
        if id_ not in known:
            raise exception.NotFound(f'reservation {id_} not found')


def records(
    connection: sa.Connection, ids: Collection[str | None], over: bool = False
) -> dict[str, record.Reservation]:
    """Return the records of reservations by id.

    :param over: whether to return the reservations that are over too
    """
    found = connection.execute(
        sa.select(
            models.Reservation, models.Lease.project_id, models.Lease.start,
            models.Lease.end,
        )
        .join(models.Lease)
        .where(models.Reservation.id.in_(ids), sa.true() if over else IS_OPEN)
    )
    return {
        row.id: to_record(from_row(row), row.project_id, row.start, row.end)
        for row in found
    }
