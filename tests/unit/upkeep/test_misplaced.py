# SPDX-License-Identifier: Apache-2.0
"""The leases that an instance is in the way of, compared second by second."""

from collections import Counter

import hypothesis
from hypothesis import strategies
import pytest

from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import PHYSICAL_HOST
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.inventory import Inventory
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.service.upkeep import misplaced

CLASSES = ('VCPU', 'MEMORY_MB', 'CUSTOM_GPU')
CAPACITY = 4
UNTIL = 12
TIMES = strategies.integers(0, UNTIL)
AMOUNTS = strategies.fixed_dictionaries(
    {c: strategies.integers(0, CAPACITY) for c in CLASSES}
)
WINDOWS = strategies.tuples(TIMES, TIMES).filter(lambda w: w[0] < w[1])


@pytest.mark.row('F44')
@hypothesis.given(
    leases=strategies.lists(
        strategies.tuples(WINDOWS, AMOUNTS, strategies.booleans()), max_size=4
    ),
    others=strategies.lists(strategies.tuples(TIMES, AMOUNTS), max_size=2),
    own=strategies.tuples(TIMES, AMOUNTS), now=strategies.integers(0, 4),
)
def test_in_the_way_of_is_found_second_by_second(leases, others, own, now):
    held, nouns = [], []
    for i, ((start, end), amounts, whole) in enumerate(leases):
        if not whole and not any(amounts.values()):
            continue
        each = Allocation(
            f'a{i}', f'r{i}', 'h', start, end, {} if whole else amounts, whole
        )
        held.append((each, f'l{i}'))
        nouns.append(record.Reservation(
            f'r{i}', f'l{i}', 'p', PHYSICAL_HOST, start, end
        ))
    servers = [
        Instance(f's{i}', 'h', 'p', amounts, end)
        for i, (end, amounts) in enumerate([own, *others])
    ]
    replica = state.Replica(accounting.LedgerAccounting)
    replica.apply(1, map(record.encode, [
        Host('h', '', 'a', inventory={
            c: Inventory(CAPACITY) for c in CLASSES
        }),
        *nouns, *(a for a, _ in held), *servers,
    ]))
    replica.advance(now)

    def there(server, at):
        # An instance that is past its end counts until it is deleted.
        return server.end <= now or at < server.end

    def is_short(at):
        taken = Counter()
        for each, _ in held:
            if each.start <= at < each.end:
                if each.whole:
                    return True
                taken.update(each.amounts)
        for server in servers[1:]:
            if there(server, at):
                taken.update(server.amounts)
        return any(
            amount and taken[c] + amount > CAPACITY
            for c, amount in servers[0].amounts.items()
        )

    expected = {
        lease_id for each, lease_id in held
        if any(
            there(servers[0], at) and is_short(at)
            for at in range(max(now, each.start), each.end)
        )
    }
    found = misplaced.in_the_way_of(replica, servers[0], held, now)
    assert found == sorted(expected)
