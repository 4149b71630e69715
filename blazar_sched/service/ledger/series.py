# SPDX-License-Identifier: Apache-2.0
"""Series in SQL, and the leases that belong to a series."""

from collections.abc import Collection
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
    connection: sa.Connection, series_id: str, project_id: str | None = None
) -> Series:
    """Return a series, of the project `project_id` if given.

    :raises SeriesNotFound: if there is no such series, or the series is being
        deleted, or belongs to another project
    """
    found = find(connection, series_id, project_id)
    if found is not None and found.deleted_at is None:
        return found
    raise exception.SeriesNotFound(f'series {series_id} not found')


def find(
    connection: sa.Connection, series_id: str, project_id: str | None = None
) -> Series | None:
    """Return a series, also one that is being deleted, None for none."""
    if models.is_id(series_id):
        condition = models.Series.id == series_id
        for found in _select(connection, _of(project_id, condition)):
            return found
    return None


def list_(
    connection: sa.Connection, project_id: str | None = None
) -> list[Series]:
    """Return the series by id, of the project `project_id` if given."""
    return _select(
        connection, _of(project_id, models.Series.deleted_at.is_(None))
    )


def list_deleted(connection: sa.Connection) -> list[Series]:
    """Return the series that are being deleted, by id."""
    return _select(connection, models.Series.deleted_at.is_not(None))


def leases(
    connection: sa.Connection, series_id: str,
    ids: Collection[str] | None = None,
) -> list[Lease]:
    """Return the leases of a series, the lease that starts first at first.

    :param ids: the ids of the leases to return, None for all
    """
    condition = models.Lease.series_id == series_id
    if ids is not None:
        condition = sa.and_(models.Lease.id.in_(ids), condition)
    return lease.select(
        connection, condition, (models.Lease.start, models.Lease.id)
    )


def booked(
    connection: sa.Connection, series_id: str, occurrences: Collection[str]
) -> set[str]:
    """Return those of some occurrences of a series that have a lease."""
    return set(connection.scalars(
        sa.select(models.Lease.occurrence).where(
            models.Lease.series_id == series_id,
            models.Lease.occurrence.in_(occurrences),
        )
    ))


def put(connection: sa.Connection, new: Series) -> None:
    """Insert a series, or replace the series of the same id."""
    rows.replace(
        connection, models.Series, models.Series.id == new.id,
        [rows.columns(new)],
    )


def release(connection: sa.Connection, ids: Collection[str]) -> None:
    """Make leases leases of no series any more."""
    connection.execute(
        sa.update(models.Lease)
        .where(models.Lease.id.in_(ids))
        .values(series_id=None, occurrence=None)
    )


def delete(connection: sa.Connection, series_id: str) -> None:
    """Delete a series, unless it has leases or is deleted already."""
    connection.execute(
        sa.delete(models.Series).where(
            models.Series.id == series_id,
            ~sa.exists().where(models.Lease.series_id == series_id),
        )
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
    find_series = access.read(find)
    deleted_series = access.read(list_deleted)
    all_series = access.read(list_)
    leases_of_series = access.read(leases)
    booked_occurrences = access.read(booked)


class Writes(access.Writes):
    """The changes of series."""

    put_series = access.write(put)
    release_from_series = access.write(release)
    delete_series = access.write(delete)
