# SPDX-License-Identifier: Apache-2.0
"""Reallocation: a lease leaves hosts, and other hosts take over if possible.

The allocations are tried on the replica's indexes, and the indexes are
restored afterwards: see lease_placing.
"""

from collections import Counter
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import Instances
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import Window
from blazar_sched.placing import host_selection
from blazar_sched.placing import lease_placing
from blazar_sched.placing import orders
from blazar_sched.placing.lease_placing import Placer
from blazar_sched.placing.options import DEFAULT_OPTIONS
from blazar_sched.placing.options import Options
from blazar_sched.placing.room import Room
from blazar_sched.replica import state
from blazar_sched.replica.catalog import Candidates


def loses(before: Iterable[Allocation], after: Iterable[Allocation]) -> bool:
    """Tell whether allocations are smaller than before."""

    def total(many: Iterable[Allocation]) -> Counter[str]:
        sums: Counter[str] = Counter()
        for allocation in many:
            sums['hosts'] += allocation.whole
            sums.update(allocation.amounts)
        return sums

    return not total(before) <= total(after)


def reallocate(
    replica: state.Replica, lease: Lease, window: Window,
    hosts: Collection[str], only: Collection[str] | None = None,
    options: Options = DEFAULT_OPTIONS, spares: bool = False,
    reduced: Collection[Allocation] = (),
) -> lease_placing.Allocations:
    """Return the allocations of reservations once they have left some hosts.

    Other hosts take over the allocations, and whatever was missing before, as
    far as there is room. Allocations that are on other hosts already stay as
    they are.

    :param window: the remaining window of the lease
    :param hosts: uuids of the hosts to leave
    :param only: the ids of the reservations that leave the hosts, None for
        all reservations that are on hosts
    :param spares: whether spare hosts may be used where there is not enough
        room otherwise
    :param reduced: the allocations that keep only a part of their slots, as
        they are to be
    """
    tries = list(options.alternatives())
    if spares:
        tries += [dataclasses.replace(each, spares=True) for each in tries]
    active = lease.status == states.LEASE_ACTIVE
    placers = [
        Placer(replica, lease.project_id, window, each) for each in tries
    ]
    results: list[tuple[lease_placing.Allocations, Counter[str]]] = []

    def place(order: Sequence[Reservation]) -> Reservation | None:
        placed, short = _in_order(placers, lease, order, hosts, reduced)
        results.append((placed, short))
        return next((r for r in order if r.id in short), None)

    orders.attempt(
        (
            r for r in lease.reservations
            if r.demand.is_on_hosts(active) and (only is None or r.id in only)
        ),
        place,
    )
    best, _ = min(results, key=lambda result: result[1].total())
    return best


def _in_order(
    placers: Sequence[Placer], lease: Lease, order: Sequence[Reservation],
    hosts: Collection[str], reduced: Collection[Allocation],
) -> tuple[lease_placing.Allocations, Counter[str]]:
    """Return allocations, and how many hosts or slots find no room.

    :param order: the reservations that leave the hosts, one after the other
    :returns: both by the id of the reservation; the counts are positive
    """
    replica = placers[0].replica
    old = lease_placing.allocations_of(replica, lease)
    placed: lease_placing.Allocations = {}
    short: Counter[str] = Counter()
    # The cleaning time does not depend on the placer.
    widened = placers[0].with_cleaning_time
    indexes = replica.indexes
    stay = {
        r.id: {
            a.host: a for a in old[r.id]
            if r not in order or a.host not in hosts
        } | {a.host: a for a in reduced if a.reservation_id == r.id}
        for r in lease.reservations
    }
    placers = [*placers[0].ahead(order, old.values())[:-1], *placers]
    with contextlib.ExitStack() as undo:
        for r in lease.reservations:
            undo.enter_context(indexes.removed(old[r.id]))
            undo.enter_context(indexes.added(widened(r, stay[r.id].values())))
        for r in order:
            kept = stay[r.id]
            for placer in placers:
                candidates = _without_hosts(
                    placer.growth_candidates(r, kept), replica, hosts
                )
                new = _replaced(placer.room(r), r, candidates, old[r.id], kept)
                missing = lease_placing.count_missing(
                    r, old[r.id], new.values()
                )
                if missing <= 0:
                    break
            else:
                short[r.id] = missing
            changed = [a for h, a in new.items() if kept.get(h) != a]
            grown = [kept[a.host] for a in changed if a.host in kept]
            undo.enter_context(indexes.removed(widened(r, grown)))
            undo.enter_context(indexes.added(widened(r, changed)))
            placed[r.id] = list(new.values())
    return placed, short


def _without_hosts(
    candidates: Candidates, replica: state.Replica, hosts: Collection[str]
) -> Candidates:
    if candidates.hosts.keys().isdisjoint(hosts):
        return candidates
    return candidates.limited(replica.indexes.main, dict.fromkeys(hosts, 0))


def _replaced(
    room: Room, reservation: Reservation, candidates: Candidates,
    old: Collection[Allocation], kept: Mapping[str, Allocation],
) -> dict[str, Allocation]:
    """Return the kept allocations and the replacements, by host."""
    fill = _add_hosts if reservation.demand.whole else _add_slots
    count = lease_placing.count_missing(reservation, old, kept.values())
    return fill(room, reservation, candidates, kept, count)


def _add_hosts(
    room: Room, reservation: Reservation, candidates: Candidates,
    kept: Mapping[str, Allocation], count: int,
) -> dict[str, Allocation]:
    """Return allocations by host, with up to `count` whole hosts added."""
    names = count > 0 and host_selection.place_hosts(
        room, candidates, 0, count
    )
    return dict(kept) | {
        name: Allocation(
            lease_placing.new_id(), reservation.id, name, room.window.start,
            room.window.end, whole=True,
        )
        for name in names or ()
    }


def _add_slots(
    room: Room, reservation: Reservation, candidates: Candidates,
    kept: Mapping[str, Allocation], count: int,
) -> dict[str, Allocation]:
    """Return allocations by host, with up to `count` slots added."""
    demand = reservation.demand.of_kind(Instances)
    beside = {host: demand.slots_in(a.amounts) for host, a in kept.items()}
    added: dict[str, int] = {}
    # The count that fits is searched for between `least` and `most`: often
    # all slots fit.
    least = 0
    most = count
    while least < most:
        try:
            added = host_selection.place_instances(
                room, candidates, dataclasses.replace(demand, amount=count),
                beside=beside,
            )
            least = count
        except exception.NotEnoughHostsAvailable:
            most = count - 1
        count = -(-(least + most) // 2)
    return lease_placing.with_slots(reservation, room.window, kept, added)
