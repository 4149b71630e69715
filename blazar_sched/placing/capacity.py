# SPDX-License-Identifier: Apache-2.0
"""Capacity: how much there is, is reserved, is used and is left.

Over a window, in parts. The indexes are only asked for each part's peaks,
which does not take long; what follows of those is worked out without them.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools
import operator

from blazar_sched import ext
from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain.catalog import Candidates
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window
from blazar_sched.placing import host_selection

# By resource class, a number for each host.
Columns = Mapping[str, Sequence[int]]


@dataclasses.dataclass(frozen=True, slots=True)
class Resource:
    """What all hosts together have of a resource class in a part.

    `used` is what servers that draw on no reservation have at its start,
    `reserved` what else is taken then; `available` may be reserved throughout.
    """

    resource_class: str
    total: int
    reserved: int
    used: int
    available: int


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """A part of a window.

    `hosts` counts those of which nothing is taken throughout, `instances` how
    many have room throughout, None if none were asked for.
    """

    start: int
    end: int
    hosts: int
    instances: int | None
    resources: list[Resource]


@dataclasses.dataclass(frozen=True, slots=True)
class Peaks:
    """What the indexes say of a window: see `placing.peaks_of`.

    Those of `extra` are of hosts of their own; `reserved` is None where
    reservations may overcommit hosts.
    """

    main: Columns
    extra: Mapping[str, tuple[Sequence[str], Columns]]
    reserved: Columns | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """The peaks on `hosts` at a part's start, and throughout it."""

    window: Window
    hosts: Sequence[str]
    start: Peaks
    throughout: Peaks


def parts(window: Window, count: int) -> list[Window]:
    """Cut a window that has an end in parts, as equal as seconds allow.

    :raises InvalidInput: if they are more than its seconds
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


def look(
    index: ext.TimelineIndex,
    extra: host_selection.Extra,
    candidates: Candidates,
    window: Window,
    reserved: ext.TimelineIndex | None = None,
) -> Look:
    """Ask the indexes about a part."""
    hosts = index.row_keys(candidates.rows)

    def peaks(asked: Window) -> Peaks:
        return Peaks(
            host_selection.peaks_of(index, candidates.rows, asked),
            {
                name: (each.hosts, host_selection.peaks_of(each, None, asked))
                for name, each in extra.items()
            },
            None
            if reserved is None
            else host_selection.peaks_of(
                reserved, reserved.rows(hosts), asked
            ),
        )

    return Look(
        window,
        hosts,
        peaks(Window(window.start, window.start + 1)),
        peaks(window),
    )


class Site:
    """Hosts side by side, with what there is of each resource class."""

    def __init__(self, hosts: Iterable[Host]) -> None:
        self.hosts = list(hosts)
        self.positions = {h.uuid: n for n, h in enumerate(self.hosts)}
        has = {name for h in self.hosts for name in h.inventory}
        self.resource_classes = sorted(has)
        self.totals = {
            name: [h.capacity(name) for h in self.hosts]
            for name in has.union(inventory.RESOURCE_CLASSES)
        }
        # Of what reservations may take where they may not overcommit hosts.
        self._limits = {
            name: [h.capacity(name, overcommit=False) for h in self.hosts]
            for name in inventory.RESOURCE_CLASSES
        }

    def part(
        self, look: Look, used: Columns, slot: Mapping[str, int] | None
    ) -> Part:
        """Work out a part.

        :param look: at these hosts, in this order
        :param used: what `Use` has of its start
        :param slot: what one of the instances takes that are asked for
        """
        left = self._free(look.start)
        free = self._reservable(look.throughout)
        return Part(
            look.window.start,
            look.window.end,
            self._count_untaken(look.throughout),
            None
            if slot is None
            else sum(host_selection.count_each(free, slot)),
            [
                Resource(
                    name,
                    total=sum(self.totals[name]),
                    reserved=_count_reserved(
                        self.totals[name], used[name], left[name]
                    ),
                    used=sum(used[name]),
                    available=sum(free[name]),
                )
                for name in self.resource_classes
            ],
        )

    def _free(self, peaks: Peaks) -> dict[str, list[int]]:
        """Return what is left on each host, nothing of one taken whole."""
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
        whole = itertools.compress(
            range(len(self.hosts)), taken[host_selection.WHOLE]
        )
        for position in whole:
            for column in free.values():
                column[position] = 0
        return free

    def _reservable(self, peaks: Peaks) -> dict[str, list[int]]:
        """Return what of that reservations may take on each host."""
        free = self._free(peaks)
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
        """Return numbers of some hosts as a column, 0 for the others."""
        column = [0] * len(self.hosts)
        for uuid, number in zip(hosts, numbers, strict=True):
            if number and uuid in self.positions:
                column[self.positions[uuid]] = number
        return column

    def _count_untaken(self, peaks: Peaks) -> int:
        """Count the hosts of which nothing is taken of any class."""
        taken = [
            peaks.main[host_selection.WHOLE],
            peaks.main[host_selection.SHARED],
            *(
                self._in_order(hosts, columns[host_selection.SHARED])
                for hosts, columns in peaks.extra.values()
            ),
        ]
        return sum(not any(each) for each in zip(*taken, strict=True))


class Use:
    """What instances take of a site's hosts, as time goes on.

    What a host has none of they have from a provider below the host's own.

    :param occupying: the instances that count, each until when
    """

    def __init__(
        self, site: Site, occupying: Iterable[tuple[Instance, int]]
    ) -> None:
        self._site = site
        self._used = {name: [0] * len(site.hosts) for name in site.totals}
        here = [each for each in occupying if each[0].host in site.positions]
        for instance, _ in here:
            self._add(instance, 1)
        # The next one last.
        self._ends = sorted(
            (each for each in here if each[1] != FOREVER),
            key=operator.itemgetter(1),
            reverse=True,
        )

    def at(self, time: int) -> Columns:
        """Return what is used at a time: the same one, or a later one."""
        while self._ends and self._ends[-1][1] <= time:
            self._add(self._ends.pop()[0], -1)
        return self._used

    def _add(self, instance: Instance, sign: int) -> None:
        position = self._site.positions[instance.host]
        has = self._site.hosts[position].inventory
        for name, amount in instance.amounts.items():
            if name in has:
                self._used[name][position] += sign * amount


def _count_reserved(
    totals: Sequence[int], used: Sequence[int], free: Sequence[int]
) -> int:
    """Return what is neither used nor free, host by host.

    A host may have less than is used of it.
    """
    return sum(
        total - use - left if use + left < total else 0
        for total, use, left in zip(totals, used, free, strict=True)
    )
