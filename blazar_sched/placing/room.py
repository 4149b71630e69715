# SPDX-License-Identifier: Apache-2.0
"""The room that the timeline indexes have over a window.

The index of RESOURCE_CLASSES gives the order in which hosts are preferred. The
indexes of the other resource classes, and the index of the amounts that
reservations must not overcommit, only tell whether a host has room: see
replica.indexes.
"""

import array
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools

from blazar_sched import ext
from blazar_sched.domain import inventory
from blazar_sched.domain.window import Window
from blazar_sched.replica.catalog import Candidates
from blazar_sched.replica.catalog import rows
from blazar_sched.replica.indexes import Indexes
from blazar_sched.replica.indexes import peaks_of


@dataclasses.dataclass(frozen=True, slots=True)
class Room:
    """The room for one reservation over a window.

    Hosts are named by uuid, or by their rows in the main index.

    :param cleaning_time: seconds, on a host that has no cleaning time of its
        own, between the reservation and all other use of the host
    :param ignore: the owner whose entries are ignored
    :param first: the hosts to take first
    """

    indexes: Indexes
    window: Window
    cleaning_time: int = 0
    ignore: str | None = None
    first: Collection[str] = ()

    def parts(
        self, candidates: Candidates, slot: Mapping[str, int] | None
    ) -> 'list[tuple[Room, Candidates]]':
        """Return candidates by what they have that nobody asks for.

        The candidates with the fewest devices beyond those of the slot come
        first, and among these the shortest cleaning time, and the hosts in
        `first`.

        :param slot: what the reservation asks for; None for whole hosts
        :returns: parts of the candidates with one cleaning time, with the room
            over the window widened by the time
        """
        main = self.indexes.main
        return [
            (
                Room(
                    self.indexes, self.window.widened(seconds),
                    ignore=self.ignore,
                ),
                each,
            )
            for seconds, part in candidates.parts(
                main, self.cleaning_time,
                frozenset(inventory.others(slot or {})),
            )
            for each in part.with_first(main, self.first)
        ]

    def rows(self, hosts: Iterable[str]) -> 'array.array[int]':
        """Return the rows of the hosts that the main index knows."""
        return rows(self.indexes.main, hosts)

    def untaken(self, hosts: Iterable[str]) -> list[str]:
        """Return the hosts on which nothing is reserved or used."""
        found = self._fitting(self.indexes.main, hosts, None)
        taken = self._taken_of_extra(found)
        return [host for host in found if host not in taken]

    def pick_untaken(self, rows: 'array.array[int]', count: int) -> list[str]:
        """Return up to `count` hosts on which nothing is reserved or used.

        The hosts with the shortest free run around the window come first.
        """
        main = self.indexes.main
        picked = self._pick(rows, count, None)
        # Few entries take an amount of another resource class alone, so the
        # other hosts are not checked at first.
        if self._taken_of_extra(picked):
            taken = set(main.rows(self._taken_of_extra(main.row_keys(rows))))
            rows = array.array('i', (r for r in rows if r not in taken))
            picked = self._pick(rows, count, None)
        return picked

    def fullest(
        self, rows: 'array.array[int]', count: int, slot: Mapping[str, int],
        slots: int = 1,
    ) -> list[str]:
        """Return up to `count` hosts with room, the least room first.

        At equal room, the host with the shortest free run around the window
        comes first. Room of the other resource classes, and room without
        overcommitment, is required but does not affect the order.

        :param slots: number of slots that a host must have such room for
        """
        amounts = _amounts(slot, 1)
        if max(amounts) > ext.AMOUNT_LIMIT:
            return []
        rows = self._not_overcommitted(rows, slot, slots)
        asked = count
        while True:
            picked = self._pick(rows, asked, amounts)
            fitting = self._fitting_extra(picked, slot, slots)
            if len(fitting) >= count or len(picked) < asked:
                return fitting[:count]
            asked *= 2

    def fitting(
        self, rows: 'array.array[int]', slot: Mapping[str, int], slots: int
    ) -> 'array.array[int]':
        """Return the rows of the hosts with room for a number of slots.

        Only RESOURCE_CLASSES are considered, not the other classes.
        """
        fits = self._fits(self.indexes.main, rows, _amounts(slot, slots))
        return array.array('i', itertools.compress(rows, fits))

    def slots(
        self, rows: 'array.array[int]', count: int, slot: Mapping[str, int]
    ) -> dict[str, int]:
        """Return how many slots fit on each of the `fullest` hosts."""
        hosts = self.fullest(rows, count, slot)
        free = self._free(self.indexes.main, hosts)
        for name in inventory.others(slot):
            if name in self.indexes.extra:
                free |= self._free(self.indexes.extra[name], hosts)
        if self.indexes.reserved is not None:
            limited = self._free(
                self.indexes.reserved, hosts, overcommit=False
            )
            for name, less in limited.items():
                free[name] = list(map(min, free[name], less))
        return dict(zip(hosts, count_each(free, slot), strict=True))

    def _pick(
        self, rows: 'array.array[int]', count: int,
        amounts: Sequence[int] | None,
    ) -> list[str]:
        """Return hosts with room for amounts, None for the whole host."""
        whole = amounts is None
        return self.indexes.main.pick(
            min(count, len(rows)), self.window.start, self.window.end, amounts,
            rows=rows, order='tightest' if whole else 'fullest', whole=whole,
            ignore=self.ignore,
        )

    def _fits(
        self, index: ext.TimelineIndex, rows: 'array.array[int]',
        amounts: Sequence[int] | None,
    ) -> bytes:
        """Return one byte per row: 1 if the host has room for the amounts.

        Empty if the amounts exceed what an index can count.

        :param amounts: by the classes of the index, None for the whole host
        """
        if amounts is not None and max(amounts) > ext.AMOUNT_LIMIT:
            return b''
        return index.fits(
            rows, self.window.start, self.window.end, amounts,
            whole=amounts is None, ignore=self.ignore,
        )

    def _fitting(
        self, index: ext.TimelineIndex, hosts: Iterable[str],
        amounts: Sequence[int] | None,
    ) -> list[str]:
        """Return the hosts of an index that have room for the amounts."""
        known = rows(index, hosts)
        fits = self._fits(index, known, amounts)
        return list(itertools.compress(index.row_keys(known), fits))

    def _taken_of_extra(self, hosts: Collection[str]) -> set[str]:
        """Return the hosts on which an amount of another class is taken."""
        taken: set[str] = set()
        for index in self.indexes.extra.values():
            known = rows(index, hosts)
            fits = self._fits(index, known, None)
            taken.update(
                host
                for host, each in zip(index.row_keys(known), fits, strict=True)
                if not each
            )
        return taken

    def _fitting_extra(
        self, hosts: list[str], slot: Mapping[str, int], slots: int
    ) -> list[str]:
        """Return the hosts with room for the slots in the other classes."""
        for name, amount in inventory.others(slot).items():
            index = self.indexes.extra.get(name)
            if index is None:
                return []
            hosts = self._fitting(index, hosts, [slots * amount])
        return hosts

    def _not_overcommitted(
        self, rows: 'array.array[int]', slot: Mapping[str, int], slots: int
    ) -> 'array.array[int]':
        """Return the rows of the hosts that the slots do not overcommit.

        All rows are queried at once: with a high allocation ratio the main
        index would pick host after host that reservations have filled.
        """
        reserved = self.indexes.reserved
        if reserved is None:
            return rows
        reserved_rows = reserved.rows(self.indexes.main.row_keys(rows))
        fits = self._fits(reserved, reserved_rows, _amounts(slot, slots))
        return array.array('i', itertools.compress(rows, fits))

    def _free(
        self, index: ext.TimelineIndex, hosts: Sequence[str],
        overcommit: bool = True,
    ) -> dict[str, list[int]]:
        """Return the free amounts of hosts, by resource class of an index."""
        peaks = peaks_of(index, index.rows(hosts), self.window, self.ignore)
        known = self.indexes.hosts
        return {
            name: [
                known[host].capacity(name, overcommit) - peak
                for host, peak in zip(hosts, peaks[name], strict=True)
            ]
            for name in index.resource_classes
        }


def count_each(
    amounts: Mapping[str, Sequence[int]], slot: Mapping[str, int]
) -> list[int]:
    """Return for each host how many slots its amounts are enough for.

    :param amounts: columns by resource class, with an amount for each host;
        no host has an amount of a class that is absent
    """
    columns = (
        [held // amount for held in amounts.get(c, ())]
        for c, amount in slot.items()
        if amount
    )
    return [min(counts) for counts in zip(*columns, strict=False)]


def _amounts(slot: Mapping[str, int], count: int) -> list[int]:
    """Return the amounts of some slots by RESOURCE_CLASSES."""
    return [count * slot.get(c, 0) for c in inventory.RESOURCE_CLASSES]
