# SPDX-License-Identifier: Apache-2.0
"""No new lease is placed on a host where a known server will stay."""

from tests.simulation import occupancy
from tests.simulation.promises import registry


@registry.promise_of_ledger()
def a_new_lease_finds_its_place_free(world):
    """A new lease finds its hosts free of servers that have a record there."""
    for a in world.placed:
        if world.book.reservations[a.reservation_id].instance_id:
            continue
        node = world.cloud.name_of(a.host)
        known = [
            s for s in world.cloud.on(node)
            if world.recorded.get(s.uuid) == (a.host, s.amounts)
        ]
        for _, taken in occupancy.levels(world, node, known, a.start, a.end):
            size = world.cloud.sizes[node]
            if any(n > size[c].capacity for c, n in taken.items()):
                yield f'{a} was placed on {node}, where {taken} are in use'
