# SPDX-License-Identifier: Apache-2.0
"""Placing: which hosts a reservation gets over a window.

Reads the timeline indexes, changes nothing: the same answer becomes an
allocation only when the ledger commits it. Hosts that the main index does not
know are never used.

The main index knows RESOURCE_CLASSES, and by it hosts are preferred. Each
other resource class has an index of its own, `extra`, with the hosts that have
any of it: there they fit or they do not. So it is with `reserved`, the index
of the allocations' amounts of RESOURCE_CLASSES against capacities without
allocation ratios, which is None where reservations may overcommit hosts.
"""

import array
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
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

# Indexes of one resource class each, by its name.
Extra = Mapping[str, ext.TimelineIndex]

# What an index counts beside its resource classes: see `peaks_of`.
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

    What the reservation holds in the index already is looked past.

    :param catalog: of all hosts; the reservation's requirements choose
    :param project_id: whose the reservation is
    :param kept: what the reservation holds now: its hosts are preferred, and
        an allocation on one of them keeps its id
    :param new_id: gives the id of an allocation on a host not held yet
    :param default: what a host not held yet has to meet too, if the
        reservation asks for no `resource_properties`
    :param apart: the seconds, on a host that has no cleaning time of its own,
        between what is taken and all else there
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

    Hosts in `kept` come first, then those with the shortest cleaning time, of
    them those with the shortest free run around the window, so that long
    windows stay whole.

    :param extra: nothing of its classes may be taken of a host either
    :param kept: uuids of the hosts held now
    :param ignore: owner whose entries are looked past
    :param apart: see `place`
    :raises NotEnoughHostsAvailable: if fewer than `minimum` are free
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
    """Return those of which nothing is taken."""
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
    # Few take of another class alone, so the rest is not looked at at once.
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
    """Return those of which something of another class is taken."""
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
    """Return how many slots to take on which host, `amount` in all.

    What is kept comes first; the rest goes to the hosts with the shortest
    cleaning time, of them to those with the least room, at equal room to
    those with the shortest free run, so that whole hosts and long windows
    stay whole.

    :param slot: what one instance takes; at least one amount is positive
    :param affinity: True for one host for all, False for one host each,
        None for any
    :param kept: slots held now by host: no host loses one without need
    :param ignore: owner whose entries are looked past
    :param apart: see `place`
    :raises NotEnoughHostsAvailable: if they do not all find room
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
        # More hosts than instances are never needed.
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
    """Return the host with room for all slots, one that is kept if it can be.

    :raises NotEnoughHostsAvailable: if there is none
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
    """Take what is kept and still fits, then host after host what is free."""
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
    """The indexes, asked for slots of one size over one window."""

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
        """Return up to `count` hosts with room, those with the least first.

        At equal room by the free run around the window, shortest first. Room
        of another class, and without overcommitment, is looked for, but not
        compared.

        :param slots: how many there must be such room for
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
        """Return the rows of the hosts that have room for so many slots.

        Whatever they have of the other classes.
        """
        amounts = self._amounts(amount)
        if max(amounts) > ext.AMOUNT_LIMIT:
            return array.array('i')
        fits = self.index.fits(
            rows, self.window.start, self.window.end, amounts,
            ignore=self.ignore,
        )
        return array.array('i', itertools.compress(rows, fits))

    def _not_overcommitted(
        self, rows: 'array.array[int]', slots: int
    ) -> 'array.array[int]':
        """Return the rows of the hosts that so many slots do not overcommit.

        All rows are asked for at once: with a high allocation ratio the main
        index would pick host after host that reservations have filled.
        """
        if self.reserved is None:
            return rows
        amounts = self._amounts(slots)
        if max(amounts) > ext.AMOUNT_LIMIT:
            return array.array('i')
        fits = self.reserved.fits(
            self.reserved.rows(self.index.row_keys(rows)),
            self.window.start,
            self.window.end,
            amounts,
            ignore=self.ignore,
        )
        return array.array('i', itertools.compress(rows, fits))

    def room(self, rows: 'array.array[int]', count: int) -> dict[str, int]:
        """Return how many slots fit, on the `fullest` hosts."""
        names = self.fullest(rows, count)
        free: dict[str, list[int]] = {}
        for index in (self.index, *self._extra()):
            peaks = peaks_of(
                index, index.rows(names), self.window, self.ignore
            )
            for resource_class in index.resource_classes:
                free[resource_class] = [
                    self.hosts[name].capacity(resource_class) - peak
                    for name, peak in zip(
                        names, peaks[resource_class], strict=True
                    )
                ]
        for resource_class, less in self._free_without_overcommitment(names):
            free[resource_class] = list(map(min, free[resource_class], less))
        return dict(zip(names, count_each(free, self.slot), strict=True))

    def _free_without_overcommitment(
        self, names: Sequence[str]
    ) -> Iterator[tuple[str, list[int]]]:
        """Yield each resource class that is limited so, with a column."""
        if self.reserved is None:
            return
        peaks = peaks_of(
            self.reserved, self.reserved.rows(names), self.window, self.ignore
        )
        for resource_class in self.reserved.resource_classes:
            yield resource_class, [
                self.hosts[name].capacity(resource_class, overcommit=False)
                - peak
                for name, peak in zip(
                    names, peaks[resource_class], strict=True
                )
            ]

    def _with_extra(self, names: list[str], slots: int) -> list[str]:
        """Return those with room for so many slots in the other classes."""
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
    """Return what is taken of hosts at most, by resource class.

    A number for each of the rows; under SHARED that of those who take some of
    the host, under WHOLE that of those who take all of it.
    """
    peaks = index.peak(rows, window.start, window.end, ignore=ignore)
    lanes = *index.resource_classes, SHARED, WHOLE
    return {name: peaks[n :: len(lanes)] for n, name in enumerate(lanes)}


def count_slots(amounts: Mapping[str, int], slot: Mapping[str, int]) -> int:
    """Return how many slots the amounts hold."""
    [count] = count_each({c: [amounts.get(c, 0)] for c in slot}, slot)
    return count


def count_each(
    amounts: Mapping[str, Sequence[int]], slot: Mapping[str, int]
) -> list[int]:
    """Return how many slots each host has the amounts for.

    :param amounts: one of each host, by resource class; none of a class that
        is not there
    """
    columns = (
        [held // amount for held in amounts.get(c, ())]
        for c, amount in slot.items()
        if amount
    )
    return [min(counts) for counts in zip(*columns, strict=False)]
