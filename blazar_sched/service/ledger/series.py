# SPDX-License-Identifier: Apache-2.0
"""Series in SQL, and the leases that belong to a series."""

import functools

import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.series import Series
from blazar_sched.service.ledger import access
from blazar_sched.service.ledger import lease
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows

_of = functools.partial(rows.of_project, models.Series)


def get(
    connection: sa.Connection,
    series_id: str,
    project_id: str | None = None,
) -> Series:
    """Return a series, of the project `project_id` if given.

    :raises SeriesNotFound: if there is no such series, or the series belongs
        to another project
    """
    if models.is_id(series_id):
        condition = models.Series.id == series_id
        for found in _select(connection, _of(project_id, condition)):
            return found
    raise exception.SeriesNotFound(f'series {series_id} not found')


def list_(
    connection: sa.Connection, project_id: str | None = None
) -> list[Series]:
    """Return the series by id, of the project `project_id` if given."""
    return _select(connection, _of(project_id))


def leases(connection: sa.Connection, series_id: str) -> list[Lease]:
    """Return the leases of a series, the lease that starts first at first."""
    return lease.select(
        connection,
        models.Lease.series_id == series_id,
        (models.Lease.start, models.Lease.id),
    )


def put(connection: sa.Connection, new: Series) -> None:
    """Insert a series, or replace the series of the same id."""
    rows.replace(
        connection, models.Series, models.Series.id == new.id,
        [rows.columns(new)],
    )


def delete(connection: sa.Connection, series_id: str) -> None:
    """Delete a series; its leases are leases of no series any more.

    :raises SeriesNotFound: if there is no such series
    """
    gone = connection.execute(
        sa.delete(models.Series).where(models.Series.id == series_id)
    )
    if gone.rowcount != 1:
        raise exception.SeriesNotFound(f'series {series_id} not found')
    connection.execute(
        sa.update(models.Lease)
        .where(models.Lease.series_id == series_id)
        .values(series_id=None, occurrence=None)
    )


def _select(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> list[Series]:
    return [
        Series(**row)
        for row in rows.select(connection, models.Series, condition)
    ]


class Reads(access.Reads):
    """The queries for series."""

    one_series = access.read(get)
    all_series = access.read(list_)
    leases_of_series = access.read(leases)


class Writes(access.Writes):
    """The changes of series."""

    put_series = access.write(put)
    delete_series = access.write(delete)
