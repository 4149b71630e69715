# SPDX-License-Identifier: Apache-2.0
"""Placing: which hosts a reservation gets over a window.

Reads the timeline index, changes nothing: the same answer becomes an
allocation only when the ledger commits it. Hosts that the index does not
know are never used.
"""

import array
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import itertools

from blazar_sched import ext
from blazar_sched.domain import allocation as allocation_
from blazar_sched.domain import exception
from blazar_sched.domain import host as host_
from blazar_sched.domain import inventory
from blazar_sched.domain import requirements
from blazar_sched.domain import reservation as reservation_
from blazar_sched.domain import window as window_

# So many requirements are remembered; each takes a few bytes a host.
MAX_REQUIREMENTS = 64


@dataclasses.dataclass(frozen=True, slots=True)
class Candidates:
    """Hosts to choose from, by uuid, and their rows in the index.

    A host that the index does not know has no row and is never chosen.
    """

    hosts: Mapping[str, host_.Host]
    rows: 'array.array[int]'


class Catalog:
    """The candidates of each requirement, remembered until `forget`.

    To look through every host costs a hundred times what placing does.

    :param hosts: every host by uuid; whoever changes it must `forget`
    """

    def __init__(
        self, index: ext.TimelineIndex, hosts: Mapping[str, host_.Host]
    ) -> None:
        self._index = index
        self._hosts = hosts
        self._known: dict[requirements.Requirement, Candidates] = {}

    def forget(self) -> None:
        """Look at the hosts anew from now on."""
        self._known.clear()

    def meeting(self, requirement: requirements.Requirement) -> Candidates:
        """Return the reservable hosts that meet the requirement.

        O(hosts) for a requirement that is not remembered.
        """
        found = self._known.get(requirement)
        if found is None:
            found = self.among(
                uuid
                for uuid, host in self._hosts.items()
                if host.reservable and requirement.matches(host.properties())
            )
            if len(self._known) >= MAX_REQUIREMENTS:
                self._known.clear()
            self._known[requirement] = found
        return found

    def among(self, uuids: Iterable[str]) -> Candidates:
        """Return these hosts as candidates."""
        hosts = {uuid: self._hosts[uuid] for uuid in uuids}
        return Candidates(hosts, _rows(self._index, hosts))


def place(
    index: ext.TimelineIndex,
    catalog: Catalog,
    reservation: reservation_.Reservation,
    window: window_.Window,
    kept: Iterable[allocation_.Allocation],
    new_id: Callable[[], str],
) -> list[allocation_.Allocation]:
    """Return the allocations of a reservation over a window.

    What the reservation holds in the index already is looked past.

    :param catalog: of all hosts; the reservation's requirements choose
    :param kept: what the reservation holds now: its hosts are preferred, and
        an allocation on one of them keeps its id
    :param new_id: gives the id of an allocation on a host not held yet
    :raises NotEnoughHostsAvailable: if the window has no room
    :raises InvalidInput: if the resource type or a requirement is wrong
    """
    held = {allocation.host: allocation for allocation in kept}
    candidates = catalog.meeting(requirement(reservation))
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
            index, candidates, reservation, window, held
        ).items()
    ]


def _take_hosts(
    index: ext.TimelineIndex,
    candidates: Candidates,
    reservation: reservation_.Reservation,
    window: window_.Window,
    held: Mapping[str, allocation_.Allocation],
) -> dict[str, dict[str, int]]:
    names = place_hosts(
        index,
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
    candidates: Candidates,
    reservation: reservation_.Reservation,
    window: window_.Window,
    held: Mapping[str, allocation_.Allocation],
) -> dict[str, dict[str, int]]:
    slot = reservation.slot()
    slots = place_instances(
        index,
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


# The parameters that hold a requirement, by resource type.
REQUIREMENTS = {
    reservation_.PHYSICAL_HOST: (
        'hypervisor_properties',
        'resource_properties',
    ),
    reservation_.VIRTUAL_INSTANCE: ('resource_properties',),
    reservation_.FLAVOR_INSTANCE: ('resource_properties',),
}


def requirement(
    reservation: reservation_.Reservation,
) -> requirements.Requirement:
    """Return what a host must meet to be used by the reservation.

    :raises InvalidInput: if the resource type or a requirement is wrong
    """
    fields = REQUIREMENTS.get(reservation.resource_type)
    if fields is None:
        raise exception.InvalidInput(
            f'resource_type {reservation.resource_type!r} is not supported',
            field='resource_type',
        )
    return requirements.all_of(
        *(
            requirements.parse(reservation.parameters.get(field), field)
            for field in fields
        )
    )


def place_hosts(
    index: ext.TimelineIndex,
    candidates: Candidates,
    window: window_.Window,
    minimum: int,
    maximum: int,
    kept: Iterable[str] = (),
    ignore: str | None = None,
) -> list[str]:
    """Return the hosts to take whole: `maximum`, or as many as are free.

    Hosts in `kept` come first, then those with the shortest free run around
    the window, so that long windows stay whole.

    :param kept: uuids of the hosts held now
    :param ignore: owner whose entries are looked past
    :raises NotEnoughHostsAvailable: if fewer than `minimum` are free
    """
    held = _known(kept, candidates)
    rows = _rows(index, held)
    still = index.fits(
        rows, window.start, window.end, None, whole=True, ignore=ignore
    )
    names = list(itertools.compress(index.row_keys(rows), still))[:maximum]
    if len(names) < maximum:
        names += index.pick(
            maximum - len(names),
            window.start,
            window.end,
            None,
            rows=_others(candidates, rows),
            order='tightest',
            whole=True,
            ignore=ignore,
        )
    if len(names) < minimum:
        raise exception.NotEnoughHostsAvailable(
            f'{minimum} hosts are needed, {len(names)} are free',
            field='reservations',
        )
    return names


def place_instances(
    index: ext.TimelineIndex,
    candidates: Candidates,
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
    look = _Look(index, candidates.hosts, window, slot, ignore)
    held = _rows(index, _known(kept, candidates))
    others = _others(candidates, held)
    if affinity:
        for rows in (held, others):
            enough = look.fullest(look.fitting(rows, amount), 1)
            if enough:
                return dict.fromkeys(enough, amount)
        room = look.room(candidates.rows, len(candidates.rows))
        raise _no_room(amount, 'on one host', max(room.values(), default=0))
    # More hosts than instances are never needed.
    room = look.room(held, len(held)) | look.room(others, amount)
    if affinity is False:
        room = dict.fromkeys(room, 1)
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
    """The index, asked for slots of one size over one window."""

    index: ext.TimelineIndex
    hosts: Mapping[str, host_.Host]
    window: window_.Window
    slot: Mapping[str, int]
    ignore: str | None

    def fullest(self, rows: 'array.array[int]', count: int) -> list[str]:
        """Return up to `count` hosts with room, those with the least first.

        At equal room by the free run around the window, shortest first.
        """
        return self.index.pick(
            min(count, len(rows)),
            self.window.start,
            self.window.end,
            self._amounts(1),
            rows=rows,
            order='fullest',
            ignore=self.ignore,
        )

    def fitting(
        self, rows: 'array.array[int]', amount: int
    ) -> 'array.array[int]':
        """Return the rows of the hosts with room for so many slots."""
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
        peaks = self.index.peak(
            self.index.rows(names), self.window.start, self.window.end,
            ignore=self.ignore,
        )
        # A host's lanes: the resource classes, then shared, then whole.
        lanes = len(inventory.RESOURCE_CLASSES) + 2
        room = {}
        for row, name in enumerate(names):
            capacity = self.hosts[name].amounts()
            used = peaks[row * lanes : (row + 1) * lanes]
            free = {
                c: capacity[i] - used[i]
                for i, c in enumerate(inventory.RESOURCE_CLASSES)
            }
            room[name] = count_slots(free, self.slot)
        return room

    def _amounts(self, count: int) -> list[int]:
        return [
            count * self.slot.get(c, 0) for c in inventory.RESOURCE_CLASSES
        ]


def count_slots(amounts: Mapping[str, int], slot: Mapping[str, int]) -> int:
    """Return how many slots the amounts hold."""
    return min(
        amounts.get(c, 0) // amount for c, amount in slot.items() if amount
    )


def _rows(
    index: ext.TimelineIndex, names: Iterable[str]
) -> 'array.array[int]':
    """Return the rows of the hosts that the index knows."""
    return array.array('i', (r for r in index.rows(names) if r >= 0))


def _known(names: Iterable[str], candidates: Candidates) -> list[str]:
    """Return the names that are candidates, once each."""
    return [n for n in dict.fromkeys(names) if n in candidates.hosts]


def _others(
    candidates: Candidates, rows: 'array.array[int]'
) -> 'array.array[int]':
    """Return the candidates' rows but for some."""
    if not rows:
        return candidates.rows
    left_out = set(rows)
    return array.array('i', (r for r in candidates.rows if r not in left_out))
