# SPDX-License-Identifier: Apache-2.0
"""Selection of the hosts that a reservation gets over a window.

The selection reads the timeline indexes and changes nothing: its answer
becomes an allocation only when the ledger commits it. Hosts that the main
index does not know are never used.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

from blazar_sched.domain import exception
from blazar_sched.domain import plural
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import Demand
from blazar_sched.domain.demand import Instances
from blazar_sched.domain.host import Host
from blazar_sched.domain.reservation import Reservation
from blazar_sched.placing import group_limit
from blazar_sched.placing.room import count_each
from blazar_sched.placing.room import Room
from blazar_sched.replica.catalog import Candidates


def lacking(
    demand: Demand, hosts: Collection[Host], overcommit: bool
) -> str | None:
    """Return why hosts cannot be enough, even if nothing is on them.

    O(hosts × resource classes).

    :param hosts: the hosts that suit the demand
    :param overcommit: whether reservations may overcommit hosts
    :returns: None if the hosts may be enough
    """
    if not hosts:
        return 'no host meets the requirements'
    if demand.whole:
        return too_few_hosts(demand.least, len(hosts))
    counts = count_each(
        {
            c: [host.capacity(c, overcommit) for host in hosts]
            for c in demand.slot
        },
        demand.slot,
    )
    if not any(counts):
        return 'no such host is large enough for an instance'
    where, most = {
        True: ('on one host', max(counts)),
        False: ('with one on each host', sum(map(bool, counts))),
        None: ('in all', sum(counts)),
    }[demand.affinity]
    if most >= demand.least:
        return None
    return (
        f'{plural.are(demand.least, "instance")} needed, the hosts have room '
        f'for {most} {where}, even if nothing is on them'
    )


def too_few_hosts(needed: int, registered: int) -> str | None:
    """Return that too few hosts are registered, None if they are enough."""
    if registered >= needed:
        return None
    return (
        f'{plural.are(needed, "host")} needed, '
        f'{plural.are(registered, "such host")} registered'
    )


def place(
    room: Room, candidates: Candidates, reservation: Reservation,
    kept: Iterable[Allocation], new_id: Callable[[], str],
) -> list[Allocation]:
    """Return the allocations of a reservation over the window of the room.

    :param candidates: the hosts that the reservation may use
    :param kept: the present allocations of the reservation: their hosts are
        preferred, and a new allocation on one of these hosts keeps the id
    :param new_id: returns the id of an allocation on a host not held yet
    :raises NotEnoughHostsAvailable: if the window has no room
    """
    held = {allocation.host: allocation for allocation in kept}
    demand = reservation.demand
    taken = (
        _take_slots(room, candidates, demand, held)
        if isinstance(demand, Instances)
        else _take_hosts(room, candidates, demand, held)
    )
    return [
        Allocation(
            id=held[name].id if name in held else new_id(),
            reservation_id=reservation.id, host=name, start=room.window.start,
            end=room.window.end, amounts=amounts, whole=demand.whole,
        )
        for name, amounts in taken.items()
    ]


def _take_hosts(
    room: Room, candidates: Candidates, demand: Demand,
    held: Mapping[str, Allocation],
) -> dict[str, dict[str, int]]:
    names = place_hosts(room, candidates, demand.least, demand.most, held)
    return {name: {} for name in names}


def _take_slots(
    room: Room, candidates: Candidates, demand: Instances,
    held: Mapping[str, Allocation],
) -> dict[str, dict[str, int]]:
    taken = place_instances(
        room, candidates, demand,
        {name: demand.slots_in(old.amounts) for name, old in held.items()},
    )
    return {name: demand.times(count) for name, count in taken.items()}


def first_hosts(
    room: Room, candidates: Candidates, demand: Demand, count: int
) -> list[str]:
    """Return up to `count` hosts with room, those that are preferred first.

    :param candidates: hosts with one cleaning time, which `room` includes
    """
    if demand.whole:
        return room.pick_untaken(candidates.rows, count)
    if not demand.affinity:
        return room.fullest(candidates.rows, count, demand.slot)
    rows = room.fitting(candidates.rows, demand.slot, demand.most)
    return room.fullest(rows, count, demand.slot, demand.most)


def place_hosts(
    room: Room, candidates: Candidates, minimum: int, maximum: int,
    kept: Collection[str] = (),
) -> list[str]:
    """Return the hosts to take whole: `maximum`, or as many as are free.

    Hosts in `kept` come first, then the hosts with the fewest devices, then
    those with the shortest cleaning time, and among these the hosts with the
    shortest free run around the window, so that long windows stay whole.

    :param kept: uuids of the hosts held now
    :raises NotEnoughHostsAvailable: if fewer than `minimum` hosts are free
    """
    return list(group_limit.pick(
        room, candidates, None,
        lambda part: dict.fromkeys(
            _pick_hosts(room, part, minimum, maximum, kept), 1
        ),
    ))


def _pick_hosts(
    room: Room, candidates: Candidates, minimum: int, maximum: int,
    kept: Collection[str],
) -> list[str]:
    parts = room.parts(candidates, None)
    still = {
        name
        for room_of, part in parts
        for name in room_of.untaken(part.known(kept))
    }
    names = [name for name in candidates.known(kept) if name in still]
    del names[maximum:]
    for room_of, part in parts:
        if len(names) < maximum:
            held = room.rows(part.known(kept))
            names += room_of.pick_untaken(
                part.others(held), maximum - len(names)
            )
    if len(names) < minimum:
        raise exception.NotEnoughHostsAvailable(
            f'{plural.are(minimum, "host")} needed, '
            f'{len(names)} {plural.is_or_are(len(names))} free',
            field='reservations', offer={'available': len(names)},
        )
    return names


def place_instances(
    room: Room, candidates: Candidates, wanted: Instances,
    kept: Mapping[str, int] | None = None,
    beside: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Return the number of slots to take on each host.

    Slots on kept hosts come first. The other slots go to the hosts with the
    fewest devices of classes that no slot has, then to those with the shortest
    cleaning time, among these to the hosts with the least room, and at equal
    room to the hosts with the shortest free run, so that whole hosts and long
    windows stay whole.

    :param kept: slots held now by host: no host loses a slot without need
    :param beside: other slots of the reservation by host, in the indexes
    :raises NotEnoughHostsAvailable: if not all slots find room
    """
    return group_limit.pick(
        room, candidates, wanted.slot,
        lambda part: _pick_slots(room, part, wanted, kept or {}),
        wanted.amount if wanted.affinity else 1, beside,
    )


def _pick_slots(
    room: Room, candidates: Candidates, wanted: Instances,
    kept: Mapping[str, int],
) -> dict[str, int]:
    parts = room.parts(candidates, wanted.slot)
    amount = wanted.amount
    if wanted.affinity:
        return {_for_all(parts, wanted, kept): amount}
    free: dict[str, int] = {}
    for room_of, part in parts:
        held = room.rows(part.known(kept))
        # No more hosts than instances are ever needed.
        free |= room_of.slots(held, len(held), wanted.slot)
        free |= room_of.slots(part.others(held), amount, wanted.slot)
    for name in candidates.closed & free.keys():
        free[name] = min(free[name], kept[name])
    for name in candidates.most.keys() & free.keys():
        free[name] = min(free[name], candidates.most[name])
    if wanted.affinity is False:
        free = {name: 1 for name, count in free.items() if count}
    if sum(free.values()) < amount:
        raise _no_room(amount, 'in all', sum(free.values()))
    order = [name for name in kept if name in free]
    order += [name for name in free if name not in kept]
    return _spread(order, free, kept, amount)


def _for_all(
    parts: Collection[tuple[Room, Candidates]], wanted: Instances,
    kept: Mapping[str, int],
) -> str:
    """Return a host with room for all slots, a kept host if possible.

    :raises NotEnoughHostsAvailable: if there is no such host
    """
    slot, amount = wanted.slot, wanted.amount
    stays = []
    others = []
    for room, part in parts:
        known = part.known(kept)
        may_stay = room.rows(
            name
            for name in known
            if name not in part.closed or kept[name] >= amount
        )
        stays.append((room, may_stay))
        others.append((room, part.others(room.rows(known))))
    for room, rows in stays + others:
        rows = room.fitting(rows, slot, amount)
        for name in room.fullest(rows, 1, slot, amount):
            return name
    free: dict[str, int] = {}
    for room, part in parts:
        free |= room.slots(part.rows, len(part.rows), slot)
    raise _no_room(amount, 'on one host', max(free.values(), default=0))


def _no_room(
    amount: int, where: str, free: int
) -> exception.NotEnoughHostsAvailable:
    return exception.NotEnoughHostsAvailable(
        f'{plural.are(amount, "instance")} needed, '
        f'{where} there is room for {free}',
        field='reservations', offer={'available': free},
    )


def _spread(
    order: Iterable[str], free: Mapping[str, int], kept: Mapping[str, int],
    amount: int,
) -> dict[str, int]:
    """Take the kept slots that still fit, then free slots host by host."""
    taken = dict.fromkeys(order, 0)
    for wanted in (kept, free):
        for name in taken:
            limit = min(wanted.get(name, 0), free[name])
            more = max(0, min(limit - taken[name], amount))
            taken[name] += more
            amount -= more
    return {name: count for name, count in taken.items() if count}
