# SPDX-License-Identifier: Apache-2.0
"""Calendars in SQL."""

import functools

import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.domain.calendar import Calendar
from blazar_sched.service.ledger import access
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows

_of = functools.partial(rows.of_project, models.Calendar)


def get(
    connection: sa.Connection, calendar_id: str, project_id: str | None
) -> Calendar:
    """Return a calendar, of the project `project_id` if given.

    :raises CalendarNotFound: if the project has no such calendar
    """
    if models.is_id(calendar_id):
        condition = models.Calendar.id == calendar_id
        for found in _select(connection, _of(project_id, condition)):
            return found
    raise exception.CalendarNotFound(f'calendar {calendar_id} not found')


def with_digest(connection: sa.Connection, digest: str) -> Calendar:
    """Return the calendar whose token has a digest.

    :raises CalendarNotFound: if there is no such calendar
    """
    for found in _select(connection, models.Calendar.digest == digest):
        return found
    raise exception.CalendarNotFound('calendar not found')


def list_(
    connection: sa.Connection, project_id: str | None = None
) -> list[Calendar]:
    """Return the calendars by id, of the project `project_id` if given."""
    return _select(connection, _of(project_id))


def put(connection: sa.Connection, new: Calendar) -> None:
    """Insert a calendar."""
    rows.add(connection, models.Calendar, [rows.columns(new)])


def delete(
    connection: sa.Connection, calendar_id: str, project_id: str | None
) -> None:
    """Delete a calendar.

    :raises CalendarNotFound: if the project has no such calendar
    """
    found = get(connection, calendar_id, project_id)
    connection.execute(
        sa.delete(models.Calendar).where(models.Calendar.id == found.id)
    )


def _select(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> list[Calendar]:
    return [
        Calendar(**row)
        for row in rows.select(connection, models.Calendar, condition)
    ]


class Reads(access.Reads):
    """The queries for calendars."""

    calendar = access.read(get)
    calendar_with = access.read(with_digest)
    calendars = access.read(list_)


class Writes(access.Writes):
    """The changes of calendars."""

    put_calendar = access.write(put)
    delete_calendar = access.write(delete)
