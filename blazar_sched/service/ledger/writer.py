# SPDX-License-Identifier: Apache-2.0
"""Writers in SQL: how many commits each has made, so that it can look.

A writer counts its commits, and writes the count in the same transaction. So
its row tells, once its transaction is over, whether that was committed.
"""

import sqlalchemy as sa

from blazar_sched.service.ledger import models

# A row is kept for so many revisions at least: a writer that asks what became
# of a commit finds its row gone only if it stood still for longer.
REVISIONS_KEPT = 10_000


def note(
    connection: sa.Connection, writer_id: str, commits: int, revision: int
) -> None:
    """Write that this is the writer's commit number `commits`."""
    row = {'commits': commits, 'revision': revision}
    changed = connection.execute(
        sa.update(models.Writer)
        .where(models.Writer.id == writer_id)
        .values(row)
    )
    if not changed.rowcount:
        connection.execute(
            sa.insert(models.Writer).values(id=writer_id, **row)
        )


def count(connection: sa.Connection, writer_id: str) -> int | None:
    """Return how many commits the writer has made, None without its row."""
    commits: int | None = connection.scalar(
        sa.select(models.Writer.commits).where(models.Writer.id == writer_id)
    )
    return commits


def drop(connection: sa.Connection, before: int, but: str) -> None:
    """Delete the writers that have been silent since revision `before`.

    :param but: a writer's id
    """
    connection.execute(
        sa.delete(models.Writer).where(
            models.Writer.revision < before, models.Writer.id != but
        )
    )
