# SPDX-License-Identifier: Apache-2.0
"""Shelved servers in SQL: those shelved by the service, to be brought back."""

from collections.abc import Collection

import sqlalchemy as sa

from blazar_sched.service.ledger import models


def list_(connection: sa.Connection) -> set[str]:
    """Return the uuids of all servers that are to be brought back."""
    return set(
        connection.execute(sa.select(models.ShelvedServer.uuid)).scalars()
    )


def add(connection: sa.Connection, uuid: str) -> None:
    """Note a server; it may be noted already."""
    drop(connection, [uuid])
    connection.execute(sa.insert(models.ShelvedServer).values(uuid=uuid))


def drop(connection: sa.Connection, uuids: Collection[str]) -> None:
    """Forget servers."""
    connection.execute(
        sa.delete(models.ShelvedServer).where(
            models.ShelvedServer.uuid.in_(uuids)
        )
    )
