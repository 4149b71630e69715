# SPDX-License-Identifier: Apache-2.0
"""Nobody is let in on a closed host, and no lease is placed there.

Servers that draw on no reservation, and leases, are also looked at by the use
of hosts at each time, in which a closed window takes the whole host.
"""

from blazar_sched.domain.window import Window
from blazar_sched.parts.maintenance import models
from tests.simulation.promises import registry
from tests.simulation.promises.filters import is_newest

# Seconds by which the clocks of managers may differ.
SKEW = 3 * 3600


@registry.promise
def nobody_is_let_in_on_a_closed_host(world):
    """This holds for a scheduler that knows the newest revision."""
    let_in = world.let_in
    if let_in is None or not is_newest(world, let_in.by):
        return
    host = world.cloud.nodes[let_in.node].uuid
    for each in world.book.closed.get(host, ()):
        if each.start <= world.time < each.end:
            yield f'{let_in.request} is let in on {let_in.node}, {each}'


@registry.promise_of_ledger()
def no_lease_is_placed_on_a_closed_host(world):
    for a in world.placed:
        for each in world.book.closed.get(a.host, ()):
            if each.overlaps(Window(a.start, a.end)):
                yield f'{a} was placed on its host, {each}'


@registry.promise_of_ledger()
def a_host_is_closed_for_known_maintenances_only(world):
    """Each host has a copy of its maintenances, as long as they are not over.
    """
    wanted = {
        (host, each.on_host)
        for each in world.ledger.run(models.list_)
        for host in each.hosts
        if each.end > world.time + SKEW
    }
    found = {
        (host, each)
        for host, windows in world.book.closed.items()
        for each in windows
    }
    for each in wanted - found:
        yield f'{each} is not on its host'
    for host, each in found - wanted:
        if each.end > world.time + SKEW:
            yield f'{each} is on host {host}'
