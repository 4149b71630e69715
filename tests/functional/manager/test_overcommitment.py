# SPDX-License-Identifier: Apache-2.0
"""Reservations take no more than there is where they may not overcommit."""

from collections import Counter
import dataclasses

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.host import Host
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.window import FOREVER
from tests.functional.manager import conftest
from tests.unit.placing import test_lease_placing as test_placing

RATIO = 4.0


def make_host(name, vcpus, reserved):
    held = {'VCPU': vcpus + reserved, 'MEMORY_MB': 100, 'DISK_GB': 100}
    return Host(
        uuid=name,
        id=name,
        hypervisor_hostname=name,
        inventory={
            c: Inventory(
                total, reserved if c == 'VCPU' else 0, RATIO
            )
            for c, total in held.items()
        },
    )


HOSTS = st.tuples(*(
    st.builds(
        make_host, st.just(name), st.integers(0, 4), st.integers(0, 2)
    )
    for name in 'ab'
))
# One of instances, anywhere: brute force knows at once whether it has room.
INSTANCES = st.builds(
    lambda vcpus, amount: (
        'flavor:instance',
        {
            'resources': {'VCPU': vcpus, 'MEMORY_MB': 1},
            'amount': amount,
            'affinity': None,
        },
    ),
    st.integers(1, 2),
    st.integers(1, 4),
)
WHOLE = st.just(('physical:host', {'min': 1, 'max': 1}))


def held_at(world, host, at):
    """Return what is reserved of a host, None if all of it is."""
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
@settings(max_examples=200, deadline=None)
@given(
    hosts=HOSTS,
    leases=st.lists(
        st.tuples(test_placing.WINDOWS, INSTANCES | INSTANCES | WHOLE),
        min_size=1,
        max_size=6,
    ),
)
def test_it_finds_room_where_brute_force_does(overcommit, hosts, leases):
    world = test_placing.World(hosts, overcommit)
    for n, (window, wanted) in enumerate(leases):
        lease = test_placing.make_lease(f'{n}', 'p', window, [wanted])
        if wanted[0] == 'physical:host':
            world.place(lease, window)
            continue
        room = slots(world, wanted, window, overcommit)
        placed = world.place(lease, window)
        assert (placed is not None) == (wanted[1]['amount'] <= room)


@settings(max_examples=200, deadline=None)
@given(
    hosts=HOSTS,
    steps=st.lists(
        st.tuples(
            st.sampled_from('abc'),
            test_placing.WINDOWS,
            st.lists(
                test_placing.FLAVOR | WHOLE, min_size=1, max_size=2
            ),
            st.booleans(),
        ),
        min_size=2,
        max_size=8,
    ),
)
def test_no_change_of_a_lease_leads_beyond_it(hosts, steps):
    world = test_placing.World(hosts, overcommit=False)
    made = {}
    for id_, window, wanted, active in steps:
        if id_ in made:
            # Its types stay what they are.
            old = made[id_]
            lease = dataclasses.replace(
                old,
                start=window.start,
                end=window.end,
                reservations=tuple(
                    test_placing.grow(r, 1) for r in old.reservations
                ),
            )
        else:
            lease = test_placing.make_lease(id_, 'p', window, wanted)
        if world.place(lease, window, active and id_ in made) is not None:
            made[id_] = lease
        for host in hosts:
            for at in range(3 * test_placing.TIMES):
                held = held_at(world, host, at) or {}
                for name, amount in held.items():
                    has = host.inventory[name]
                    assert amount <= has.total - has.reserved


class TestManager:
    """The option, from the configuration to what a lease is told."""

    @pytest.fixture
    def world(self, conf):
        conf.set_override('overcommit_reservations', False, 'manager')
        return self.make(conf)

    def make(self, conf):
        world = conftest.World(conf)
        id_ = world.add_host('a', vcpus=8, register=False)
        for name, held in world.placement.providers[id_].items():
            world.placement.providers[id_][name] = dataclasses.replace(
                held, allocation_ratio=RATIO
            )
        world.hosts.create('a', {})
        return world

    def test_a_lease_is_refused_and_told_when_there_is_room(self, world):
        first = world.create(conftest.instances(4, vcpus=2))
        with pytest.raises(exception.NotEnoughHostsAvailable) as refusal:
            world.leases.create(
                {
                    'name': 'second',
                    'project_id': 'project',
                    'user_id': 'user',
                    'start': first.start,
                    'end': first.end,
                    'before_end': None,
                    'reservations': [conftest.instances(1, vcpus=2)],
                },
                offering=True,
            )
        assert refusal.value.kwargs['offer'] == {
            'reservation': 0,
            'available': 0,
            'start': first.end,
            'end': first.end + 100,
        }
        world.create(conftest.instances(4, vcpus=2), start=200, end=300)
        world.check()

    def test_servers_without_a_reservation_count_by_the_ratio(self, world):
        # 24 of the 32 that the ratio makes of 8.
        for _ in range(24):
            world.add_server('a', end=FOREVER)
        world.manager.instances.sync()
        lease = world.create(conftest.instances(4, vcpus=2))
        assert [vcpus for *_, vcpus in world.held(lease)] == [8]
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.create(conftest.instances(1, vcpus=1))

    def test_the_default_is_to_overcommit(self, conf):
        world = self.make(conf)
        world.create(conftest.instances(16, vcpus=2))
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.create(conftest.instances(1, vcpus=1))

    def test_leases_of_before_stay_and_may_get_less(self, conf):
        world = self.make(conf)
        lease = world.create(conftest.instances(8, vcpus=2), start='now')
        other = world.create(conftest.instances(2, vcpus=2), start=300,
                             end=400)
        world.run()
        conf.set_override('overcommit_reservations', False, 'manager')
        world.begin(conf)

        world.healer.heal()
        world.monitor.step()
        assert [vcpus for *_, vcpus in world.held(lease)] == [16]
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.leases.update(lease.id, None, {'end': world.now + 250})
        less = world.leases.update(lease.id, None, {'end': world.now + 150})
        assert less.end == world.now + 150
        [reservation] = world.lease(other).reservations
        world.leases.update(
            other.id,
            None,
            {'reservations': [{'id': reservation.id, 'amount': 4}]},
        )
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.leases.update(
                other.id,
                None,
                {'reservations': [{'id': reservation.id, 'amount': 5}]},
            )
        world.check()

    def test_a_host_that_gets_less_is_counted_so(self, world):
        world.create(conftest.instances(2, vcpus=2))
        host = world.host('a')
        world.placement.providers[host.uuid]['VCPU'] = Inventory(
            6, reserved=1, allocation_ratio=RATIO
        )
        world.hosts.sync()
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.create(conftest.instances(1, vcpus=2))
        world.create(conftest.instances(1, vcpus=1))

    def test_a_manager_that_starts_counts_what_is_there(self, world, conf):
        world.create(conftest.instances(3, vcpus=2))
        world.begin(conf)
        world.ledger.warm()
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.create(conftest.instances(2, vcpus=2))
        world.create(conftest.instances(1, vcpus=2))
        world.check()
