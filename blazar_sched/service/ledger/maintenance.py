# SPDX-License-Identifier: Apache-2.0
"""Maintenances in SQL; their hosts have copies: see ledger.host."""

import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.domain.maintenance import Maintenance
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows


def get(connection: sa.Connection, maintenance_id: str) -> Maintenance:
    """Return a maintenance.

    :raises MaintenanceNotFound: if there is no such maintenance
    """
    if models.is_id(maintenance_id):
        for found in _select(
            connection, models.Maintenance.id == maintenance_id
        ):
            return found
    raise exception.MaintenanceNotFound(
        f'maintenance {maintenance_id} not found'
    )


def list_(
    connection: sa.Connection, after: str | None = None
) -> list[Maintenance]:
    """Return the maintenances by id.

    :param after: the id after which the result begins
    """
    condition = sa.true() if after is None else models.Maintenance.id > after
    return _select(connection, condition)


def put(connection: sa.Connection, new: Maintenance) -> None:
    """Insert a maintenance, or replace the maintenance of the same id."""
    rows.replace(
        connection, models.Maintenance, models.Maintenance.id == new.id,
        [rows.columns(new, hosts=list(new.hosts))],
    )


def delete(connection: sa.Connection, maintenance_id: str) -> None:
    """Delete a maintenance, if it exists."""
    connection.execute(
        sa.delete(models.Maintenance)
        .where(models.Maintenance.id == maintenance_id)
    )


def _select(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> list[Maintenance]:
    return [
        Maintenance(**{**row, 'hosts': tuple(row['hosts'])})
        for row in rows.select(connection, models.Maintenance, condition)
    ]
