# SPDX-License-Identifier: Apache-2.0
"""Series in SQL, and the leases that belong to a series.

The core has the id of the series, and the occurrence, of each lease.
"""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import orm

from blazar_sched.domain.lease import Lease
from blazar_sched.domain.window import FOREVER
from blazar_sched.parts.series.exception import SeriesNotFound
from blazar_sched.parts.series.series import Series
from blazar_sched.service.ledger import lease
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows
from blazar_sched.service.ledger.statistics import Number
from blazar_sched.service.ledger.stored import Stored


class Row(models.Base):
    """A series; `reservations` are as they were requested."""

    __tablename__ = 'series'

    id: orm.Mapped[str] = orm.mapped_column(models.Id, primary_key=True)
    name: orm.Mapped[str]
    project_id: orm.Mapped[str] = orm.mapped_column(index=True)
    user_id: orm.Mapped[str]
    rrule: orm.Mapped[str]
    time_zone: orm.Mapped[str]
    start: orm.Mapped[str]
    duration: orm.Mapped[int]
    reservations: orm.Mapped[list[dict[str, Any]]]
    except_dates: orm.Mapped[list[str]]
    if_no_room: orm.Mapped[str]
    booked_until: orm.Mapped[int]
    missing: orm.Mapped[list[str]]
    retry_at: orm.Mapped[int]
    digest: orm.Mapped[str]
    created_at: orm.Mapped[int | None]
    updated_at: orm.Mapped[int | None]
    deleted_at: orm.Mapped[int | None]


_HAS_LEASES = sa.exists().where(models.Lease.series_id == Row.id)

TABLES = (Row,)
NUMBERS = (Number('max_series', 'series', Row),)


def _read(row: Mapping[Any, Any]) -> Series:
    return Series(**row)


_KEPT = Stored(Row, _read, 'series', SeriesNotFound, Row.deleted_at.is_(None))
get, list_ = _KEPT.get, _KEPT.all
_ALL = Stored(Row, _read, 'series', SeriesNotFound)
#: Returns a series as `get` does, also one that is being deleted.
find = _ALL.get


def deleted(connection: sa.Connection) -> list[Series]:
    """Return the series that are being deleted, by id."""
    return _ALL.select(connection, Row.deleted_at.is_not(None))


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
    rows.replace(connection, Row, Row.id == new.id, [rows.columns(new)])


def release(connection: sa.Connection, ids: Collection[str]) -> None:
    """Make leases leases of no series any more."""
    connection.execute(
        sa.update(models.Lease)
        .where(models.Lease.id.in_(ids))
        .values(series_id=None, occurrence=None)
    )


def delete(connection: sa.Connection, series_id: str) -> None:
    """Delete a series, unless it has leases or is deleted already."""
    connection.execute(sa.delete(Row).where(Row.id == series_id, ~_HAS_LEASES))


def over(
    connection: sa.Connection, before: int
) -> Iterator[tuple[type[models.Base], sa.ColumnElement[bool]]]:
    """Yield the table with the condition of what is over.

    A series is kept as long as it has leases or occurrences to come.
    """
    # Local times are up to a day from UTC.
    day = datetime.datetime.fromtimestamp(before - 86400, datetime.UTC)
    found = connection.execute(
        sa.select(Row.id, Row.missing).where(
            Row.booked_until == FOREVER, ~_HAS_LEASES,
            sa.func.coalesce(Row.updated_at, Row.created_at) < before,
        )
    )
    yield Row, Row.id.in_([
        row.id for row in found
        if max(row.missing, default='') < day.isoformat()
    ])


def pending(connection: sa.Connection, now: int) -> tuple[str, list[Series]]:
    """Return the series, and the noun for them."""
    return 'series', list_(connection)
