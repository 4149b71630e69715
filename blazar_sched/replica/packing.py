# SPDX-License-Identifier: Apache-2.0
"""Allocations as columns: packed into a few bytes, as the index loads them.

A full copy of the ledger is mostly allocations, and an allocation is just
what the index calls an entry. A copy, in a file or on the wire, is therefore a
stream of *items*: first records, then texts that hold some thousand
allocations each (the output of ext.packed, in base64). On the way no
allocation is an object of its own, except for allocations of resource classes
other than RESOURCE_CLASSES, which no column holds: these allocations are
records, wherever they stand in the stream.
"""

import array
import base64
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import itertools
from typing import Any

from blazar_sched.domain import inventory
from blazar_sched.domain.allocation import Allocation
from blazar_sched.ext import packed
from blazar_sched.replica import record

# Allocations in one text, so that no text holds the GIL for long.
CHUNK = 10_000

WIDTH = len(inventory.RESOURCE_CLASSES)

# An entry as in the change ('add', *entry) of the index.
Entry = tuple[str, str, str, int, int, Sequence[int], bool]
# Columns as in packed.Columns without hosts and capacities, which the index
# loads.
Part = tuple[Any, ...]
Item = record.Record | str
# Many allocations without an amount of another class, or one allocation with
# such an amount.
Allocations = packed.Columns | Allocation


def amounts_of(amounts: Mapping[str, int], sign: int = 1) -> tuple[int, ...]:
    """Return the amounts by RESOURCE_CLASSES."""
    return tuple(sign * amounts.get(c, 0) for c in inventory.RESOURCE_CLASSES)


def transposed(entries: Iterable[Entry]) -> Sequence[Sequence[Any]]:
    """Return entries as the arguments of `columns`."""
    return list(zip(*entries, strict=True)) or [()] * 7


def columns(
    ids: Sequence[str], owners: Sequence[str], hosts: Sequence[str],
    starts: Iterable[int], ends: Iterable[int],
    amounts: Iterable[Sequence[int]], whole: Iterable[bool],
) -> packed.Columns:
    """Return the columns of some entries, with the hosts of the entries.

    The capacity of each host is given as 0, because it is not known here.

    :raises ValueError: if an entry is malformed
    """
    try:
        row_of = {host: row for row, host in enumerate(dict.fromkeys(hosts))}
        return (
            list(row_of),
            array.array('q', bytes(8 * WIDTH * len(row_of))),
            list(ids),
            list(owners),
            array.array('q', map(row_of.__getitem__, hosts)),
            array.array('q', starts),
            array.array('q', ends),
            array.array('q', itertools.chain.from_iterable(amounts)),
            bytes(map(bool, whole)),
        )
    except (TypeError, OverflowError) as e:
        raise ValueError(f'not an entry: {e}') from e


def placed(
    columns: packed.Columns, row_of: Mapping[str, int]
) -> tuple[Part, list[str]]:
    """Return the part of columns on known hosts, and the ids left out.

    :param row_of: the rows of the known hosts in the index
    """
    hosts, _, ids, owners, rows, starts, ends, amounts, whole = columns
    there = [row_of.get(host, -1) for host in hosts]
    rows = array.array('q', map(there.__getitem__, rows))
    part = ids, owners, rows, starts, ends, amounts, whole
    if -1 not in there:
        return part, []
    kept = [row >= 0 for row in rows]
    wide = itertools.chain.from_iterable(
        itertools.repeat(each, WIDTH) for each in kept
    )
    left_out = [id_ for id_, known in zip(ids, kept, strict=True) if not known]
    return (
        *(
            list(itertools.compress(column, kept))
            for column in (ids, owners, rows, starts, ends)
        ),
        list(itertools.compress(amounts, wide)),
        bytes(itertools.compress(whole, kept)),
    ), left_out


def allocations(columns: packed.Columns) -> Iterator[Allocation]:
    """Yield the allocations in some columns."""
    hosts, _, ids, owners, rows, starts, ends, amounts, whole = columns
    for n, id_ in enumerate(ids):
        own = zip(
            inventory.RESOURCE_CLASSES, amounts[n * WIDTH : (n + 1) * WIDTH],
            strict=True,
        )
        yield Allocation(
            id_, owners[n], hosts[rows[n]], starts[n], ends[n],
            {name: amount for name, amount in own if amount}, bool(whole[n]),
        )


def pack(columns: packed.Columns) -> str:
    """Return the allocations in some columns as a text.

    :raises ValueError: if the columns cannot be allocations
    """
    return base64.b64encode(
        packed.pack(inventory.RESOURCE_CLASSES, columns)
    ).decode()


def unpack(text: str) -> packed.Columns:
    """Return the columns that `pack` has packed into a text.

    :raises ValueError: if the text is damaged
    """
    classes, columns = packed.unpack(base64.b64decode(text, validate=True))
    if classes != inventory.RESOURCE_CLASSES:
        raise ValueError(f'allocations of {classes}')
    return columns


def texts(entries: Iterable[Entry]) -> Iterator[str]:
    """Yield texts of packed allocations, some thousand in each text."""
    entries = iter(entries)
    while chunk := list(itertools.islice(entries, CHUNK)):
        yield pack(columns(*transposed(chunk)))


def split(
    items: Iterable[Item]
) -> tuple[Iterator[record.Record], Iterator[Allocations]]:
    """Return the records and the allocations of a stream of items.

    The allocations may be read once all records have been read. Before the
    first text, the record of an allocation is returned among the records.
    """
    items = iter(items)
    first_text: list[str] = []

    def records() -> Iterator[record.Record]:
        for item in items:
            if isinstance(item, str):
                first_text.append(item)
                return
            yield item

    def allocations() -> Iterator[Allocations]:
        for item in itertools.chain(first_text, items):
            yield unpack(item) if isinstance(item, str) else _noun(item)

    return records(), allocations()


def _noun(item: record.Record) -> Allocation:
    kind, key, data = item
    entity = record.decode(kind, data) if data is not None else None
    if not isinstance(entity, Allocation) or entity.id != key:
        raise ValueError(f'the {kind} {key!r} comes after the allocations')
    return entity
