# SPDX-License-Identifier: Apache-2.0
"""The ledger's revision, and the changes that led to that revision."""

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.replica import left_out
from blazar_sched.replica import record
from blazar_sched.replica import wire
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows

_ROW = sa.select(models.Ledger)
_NO_LEDGER = 'the ledger table has no row'

# The commits are counted so that the row always changes: otherwise a commit on
# another Galera node would not conflict with this commit.
_COUNT = sa.update(models.Ledger).values(commits=models.Ledger.commits + 1)
_NEW = models.Ledger.revision + sa.bindparam('step')
# Each commit executes one of these statements, which take long to build.
_TAKE = _COUNT.values(revision=_NEW).returning(models.Ledger.revision)
# MySQL returns a number from an UPDATE only as the last insert id.
_TAKE_AS_INSERT_ID = _COUNT.values(revision=sa.func.last_insert_id(_NEW))


def newest(connection: sa.Connection) -> tuple[str, int]:
    """Return the ledger's UUID and its newest revision.

    :raises Unavailable: if the database holds no ledger
    """
    row = _row(connection)
    return row.uuid, row.revision


def version(connection: sa.Connection) -> tuple[str, int]:
    """Return the ledger's UUID and the number of all commits so far.

    Every commit changes the number, also a commit that makes no revision.

    :raises Unavailable: if the database holds no ledger
    """
    row = _row(connection)
    return row.uuid, row.commits


def _row(connection: sa.Connection) -> Any:
    row = connection.execute(_ROW).one_or_none()
    if row is None:
        raise exception.Unavailable(_NO_LEDGER)
    return row


def take(connection: sa.Connection, step: int) -> int:
    """Lock the ledger's row until the transaction ends.

    This must be the first statement of the transaction, so that later reads
    see the newest state.

    :param step: the number to add to the revision
    :returns: the revision after the addition
    :raises Unavailable: if the database holds no ledger
    """
    asked = {'step': step}
    if connection.dialect.update_returning:
        taken = connection.scalar(_TAKE, asked)
    else:
        changed = connection.execute(_TAKE_AS_INSERT_ID, asked)
        taken = changed.lastrowid if changed.rowcount else None
    if taken is None:
        raise exception.Unavailable(_NO_LEDGER)
    revision: int = taken
    return revision


def write(
    connection: sa.Connection, revision: int, records: Sequence[record.Record]
) -> None:
    """Write the records of `revision`, without records undo `revision`."""
    if not records:
        take(connection, -1)
        return
    rows.add(
        connection, models.Change,
        [
            {
                'revision': revision,
                'position': position,
                'kind': kind,
                'key': key,
                'data': data,
            }
            for position, (kind, key, data) in enumerate(records)
        ],
    )


def prune(connection: sa.Connection, last: int, count: int) -> int:
    """Delete the changes of the oldest `count` revisions up to `last`.

    :returns: the number of deleted revisions
    """
    first = connection.scalar(sa.select(sa.func.min(models.Change.revision)))
    if first is None or first > last:
        return 0
    until = min(last, first + count - 1)
    connection.execute(
        sa.delete(models.Change).where(models.Change.revision <= until)
    )
    gone: int = until - first + 1
    return gone


def between(
    connection: sa.Connection, since: int, until: int
) -> list[record.Record] | None:
    """Return the records of the revisions ``(since, until]``.

    :returns: the records, None if some of the revisions are missing, for
        example because they were pruned
    """
    if since == until:
        return []
    found = connection.execute(_select(since, until)).all()
    if len({row.revision for row in found}) != until - since:
        return None
    return _records(found)


def page(
    connection: sa.Connection, since: int, limit: int = 1000
) -> wire.Page:
    """Return about `limit` records after `since`, whole revisions only.

    A revision that is longer than a page on the wire is not sent: a replica
    that requests the revision needs a snapshot, which has shorter pages.

    :raises InvalidInput: if `since` or `limit` is out of range
    """
    if since < 0:
        raise exception.InvalidInput(
            f'since must not be negative: {since}', field='since'
        )
    if limit < 1:
        raise exception.InvalidInput(
            f'limit must be at least 1: {limit}', field='limit'
        )
    uuid, last = newest(connection)
    if since >= last:
        known = since if since == last else None
        return wire.changes_page(uuid, since, known, [], last)
    found = _whole_revisions(connection, since, last, limit)
    if not found or found[0].revision != since + 1:
        return wire.changes_page(uuid, since, None, [], last)
    return wire.changes_page(
        uuid, since, found[-1].revision, _records(found), last
    )


def _whole_revisions(
    connection: sa.Connection, since: int, last: int, limit: int
) -> Sequence[Any]:
    """Return a page's changes, none if the first revision is too long."""
    found = connection.execute(_select(since, last).limit(limit + 1)).all()
    if len(found) > limit and found[-1].revision == found[0].revision:
        # The whole revision is read, however many records it has.
        length = sa.func.length(sa.type_coerce(models.Change.data, sa.Text))
        size = connection.scalar(
            sa.select(sa.func.sum(length)).where(
                models.Change.revision == since + 1
            )
        )
        # The sum is None if all records of the revision are deletions.
        if (size or 0) > wire.MAX_BYTES:
            return []
        found = connection.execute(_select(since, since + 1)).all()
    elif len(found) > limit:
        found = _before(found, found[-1].revision)
    fitting, more = wire.fitting(found, lambda row: row.data)
    return _before(found, found[len(fitting)].revision) if more else found


def _before(found: Iterable[Any], revision: int) -> list[Any]:
    """Return the changes that are older than a revision."""
    return [row for row in found if row.revision < revision]


def _select(since: int, until: int) -> sa.Select[Any]:
    return (
        sa.select(models.Change)
        .where(models.Change.revision > since, models.Change.revision <= until)
        .order_by(models.Change.revision, models.Change.position)
    )


def _records(found: Iterable[Any]) -> list[record.Record]:
    return list(left_out.check((row.kind, row.key, row.data) for row in found))
