# SPDX-License-Identifier: Apache-2.0
"""Overloaded hosts: which hosts have too much, and what may leave them.

An instance that is past its end, or preemptible, is no reason to move an
allocation: the instance has to yield when a window opens, and therefore does
not count here.
"""

from collections import Counter
from collections.abc import Collection
from collections.abc import Iterable
import dataclasses

from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import Instances
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import Window
from blazar_sched.placing import fewest_moves
from blazar_sched.replica import accounting
from blazar_sched.replica import state


def overloaded_hosts(replica: state.Replica, now: int) -> list[str]:
    """Return the reservable hosts that may hold too much at some time.

    The indexes are checked from `now` on. No such host is left out; for a
    host with an instance that is past its end, `allocations_to_move` may find
    that no allocation has to leave.

    O(hosts that are full or closed at some time + instances).

    :returns: uuids
    """
    replica.advance(now)
    found = _hosts_taken_whole(replica, now) | replica.indexes.overloaded(now)
    ahead = Window(now)
    found.update(
        host.uuid for host in replica.closing_hosts() if host.closed_in(ahead)
    )
    return [host for host in sorted(found) if replica.hosts[host].reservable]


def is_overloaded(replica: state.Replica, host: str, now: int) -> bool:
    """Tell whether a host holds too much at some time from now on.

    O(instances on the host).
    """
    return replica.indexes.is_too_small(replica.hosts[host], now) or any(
        _counts(replica, each, now) and not replica.indexes.has_room(
            each, Window(now, each.leaves_at)
        )
        for each in replica.present.instances_on(host)
    )


def _counts(replica: state.Replica, instance: Instance, now: int) -> bool:
    """Tell whether an instance counts for itself, until it leaves its host."""
    occupied = accounting.occupancy(instance, overdue=False)
    return instance.leaves_at > now and occupied is not None


def _hosts_taken_whole(replica: state.Replica, now: int) -> set[str]:
    """Return the hosts that are taken whole while an instance is there."""
    until: Counter[str] = Counter()
    for instance in replica.instances.values():
        if _counts(replica, instance, now):
            until[instance.host] = max(
                until[instance.host], instance.leaves_at
            )
    hosts = list(until)
    # A demand of nothing is refused only by an allocation of a whole host.
    main = replica.indexes.main
    nothing = (0,) * len(main.resource_classes)
    free = main.horizon(main.rows(hosts), now, nothing)
    return {
        host
        for host, seconds in zip(hosts, free, strict=True)
        if now + seconds < until[host]
    }


def unsuited_allocations(
    replica: state.Replica, lease: Lease
) -> list[Allocation]:
    """Return the allocations of a lease on hosts that do not suit any more.

    The properties, the inventory or the devices of such a host have changed
    since a reservation got the host: see `Demand.unsuited`.
    """
    found = []
    for reservation in lease.reservations:
        held = replica.indexes.allocations(reservation.id)
        hosts = [replica.hosts[host] for host in held]
        found += [
            held[host.uuid]
            for host in reservation.demand.unsuited(hosts)
        ]
    return found


def failing_hosts(
    replica: state.Replica, reservation: Reservation, window: Window, now: int
) -> frozenset[str]:
    """Return the hosts that a reservation gives up before any other host.

    These are the hosts that are out of service or will be closed, have less
    than is taken of them from now on, or do not suit the reservation any more.

    O(hosts of the reservation).

    :param window: the remaining window of the lease
    """
    hosts = [
        replica.hosts[host]
        for host in replica.indexes.allocations(reservation.id)
    ]
    failing = {
        host.uuid for host in hosts
        if not host.reservable or host.closed_in(window)
        or replica.indexes.is_too_small(host, now)
    }
    unsuited = reservation.demand.unsuited(hosts)
    return frozenset(failing.union(host.uuid for host in unsuited))


def without_excess(
    replica: state.Replica, reservation: Reservation, allocation: Allocation,
    now: int,
) -> Allocation | None:
    """Return an allocation with as many slots as its host can hold from now.

    O(slots) changes of the indexes, which are undone.

    :returns: None if the host can hold no slot, or all of them
    """
    host = replica.hosts[allocation.host]
    demand = reservation.demand
    if not isinstance(
        demand, Instances
    ) or not replica.indexes.is_too_small(host, now):
        return None
    with replica.indexes.removed([allocation]):
        for count in range(demand.slots_in(allocation.amounts) - 1, 0, -1):
            less = dataclasses.replace(allocation, amounts=demand.times(count))
            with replica.indexes.added([less]):
                if not replica.indexes.is_too_small(host, now):
                    return less
    return None


def short_classes(
    replica: state.Replica, allocations: Iterable[Allocation], now: int
) -> set[tuple[str, str]]:
    """Return what hosts have less of than the reservations that have started.

    A host is short of a resource class if its inventory has shrunk, as with a
    device that has failed. A whole host has what the host has.

    :param allocations: all allocations on the hosts in question
    :returns: (uuid of the host, resource class)
    """
    taken: Counter[tuple[str, str]] = Counter()
    for each in allocations:
        if each.start <= now < each.end:
            taken.update({
                (each.host, name): amount
                for name, amount in each.amounts.items()
            })
    return {
        (host, name) for (host, name), amount in taken.items()
        if amount > replica.hosts[host].capacity(name)
    }


def is_short(
    allocation: Allocation, short: Collection[tuple[str, str]]
) -> bool:
    """Tell whether the host of an allocation is short of what it takes.

    :param short: as `short_classes` returns
    """
    return any((allocation.host, name) in short for name in allocation.amounts)


def allocations_to_move(
    replica: state.Replica, host: str, instances: Iterable[Instance],
    allocations: Iterable[tuple[Allocation, str]], now: int,
    kept: Collection[str],
) -> list[tuple[Allocation, str]]:
    """Return the allocations that must leave a host, so that the rest fits.

    Only allocations that have not started leave, and the fewest possible: see
    `placing.fewest_moves`.

    :param host: uuid of the host
    :param instances: the instances on the host
    :param allocations: the allocations on the host that have not ended, each
        with its lease's id
    :param kept: the ids of reservations that stay
    :returns: allocations with their leases' ids, the first to start first
    """
    replica.advance(now)
    known = replica.hosts.get(host)
    if known is None:
        return []
    fixed = [
        Allocation(n.uuid, n.uuid, host, 0, n.leaves_at, n.amounts)
        for n in instances
        if _counts(replica, n, now)
    ]
    fixed += [
        Allocation(n.uuid, n.uuid, host, stay.start, stay.end, n.amounts)
        for n in map(
            replica.instances.__getitem__, replica.arriving.get(host, ())
        )
        for stay in n.relocations
        if stay.host == host
    ]
    fixed += [
        Allocation(f'closed {n}', '', host, each.start, each.end, whole=True)
        for n, each in enumerate(known.closed_windows)
    ]
    movable = {}
    for allocation, lease_id in allocations:
        of = replica.reservations[allocation.reservation_id]
        if of.start > now and of.id not in kept:
            movable[allocation.id] = allocation, lease_id
        else:
            fixed.append(allocation)
    gone = fewest_moves.choose(
        {c: known.capacity(c) for c in known.inventory}, fixed,
        [allocation for allocation, _ in movable.values()], now,
    )
    return [movable[allocation.id] for allocation in gone]
