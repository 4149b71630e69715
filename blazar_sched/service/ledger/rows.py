# SPDX-License-Identifier: Apache-2.0
"""Conversion of entities to rows, and insertion and replacement of rows."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import orm


def columns(entity: Any, **more: Any) -> dict[str, Any]:
    """Return the fields of an entity and `more`, by column name."""
    fields = {name: getattr(entity, name) for name in entity.__slots__}
    return {**fields, **more}


def select(
    connection: sa.Connection, model: type[orm.DeclarativeBase],
    condition: sa.ColumnElement[bool],
) -> Sequence[sa.RowMapping]:
    """Return the rows of `model` that meet a condition, by `id`."""
    query = sa.select(model).where(condition)
    key = sa.inspect(model).columns['id']
    return connection.execute(query.order_by(key)).mappings().all()


def of_project(
    model: type[orm.DeclarativeBase], project_id: str | None,
    *conditions: sa.ColumnElement[bool],
) -> sa.ColumnElement[bool]:
    """Return the condition for rows that meet `conditions`.

    :param project_id: the project of the rows, None for all projects
    """
    if project_id is None:
        return sa.and_(sa.true(), *conditions)
    owner = sa.inspect(model).columns['project_id']
    return sa.and_(owner == project_id, *conditions)


def delete_some(
    connection: sa.Connection, model: type[orm.DeclarativeBase],
    condition: sa.ColumnElement[bool], limit: int,
) -> bool:
    """Delete rows that meet a condition; return whether there may be more.

    :param limit: the maximum number of rows
    """
    key = sa.inspect(model).primary_key
    found = connection.execute(
        sa.select(*key).where(condition).limit(limit)
    ).all()
    if found:
        connection.execute(sa.delete(model).where(sa.tuple_(*key).in_(found)))
    return len(found) == limit


def add(
    connection: sa.Connection, model: type[orm.DeclarativeBase],
    new: Sequence[dict[str, Any]],
) -> None:
    """Insert rows in a single statement, however many rows there are."""
    if new:
        connection.execute(sa.insert(model), new)


def replace(
    connection: sa.Connection, model: type[orm.DeclarativeBase],
    parent: sa.ColumnElement[bool], wanted: Iterable[dict[str, Any]],
) -> None:
    """Replace the rows of `model` that match `parent` by `wanted`.

    Only differences are written, as `change` does.
    """
    held = connection.execute(sa.select(model).where(parent)).mappings()
    change(connection, model, held, wanted)


def change(
    connection: sa.Connection, model: type[orm.DeclarativeBase],
    held: Iterable[Mapping[Any, Any]], wanted: Iterable[dict[str, Any]],
) -> None:
    """Replace the rows `held` of `model` by `wanted`.

    Rows are identified by `id`. Only differences are written, and columns
    that `wanted` does not name keep their values.
    """
    new = {row['id']: row for row in wanted}
    old = {row['id']: row for row in held}
    key = sa.inspect(model).columns['id']
    gone = old.keys() - new.keys()
    if gone:
        connection.execute(sa.delete(model).where(key.in_(gone)))
    # Rows that change alike take one statement.
    changes: list[tuple[dict[str, Any], list[str]]] = []
    for id_ in old.keys() & new.keys():
        differing = {
            name: value
            for name, value in new[id_].items()
            if old[id_][name] != value
        }
        for known, ids in changes:
            if known == differing:
                ids.append(id_)
                break
        else:
            changes.append((differing, [id_]))
    for differing, ids in changes:
        if differing:
            connection.execute(
                sa.update(model).where(key.in_(ids)).values(differing)
            )
    add(connection, model, [new[id_] for id_ in new if id_ not in old])
