# SPDX-License-Identifier: Apache-2.0
"""Maintenances in SQL; the core has the copies of each host."""

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy import orm

from blazar_sched.parts.maintenance.exception import MaintenanceNotFound
from blazar_sched.parts.maintenance.maintenance import Maintenance
from blazar_sched.service.ledger import host
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows


class Row(models.Base):
    """A maintenance of hosts, which `hosts` names by uuid.

    Each host has a copy of the maintenance, so that a replica loads in one
    scan.
    """

    __tablename__ = 'maintenance'

    id: orm.Mapped[str] = orm.mapped_column(models.Id, primary_key=True)
    name: orm.Mapped[str]
    reason: orm.Mapped[str]
    start: orm.Mapped[int]
    end: orm.Mapped[int]
    hosts: orm.Mapped[list[str]]
    created_at: orm.Mapped[int | None]
    updated_at: orm.Mapped[int | None]


TABLES = (Row,)


def get(connection: sa.Connection, maintenance_id: str) -> Maintenance:
    """Return a maintenance.

    :raises MaintenanceNotFound: if there is no such maintenance
    """
    if models.is_id(maintenance_id):
        for found in _select(connection, Row.id == maintenance_id):
            return found
    raise MaintenanceNotFound(f'maintenance {maintenance_id} not found')


def list_(
    connection: sa.Connection, after: str | None = None
) -> list[Maintenance]:
    """Return the maintenances by id.

    :param after: the id after which the result begins
    """
    return _select(connection, sa.true() if after is None else Row.id > after)


def put(connection: sa.Connection, new: Maintenance) -> None:
    """Insert a maintenance, or replace the maintenance of the same id."""
    rows.replace(
        connection, Row, Row.id == new.id,
        [rows.columns(new, hosts=list(new.hosts))],
    )


def delete(connection: sa.Connection, maintenance_id: str) -> None:
    """Delete a maintenance, if it exists."""
    connection.execute(sa.delete(Row).where(Row.id == maintenance_id))


def over(
    connection: sa.Connection, before: int
) -> Iterator[tuple[type[models.Base], sa.ColumnElement[bool]]]:
    """Yield the table with the condition of what is over."""
    yield Row, Row.end < before


def pending(
    connection: sa.Connection, now: int
) -> tuple[str, list[Maintenance]]:
    """Return the maintenances that are not over, and the noun for them."""
    return 'maintenance', _select(connection, Row.end > now)


def check(connection: sa.Connection, now: int) -> Iterator[str]:
    """Compare the hosts' copies of maintenances with the maintenances.

    No host needs a copy of what is over.
    """
    maintenances = list_(connection)
    for each in host.list_(connection):
        copies = {c.id: (c.start, c.end) for c in each.maintenances}
        expected = {
            m.id: (m.start, m.end) for m in maintenances
            if each.uuid in m.hosts and (m.end > now or m.id in copies)
        }
        for id_ in sorted(copies.keys() | expected.keys()):
            if copies.get(id_) != expected.get(id_):
                yield (
                    f'host {each.uuid}: closed over {copies.get(id_)}, by '
                    f'maintenance {id_} over {expected.get(id_)}'
                )


def _select(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> list[Maintenance]:
    return [
        Maintenance(**{**row, 'hosts': tuple(row['hosts'])})
        for row in rows.select(connection, Row, condition)
    ]
