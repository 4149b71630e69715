# SPDX-License-Identifier: Apache-2.0
"""Thresholds in SQL, from the time when they are first crossed."""

from collections.abc import Mapping
import dataclasses
from typing import Any

import sqlalchemy as sa

from blazar_sched.domain.threshold import Threshold
from blazar_sched.service.ledger import access
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows


def list_(connection: sa.Connection) -> list[Threshold]:
    """Return the thresholds that were ever crossed, by id."""
    return [
        Threshold(**row)
        for row in rows.select(connection, models.Threshold, sa.true())
    ]


def change(
    connection: sa.Connection, old: Threshold, values: Mapping[str, Any]
) -> bool:
    """Change fields of a threshold, unless one of them has changed meanwhile.

    :param old: the threshold as it was read, or as it is before it is first
        crossed
    :param values: the new values, by the name of the field
    :returns: whether the threshold was changed
    """
    if not rows.select(
        connection, models.Threshold, models.Threshold.id == old.id
    ):
        new = dataclasses.replace(old, **values)
        rows.add(connection, models.Threshold, [rows.columns(new)])
        return True
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


class Reads(access.Reads):
    """The query for thresholds."""

    thresholds = access.read(list_)


class Writes(access.Writes):
    """The change of a threshold."""

    change_threshold = access.write(change)
