# SPDX-License-Identifier: Apache-2.0
"""The rows of the timeline: their bars, tracks, and free shares.

A row stands for one host, or for a group of hosts.
"""

import array
import bisect
from collections import Counter
from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import heapq
import itertools

from blazar_sched.domain import inventory
from blazar_sched.domain.host import Host
from blazar_sched.domain.window import Window
from blazar_sched.placing.bar import Bar
from blazar_sched.placing.bar import Use
from blazar_sched.replica.indexes import Indexes
from blazar_sched.replica.indexes import peaks_of
from blazar_sched.replica.indexes import SHARED

# What rows stand for; any other grouping is `$` and the name of a property.
HOST = 'host'
ZONE = 'zone'
FLAVOR = 'flavor'
GROUPINGS = (HOST, ZONE, FLAVOR)

_WIDTH = len(inventory.RESOURCE_CLASSES) + 1
# The order of the values of a property: numbers by size, then texts.
Rank = tuple[int, int, str]
_MAX_DIGITS = 18


class Groups:
    """Hosts by row of the timeline, in the order of the rows.

    :param hosts: the hosts with the key of their row, '' for the last row
    """

    def __init__(self, hosts: Iterable[tuple[str, Host]]) -> None:
        members: dict[str, list[Host]] = defaultdict(list)
        for key, host in hosts:
            members[key].append(host)
        self._members = members
        self._in_service: dict[str, Members] = {}
        self.keys = sorted(members, key=rank)

    def hosts(self, key: str) -> list[Host]:
        """Return the hosts of a row."""
        return self._members[key]

    def in_service(self, key: str) -> 'Members':
        """Return the hosts of a row that leases may get; remembered."""
        if key not in self._in_service:
            self._in_service[key] = Members(
                [host for host in self._members[key] if host.takes_leases]
            )
        return self._in_service[key]


class Members:
    """The UUIDs of some hosts, and what they have together.

    `capacity` has the sum of each resource class.
    """

    def __init__(self, hosts: Sequence[Host]) -> None:
        self.uuids = [host.uuid for host in hosts]
        self.capacity: Counter[str] = Counter()
        for host in hosts:
            for name in host.inventory:
                self.capacity[name] += host.capacity(name)


def bars_by_group(
    groups: Groups, keys: Sequence[str], uses: Iterable[Use],
    resource_class: str | None = None,
) -> dict[str, list[Bar]]:
    """Return the bars of allocations in rows of many hosts, by key.

    :param resource_class: as in `bar.share`
    """
    hosts = {
        host.uuid: (key, host) for key in keys for host in groups.hosts(key)
    }
    bars: dict[str, list[Bar]] = defaultdict(list)
    for use in uses:
        if use.allocation.host in hosts:
            key, host = hosts[use.allocation.host]
            bars[key].append(use.bar(host, resource_class))
    return {
        key: merged(each, len(groups.hosts(key)))
        for key, each in bars.items()
    }


def after(keys: Sequence[str], marker: str | None, limit: int) -> list[str]:
    """Return the first keys after a marker, which need not be there.

    :param keys: the keys of rows, in the order of `rank`
    """
    first = 0
    if marker is not None:
        first = bisect.bisect_right(keys, rank(marker), key=rank)
    return list(keys[first:first + limit])


def rank(key: str) -> Rank:
    """Return the sort key of a row: numbers first, no value last."""
    if key.isascii() and key.isdigit() and len(key) <= _MAX_DIGITS:
        return 0, int(key), key
    return 1 if key else 2, 0, key


def merged(bars: Iterable[Bar], hosts: int) -> list[Bar]:
    """Return the bars of a group of hosts: one for each reservation.

    The share of a bar is the share of all hosts of the group.

    :param hosts: the number of hosts of the group
    """
    shares: dict[Bar, float] = defaultdict(float)
    for bar in bars:
        shares[dataclasses.replace(bar, share=0)] += bar.share
    return [
        dataclasses.replace(bar, share=min(1, total / hosts))
        for bar, total in shares.items()
    ]


def tracks(windows: Iterable[tuple[int, int]]) -> Iterator[int]:
    """Yield the track of each window: windows of one track do not overlap.

    The number of tracks is the least possible one: that of the windows that
    overlap at one time (interval partitioning, as in Kleinberg and Tardos,
    Algorithm Design, 4.1). O(n log n).

    :param windows: (start, end), in the order of their starts
    """
    busy: list[tuple[int, int]] = []
    idle: list[int] = []
    for start, end in windows:
        while busy and busy[0][0] <= start:
            heapq.heappush(idle, heapq.heappop(busy)[1])
        track = heapq.heappop(idle) if idle else len(busy)
        heapq.heappush(busy, (end, track))
        yield track


class FreeShares:
    """The free share and the free hosts of rows, over one part after another.

    :param rows: the hosts of each row that are in service
    :param resource_class: the only resource class whose share counts; if None,
        that with the least
    """

    def __init__(
        self, rows: Sequence[Members], resource_class: str | None = None
    ) -> None:
        self._rows = rows
        self._resource_class = resource_class
        self._uuids = [uuid for row in rows for uuid in row.uuids]
        self._groups = array.array('i', itertools.chain.from_iterable(
            itertools.repeat(number, len(row.uuids))
            for number, row in enumerate(rows)
        ))

    def __len__(self) -> int:
        """Return the number of hosts."""
        return len(self._uuids)

    def query(
        self, indexes: Indexes, parts: Iterable[Window]
    ) -> list[list[tuple[float, int]]]:
        """Return the free share and the free hosts of each row, by part.

        The free share is what is free of a resource class throughout the part
        on each host, added up. Free hosts have nothing on them throughout the
        part.
        """
        rows, groups = indexes.main.rows(self._uuids), self._groups
        if -1 in rows:
            # A host has gone since the rows were made.
            known = [n for n, row in enumerate(rows) if row >= 0]
            rows = array.array('i', (rows[n] for n in known))
            groups = array.array('i', (groups[n] for n in known))
        group_of = (
            dict(zip(indexes.main.row_keys(rows), groups, strict=True))
            if indexes.extra
            else {}
        )
        return [
            self._query(indexes, rows, groups, group_of, part)
            for part in parts
        ]

    def _query(
        self, indexes: Indexes, rows: 'array.array[int]',
        groups: 'array.array[int]', group_of: Mapping[str, int], part: Window,
    ) -> list[tuple[float, int]]:
        sums = indexes.main.free(
            rows, groups, len(self._rows), part.start, part.end
        )
        *by_class, hosts = (sums[n::_WIDTH] for n in range(_WIDTH))
        for uuid in _taken_of_extra(indexes, group_of, part):
            hosts[group_of[uuid]] -= 1
        only = self._resource_class
        free: dict[str, Sequence[int]] = {
            name: column
            for name, column in zip(
                inventory.RESOURCE_CLASSES, by_class, strict=True
            )
            if only in (None, name)
        }
        for name in indexes.extra:
            if only in (None, name):
                free[name] = _free_of_extra(
                    indexes, name, group_of, len(self._rows), part
                )
        return [
            (_least_share(free, row.capacity, number), untaken)
            for number, (row, untaken) in enumerate(
                zip(self._rows, hosts, strict=True)
            )
        ]


def _least_share(
    free: Mapping[str, Sequence[int]], capacity: Mapping[str, int], row: int
) -> float:
    """Return the free share of the resource class with the least.

    :param free: the free amounts of each row, by resource class
    """
    return min(
        # There is no capacity if no host is in service.
        (
            amounts[row] / capacity[name]
            for name, amounts in free.items() if capacity[name]
        ),
        default=0,
    )


def _free_of_extra(
    indexes: Indexes, name: str, group_of: Mapping[str, int], count: int,
    part: Window,
) -> Sequence[int]:
    """Return what is free of a class of an extra index, by row.

    :param count: the number of rows
    """
    index, main = indexes.extra[name], indexes.main
    # An extra index does not know which hosts are taken whole.
    nothing = (0,) * len(main.resource_classes)
    rows = main.rows([uuid for uuid in index.hosts if uuid in group_of])
    open_ = main.row_keys(array.array('i', itertools.compress(
        rows, main.fits(rows, part.start, part.end, nothing)
    )))
    sums = index.free(
        index.rows(open_),
        array.array('i', (group_of[uuid] for uuid in open_)), count,
        part.start, part.end,
    )
    return sums[::2]


def _taken_of_extra(
    indexes: Indexes, hosts: Mapping[str, int], part: Window
) -> set[str]:
    """Return the hosts of which only amounts of other classes are taken."""
    taken = {
        uuid
        for index in indexes.extra.values()
        for uuid, count in zip(
            index.hosts, peaks_of(index, None, part)[SHARED], strict=True
        )
        if count and uuid in hosts
    }
    if not taken:
        return taken
    rows = indexes.main.rows(taken)
    fits = indexes.main.fits(rows, part.start, part.end, None, whole=True)
    return set(itertools.compress(indexes.main.row_keys(rows), fits))
