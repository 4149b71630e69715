# SPDX-License-Identifier: Apache-2.0
"""Trusts in SQL: those of leases that are over, to be deleted in Keystone."""

import sqlalchemy as sa

from blazar_sched.service.ledger import models


def list_discarded(connection: sa.Connection, limit: int) -> list[str]:
    """Return the ids of at most `limit` discarded trusts."""
    return list(
        connection.execute(
            sa.select(models.DiscardedTrust.id)
            .order_by(models.DiscardedTrust.id)
            .limit(limit)
        ).scalars()
    )


def discard(connection: sa.Connection, trust_id: str) -> None:
    """Note that a trust is to be deleted; it may be noted already."""
    forget(connection, trust_id)
    connection.execute(sa.insert(models.DiscardedTrust).values(id=trust_id))


def forget(connection: sa.Connection, trust_id: str) -> None:
    """Forget a discarded trust, which is deleted."""
    connection.execute(
        sa.delete(models.DiscardedTrust).where(
            models.DiscardedTrust.id == trust_id
        )
    )
