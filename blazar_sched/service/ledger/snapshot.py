# SPDX-License-Identifier: Apache-2.0
"""The whole state of the ledger, as pages of a stream; see replica.packing.

Records come first, then allocations. Allocations go from SQL rows directly
into columns without becoming domain objects, except the allocations that the
columns cannot hold. A replica in this process is loaded the same way.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import functools
import json
from typing import Any
from typing import cast

from oslo_log import log
import sqlalchemy as sa

from blazar_sched import ext
from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain.allocation import Allocation
from blazar_sched.ext import packed
from blazar_sched.replica import accounting
from blazar_sched.replica import left_out
from blazar_sched.replica import packing
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.replica import wire
from blazar_sched.service.ledger import access
from blazar_sched.service.ledger import change
from blazar_sched.service.ledger import host
from blazar_sched.service.ledger import instance
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import reservation

LOG = log.getLogger(__name__)

# The number of allocations that take as much space as a record.
PER_RECORD = 20
# The default number of records of a page.
LIMIT = 1000


def _reservation(row: Any) -> record.Reservation:
    return reservation.to_record(
        reservation.from_row(row), row.project_id, row.lease_start,
        row.lease_end,
    )


# For each kind, in page order: the query, its key, and the row's reader.
_RECORDS: dict[str, tuple[Any, Any, Callable[[Any], record.Entity]]] = {
    record.HOST: (sa.select(models.Host), models.Host.uuid, host.from_row),
    record.RESERVATION: (
        sa.select(
            models.Reservation, models.Lease.project_id,
            models.Lease.start.label('lease_start'),
            models.Lease.end.label('lease_end'),
        )
        .join(models.Lease)
        .where(reservation.IS_OPEN),
        models.Reservation.id,
        _reservation,
    ),
    record.INSTANCE: (
        sa.select(models.Instance),
        models.Instance.uuid,
        instance.from_row,
    ),
}


# The kinds in page order, allocations last.
_KINDS = [*_RECORDS, record.ALLOCATION]

_ALLOCATIONS = sa.select(
    models.Allocation.id, models.Allocation.reservation_id,
    models.Allocation.host, models.Allocation.start, models.Allocation.end,
    sa.type_coerce(models.Allocation.amounts, models.Text).label('amounts'),
    models.Allocation.whole,
).order_by(models.Allocation.id)


def page(
    connection: sa.Connection, after: str | None = None, limit: int = 1000
) -> wire.Page:
    """Return the page that follows the page with the marker `after`.

    The page has `limit` records, or PER_RECORD times as many allocations, of
    which at most `limit` are sent as records. The page has fewer records if
    they are long.

    :raises InvalidInput: if `after` is not the marker of a page, or if
        `limit` is below 1
    """
    if limit < 1:
        raise exception.InvalidInput(
            f'limit must be at least 1: {limit}', field='limit'
        )
    kind, _, key = (after or f'{_KINDS[0]}/').partition('/')
    if kind not in _KINDS:
        raise exception.InvalidInput(
            f'{after!r} is not the marker of a page', field='after'
        )
    # The revision is read first, so that the rows read after it may be newer
    # than the revision, but never older.
    uuid, revision = change.newest(connection)
    if kind == record.ALLOCATION:
        rows = _allocation_rows(connection, key, limit)
        columns, others, last = _allocations(rows, limit)
        return wire.snapshot_page(
            uuid, revision, after,
            [packing.pack(columns), *map(record.encode, others)],
            last and f'{record.ALLOCATION}/{last}',
        )
    records, more = wire.fitting(_some(connection, kind, key, limit))
    place = f'{record.ALLOCATION}/'
    if more or len(records) == limit:
        last_kind, last_key, _ = records[-1]
        place = f'{last_kind}/{last_key}'
    return wire.snapshot_page(uuid, revision, after, records, place)


def _some(
    connection: sa.Connection, kind: str, after: str, limit: int
) -> Iterator[record.Record]:
    """Yield `limit` records of a kind and later kinds, not allocations."""
    for each in _KINDS[_KINDS.index(kind) : -1]:
        rows = _rows(connection, each, after, limit)
        yield from (_record(each, row) for row in rows)
        limit -= len(rows)
        if not limit:
            return
        after = ''


def _new() -> state.Replica:
    return state.Replica(accounting.LedgerAccounting)


def load(
    source: access.Reads, new: Callable[[], state.Replica] = _new
) -> state.Replica:
    """Return a new replica, which may have parts of later revisions.

    Each query reads a bounded number of rows, and no transaction is open while
    the rows become records: a server closes a connection that is idle in a
    transaction. The changes after the revision of the replica bring all parts
    to one revision. The replica leaves out records that it cannot use.

    :param new: returns an empty replica, by LedgerAccounting
    """
    try:
        return _load(source, new(), leave_out=False)
    except ext.TimelineError as e:
        LOG.error('The replica leaves out invalid records: %s', e)
        return _load(source, new(), leave_out=True)


def _load(
    source: access.Reads, replica: state.Replica, leave_out: bool
) -> state.Replica:
    _, revision = access.read(change.newest)(source)
    replica.load(
        revision, _all_records(source), _all_allocations(source), leave_out
    )
    return replica


def _all_records(source: access.Reads) -> Iterator[record.Record]:
    rows_of = access.read(_rows)
    for kind, (_, key, _) in _RECORDS.items():
        after = ''
        while rows := rows_of(source, kind, after, LIMIT):
            yield from (_record(kind, row) for row in rows)
            after = getattr(rows[-1], key.key)


def _rows(
    connection: sa.Connection, kind: str, after: str, limit: int
) -> Sequence[Any]:
    query, key, _ = _RECORDS[kind]
    return connection.execute(
        query.where(key > after).order_by(key).limit(limit)
    ).all()


def _record(kind: str, row: Any) -> record.Record:
    _, key, read = _RECORDS[kind]
    try:
        return record.encode(read(row))
    except (KeyError, TypeError, ValueError) as e:
        # The row is of another version, or was changed by hand.
        known = {'host': getattr(row, 'host', None)}
        return left_out.marked((kind, getattr(row, key.key), known), e)


def _all_allocations(source: access.Reads) -> Iterator[packing.Allocations]:
    rows_of = access.read(_allocation_rows)
    last: str | None = ''
    while last is not None:
        columns, others, last = _allocations(
            rows_of(source, last, LIMIT), LIMIT
        )
        yield columns
        yield from others


def _allocation_rows(
    connection: sa.Connection, after: str, limit: int
) -> Sequence[Any]:
    return connection.execute(
        _ALLOCATIONS.where(models.Allocation.id > after)
        .limit(limit * PER_RECORD)
    ).all()


def _allocations(
    rows: Sequence[Any], limit: int
) -> tuple[packed.Columns, list[Allocation], str | None]:
    """Return the allocations of a page of rows.

    :returns: the columns, the allocations with amounts that the columns
        cannot hold, and the id of the last allocation, None if no more follow
    """
    more = len(rows) == limit * PER_RECORD
    odd = set(filter(_is_odd, {row.amounts for row in rows}))
    others = [row for row in rows if row.amounts in odd] if odd else []
    if len(others) > limit:
        # The page ends before the first allocation that exceeds the limit.
        more = True
        rows = rows[: rows.index(others[limit])]
        del others[limit:]
    plain = [row for row in rows if row.amounts not in odd] if odd else rows
    ids, owners, hosts, starts, ends, amounts, whole = packing.transposed(
        cast('list[packing.Entry]', plain)
    )
    columns = packing.columns(
        ids, owners, hosts, starts, ends, map(_amounts, amounts), whole
    )
    return columns, list(map(_noun, others)), rows[-1].id if more else None


def _is_odd(text: str) -> bool:
    """Return whether the columns cannot hold the amounts in `text`."""
    amounts = json.loads(text)
    return bool(inventory.others(amounts)) or not all(
        0 <= amount <= ext.AMOUNT_LIMIT for amount in amounts.values()
    )


def _noun(row: Any) -> Allocation:
    return Allocation(**{**row._mapping, 'amounts': json.loads(row.amounts)})


@functools.lru_cache(1024)
def _amounts(text: str) -> tuple[int, ...]:
    """Parse amounts, cached because many allocations have equal amounts."""
    return packing.amounts_of(json.loads(text))
