# SPDX-License-Identifier: Apache-2.0
"""Host properties in SQL: the capabilities that ordinary users may see."""

import sqlalchemy as sa

from blazar_sched.service.ledger import models


def list_(connection: sa.Connection) -> dict[str, bool]:
    """Return, by property name, whether the property is private."""
    found = connection.execute(sa.select(models.HostProperty))
    return {row.name: row.private for row in found}


def put(connection: sa.Connection, name: str, private: bool) -> None:
    """Insert or update a property."""
    if name not in list_(connection):
        connection.execute(
            sa.insert(models.HostProperty).values(name=name, private=private)
        )
    else:
        connection.execute(
            sa.update(models.HostProperty)
            .where(models.HostProperty.name == name)
            .values(private=private)
        )
