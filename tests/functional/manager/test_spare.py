# SPDX-License-Identifier: Apache-2.0
"""Spare hosts: kept for the leases that lose a host."""

from collections import Counter
import contextlib
import random

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.flavor import Flavor


@pytest.fixture
def world(world):
    """Host a for everyone, and host b as a spare."""
    world.add_host('a')
    world.add_host('b', spare=True)
    return world


@pytest.mark.row('F105')
class TestNoLeaseGetsIt:
    @pytest.fixture(params=['hosts', 'instances', 'flavors'])
    def two(self, request, world, whole, slots):
        """A reservation that needs both hosts."""
        world.nova.known_flavors = [Flavor('f', 'small', 8, 512, 1)]
        world.manager.flavors.sync()
        return {
            'hosts': whole(2, 2),
            'instances': slots(2, 8),
            'flavors': {
                'resource_type': 'flavor:instance', 'flavor_id': 'f',
                'amount': 2, 'affinity': None,
            },
        }[request.param]

    def test_new_leases(self, world, two):
        world.refuse(two)
        world.refuse(two, latest_start=world.now + 10**6, align=None,
                     latest_end=None, duration=100)

    def test_dry_runs(self, world, two):
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.leases.create(world.values(two), dry_run=True)

    def test_lease_of_up_to_two_hosts_gets_no_spare_host(
        self, world, whole, on
    ):
        assert on(world.create(whole(1, 2))) == ['a']

    @pytest.mark.parametrize('start', [100, 'now'])
    def test_leases_that_grow(self, world, slots, start):
        lease = world.create(slots(1, 8), start=start)
        world.run()
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.change_reservation(lease, amount=2)
        world.check()

    def test_the_capacity_leaves_it_out(self, world):
        found = world.manager.capacity.get('project')
        assert (found['hosts'], found['parts'][0]['hosts']) == (1, 1)

    def test_no_operator_moves_leases_there(self, world):
        lease = world.create()
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.healer.reallocate(world.host('a').id, lease.id)


class TestFailure:
    @pytest.mark.parametrize('start', [100, 'now'])
    def test_a_lease_that_loses_its_host_gets_it(self, world, on, start):
        lease = world.create(start=start)
        world.run()
        world.fail('a')
        assert on(lease) == ['b']
        assert not world.lease(lease).degraded
        world.check()

    def test_other_hosts_come_first(self, world, on):
        lease = world.create()
        world.add_host('c')
        world.fail('a')
        assert on(lease) == ['c']

    def test_instances(self, world, slots, on):
        lease = world.create(slots(2, 4))
        world.fail('a')
        assert on(lease) == ['b']

    def test_lease_keeps_its_spare_host(self, world, on):
        lease = world.start_lease()
        world.fail('a')
        world.run()
        world.update_lease(lease, end=world.now + 500)
        assert on(lease) == ['b']
        # Nobody else gets it after that lease.
        world.refuse(start=600, end=700)
        world.check()

    def test_a_host_that_is_no_longer_spare(self, world, on):
        world.hosts.update(world.host('b').id, {'spare': False})
        world.create()
        world.create()
        world.check()

    def test_a_host_that_becomes_spare_keeps_its_leases(self, world, on):
        lease = world.create()
        world.hosts.update(world.host('a').id, {'spare': 'true'})
        world.monitor.step()
        assert on(lease) == ['a']
        world.refuse(start=300, end=400)


def test_another_manager_knows(world, conf, whole):
    other = world.another(conf)
    other.ledger.warm()
    world.hosts.update(world.host('a').id, {'spare': True})
    with pytest.raises(exception.NotEnoughHostsAvailable):
        other.leases.create(world.values(whole()))
    other.ledger.close()


def test_instances_are_not_relocated_to_it(world):
    assert world.host('a').takes_relocated
    assert not world.host('b').takes_relocated


HOSTS = frozenset('abcdef')


@pytest.mark.row('F105')
@pytest.mark.more
def test_small_worlds_by_brute_force(world, whole):
    """No lease begins on a spare, and a failure uses it if nothing else."""
    for name in HOSTS - {'a', 'b'}:
        world.add_host(name)
    outcomes = Counter()
    for seed in range(100):
        draw = random.Random(seed)
        spares = set(draw.sample(sorted(HOSTS), draw.randrange(0, 4)))
        for name in HOSTS:
            world.hosts.update(world.host(name).id, {'spare': name in spares})
        leases = random_leases(world, whole, draw)
        before = held_by(world, leases)
        assert spares.isdisjoint(set().union(*before.values()))
        down = draw.choice(sorted(HOSTS))
        world.fail(down)
        after = held_by(world, leases)
        for lease in leases:
            left, now = before[lease.id] - {down}, after[lease.id]
            new = now - left
            assert left <= now
            assert len(new) <= len(before[lease.id]) - len(left)
            if new:
                # All others would have been free for the lease.
                assert not new & spares or not free(leases, after, lease) & (
                    HOSTS - spares - {down}
                )
                outcomes[bool(new & spares)] += 1
            elif left != before[lease.id]:
                assert free(leases, after, lease) <= {down}
                outcomes['missing'] += 1
        for each in leases:
            world.leases.delete(each.id, None)
        world.set_up(down)
    world.check()
    assert min(outcomes[key] for key in (True, False, 'missing')) > 5


def random_leases(world, whole, draw):
    leases = []
    for _ in range(draw.randrange(1, 7)):
        start = draw.randrange(10, 60)
        count = draw.randrange(1, 3)
        with contextlib.suppress(exception.NotEnoughHostsAvailable):
            leases.append(world.create(
                whole(count, count), start=start,
                end=start + draw.randrange(5, 40),
            ))
    return leases


def held_by(world, leases):
    """Return the names of the hosts of each lease, by its id."""
    names = world.names()
    return {
        lease.id: {names[host] for _, host, _ in world.held(lease)}
        for lease in leases
    }


def free(leases, held, lease):
    """Return the hosts that no lease has in the window of a lease."""
    return HOSTS.difference(*(
        held[other.id] for other in leases
        if other.start < lease.end and lease.start < other.end
    ))
