# SPDX-License-Identifier: Apache-2.0
"""What a lease gets has room together with the cleaning time around it."""

from collections import Counter

from blazar_sched.domain.window import Window
from tests.simulation.promises import registry


@registry.promise_of_ledger()
def a_lease_is_apart_from_others(world):
    """All that a lease has on a host where it gets something fits there.

    The reservations of the lease have the cleaning time around them, and what
    other leases have does not. What is over is not considered. Where several
    leases have changed, one may have come within the time around another.
    """
    allocations = world.book.allocations
    before, world.allocations_before = world.allocations_before, allocations
    changed = [
        a for id_, a in allocations.items() if _asks_more(before.get(id_), a)
    ]
    lease_of = {r.id: r.lease_id for r in world.book.reservations.values()}
    leases = {lease_of[a.reservation_id] for a in changed}
    if len(leases) != 1 or any(
        world.book.reservations[a.reservation_id].instance_id for a in changed
    ):
        return
    seconds = 60 * world.conf.manager.cleaning_time
    taken = [
        (a, Window(a.start, a.end).widened(
            seconds if lease_of[a.reservation_id] in leases else 0
        ))
        for a in allocations.values()
    ]
    for new in changed:
        around = Window(new.start, new.end).widened(seconds)
        here = [
            each for each in taken
            if each[0].host == new.host and each[1].overlaps(around)
        ]
        # The use grows at these times only.
        for at in {max(around.start, window.start) for _, window in here}:
            at = max(at, world.time)
            there = [a for a, window in here if window.contains(at)]
            if around.contains(at) and not _fits(world, new.host, there):
                yield f'{new} has no room for its cleaning time: {there}'


def _asks_more(old, new):
    return old is None or (
        new.start < old.start or old.end < new.end
        or any(n > old.amounts.get(c, 0) for c, n in new.amounts.items())
    )


def _fits(world, host, there):
    if any(a.whole for a in there):
        return len(there) == 1
    size = world.cloud.sizes[world.cloud.name_of(host)]
    used = sum((Counter(a.amounts) for a in there), Counter())
    return all(n <= size[c].capacity for c, n in used.items())
