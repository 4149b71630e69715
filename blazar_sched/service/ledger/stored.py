# SPDX-License-Identifier: Apache-2.0
"""Entities that are the rows of one table, found by their id."""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any
from typing import Generic
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy import orm

from blazar_sched.domain.exception import NotFound
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows

E = TypeVar('E')


class Stored(Generic[E]):
    """The rows of a table as entities, whose `id` is a string.

    :param read: returns the entity of a row
    :param noun: the entity in the text of a refusal
    :param error: the refusal of an id that there is not
    :param condition: the rows that are found, by default all
    """

    def __init__(
        self, model: type[orm.DeclarativeBase],
        read: Callable[[Mapping[Any, Any]], E], noun: str,
        error: type[NotFound],
        condition: sa.ColumnElement[bool] | None = None,
    ) -> None:
        self._model = model
        self._read = read
        self._noun = noun
        self._error = error
        self._condition = sa.true() if condition is None else condition

    def get(
        self, connection: sa.Connection, id_: str,
        project_id: str | None = None,
    ) -> E:
        """Return an entity, of the project `project_id` if given.

        :raises NotFound: the refusal of this table, also if the entity
            belongs to another project
        """
        if models.is_id(id_):
            key = sa.inspect(self._model).columns['id']
            for found in self.select(connection, key == id_, project_id):
                return found
        raise self._error(f'{self._noun} {id_} not found')

    def all(
        self, connection: sa.Connection, project_id: str | None = None
    ) -> list[E]:
        """Return the entities by id, of the project `project_id` if given."""
        return self.select(connection, sa.true(), project_id)

    def select(
        self, connection: sa.Connection, condition: sa.ColumnElement[bool],
        project_id: str | None = None,
    ) -> list[E]:
        """Return the entities by id that meet a condition, as `all`."""
        return [*map(self._read, rows.select(
            connection, self._model,
            rows.of_project(
                self._model, project_id, self._condition, condition
            ),
        ))]
