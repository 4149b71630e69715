# SPDX-License-Identifier: Apache-2.0
"""Instances in SQL: what is known of servers on reservable hosts."""

from collections.abc import Collection
import dataclasses
from typing import Any

import sqlalchemy as sa

from blazar_sched.domain import instance
from blazar_sched.replica import record
from blazar_sched.service.ledger import models


def from_row(row: Any) -> instance.Instance:
    return instance.Instance(
        uuid=row.uuid,
        host=row.host,
        project_id=row.project_id,
        amounts=row.amounts,
        end=row.end,
        reservation_id=row.reservation_id,
        preemptible=row.preemptible,
    )


def list_(
    connection: sa.Connection, hosts: Collection[str] | None
) -> list[instance.Instance]:
    query = sa.select(models.Instance).order_by(models.Instance.uuid)
    if hosts is not None:
        query = query.where(models.Instance.host.in_(hosts))
    return [from_row(row) for row in connection.execute(query)]


def get(connection: sa.Connection, uuid: str) -> instance.Instance | None:
    found = _select(connection, models.Instance.uuid == uuid)
    return found[0] if found else None


def put(
    connection: sa.Connection, new: instance.Instance
) -> list[record.Record]:
    """Insert or update an instance; return the records."""
    old = get(connection, new.uuid)
    if old == new:
        return []
    row = dataclasses.asdict(new)
    if old is None:
        connection.execute(sa.insert(models.Instance).values(row))
    else:
        connection.execute(
            sa.update(models.Instance)
            .where(models.Instance.uuid == new.uuid)
            .values(row)
        )
    return [record.encode(new)]


def unbind(
    connection: sa.Connection, reservation_ids: Collection[str]
) -> list[record.Record]:
    """Count the reservations' instances for themselves from now on."""
    bound = _select(
        connection, models.Instance.reservation_id.in_(reservation_ids)
    )
    records: list[record.Record] = []
    for noun in bound:
        records += put(
            connection, dataclasses.replace(noun, reservation_id=None)
        )
    return records


def drop(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> list[record.Record]:
    """Delete the instances where `condition` holds."""
    gone = [i.uuid for i in _select(connection, condition)]
    connection.execute(sa.delete(models.Instance).where(condition))
    return [(record.INSTANCE, uuid, None) for uuid in gone]


def _select(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> list[instance.Instance]:
    query = sa.select(models.Instance).where(condition)
    return [from_row(row) for row in connection.execute(query)]
