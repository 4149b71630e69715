# SPDX-License-Identifier: Apache-2.0
"""Idempotency keys in SQL, with the leases that their requests created."""

import sqlalchemy as sa

from blazar_sched.service.ledger import access
from blazar_sched.service.ledger import models


def get(
    connection: sa.Connection, project_id: str, key: str
) -> tuple[str, str] | None:
    """Return the lease that was created with an idempotency key.

    :returns: the lease's id and the digest that came with the key, None if
        the key is unknown
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
    connection: sa.Connection,
    project_id: str,
    key: str,
    lease_id: str,
    digest: str,
) -> None:
    """Insert the lease created with an idempotency key, which must be new."""
    connection.execute(
        sa.insert(models.IdempotencyKey).values(
            project_id=project_id, key=key, lease_id=lease_id, digest=digest
        )
    )


class Reads(access.Reads):
    """The query for idempotency keys."""

    lease_by_key = access.read(get)


class Writes(access.Writes):
    """The change of idempotency keys."""

    put_key = access.write(put)
