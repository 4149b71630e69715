# SPDX-License-Identifier: Apache-2.0
"""Instances in SQL: the known servers on reservable hosts."""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
from typing import Any

import sqlalchemy as sa

from blazar_sched.domain.instance import Instance
from blazar_sched.domain.instance import Stay
from blazar_sched.replica import record
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows


def from_row(row: Any) -> Instance:
    return Instance(
        uuid=row.uuid, host=row.host, project_id=row.project_id,
        amounts=row.amounts, end=row.end, reservation_id=row.reservation_id,
        preemptible=row.preemptible, claim=row.claim, used=row.used,
        path=tuple(Stay(*stay) for stay in row.path or ()),
        movable=row.movable, building=row.building,
    )


def list_(
    connection: sa.Connection, hosts: Collection[str] | None = None
) -> list[Instance]:
    """Return all instances, or the instances on given hosts.

    :param hosts: the UUIDs of the hosts
    """
    query = sa.select(models.Instance).order_by(models.Instance.uuid)
    if hosts is not None:
        query = query.where(models.Instance.host.in_(hosts))
    return [from_row(row) for row in connection.execute(query)]


def get(connection: sa.Connection, uuid: str) -> Instance | None:
    """Return an instance, None if there is no such instance."""
    found = _select(connection, models.Instance.uuid == uuid)
    return found[0] if found else None


def put(
    connection: sa.Connection, new: Collection[Instance]
) -> list[record.Record]:
    """Insert or update instances; return the records of what has changed.

    Three statements, however many instances there are.
    """
    uuids = [each.uuid for each in new]
    known = {
        each.uuid: each
        for each in _select(connection, models.Instance.uuid.in_(uuids))
    } if uuids else {}
    changed = [each for each in new if known.get(each.uuid) != each]
    rows.add(connection, models.Instance, [
        _row(each) for each in changed if each.uuid not in known
    ])
    updates = [
        {'known': each.uuid, **_row(each)}
        for each in changed if each.uuid in known
    ]
    if updates:
        connection.execute(
            sa.update(models.Instance)
            .where(models.Instance.uuid == sa.bindparam('known')),
            updates,
        )
    return list(map(record.encode, changed))


def _row(instance: Instance) -> dict[str, Any]:
    row = {name: getattr(instance, name) for name in Instance.__slots__}
    row['path'] = [
        (stay.host, stay.start, stay.end) for stay in instance.path
    ] or None
    return row


def claiming(
    connection: sa.Connection, reservation_ids: Collection[str]
) -> list[Instance]:
    """Return the instances that use reservations."""
    return _select(
        connection,
        sa.or_(
            models.Instance.claim.in_(reservation_ids),
            models.Instance.reservation_id.in_(reservation_ids),
        ),
    )


def bind(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> list[record.Record]:
    """Bind instances to the reservations that they use.

    An instance is bound if its reservation has an allocation on the host, or
    if the host has failed; see `replica.server_reservation.has`. Other
    instances are accounted for individually.

    :param condition: the condition that selects the instances
    """
    has = sa.or_(
        models.Allocation.id.is_not(None), models.Host.reservable.is_(False)
    )
    found = connection.execute(
        sa.select(models.Instance, has.label('has'))
        .join(models.Host, models.Host.uuid == models.Instance.host)
        .outerjoin(
            models.Allocation,
            sa.and_(
                models.Allocation.host == models.Instance.host,
                models.Allocation.reservation_id == models.Instance.claim,
            ),
        )
        .where(models.Instance.claim.is_not(None), condition)
    ).all()
    return put(connection, [
        dataclasses.replace(
            from_row(row), reservation_id=row.claim if row.has else None
        )
        for row in found
    ])


def bind_on(
    connection: sa.Connection, hosts: Collection[str]
) -> list[record.Record]:
    """Bind the instances on hosts to the reservations that they use.

    An instance is bound where its reservation has the host; see `bind`.

    :param hosts: the UUIDs of the hosts
    """
    return bind(connection, models.Instance.host.in_(hosts))


def set_ends(
    connection: sa.Connection, ends: Mapping[str, int]
) -> list[record.Record]:
    """Set the end of the instances that use reservations.

    :param ends: the end, by the id of the reservation
    """
    def end(known: Instance) -> int:
        return next(
            ends[id_] for id_ in (known.claim, known.reservation_id)
            if id_ is not None and id_ in ends
        )

    return put(connection, [
        dataclasses.replace(known, end=end(known), path=())
        for known in (claiming(connection, ends.keys()) if ends else ())
    ])


def release(
    connection: sa.Connection, reservation_ids: Collection[str],
    end: int | None = None,
) -> list[record.Record]:
    """Detach instances from reservations, to be accounted individually.

    :param end: the new end of the instances, None to keep their ends
    """
    return put(connection, [
        dataclasses.replace(
            known, end=known.end if end is None else end, reservation_id=None,
            claim=None,
        )
        for known in claiming(connection, reservation_ids)
    ])


def drop(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> list[record.Record]:
    """Delete the instances that match `condition`."""
    gone = [i.uuid for i in _select(connection, condition)]
    connection.execute(sa.delete(models.Instance).where(condition))
    return [(record.INSTANCE, uuid, None) for uuid in gone]


def drop_paths(connection: sa.Connection, host: str) -> list[record.Record]:
    """Drop the relocation paths that lead to a host."""
    path = sa.type_coerce(models.Instance.path, sa.Text)
    return put(connection, [
        dataclasses.replace(known, path=())
        for known in _select(connection, path.contains(host))
    ])


def delete(
    connection: sa.Connection, uuids: Collection[str]
) -> list[record.Record]:
    """Delete the instances that exist."""
    if not uuids:
        return []
    return drop(connection, models.Instance.uuid.in_(uuids))


def _select(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> list[Instance]:
    query = sa.select(models.Instance).where(condition)
    return [from_row(row) for row in connection.execute(query)]


def shelved(connection: sa.Connection) -> set[str]:
    """Return the UUIDs of the servers shelved to vacate their hosts."""
    return set(
        connection.execute(sa.select(models.ShelvedServer.uuid)).scalars()
    )


def add_shelved(connection: sa.Connection, uuid: str) -> None:
    """Insert a server shelved to vacate its host, unless it is present."""
    drop_shelved(connection, [uuid])
    connection.execute(sa.insert(models.ShelvedServer).values(uuid=uuid))


def drop_shelved(connection: sa.Connection, uuids: Collection[str]) -> None:
    """Delete servers that no longer have to be unshelved."""
    connection.execute(
        sa.delete(models.ShelvedServer).where(
            models.ShelvedServer.uuid.in_(uuids)
        )
    )
