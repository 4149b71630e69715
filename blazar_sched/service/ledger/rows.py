# SPDX-License-Identifier: Apache-2.0
"""Rows of one parent, brought to be exactly those wanted."""

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from blazar_sched.service.ledger import models


def replace(
    connection: sa.Connection,
    model: type[models.Base],
    parent: sa.ColumnElement[bool],
    wanted: Iterable[dict[str, Any]],
) -> None:
    """Make the rows of `model` where `parent` holds those in `wanted`.

    Rows are told apart by `id`. Only what differs is written, and columns
    that `wanted` does not name keep their value.
    """
    new = {row['id']: row for row in wanted}
    held = connection.execute(sa.select(model).where(parent)).mappings()
    old = {row['id']: row for row in held}
    key = sa.inspect(model).columns['id']
    gone = old.keys() - new.keys()
    if gone:
        connection.execute(sa.delete(model).where(key.in_(gone)))
    for id_ in old.keys() & new.keys():
        differing = {
            name: value
            for name, value in new[id_].items()
            if old[id_][name] != value
        }
        if differing:
            connection.execute(
                sa.update(model).where(key == id_).values(differing)
            )
    added = [row for id_, row in new.items() if id_ not in old]
    if added:
        connection.execute(sa.insert(model), added)
