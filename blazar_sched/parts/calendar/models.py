# SPDX-License-Identifier: Apache-2.0
"""The table of calendars, and the queries for calendars."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import orm

from blazar_sched.parts.calendar.exception import CalendarNotFound
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows
from blazar_sched.service.ledger.statistics import Number
from blazar_sched.service.ledger.stored import Stored

# The most calendars of a project.
MAX_CALENDARS = 10


class Calendar(models.Base):
    """A calendar; `digest` is that of the token in the link, which is not
    kept.
    """

    __tablename__ = 'calendar'

    id: orm.Mapped[str] = orm.mapped_column(models.Id, primary_key=True)
    project_id: orm.Mapped[str] = orm.mapped_column(index=True)
    name: orm.Mapped[str]
    digest: orm.Mapped[str] = orm.mapped_column(index=True, unique=True)
    created_at: orm.Mapped[int]


TABLES = (Calendar,)
NUMBERS = (
    Number('max_calendars', 'calendars', Calendar, most=MAX_CALENDARS),
)


_ALL = Stored(Calendar, dict[str, Any], 'calendar', CalendarNotFound)
get, list_ = _ALL.get, _ALL.all


def with_digest(connection: sa.Connection, digest: str) -> dict[str, Any]:
    """Return the calendar whose token has a digest.

    :raises CalendarNotFound: if there is no such calendar
    """
    for found in _ALL.select(connection, Calendar.digest == digest):
        return found
    raise CalendarNotFound('calendar not found')


def put(connection: sa.Connection, new: dict[str, object]) -> None:
    """Insert a calendar."""
    rows.add(connection, Calendar, [new])


def delete(
    connection: sa.Connection, calendar_id: str, project_id: str | None
) -> None:
    """Delete a calendar.

    :raises CalendarNotFound: if the project has no such calendar
    """
    found = get(connection, calendar_id, project_id)
    connection.execute(sa.delete(Calendar).where(Calendar.id == found['id']))
