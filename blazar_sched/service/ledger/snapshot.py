# SPDX-License-Identifier: Apache-2.0
"""The ledger's whole state, as records: in pages, or as a new replica."""

from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.replica import wire
from blazar_sched.service.ledger import allocation
from blazar_sched.service.ledger import change
from blazar_sched.service.ledger import host
from blazar_sched.service.ledger import instance
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import reservation


def _reservation(row: Any) -> record.Reservation:
    return reservation.to_record(
        reservation.from_row(row),
        row.project_id,
        row.lease_start,
        row.lease_end,
    )


# By kind, in the order of the pages: its rows, its key, how a row is read.
_SOURCES: dict[str, tuple[Any, Any, Callable[[Any], record.Noun]]] = {
    record.HOST: (sa.select(models.Host), models.Host.uuid, host.from_row),
    record.RESERVATION: (
        sa.select(
            models.Reservation,
            models.Lease.project_id,
            models.Lease.start.label('lease_start'),
            models.Lease.end.label('lease_end'),
        ).join(models.Lease),
        models.Reservation.id,
        _reservation,
    ),
    record.ALLOCATION: (
        sa.select(models.Allocation),
        models.Allocation.id,
        allocation.from_row,
    ),
    record.INSTANCE: (
        sa.select(models.Instance),
        models.Instance.uuid,
        instance.from_row,
    ),
}


def page(
    connection: sa.Connection, after: str | None, limit: int
) -> wire.Page:
    """Return the next `limit` records after the page that said `after`.

    :raises InvalidInput: if no page said so, or `limit` is below 1
    """
    if limit < 1:
        raise exception.InvalidInput(f'limit is {limit}', field='limit')
    kind, _, key = (after or f'{record.HOST}/').partition('/')
    if kind not in _SOURCES:
        raise exception.InvalidInput(
            f'no page is called {after}', field='after'
        )
    # Read first: records may be newer than the revision, never older.
    uuid, revision = change.newest(connection)
    kinds = list(_SOURCES)
    records: list[record.Record] = []
    for each in kinds[kinds.index(kind) :]:
        start = key if each == kind else ''
        records += _records(connection, each, start, limit - len(records))
        if len(records) == limit:
            last_kind, last_key, _ = records[-1]
            return wire.snapshot_page(
                uuid, revision, records, f'{last_kind}/{last_key}'
            )
    return wire.snapshot_page(uuid, revision, records, None)


def load(connection: sa.Connection) -> state.Replica:
    """Return a new replica of what `connection`'s transaction sees."""
    replica = state.Replica(accounting.LedgerAccounting)
    _, revision = change.newest(connection)
    replica.load(
        revision,
        (r for kind in _SOURCES for r in _records(connection, kind)),
    )
    return replica


def _records(
    connection: sa.Connection,
    kind: str,
    after: str = '',
    limit: int | None = None,
) -> Iterator[record.Record]:
    query, key, read = _SOURCES[kind]
    query = query.where(key > after).order_by(key).limit(limit)
    for row in connection.execute(query):
        yield record.encode(read(row))
