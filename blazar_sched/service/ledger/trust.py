# SPDX-License-Identifier: Apache-2.0
"""Trusts of leases that are over, to be deleted in Keystone, in SQL."""

import sqlalchemy as sa

from blazar_sched.service.ledger import models


def list_discarded(
    connection: sa.Connection, limit: int, after: str = ''
) -> list[str]:
    """Return the ids of at most `limit` trusts to be deleted.

    :param after: the id after which the result begins
    """
    return list(
        connection.execute(
            sa.select(models.DiscardedTrust.id)
            .where(models.DiscardedTrust.id > after)
            .order_by(models.DiscardedTrust.id)
            .limit(limit)
        ).scalars()
    )


def discard(connection: sa.Connection, trust_id: str | None) -> None:
    """Mark the trust of a lease, if there is a trust, for deletion.

    The trust may already be marked.
    """
    if trust_id is None:
        return
    forget(connection, trust_id)
    connection.execute(sa.insert(models.DiscardedTrust).values(id=trust_id))


def forget(connection: sa.Connection, trust_id: str) -> None:
    """Remove the mark of a discarded trust that is deleted."""
    connection.execute(
        sa.delete(models.DiscardedTrust).where(
            models.DiscardedTrust.id == trust_id
        )
    )
