# SPDX-License-Identifier: Apache-2.0
"""Leases together have no more of a group of hosts than its limit."""

from tests.simulation.promises import registry


@registry.promise_of_ledger()
def no_group_has_more_than_its_limit(world):
    """Each allocation counts once, on whatever host of the group."""
    for limit in world.conf.manager.group_limit:
        inside = [
            a for a in world.book.allocations.values()
            if f'"{world.cloud.name_of(a.host)}"' in limit.resource_properties
        ]
        # The number grows at these times only.
        for at in {a.start for a in inside}:
            there = [a for a in inside if a.start <= at < a.end]
            if len(there) > limit.max:
                yield f'{limit.name}: {there} at {at}'
