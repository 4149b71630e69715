# SPDX-License-Identifier: Apache-2.0
"""Thresholds in SQL."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.domain.threshold import Threshold
from blazar_sched.service.ledger import access
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows


def get(connection: sa.Connection, threshold_id: str) -> Threshold:
    """Return a threshold.

    :raises ThresholdNotFound: if there is no such threshold
    """
    if models.is_id(threshold_id):
        for found in _select(connection, models.Threshold.id == threshold_id):
            return found
    raise exception.ThresholdNotFound(f'threshold {threshold_id} not found')


def list_(
    connection: sa.Connection, after: str | None = None
) -> list[Threshold]:
    """Return the thresholds by id.

    :param after: the id after which the result begins
    """
    condition = sa.true() if after is None else models.Threshold.id > after
    return _select(connection, condition)


def add(connection: sa.Connection, new: Threshold) -> None:
    """Insert a threshold."""
    rows.add(connection, models.Threshold, [rows.columns(new)])


def change(
    connection: sa.Connection, old: Threshold, values: Mapping[str, Any]
) -> bool:
    """Change fields of a threshold, unless one of them has changed meanwhile.

    :param old: the threshold as it was read
    :param values: the new values, by the name of the field
    :returns: whether the threshold was changed
    """
    columns = {name: getattr(models.Threshold, name) for name in values}
    return connection.execute(
        sa.update(models.Threshold)
        .where(
            models.Threshold.id == old.id,
            *(
                column.is_not_distinct_from(getattr(old, name))
                for name, column in columns.items()
            ),
        )
        .values(values)
    ).rowcount == 1


def delete(connection: sa.Connection, threshold_id: str) -> None:
    """Delete a threshold.

    :raises ThresholdNotFound: if there is no such threshold
    """
    get(connection, threshold_id)
    connection.execute(
        sa.delete(models.Threshold)
        .where(models.Threshold.id == threshold_id)
    )


def _select(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> list[Threshold]:
    return [
        Threshold(**row)
        for row in rows.select(connection, models.Threshold, condition)
    ]


class Reads(access.Reads):
    """The queries for thresholds."""

    threshold = access.read(get)
    thresholds = access.read(list_)


class Writes(access.Writes):
    """The changes of thresholds."""

    add_threshold = access.write(add)
    change_threshold = access.write(change)
    delete_threshold = access.write(delete)
