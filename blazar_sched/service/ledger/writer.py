# SPDX-License-Identifier: Apache-2.0
"""Writers in SQL, with the number of commits that each writer has made.

A writer counts its commits, and writes the count in the transaction of the
commit. So, once the transaction is over, the writer's row shows whether the
transaction was committed.
"""

import uuid

import sqlalchemy as sa

from blazar_sched.service.ledger import models

# The number of revisions for which a writer's row is kept at least. A writer
# that reads back the outcome of a commit finds its row missing only if the
# writer stood still for longer.
REVISIONS_KEPT = 10_000

# Each commit executes this statement, which takes long to build.
_NOTE = (
    sa.update(models.Writer)
    .where(models.Writer.id == sa.bindparam('writer'))
    .values(commits=sa.bindparam('made'), revision=sa.bindparam('at'))
)


def note(
    connection: sa.Connection, writer_id: str, commits: int, revision: int
) -> None:
    """Write that this commit is the writer's commit number `commits`."""
    changed = connection.execute(
        _NOTE, {'writer': writer_id, 'made': commits, 'at': revision}
    )
    if not changed.rowcount:
        connection.execute(sa.insert(models.Writer).values(
            id=writer_id, commits=commits, revision=revision
        ))


def count(connection: sa.Connection, writer_id: str) -> int | None:
    """Return the writer's number of commits, None if it has no row."""
    commits: int | None = connection.scalar(
        sa.select(models.Writer.commits).where(models.Writer.id == writer_id)
    )
    return commits


def probe(connection: sa.Connection) -> None:
    """Write a writer, and delete it in the same transaction."""
    id_ = str(uuid.uuid4())
    connection.execute(
        sa.insert(models.Writer).values(id=id_, commits=0, revision=0)
    )
    connection.execute(sa.delete(models.Writer).where(models.Writer.id == id_))


def drop(connection: sa.Connection, before: int, but: str) -> None:
    """Delete the writers without a commit since revision `before`.

    :param but: the id of a writer that is kept
    """
    connection.execute(
        sa.delete(models.Writer).where(
            models.Writer.revision < before, models.Writer.id != but
        )
    )
