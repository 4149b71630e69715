# SPDX-License-Identifier: Apache-2.0
"""Servers that the service has shelved and has to unshelve, in SQL."""

from collections.abc import Collection

import sqlalchemy as sa

from blazar_sched.service.ledger import models


def list_(connection: sa.Connection) -> set[str]:
    """Return the UUIDs of the servers shelved to vacate their hosts."""
    return set(
        connection.execute(sa.select(models.ShelvedServer.uuid)).scalars()
    )


def add(connection: sa.Connection, uuid: str) -> None:
    """Insert a server shelved to vacate its host, unless it is present."""
    drop(connection, [uuid])
    connection.execute(sa.insert(models.ShelvedServer).values(uuid=uuid))


def drop(connection: sa.Connection, uuids: Collection[str]) -> None:
    """Delete servers that no longer have to be unshelved."""
    connection.execute(
        sa.delete(models.ShelvedServer).where(
            models.ShelvedServer.uuid.in_(uuids)
        )
    )
