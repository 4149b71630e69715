# SPDX-License-Identifier: Apache-2.0
"""Reservations without overcommitment get no more than hosts have."""

from collections import Counter
import dataclasses

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import pytest

from blazar_sched.domain.host import Host
from blazar_sched.domain.inventory import Inventory
from tests.unit.placing import placements
from tests.unit.placing.placements import Placements

RATIO = 4.0


def make_host(name, vcpus, reserved):
    held = {'VCPU': vcpus + reserved, 'MEMORY_MB': 100, 'DISK_GB': 100}
    return Host(uuid=name, id=name, hypervisor_hostname=name, inventory={
        c: Inventory(total, reserved if c == 'VCPU' else 0, RATIO)
        for c, total in held.items()
    })


HOSTS = st.tuples(*(
    st.builds(make_host, st.just(name), st.integers(0, 4), st.integers(0, 2))
    for name in 'ab'
))
# A reservation of instances, anywhere: brute force can decide on room.
INSTANCES = st.builds(
    lambda vcpus, amount: (
        'flavor:instance',
        {
            'resources': {'VCPU': vcpus, 'MEMORY_MB': 1},
            'amount': amount,
            'affinity': None,
        },
    ),
    st.integers(1, 2), st.integers(1, 4)
)
WHOLE = st.just(('physical:host', {'min': 1, 'max': 1}))


def held_at(world, host, at):
    """Return the reserved amount of a host, None if the whole host is."""
    here = [
        a
        for many in world.allocations.values()
        for a in many
        if a.host == host.uuid and a.start <= at < a.end
    ]
    if any(a.whole for a in here):
        return None
    return sum((Counter(a.amounts) for a in here), Counter())


def slots(world, wanted, window, overcommit):
    """Return how many instances there is room for, second by second."""
    slot = wanted[1]['resources']
    found = 0
    for host in world.hosts.values():
        room = []
        for at in range(window.start, window.end):
            held = held_at(world, host, at)
            for name, amount in slot.items():
                has = host.inventory[name]
                limit = has.total - has.reserved
                if overcommit:
                    limit = int(limit * has.allocation_ratio)
                left = 0 if held is None else limit - held[name]
                room.append(max(0, left) // amount)
        found += min(room)
    return found


@pytest.mark.parametrize('overcommit', [True, False])
@settings(max_examples=80, deadline=None)
@given(
    hosts=HOSTS,
    leases=st.lists(
        st.tuples(placements.WINDOWS, INSTANCES | INSTANCES | WHOLE),
        min_size=1, max_size=6,
    ),
)
def test_room_is_found_where_brute_force_finds_room(overcommit, hosts, leases):
    world = Placements(hosts, overcommit)
    for n, (window, wanted) in enumerate(leases):
        lease = placements.make_lease(f'{n}', 'p', window, [wanted])
        if wanted[0] == 'physical:host':
            world.place(lease, window)
            continue
        room = slots(world, wanted, window, overcommit)
        placed = world.place(lease, window)
        assert (placed is not None) == (wanted[1]['amount'] <= room)


@settings(max_examples=80, deadline=None)
@given(
    hosts=HOSTS,
    steps=st.lists(
        st.tuples(
            st.sampled_from('abc'), placements.WINDOWS,
            st.lists(placements.FLAVOR | WHOLE, min_size=1, max_size=2),
            st.booleans(),
        ),
        min_size=2, max_size=8,
    ),
)
def test_no_change_of_a_lease_leads_beyond_it(hosts, steps):
    world = Placements(hosts, overcommit=False)
    made = {}
    for id_, window, wanted, active in steps:
        if id_ in made:
            # Its types stay what they are.
            old = made[id_]
            lease = dataclasses.replace(
                old, start=window.start, end=window.end,
                reservations=tuple(
                    placements.grow(r, 1) for r in old.reservations
                ),
            )
        else:
            lease = placements.make_lease(id_, 'p', window, wanted)
        if world.place(lease, window, active and id_ in made) is not None:
            made[id_] = lease
        for host in hosts:
            for at in range(3 * placements.TIMES):
                held = held_at(world, host, at) or {}
                for name, amount in held.items():
                    has = host.inventory[name]
                    assert amount <= has.total - has.reserved
