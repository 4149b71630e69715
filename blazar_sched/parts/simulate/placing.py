# SPDX-License-Identifier: Apache-2.0
"""Placement without packing: a lease gets any hosts that are free."""

from collections import Counter
from collections.abc import Iterator
import itertools
import random

from blazar_sched.domain import exception
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.window import Window
from blazar_sched.placing import lease_placing
from blazar_sched.replica import packing
from blazar_sched.replica import state


def scatter(
    replica: state.Replica, lease: Lease, window: Window
) -> lease_placing.Allocations:
    """Return allocations for the single reservation of a lease, by its id.

    The order of the hosts depends only on the id of the lease; slots are dealt
    to the hosts one by one.

    :raises NotEnoughHostsAvailable: if there is no room
    """
    [reservation] = lease.reservations
    demand = reservation.demand
    whole, slot, count = demand.whole, demand.slot, demand.least
    names = sorted(replica.hosts)
    random.Random(lease.id).shuffle(names)
    rows = replica.indexes.main.rows(names)
    room: Counter[str] = Counter()
    for number in range(1, 2 if whole else count + 1):
        amounts = None if whole else [
            number * amount for amount in packing.amounts_of(slot)
        ]
        room.update(itertools.compress(names, replica.indexes.main.fits(
            rows, window.start, window.end, amounts, whole=whole
        )))
    dealt = Counter(itertools.islice(_deal(names, room), count))
    if dealt.total() < count:
        raise exception.NotEnoughHostsAvailable(
            f'{count} slots are requested, {dealt.total()} are free',
            field='reservations',
        )
    return {reservation.id: [
        Allocation(
            f'{reservation.id}/{name}', reservation.id, name, window.start,
            window.end, {c: taken * amount for c, amount in slot.items()},
            whole,
        )
        for name, taken in dealt.items()
    ]}


def _deal(names: list[str], room: Counter[str]) -> Iterator[str]:
    """Yield each name as often as it has room, in turns."""
    for turn in itertools.count(1):
        able = [name for name in names if room[name] >= turn]
        if not able:
            return
        yield from able
