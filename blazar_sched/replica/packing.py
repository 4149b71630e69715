# SPDX-License-Identifier: Apache-2.0
"""Entries of the index as columns, and allocations in a few bytes.

A full copy of the ledger is mostly allocations, and an allocation is just
what the index calls an entry. So a copy, in a file or on the wire, carries
them as ext.packed has them, in base64; everything else stays a record.
"""

import array
import base64
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import itertools
from typing import Any

from blazar_sched import ext
from blazar_sched.ext import packed
from blazar_sched.replica import record

# Allocations in one text, so that none holds the GIL for long.
CHUNK = 10_000

# As in the index's change ('add', *entry).
Entry = tuple[str, str, str, int, int, Sequence[int], bool]


def columns(
    capacity: Mapping[str, Sequence[int]], entries: Iterable[Entry]
) -> packed.Columns:
    """Return what TimelineIndex.load wants of hosts and their entries.

    :param capacity: by host
    :raises ValueError: if an entry is malformed or its host is unknown
    """
    ids, owners, hosts, starts, ends, amounts, whole = (
        list(zip(*entries, strict=True)) or [()] * 7
    )
    row_of = {host: row for row, host in enumerate(capacity)}
    try:
        return (
            list(capacity),
            _flat(capacity.values()),
            list(ids),
            list(owners),
            array.array('q', map(row_of.__getitem__, hosts)),
            array.array('q', starts),
            array.array('q', ends),
            _flat(amounts),
            bytes(map(bool, whole)),
        )
    except KeyError as e:
        raise ext.UnknownHost(e.args[0]) from e
    except (TypeError, OverflowError) as e:
        raise ValueError(f'not an entry: {e}') from e


def compact(
    records: Iterable[record.Record],
) -> Iterator[record.Record | str]:
    """Yield a full copy's records, with its allocations as texts instead."""
    allocations: list[dict[str, Any]] = []
    for each in records:
        kind, _, data = each
        if kind != record.ALLOCATION or data is None:
            yield each
            continue
        allocations.append(data)
        if len(allocations) == CHUNK:
            yield _pack(allocations)
            allocations = []
    if allocations:
        yield _pack(allocations)


def unpack(text: str) -> Iterator[record.Record]:
    """Yield the allocations' records; an amount of 0 is left out of them.

    :raises ValueError: if the text is damaged
    """
    classes, (hosts, _, ids, owners, rows, starts, ends, amounts, whole) = (
        packed.unpack(base64.b64decode(text, validate=True))
    )
    width = len(classes)
    # Many have equal amounts, and share them.
    known: dict[tuple[int, ...], dict[str, int]] = {}
    for n, id_ in enumerate(ids):
        own = tuple(amounts[n * width:(n + 1) * width])
        if own not in known:
            known[own] = {
                c: amount for c, amount in zip(classes, own, strict=True)
                if amount
            }
        yield record.ALLOCATION, id_, {
            'id': id_,
            'reservation_id': owners[n],
            'host': hosts[rows[n]],
            'start': starts[n],
            'end': ends[n],
            'amounts': known[own],
            'whole': bool(whole[n]),
        }


def _pack(allocations: Sequence[dict[str, Any]]) -> str:
    classes = sorted({c for each in allocations for c in each['amounts']})
    # What a host can hold is not told here.
    nothing = [0] * len(classes)
    capacity = {each['host']: nothing for each in allocations}
    entries = (
        (
            each['id'], each['reservation_id'], each['host'], each['start'],
            each['end'], [each['amounts'].get(c, 0) for c in classes],
            each['whole'],
        )
        for each in allocations
    )
    return base64.b64encode(
        packed.pack(classes, columns(capacity, entries))
    ).decode()


def _flat(amounts: Iterable[Sequence[int]]) -> 'array.array[int]':
    return array.array('q', itertools.chain.from_iterable(amounts))
