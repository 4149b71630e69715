# SPDX-License-Identifier: Apache-2.0
"""Placing: which hosts a reservation gets over a window.

Reads the timeline indexes, changes nothing: the same answer becomes an
allocation only when the ledger commits it. Hosts that the main index does not
know are never used.

The main index knows RESOURCE_CLASSES, and by it hosts are preferred. Each
other resource class has an index of its own, `extra`, with the hosts that have
any of it: there they fit or they do not.
"""

import array
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import itertools

from blazar_sched import ext
from blazar_sched.domain import allocation as allocation_
from blazar_sched.domain import catalog as catalog_
from blazar_sched.domain import exception
from blazar_sched.domain import host as host_
from blazar_sched.domain import inventory
from blazar_sched.domain import requirements
from blazar_sched.domain import reservation as reservation_
from blazar_sched.domain import window as window_

# Indexes of one resource class each, by its name.
Extra = Mapping[str, ext.TimelineIndex]


def place(
    index: ext.TimelineIndex,
    extra: Extra,
    catalog: catalog_.Catalog,
    reservation: reservation_.Reservation,
    project_id: str,
    window: window_.Window,
    kept: Iterable[allocation_.Allocation],
    new_id: Callable[[], str],
    default: requirements.Requirement = catalog_.ANY,
) -> list[allocation_.Allocation]:
    """Return the allocations of a reservation over a window.

    What the reservation holds in the index already is looked past.

    :param catalog: of all hosts; the reservation's requirements choose
    :param project_id: whose the reservation is
    :param kept: what the reservation holds now: its hosts are preferred, and
        an allocation on one of them keeps its id
    :param new_id: gives the id of an allocation on a host not held yet
    :param default: what a host not held yet has to meet too, if the
        reservation asks for no `resource_properties`
    :raises NotEnoughHostsAvailable: if the window has no room
    :raises InvalidInput: if the resource type or a requirement is wrong
    """
    held = {allocation.host: allocation for allocation in kept}
    candidates = catalog.candidates(reservation, project_id, default, held)
    whole = reservation.resource_type == reservation_.PHYSICAL_HOST
    take = _take_hosts if whole else _take_slots
    return [
        allocation_.Allocation(
            id=held[name].id if name in held else new_id(),
            reservation_id=reservation.id,
            host=name,
            start=window.start,
            end=window.end,
            amounts=amounts,
            whole=whole,
        )
        for name, amounts in take(
            index, extra, candidates, reservation, window, held
        ).items()
    ]


def _take_hosts(
    index: ext.TimelineIndex,
    extra: Extra,
    candidates: catalog_.Candidates,
    reservation: reservation_.Reservation,
    window: window_.Window,
    held: Mapping[str, allocation_.Allocation],
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
    )
    return {name: {} for name in names}


def _take_slots(
    index: ext.TimelineIndex,
    extra: Extra,
    candidates: catalog_.Candidates,
    reservation: reservation_.Reservation,
    window: window_.Window,
    held: Mapping[str, allocation_.Allocation],
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
    )
    return {
        name: {c: count * amount for c, amount in slot.items()}
        for name, count in slots.items()
    }


def place_hosts(
    index: ext.TimelineIndex,
    extra: Extra,
    candidates: catalog_.Candidates,
    window: window_.Window,
    minimum: int,
    maximum: int,
    kept: Iterable[str] = (),
    ignore: str | None = None,
) -> list[str]:
    """Return the hosts to take whole: `maximum`, or as many as are free.

    Hosts in `kept` come first, then those with the shortest free run around
    the window, so that long windows stay whole.

    :param extra: nothing of its classes may be taken of a host either
    :param kept: uuids of the hosts held now
    :param ignore: owner whose entries are looked past
    :raises NotEnoughHostsAvailable: if fewer than `minimum` are free
    """
    held = candidates.known(kept)
    rows = catalog_.rows(index, held)
    still = index.fits(
        rows, window.start, window.end, None, whole=True, ignore=ignore
    )
    names = list(itertools.compress(index.row_keys(rows), still))
    taken = _taken(extra, names, window, ignore)
    names = [name for name in names if name not in taken][:maximum]
    if len(names) < maximum:
        names += _pick_whole(
            index, extra, candidates.others(rows), maximum - len(names),
            window, ignore,
        )
    if len(names) < minimum:
        raise exception.NotEnoughHostsAvailable(
            f'{minimum} hosts are needed, {len(names)} are free',
            field='reservations',
        )
    return names


def _pick_whole(
    index: ext.TimelineIndex,
    extra: Extra,
    rows: 'array.array[int]',
    count: int,
    window: window_.Window,
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
    window: window_.Window,
    ignore: str | None,
) -> set[str]:
    """Return those of which something of another class is taken."""
    taken: set[str] = set()
    for index in extra.values():
        rows = catalog_.rows(index, names)
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
    candidates: catalog_.Candidates,
    window: window_.Window,
    slot: Mapping[str, int],
    amount: int,
    affinity: bool | None,
    kept: Mapping[str, int] | None = None,
    ignore: str | None = None,
) -> dict[str, int]:
    """Return how many slots to take on which host, `amount` in all.

    What is kept comes first; the rest goes to the hosts with the least room,
    at equal room to those with the shortest free run, so that whole hosts
    and long windows stay whole.

    :param slot: what one instance takes; at least one amount is positive
    :param affinity: True for one host for all, False for one host each,
        None for any
    :param kept: slots held now by host: no host loses one without need
    :param ignore: owner whose entries are looked past
    :raises NotEnoughHostsAvailable: if they do not all find room
    """
    kept = kept or {}
    look = _Look(index, extra, candidates.hosts, window, slot, ignore)
    known = candidates.known(kept)
    held = catalog_.rows(index, known)
    others = candidates.others(held)
    if affinity:
        stays = catalog_.rows(index, (
            name
            for name in known
            if name not in candidates.closed or kept[name] >= amount
        ))
        for rows in (stays, others):
            enough = look.fullest(look.fitting(rows, amount), 1, amount)
            if enough:
                return dict.fromkeys(enough, amount)
        room = look.room(candidates.rows, len(candidates.rows))
        raise _no_room(amount, 'on one host', max(room.values(), default=0))
    # More hosts than instances are never needed.
    room = look.room(held, len(held)) | look.room(others, amount)
    for name in candidates.closed & room.keys():
        room[name] = min(room[name], kept[name])
    if affinity is False:
        room = {name: 1 for name, count in room.items() if count}
    if sum(room.values()) < amount:
        raise _no_room(amount, 'in all', sum(room.values()))
    order = [name for name in kept if name in room]
    order += [name for name in room if name not in kept]
    return _spread(order, room, kept, amount)


def _no_room(
    amount: int, where: str, free: int
) -> exception.NotEnoughHostsAvailable:
    return exception.NotEnoughHostsAvailable(
        f'{amount} instances are needed, {where} there is room for {free}',
        field='reservations',
    )


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
    hosts: Mapping[str, host_.Host]
    window: window_.Window
    slot: Mapping[str, int]
    ignore: str | None

    def fullest(
        self, rows: 'array.array[int]', count: int, slots: int = 1
    ) -> list[str]:
        """Return up to `count` hosts with room, those with the least first.

        At equal room by the free run around the window, shortest first. Room
        of another class is looked for, but not compared.

        :param slots: how many there must be room for in the other classes
        """
        amounts = self._amounts(1)
        if max(amounts) > ext.AMOUNT_LIMIT:
            return []
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

    def room(self, rows: 'array.array[int]', count: int) -> dict[str, int]:
        """Return how many slots fit, on the `fullest` hosts."""
        names = self.fullest(rows, count)
        free: dict[str, dict[str, int]] = {name: {} for name in names}
        for index in (self.index, *self._extra()):
            self._add_free(index, free)
        return {
            name: count_slots(held, self.slot) for name, held in free.items()
        }

    def _add_free(
        self, index: ext.TimelineIndex, free: Mapping[str, dict[str, int]]
    ) -> None:
        """Note in `free` what is left by an index, host by host."""
        classes = index.resource_classes
        peaks = index.peak(
            index.rows(free), self.window.start, self.window.end,
            ignore=self.ignore,
        )
        # A host's lanes: the resource classes, then shared, then whole.
        lanes = len(classes) + 2
        for row, (name, held) in enumerate(free.items()):
            host = self.hosts[name]
            for lane, resource_class in enumerate(classes, row * lanes):
                held[resource_class] = (
                    host.capacity(resource_class) - peaks[lane]
                )

    def _with_extra(self, names: list[str], slots: int) -> list[str]:
        """Return those with room for so many slots in the other classes."""
        for resource_class, amount in inventory.others(self.slot).items():
            index = self.extra.get(resource_class)
            if index is None or slots * amount > ext.AMOUNT_LIMIT:
                return []
            rows = catalog_.rows(index, names)
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


def count_slots(amounts: Mapping[str, int], slot: Mapping[str, int]) -> int:
    """Return how many slots the amounts hold."""
    return min(
        amounts.get(c, 0) // amount for c, amount in slot.items() if amount
    )
