# SPDX-License-Identifier: Apache-2.0
"""The table of notes, and the queries for notes."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import orm

from blazar_sched.domain.exception import NotFound
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows
from blazar_sched.service.ledger.statistics import Number
from blazar_sched.service.ledger.stored import Stored
from note import MAX_NOTES


class Note(models.Base):
    """A note."""

    __tablename__ = 'note'

    id: orm.Mapped[str] = orm.mapped_column(models.Id, primary_key=True)
    project_id: orm.Mapped[str] = orm.mapped_column(index=True)
    text: orm.Mapped[str] = orm.mapped_column(models.Text)
    created_at: orm.Mapped[int]


TABLES = (Note,)
NUMBERS = (Number('max_notes', 'notes', Note, most=MAX_NOTES),)
_ALL = Stored(Note, dict[str, Any], 'note', NotFound)
get, list_ = _ALL.get, _ALL.all


def put(connection: sa.Connection, new: dict[str, object]) -> None:
    """Insert a note."""
    rows.add(connection, Note, [new])


def delete(
    connection: sa.Connection, note_id: str, project_id: str | None
) -> None:
    """Delete a note.

    :raises NotFound: if the project has no such note
    """
    get(connection, note_id, project_id)
    connection.execute(sa.delete(Note).where(Note.id == note_id))
