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
import itertools

from blazar_sched import ext
from blazar_sched.domain import allocation as allocation_
from blazar_sched.domain import exception
from blazar_sched.domain import host as host_
from blazar_sched.domain import inventory
from blazar_sched.domain import requirements
from blazar_sched.domain import reservation as reservation_
from blazar_sched.domain import window as window_


def candidates(
    hosts: Iterable[host_.Host], requirement: requirements.Requirement
) -> dict[str, host_.Host]:
    """Return the reservable hosts that meet the requirement, by uuid."""
    return {
        host.uuid: host
        for host in hosts
        if host.reservable and requirement.matches(host.properties())
    }


def place(
    index: ext.TimelineIndex,
    hosts: Mapping[str, host_.Host],
    reservation: reservation_.Reservation,
    window: window_.Window,
    kept: Iterable[allocation_.Allocation],
    new_id: Callable[[], str],
) -> list[allocation_.Allocation]:
    """Return the allocations of a reservation over a window.

    What the reservation holds in the index already is looked past.

    :param hosts: every host by uuid; the reservation's requirements choose
    :param kept: what the reservation holds now: its hosts are preferred, and
        an allocation on one of them keeps its id
    :param new_id: gives the id of an allocation on a host not held yet
    :raises NotEnoughHostsAvailable: if the window has no room
    :raises InvalidInput: if the resource type or a requirement is wrong
    """
    held = {allocation.host: allocation for allocation in kept}
    chosen = candidates(hosts.values(), requirement(reservation))
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
            index, chosen, reservation, window, held
        ).items()
    ]


def _take_hosts(
    index: ext.TimelineIndex,
    hosts: Mapping[str, host_.Host],
    reservation: reservation_.Reservation,
    window: window_.Window,
    held: Mapping[str, allocation_.Allocation],
) -> dict[str, dict[str, int]]:
    names = place_hosts(
        index,
        hosts,
        window,
        reservation.parameters['min'],
        reservation.parameters['max'],
        held,
        reservation.id,
    )
    return {name: {} for name in names}


def _take_slots(
    index: ext.TimelineIndex,
    hosts: Mapping[str, host_.Host],
    reservation: reservation_.Reservation,
    window: window_.Window,
    held: Mapping[str, allocation_.Allocation],
) -> dict[str, dict[str, int]]:
    slot = reservation.slot()
    slots = place_instances(
        index,
        hosts,
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
    hosts: Mapping[str, host_.Host],
    window: window_.Window,
    minimum: int,
    maximum: int,
    kept: Iterable[str] = (),
    ignore: str | None = None,
) -> list[str]:
    """Return the hosts to take whole: `maximum`, or as many as are free.

    Hosts in `kept` come first, then those with the shortest free run around
    the window, so that long windows stay whole.

    :param hosts: the candidates by uuid
    :param kept: uuids of the hosts held now
    :param ignore: owner whose entries are looked past
    :raises NotEnoughHostsAvailable: if fewer than `minimum` are free
    """
    rows = _rows(index, (n for n in dict.fromkeys(kept) if n in hosts))
    still = index.fits(
        rows, window.start, window.end, None, whole=True, ignore=ignore
    )
    names = list(itertools.compress(index.row_keys(rows), still))[:maximum]
    if len(names) < maximum:
        held = set(names)
        names += index.pick(
            maximum - len(names),
            window.start,
            window.end,
            None,
            rows=_rows(index, (n for n in hosts if n not in held)),
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
    hosts: Mapping[str, host_.Host],
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

    :param hosts: the candidates by uuid
    :param slot: what one instance takes; at least one amount is positive
    :param affinity: True for one host for all, False for one host each,
        None for any
    :param kept: slots held now by host: no host loses one without need
    :param ignore: owner whose entries are looked past
    :raises NotEnoughHostsAvailable: if they do not all find room
    """
    kept = kept or {}
    room = _room(index, hosts, window, slot, ignore)
    if affinity is False:
        room = dict.fromkeys(room, 1)
    free = max(room.values(), default=0) if affinity else sum(room.values())
    if free < amount:
        where = 'on one host' if affinity else 'in all'
        raise exception.NotEnoughHostsAvailable(
            f'{amount} instances are needed, {where} there is room for {free}',
            field='reservations',
        )
    order = [name for name in kept if name in room]
    order += [
        name for name in sorted(room, key=room.__getitem__) if name not in kept
    ]
    if affinity:
        return {next(n for n in order if room[n] >= amount): amount}
    return _spread(order, room, kept, amount)


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


def _room(
    index: ext.TimelineIndex,
    hosts: Mapping[str, host_.Host],
    window: window_.Window,
    slot: Mapping[str, int],
    ignore: str | None,
) -> dict[str, int]:
    """Return how many slots fit on each host that takes at least one.

    In the order of the free run around the window, shortest first.
    """
    names = index.pick(
        len(hosts),
        window.start,
        window.end,
        [slot.get(c, 0) for c in inventory.RESOURCE_CLASSES],
        rows=_rows(index, hosts),
        order='tightest',
        ignore=ignore,
    )
    peaks = index.peak(
        index.rows(names), window.start, window.end, ignore=ignore
    )
    # A host's lanes: the resource classes, then shared, then whole.
    lanes = len(inventory.RESOURCE_CLASSES) + 2
    room = {}
    for row, name in enumerate(names):
        capacity = hosts[name].amounts()
        used = peaks[row * lanes : (row + 1) * lanes]
        free = {
            c: capacity[i] - used[i]
            for i, c in enumerate(inventory.RESOURCE_CLASSES)
        }
        room[name] = count_slots(free, slot)
    return room


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
