# SPDX-License-Identifier: Apache-2.0
"""Idempotency keys in SQL, with the leases that their requests created."""

from collections.abc import Collection

import sqlalchemy as sa

from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows

# In place of the id of a project: the keys are the ids of calls that were sent
# again, and the digests are the numbers of their last sendings.
_CALLS = ''


def get(
    connection: sa.Connection, project_id: str, key: str
) -> tuple[str | None, str] | None:
    """Return the lease that was created with an idempotency key.

    :returns: the lease's id, None if the lease was deleted, and the digest
        that came with the key; None if the key is unknown
    """
    found = connection.execute(
        sa.select(
            models.IdempotencyKey.lease_id, models.IdempotencyKey.digest
        ).where(
            models.IdempotencyKey.project_id == project_id,
            models.IdempotencyKey.key == key,
        )
    ).one_or_none()
    return None if found is None else (found.lease_id, found.digest)


def put(
    connection: sa.Connection, project_id: str, key: str, lease_id: str | None,
    digest: str, now: int,
) -> None:
    """Insert the lease created with an idempotency key, which must be new.

    :param lease_id: None if what the key has created is deleted
    """
    connection.execute(
        sa.insert(models.IdempotencyKey).values(
            project_id=project_id, key=key, lease_id=lease_id, digest=digest,
            created_at=now,
        )
    )


def forget_leases(connection: sa.Connection, ids: Collection[str]) -> None:
    """Keep the keys of leases that are deleted, without the leases."""
    connection.execute(
        sa.update(models.IdempotencyKey)
        .where(models.IdempotencyKey.lease_id.in_(ids))
        .values(lease_id=None)
    )


def drop(connection: sa.Connection, before: int, limit: int) -> bool:
    """Delete keys without a lease that were used before a time.

    :param limit: the maximum number of keys
    :returns: whether there may be more
    """
    return rows.delete_some(connection, models.IdempotencyKey, sa.and_(
        models.IdempotencyKey.lease_id.is_(None),
        models.IdempotencyKey.created_at < before,
    ), limit)


def last_sending(connection: sa.Connection, call_id: str) -> int:
    """Return the number of the last sending of a call, 1 if none is noted.
    """
    found = get(connection, _CALLS, call_id)
    return 1 if found is None else int(found[1])


def put_sending(
    connection: sa.Connection, call_id: str, number: int, now: int
) -> None:
    """Note a sending of a call, which is not the first."""
    connection.execute(
        sa.delete(models.IdempotencyKey).where(
            models.IdempotencyKey.project_id == _CALLS,
            models.IdempotencyKey.key == call_id,
        )
    )
    put(connection, _CALLS, call_id, None, str(number), now)
