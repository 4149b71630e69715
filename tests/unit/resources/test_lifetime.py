# SPDX-License-Identifier: Apache-2.0
"""The furthest end of a lifetime, compared with a check of every second."""

import dataclasses

import hypothesis
from hypothesis import strategies as st
import pytest

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import Lifetime
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import Window
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.service.resources.lifetime import LifetimeResource


class Tx:
    def __init__(self, replica):
        self.replica = replica
        self.put = None

    def put_instances(self, nouns):
        [self.put] = nouns


NOW = 1000
CLASSES = {'VCPU': 4, 'MEMORY_MB': 4, 'DISK_GB': 4, 'CUSTOM_GPU': 4}
amounts = st.fixed_dictionaries({c: st.integers(0, 3) for c in CLASSES})
spans = st.tuples(st.integers(0, 30), st.integers(1, 10))


@pytest.mark.row('F69')
@hypothesis.given(
    held=st.lists(st.tuples(spans, st.booleans(), amounts), max_size=6),
    takes=amounts, lasts=st.integers(1, 10), asks=st.integers(1, 40),
)
def test_the_furthest_end_is_the_furthest(held, takes, lasts, asks):
    """The reference is a plain check of every second."""
    replica = state.Replica(accounting.LedgerAccounting)
    known = Instance('i', 'h', 'p', takes, end=NOW + lasts)
    nouns = [
        Host(uuid='h', id='1', hypervisor_hostname='h', inventory={
            c: Inventory(n) for c, n in CLASSES.items()
        }),
        record.Reservation('r', 'l', 'p', 'virtual:instance', 0, NOW + 99),
        known,
    ]
    others = [
        Allocation(
            f'a{n}', 'r', 'h', NOW + start, NOW + start + long,
            {} if whole else some, whole,
        )
        for n, ((start, long), whole, some) in enumerate(held)
        if whole or any(some.values())
    ]
    replica.apply(1, map(record.encode, [*nouns, *others]))
    replica.advance(NOW)

    def fits(at):
        there = [a for a in others if a.start <= at < a.end]
        return not any(a.whole for a in there) and all(
            sum(a.amounts.get(c, 0) for a in there) + n <= CLASSES[c]
            for c, n in takes.items()
            if n
        )

    end = known.end + asks
    furthest = next((at for at in range(known.end, end) if not fits(at)), end)
    own = Reservation(
        'x', 'l', 'active', Lifetime({}, instance_id='i', on_end='delete')
    )
    lease = Lease('l', '', 'p', '', NOW, end, 'ACTIVE')
    tx = Tx(replica)
    driver = LifetimeResource.__new__(LifetimeResource)

    def book():
        driver.book(tx, lease, own, Window(NOW, end))

    if furthest == end:
        book()
        assert tx.put == dataclasses.replace(known, end=end)
    else:
        text = duration.format_time(furthest)
        with pytest.raises(
            exception.NotEnoughHostsAvailable, match=f'at most {text}'
        ):
            book()
        assert tx.put is None
