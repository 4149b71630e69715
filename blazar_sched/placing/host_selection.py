# SPDX-License-Identifier: Apache-2.0
"""Selection of the hosts that a reservation gets over a window.

The selection reads the timeline indexes and changes nothing: its answer
becomes an allocation only when the ledger commits it. Hosts that the main
index does not know are never used.

The main index counts RESOURCE_CLASSES and gives the order in which hosts are
preferred. Each other resource class has an index of its own, in `extra`, with
the hosts that have inventory of the class: this index only tells whether a
host fits. The same holds for `reserved`, the index of the allocations' amounts
of RESOURCE_CLASSES against capacities without allocation ratios, which is
None where reservations may overcommit hosts.
"""

import array
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools

from blazar_sched import ext
from blazar_sched.domain import catalog as host_catalog
from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.catalog import Candidates
from blazar_sched.domain.catalog import Catalog
from blazar_sched.domain.host import Host
from blazar_sched.domain.requirements import Requirement
from blazar_sched.domain.reservation import PHYSICAL_HOST
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import Window

# Indexes of one resource class each, by the name of the class.
Extra = Mapping[str, ext.TimelineIndex]

# What an index counts besides its resource classes: see `peaks_of`.
SHARED = 'shared'
WHOLE = 'whole'


def place(
    index: ext.TimelineIndex,
    extra: Extra,
    catalog: Catalog,
    reservation: Reservation,
    project_id: str,
    window: Window,
    kept: Iterable[Allocation],
    new_id: Callable[[], str],
    default: Requirement = host_catalog.ANY,
    apart: int = 0,
    reserved: ext.TimelineIndex | None = None,
) -> list[Allocation]:
    """Return the allocations of a reservation over a window.

    The entries that the reservation has in the index already are ignored.

    :param catalog: the catalog of all hosts, from which the requirements of
        the reservation choose
    :param project_id: the project of the reservation
    :param kept: the present allocations of the reservation: their hosts are
        preferred, and a new allocation on one of these hosts keeps the id
    :param new_id: returns the id of an allocation on a host not held yet
    :param default: the requirement that a host not held yet has to meet too,
        if the reservation asks for no `resource_properties`
    :param apart: seconds, on a host that has no cleaning time of its own,
        between the allocation and all other use of the host
    :raises NotEnoughHostsAvailable: if the window has no room
    :raises InvalidInput: if the resource type or a requirement is wrong
    """
    held = {allocation.host: allocation for allocation in kept}
    candidates = catalog.candidates(reservation, project_id, default, held)
    whole = reservation.resource_type == PHYSICAL_HOST
    taken = (
        _take_hosts(
            index, extra, candidates, reservation, window, held, apart
        )
        if whole
        else _take_slots(
            index, extra, candidates, reservation, window, held, apart,
            reserved,
        )
    )
    return [
        Allocation(
            id=held[name].id if name in held else new_id(),
            reservation_id=reservation.id,
            host=name,
            start=window.start,
            end=window.end,
            amounts=amounts,
            whole=whole,
        )
        for name, amounts in taken.items()
    ]


def _take_hosts(
    index: ext.TimelineIndex,
    extra: Extra,
    candidates: Candidates,
    reservation: Reservation,
    window: Window,
    held: Mapping[str, Allocation],
    apart: int,
) -> dict[str, dict[str, int]]:
    names = place_hosts(
        index,
        extra,
        candidates,
        window,
        reservation.parameters['min'],
        reservation.parameters['max'],
        held,
        reservation.id,
        apart,
    )
    return {name: {} for name in names}


def _take_slots(
    index: ext.TimelineIndex,
    extra: Extra,
    candidates: Candidates,
    reservation: Reservation,
    window: Window,
    held: Mapping[str, Allocation],
    apart: int,
    reserved: ext.TimelineIndex | None,
) -> dict[str, dict[str, int]]:
    slot = reservation.slot()
    slots = place_instances(
        index,
        extra,
        candidates,
        window,
        slot,
        reservation.parameters['amount'],
        reservation.parameters['affinity'],
        {name: count_slots(old.amounts, slot) for name, old in held.items()},
        reservation.id,
        apart,
        reserved,
    )
    return {
        name: {c: count * amount for c, amount in slot.items()}
        for name, count in slots.items()
    }


def place_hosts(
    index: ext.TimelineIndex,
    extra: Extra,
    candidates: Candidates,
    window: Window,
    minimum: int,
    maximum: int,
    kept: Collection[str] = (),
    ignore: str | None = None,
    apart: int = 0,
) -> list[str]:
    """Return the hosts to take whole: `maximum`, or as many as are free.

    Hosts in `kept` come first, then the hosts with the shortest cleaning
    time, and among these the hosts with the shortest free run around the
    window, so that long windows stay whole.

    :param extra: indexes of the other resource classes, of which nothing may
        be taken on a host either
    :param kept: uuids of the hosts held now
    :param ignore: owner whose entries are ignored
    :param apart: see `place`
    :raises NotEnoughHostsAvailable: if fewer than `minimum` hosts are free
    """
    parts = [
        (window.widened(seconds), part)
        for seconds, part in candidates.parts(index, apart)
    ]
    still = {
        name
        for wide, part in parts
        for name in _free(index, extra, part.known(kept), wide, ignore)
    }
    names = [name for name in candidates.known(kept) if name in still]
    del names[maximum:]
    for wide, part in parts:
        if len(names) < maximum:
            held = host_catalog.rows(index, part.known(kept))
            names += _pick_whole(
                index, extra, part.others(held), maximum - len(names), wide,
                ignore,
            )
    if len(names) < minimum:
        raise exception.NotEnoughHostsAvailable(
            f'{_are(minimum, "host")} needed, '
            f'{len(names)} {"is" if len(names) == 1 else "are"} free',
            field='reservations',
            offer={'available': len(names)},
        )
    return names


def _free(
    index: ext.TimelineIndex,
    extra: Extra,
    names: Iterable[str],
    window: Window,
    ignore: str | None,
) -> list[str]:
    """Return the hosts on which nothing is reserved or used in a window."""
    rows = host_catalog.rows(index, names)
    free = index.fits(
        rows, window.start, window.end, None, whole=True, ignore=ignore
    )
    found = list(itertools.compress(index.row_keys(rows), free))
    taken = _taken(extra, found, window, ignore)
    return [name for name in found if name not in taken]


def _pick_whole(
    index: ext.TimelineIndex,
    extra: Extra,
    rows: 'array.array[int]',
    count: int,
    window: Window,
    ignore: str | None,
) -> list[str]:
    def pick() -> list[str]:
        return index.pick(
            count,
            window.start,
            window.end,
            None,
            rows=rows,
            order='tightest',
            whole=True,
            ignore=ignore,
        )

    names = pick()
    # Few entries take of another resource class alone, so the other hosts are
    # not looked at right away.
    if _taken(extra, names, window, ignore):
        taken = _taken(extra, index.row_keys(rows), window, ignore)
        left_out = set(index.rows(taken))
        rows = array.array('i', (r for r in rows if r not in left_out))
        names = pick()
    return names


def _taken(
    extra: Extra,
    names: Iterable[str],
    window: Window,
    ignore: str | None,
) -> set[str]:
    """Return the hosts on which an amount of another class is taken."""
    taken: set[str] = set()
    for index in extra.values():
        rows = host_catalog.rows(index, names)
        free = index.fits(
            rows, window.start, window.end, None, whole=True, ignore=ignore
        )
        taken.update(
            name
            for name, each in zip(index.row_keys(rows), free, strict=True)
            if not each
        )
    return taken


def place_instances(
    index: ext.TimelineIndex,
    extra: Extra,
    candidates: Candidates,
    window: Window,
    slot: Mapping[str, int],
    amount: int,
    affinity: bool | None,
    kept: Mapping[str, int] | None = None,
    ignore: str | None = None,
    apart: int = 0,
    reserved: ext.TimelineIndex | None = None,
) -> dict[str, int]:
    """Return the number of slots to take on each host, `amount` in all.

    Slots on kept hosts come first. The other slots go to the hosts with the
    shortest cleaning time, among these to the hosts with the least room, and
    at equal room to the hosts with the shortest free run, so that whole hosts
    and long windows stay whole.

    :param slot: amounts of one instance; at least one amount is positive
    :param affinity: True for one host for all instances, False for one host
        for each instance, None for any hosts
    :param kept: slots held now by host: no host loses a slot without need
    :param ignore: owner whose entries are ignored
    :param apart: see `place`
    :raises NotEnoughHostsAvailable: if not all slots find room
    """
    kept = kept or {}
    looks = [
        (
            _Look(
                index, extra, reserved, part.hosts, window.widened(seconds),
                slot, ignore,
            ),
            part,
        )
        for seconds, part in candidates.parts(index, apart)
    ]
    if affinity:
        return {_for_all(looks, amount, kept): amount}
    room: dict[str, int] = {}
    for look, part in looks:
        held = host_catalog.rows(index, part.known(kept))
        # No more hosts than instances are ever needed.
        room |= look.room(held, len(held))
        room |= look.room(part.others(held), amount)
    for name in candidates.closed & room.keys():
        room[name] = min(room[name], kept[name])
    if affinity is False:
        room = {name: 1 for name, count in room.items() if count}
    if sum(room.values()) < amount:
        raise _no_room(amount, 'in all', sum(room.values()))
    order = [name for name in kept if name in room]
    order += [name for name in room if name not in kept]
    return _spread(order, room, kept, amount)


def _for_all(
    looks: 'Collection[tuple[_Look, Candidates]]',
    amount: int,
    kept: Mapping[str, int],
) -> str:
    """Return a host with room for all slots, a kept host if possible.

    :raises NotEnoughHostsAvailable: if there is no such host
    """
    stays = []
    others = []
    for look, part in looks:
        known = part.known(kept)
        may_stay = host_catalog.rows(look.index, (
            name
            for name in known
            if name not in part.closed or kept[name] >= amount
        ))
        stays.append((look, may_stay))
        held = host_catalog.rows(look.index, known)
        others.append((look, part.others(held)))
    for look, rows in stays + others:
        for name in look.fullest(look.fitting(rows, amount), 1, amount):
            return name
    room: dict[str, int] = {}
    for look, part in looks:
        room |= look.room(part.rows, len(part.rows))
    raise _no_room(amount, 'on one host', max(room.values(), default=0))


def _no_room(
    amount: int, where: str, free: int
) -> exception.NotEnoughHostsAvailable:
    return exception.NotEnoughHostsAvailable(
        f'{_are(amount, "instance")} needed, {where} there is room for {free}',
        field='reservations',
        offer={'available': free},
    )


def _are(count: int, unit: str) -> str:
    return f'1 {unit} is' if count == 1 else f'{count} {unit}s are'


def _spread(
    order: Iterable[str],
    room: Mapping[str, int],
    kept: Mapping[str, int],
    amount: int,
) -> dict[str, int]:
    """Take the kept slots that still fit, then free slots host by host."""
    taken = dict.fromkeys(order, 0)
    for wanted in (kept, room):
        for name in taken:
            limit = min(wanted.get(name, 0), room[name])
            more = max(0, min(limit - taken[name], amount))
            taken[name] += more
            amount -= more
    return {name: count for name, count in taken.items() if count}


@dataclasses.dataclass(frozen=True, slots=True)
class _Look:
    """A query of the indexes for slots of one size over one window."""

    index: ext.TimelineIndex
    extra: Extra
    reserved: ext.TimelineIndex | None
    hosts: Mapping[str, Host]
    window: Window
    slot: Mapping[str, int]
    ignore: str | None

    def fullest(
        self, rows: 'array.array[int]', count: int, slots: int = 1
    ) -> list[str]:
        """Return up to `count` hosts with room, the least room first.

        At equal room, the host with the shortest free run around the window
        comes first. Room of the other resource classes, and room without
        overcommitment, is required but does not affect the order.

        :param slots: number of slots that a host must have such room for
        """
        amounts = self._amounts(1)
        if max(amounts) > ext.AMOUNT_LIMIT:
            return []
        rows = self._not_overcommitted(rows, slots)
        asked = count
        while True:
            names = self.index.pick(
                min(asked, len(rows)),
                self.window.start,
                self.window.end,
                amounts,
                rows=rows,
                order='fullest',
                ignore=self.ignore,
            )
            fitting = self._with_extra(names, slots)
            if len(fitting) >= count or len(names) < asked:
                return fitting[:count]
            asked *= 2

    def fitting(
        self, rows: 'array.array[int]', amount: int
    ) -> 'array.array[int]':
        """Return the rows of the hosts with room for a number of slots.

        Only RESOURCE_CLASSES are considered, not the other classes.
        """
        return array.array(
            'i', itertools.compress(rows, self._fits(self.index, rows, amount))
        )

    def _not_overcommitted(
        self, rows: 'array.array[int]', slots: int
    ) -> 'array.array[int]':
        """Return the rows of the hosts that the slots do not overcommit.

        All rows are queried at once: with a high allocation ratio the main
        index would pick host after host that reservations have filled.
        """
        if self.reserved is None:
            return rows
        reserved_rows = self.reserved.rows(self.index.row_keys(rows))
        fits = self._fits(self.reserved, reserved_rows, slots)
        return array.array('i', itertools.compress(rows, fits))

    def _fits(
        self, index: ext.TimelineIndex, rows: 'array.array[int]', slots: int
    ) -> bytes:
        """Return one byte per row: 1 if the host has room for the slots.

        Empty if the slots exceed what an index can count.

        :param index: an index of RESOURCE_CLASSES
        """
        amounts = self._amounts(slots)
        if max(amounts) > ext.AMOUNT_LIMIT:
            return b''
        return index.fits(
            rows, self.window.start, self.window.end, amounts,
            ignore=self.ignore,
        )

    def room(self, rows: 'array.array[int]', count: int) -> dict[str, int]:
        """Return how many slots fit on each of the `fullest` hosts."""
        names = self.fullest(rows, count)
        free: dict[str, list[int]] = {}
        for index in (self.index, *self._extra()):
            free |= self._free(index, names)
        if self.reserved is not None:
            limited = self._free(self.reserved, names, overcommit=False)
            for resource_class, less in limited.items():
                free[resource_class] = list(
                    map(min, free[resource_class], less)
                )
        return dict(zip(names, count_each(free, self.slot), strict=True))

    def _free(
        self,
        index: ext.TimelineIndex,
        names: Sequence[str],
        overcommit: bool = True,
    ) -> dict[str, list[int]]:
        """Return the free amounts of hosts, by resource class of an index."""
        peaks = peaks_of(index, index.rows(names), self.window, self.ignore)
        return {
            resource_class: [
                self.hosts[name].capacity(resource_class, overcommit) - peak
                for name, peak in zip(
                    names, peaks[resource_class], strict=True
                )
            ]
            for resource_class in index.resource_classes
        }

    def _with_extra(self, names: list[str], slots: int) -> list[str]:
        """Return the hosts with room for the slots in the other classes."""
        for resource_class, amount in inventory.others(self.slot).items():
            index = self.extra.get(resource_class)
            if index is None or slots * amount > ext.AMOUNT_LIMIT:
                return []
            rows = host_catalog.rows(index, names)
            fits = index.fits(
                rows, self.window.start, self.window.end, [slots * amount],
                ignore=self.ignore,
            )
            names = list(itertools.compress(index.row_keys(rows), fits))
        return names

    def _extra(self) -> list[ext.TimelineIndex]:
        """Return the indexes of the slot's other classes, if there are any."""
        others = inventory.others(self.slot)
        return [self.extra[name] for name in others if name in self.extra]

    def _amounts(self, count: int) -> list[int]:
        return [
            count * self.slot.get(c, 0) for c in inventory.RESOURCE_CLASSES
        ]


def peaks_of(
    index: ext.TimelineIndex,
    rows: 'array.array[int] | None',
    window: Window,
    ignore: str | None = None,
) -> 'dict[str, array.array[int]]':
    """Return the peak amounts taken on hosts in a window, by resource class.

    Each column has a number for each of the rows. The column SHARED counts
    the entries that take a part of the host, and the column WHOLE counts the
    entries that take the whole host.
    """
    peaks = index.peak(rows, window.start, window.end, ignore=ignore)
    lanes = *index.resource_classes, SHARED, WHOLE
    return {name: peaks[n :: len(lanes)] for n, name in enumerate(lanes)}


def count_slots(amounts: Mapping[str, int], slot: Mapping[str, int]) -> int:
    """Return how many slots the amounts are enough for."""
    [count] = count_each({c: [amounts.get(c, 0)] for c in slot}, slot)
    return count


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
