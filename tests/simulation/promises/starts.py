# SPDX-License-Identifier: Apache-2.0
"""A started lease has its room, except where it reports servers in the way."""

from blazar_sched.domain import states
from blazar_sched.domain.demand import ON_HOSTS
from tests.simulation.promises import registry
from tests.simulation.promises import servers


@registry.promise_of_ledger()
def a_started_reservation_has_its_room(world):
    """A reservation has its room right after its start."""
    leases = world.book.leases
    for lease in leases.values():
        started = world.started.get(lease.id)
        now = lease.status == states.LEASE_ACTIVE
        world.started[lease.id] = now
        if not now or started:
            continue
        for r in lease.reservations:
            if r.resource_type in ON_HOSTS:
                yield from _lacks(world, lease, r)


def _lacks(world, lease, r):
    named = set(r.made.get('in_the_way', ()))
    if named and not lease.degraded:
        yield f'{r.id} has {named} in its way, and its lease is not degraded'
    own = world.book.reservations[r.id]
    names = world.node_names()
    held = [
        a for a in world.book.allocations.values()
        if a.start <= world.time < a.end
    ]
    for allocation in held:
        if allocation.reservation_id != r.id:
            continue
        node = names[allocation.host]
        others = [
            s for s in world.cloud.on(node)
            if s.uuid not in named
            and not own.owns(s, world.cloud.came[s.uuid])
        ]
        if allocation.whole:
            for server in others:
                yield f'{server} is in the way of {r.id} on {node}'
            continue
        # A reservation that has not started makes its own room.
        beside = [
            a for a in held if a.host == allocation.host
            and world.book.reservations[a.reservation_id].opened
        ]
        inside = {a.reservation_id for a in beside}
        for c in ('VCPU', 'MEMORY_MB', 'DISK_GB'):
            taken = sum(a.amounts.get(c, 0) for a in beside) + sum(
                s.amounts.get(c, 0) for s in others
                if not any(
                    known.id in inside
                    for known in servers.reservations_of(world, s)
                )
            )
            if taken > world.cloud.sizes[node][c].capacity:
                yield f'{r.id} starts on {node} with {taken} {c} taken'
