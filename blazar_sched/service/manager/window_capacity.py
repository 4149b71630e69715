# SPDX-License-Identifier: Apache-2.0
"""Capacity of hosts over a window: total, reserved, used and available.

A window is divided into parts. The indexes are only queried for the peaks of
each part, which does not take long; the figures are computed from the peaks
without the indexes.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools
import itertools
import operator

from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.instance import Stay
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window
from blazar_sched.placing import group_limit
from blazar_sched.placing.room import count_each
from blazar_sched.replica.catalog import Candidates
from blazar_sched.replica.group import Group
from blazar_sched.replica.indexes import Columns
from blazar_sched.replica.indexes import Indexes
from blazar_sched.replica.indexes import Peaks
from blazar_sched.replica.indexes import peaks_of
from blazar_sched.replica.indexes import SHARED
from blazar_sched.replica.indexes import WHOLE


@dataclasses.dataclass(frozen=True, slots=True)
class Resource:
    """The figures of one resource class for all hosts together in a part.

    `used` is the amount that instances that draw on no reservation have at the
    start of the part, and `reserved` is all other amounts taken at that time.
    `available` is the amount that may be reserved throughout the part.
    """

    resource_class: str
    total: int
    reserved: int
    used: int
    available: int


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """A part of a window.

    `hosts` counts the hosts on which nothing is taken throughout the part, as
    far as group limits allow.
    `instances` counts the instances that have room throughout the part; None
    if no instances were asked for.
    """

    start: int
    end: int
    hosts: int
    instances: int | None
    resources: list[Resource]


@dataclasses.dataclass(frozen=True, slots=True)
class PartPeaks:
    """The peaks on `hosts` at the start of a part, and throughout the part.

    `reserved` are the peaks of allocations alone throughout the part, None
    where reservations may overcommit hosts. `groups` are the groups of the
    group limits, each with what may still be reserved throughout the part.
    """

    window: Window
    hosts: Sequence[str]
    start: Peaks
    throughout: Peaks
    reserved: Columns | None
    groups: Sequence[tuple[Group, int]] = ()


def divide(window: Window, count: int) -> list[Window]:
    """Divide a bounded window into parts, as equal as whole seconds allow.

    :raises InvalidInput: if the window has fewer seconds than parts
    """
    if count > window.duration:
        raise exception.InvalidInput(
            f'parts must be at most one a second, {window.duration}',
            field='parts',
        )
    borders = [
        window.start + n * window.duration // count for n in range(count + 1)
    ]
    return [Window(*each) for each in itertools.pairwise(borders)]


def query(
    indexes: Indexes, candidates: Candidates, window: Window
) -> PartPeaks:
    """Query the indexes for the peaks of a part of a window."""
    hosts = indexes.main.row_keys(candidates.rows)
    reserved = indexes.reserved
    return PartPeaks(
        window, hosts,
        indexes.peaks(candidates.rows, Window(window.start, window.start + 1)),
        indexes.peaks(candidates.rows, window),
        None
        if reserved is None
        else peaks_of(reserved, reserved.rows(hosts), window),
        [(group, group.room(window)) for group in indexes.groups],
    )


class HostTable:
    """Hosts in a fixed order, with their capacity of each resource class."""

    def __init__(self, hosts: Iterable[Host]) -> None:
        self.hosts = list(hosts)
        self.positions = {h.uuid: n for n, h in enumerate(self.hosts)}
        has = {name for h in self.hosts for name in h.inventory}
        self.resource_classes = sorted(has)
        self.totals = {
            name: [h.capacity(name) for h in self.hosts]
            for name in has.union(inventory.RESOURCE_CLASSES)
        }

    @functools.cached_property
    def _limits(self) -> dict[str, list[int]]:
        """The amounts for reservations that may not overcommit hosts."""
        return {
            name: [h.capacity(name, overcommit=False) for h in self.hosts]
            for name in inventory.RESOURCE_CLASSES
        }

    def part(
        self, peaks: PartPeaks, used: Columns, slot: Mapping[str, int] | None
    ) -> Part:
        """Compute the figures of a part of a window.

        :param peaks: the peaks on these hosts, in this order
        :param used: the amounts of `InstanceUsage` at the start of the part
        :param slot: the amounts of one of the instances that are asked for
        """
        left = self._free(peaks.start)
        reserved = {
            name: _reserved(self.totals[name], used[name], left[name])
            for name in self.resource_classes
        }
        free = self._reservable(peaks)
        return Part(
            peaks.window.start, peaks.window.end,
            self._count(peaks, None, self._untaken(peaks.throughout)),
            None
            if slot is None
            else self._count(peaks, slot, count_each(free, slot)),
            [
                Resource(
                    name, total=sum(self.totals[name]),
                    reserved=sum(reserved[name]), used=sum(used[name]),
                    available=sum(free[name]),
                )
                for name in self.resource_classes
            ],
        )

    def _free(self, peaks: Peaks) -> dict[str, list[int]]:
        """Return the free amounts of each host, 0 for a host taken whole."""
        taken = {
            **peaks.main,
            **{
                name: self._in_order(hosts, columns[name])
                for name, (hosts, columns) in peaks.extra.items()
            },
        }
        free = {
            name: [
                total - peak if peak < total else 0
                for total, peak in zip(totals, taken[name], strict=True)
            ]
            for name, totals in self.totals.items()
        }
        whole = itertools.compress(range(len(self.hosts)), taken[WHOLE])
        for position in whole:
            for column in free.values():
                column[position] = 0
        return free

    def _reservable(self, peaks: PartPeaks) -> dict[str, list[int]]:
        """Return the amounts of each host that may be reserved throughout."""
        free = self._free(peaks.throughout)
        if peaks.reserved is not None:
            for name, limits in self._limits.items():
                free[name] = [
                    max(0, min(each, limit - peak))
                    for each, limit, peak in zip(
                        free[name], limits, peaks.reserved[name], strict=True
                    )
                ]
        return free

    def _in_order(
        self, hosts: Iterable[str], numbers: Iterable[int]
    ) -> list[int]:
        """Return the numbers of some hosts as a column, 0 for other hosts."""
        column = [0] * len(self.hosts)
        for uuid, number in zip(hosts, numbers, strict=True):
            if number and uuid in self.positions:
                column[self.positions[uuid]] = number
        return column

    @staticmethod
    def _count(
        peaks: PartPeaks, slot: Mapping[str, int] | None, counts: Iterable[int]
    ) -> int:
        """Return the sum of what each host has room for, within the limits.

        :param slot: as in `group_limit.within`
        """
        # There are no counts if no host has one of the classes.
        by_host = dict(zip(peaks.hosts, counts, strict=False))
        return sum(group_limit.within(peaks.groups, slot, by_host).values())

    def _untaken(self, peaks: Peaks) -> list[int]:
        """Return 1 for each host on which nothing is taken, 0 for others."""
        taken = [
            peaks.main[WHOLE],
            peaks.main[SHARED],
            *(
                self._in_order(hosts, columns[SHARED])
                for hosts, columns in peaks.extra.values()
            ),
        ]
        return [int(not any(each)) for each in zip(*taken, strict=True)]


class InstanceUsage:
    """The amounts that instances use on the hosts of a table, over time.

    An amount of a resource class that the host has no inventory of is left
    out: it comes from a sharing provider.

    :param occupying: the stays of the instances that count, present and later
    """

    def __init__(
        self, table: HostTable, occupying: Iterable[tuple[Stay, Instance]]
    ) -> None:
        self._table = table
        self._used = {name: [0] * len(table.hosts) for name in table.totals}
        # The starts and ends of stays, the next one last.
        self._steps = sorted(
            (
                (at, sign, stay.host, instance)
                for stay, instance in occupying
                if stay.host in table.positions
                for at, sign in ((stay.start, 1), (stay.end, -1))
                if at != FOREVER
            ),
            key=operator.itemgetter(0), reverse=True,
        )

    def at(self, time: int) -> Columns:
        """Return the amounts used at a time; the times must not decrease."""
        while self._steps and self._steps[-1][0] <= time:
            _, sign, host, instance = self._steps.pop()
            self._add(host, instance, sign)
        return self._used

    def _add(self, host: str, instance: Instance, sign: int) -> None:
        position = self._table.positions[host]
        has = self._table.hosts[position].inventory
        for name, amount in instance.amounts.items():
            if name in has:
                self._used[name][position] += sign * amount


def _reserved(
    totals: Sequence[int], used: Sequence[int], free: Sequence[int]
) -> list[int]:
    """Return the amount of each host that is neither used nor free.

    A host may have less capacity than the amount used on it.
    """
    return [
        total - use - left if use + left < total else 0
        for total, use, left in zip(totals, used, free, strict=True)
    ]
