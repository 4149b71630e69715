# SPDX-License-Identifier: Apache-2.0
"""Trusts in SQL: those of leases that are over, to be deleted in Keystone."""

import sqlalchemy as sa

from blazar_sched.service.ledger import access
from blazar_sched.service.ledger import models


def list_discarded(connection: sa.Connection, limit: int) -> list[str]:
    """Return the ids of at most `limit` trusts to be deleted."""
    return list(
        connection.execute(
            sa.select(models.DiscardedTrust.id)
            .order_by(models.DiscardedTrust.id)
            .limit(limit)
        ).scalars()
    )


def discard(connection: sa.Connection, trust_id: str | None) -> None:
    """Note that the trust of a lease, if it has one, is to be deleted.

    It may be noted already.
    """
    if trust_id is None:
        return
    forget(connection, trust_id)
    connection.execute(sa.insert(models.DiscardedTrust).values(id=trust_id))


def forget(connection: sa.Connection, trust_id: str) -> None:
    """Forget a discarded trust, which is deleted."""
    connection.execute(
        sa.delete(models.DiscardedTrust).where(
            models.DiscardedTrust.id == trust_id
        )
    )


class Reads(access.Reads):
    """The query of discarded trusts."""

    discarded_trusts = access.read(list_discarded)


class Writes(access.Writes):
    """The changes of discarded trusts."""

    discard_trust = access.write(discard)
    forget_trust = access.write(forget)
