# SPDX-License-Identifier: Apache-2.0
"""The ledger's revision, and the changes that led up to it."""

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.replica import record
from blazar_sched.replica import wire
from blazar_sched.service.ledger import models


def newest(connection: sa.Connection) -> tuple[str, int]:
    """Return the ledger's uuid and its newest revision.

    :raises Unavailable: if the database holds no ledger
    """
    row = connection.execute(sa.select(models.Ledger)).one_or_none()
    if row is None:
        raise exception.Unavailable('the database holds no ledger')
    return row.uuid, row.revision


def take(connection: sa.Connection, step: int) -> int:
    """Take the ledger's row till the transaction ends.

    Must be its first statement: what is read afterwards is then the newest.

    :param step: what to add to the revision, 0 or 1
    :returns: the revision that this transaction may write
    """
    _step(connection, step)
    return newest(connection)[1]


def write(
    connection: sa.Connection,
    revision: int,
    records: Sequence[record.Record],
) -> None:
    """Write `revision`'s records; without any there is no such revision."""
    if not records:
        _step(connection, -1)
        return
    connection.execute(
        sa.insert(models.Change),
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


def _step(connection: sa.Connection, step: int) -> None:
    connection.execute(
        sa.update(models.Ledger).values(
            revision=models.Ledger.revision + step
        )
    )


def between(
    connection: sa.Connection, since: int, until: int
) -> list[record.Record] | None:
    """Return the records of the revisions ``(since, until]``.

    None if some of those revisions are not there (any more).
    """
    found = connection.execute(_select(since, until)).all()
    if len({row.revision for row in found}) != until - since:
        return None
    return _records(found)


def page(connection: sa.Connection, since: int, limit: int) -> wire.Page:
    """Return about `limit` records after `since`, whole revisions only.

    :raises InvalidInput: if `since` or `limit` is out of range
    """
    if since < 0:
        raise exception.InvalidInput(f'since is {since}', field='since')
    if limit < 1:
        raise exception.InvalidInput(f'limit is {limit}', field='limit')
    uuid, last = newest(connection)
    if since >= last:
        known = since if since == last else None
        return wire.changes_page(uuid, since, known, [], last)
    found = connection.execute(_select(since, last).limit(limit + 1)).all()
    if len(found) > limit:
        # The last revision may be cut short: leave it out, unless it is
        # the only one.
        whole = max(found[-1].revision - 1, found[0].revision)
        found = connection.execute(_select(since, whole)).all()
    if not found or found[0].revision != since + 1:
        return wire.changes_page(uuid, since, None, [], last)
    return wire.changes_page(
        uuid, since, found[-1].revision, _records(found), last
    )


def _select(since: int, until: int) -> sa.Select[Any]:
    return (
        sa.select(models.Change)
        .where(
            models.Change.revision > since, models.Change.revision <= until
        )
        .order_by(models.Change.revision, models.Change.position)
    )


def _records(found: Iterable[Any]) -> list[record.Record]:
    return [(row.kind, row.key, row.data) for row in found]
