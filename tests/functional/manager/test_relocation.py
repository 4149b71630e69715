# SPDX-License-Identifier: Apache-2.0
"""Relocation by whole managers, at random, with Nova and time in memory."""

from collections import Counter
import random

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.window import FOREVER
from blazar_sched.placing import relocation
from blazar_sched.replica import instance_record
from blazar_sched.service.upkeep.relocation import PAUSE
from tests.functional.manager.relocating import FEATURES
from tests.functional.manager.relocating import LEAD
from tests.functional.manager.relocating import LOOK
from tests.functional.manager.relocating import NAMES
from tests.functional.manager.relocating import NOTICE
from tests.functional.manager.relocating import RelocatingManager
from tests.functional.manager.relocating import RULES
from tests.functional.manager.relocating import VCPUS
from tests.seeds import seeds

# The fewest and the most actions, and what must have happened in the end.
MIN_ACTIONS, MAX_ACTIONS = 40, 500
ALL = ('boots', 'paths', 'leases', 'displaced', 'moved')


@pytest.fixture
def world(conf):
    world = RelocatingManager(conf)
    yield world
    world.ledger.close()


class Chance:
    """Random actions of users, in a cloud where nobody forces anything."""

    def __init__(self, world, conf, seed):
        self.world = world
        self.conf = conf
        self.random = random.Random(seed)
        self.counts = Counter()

    def act(self):
        self.random.choice([
            self.boot, self.boot, self.boot, self.lease, self.lease,
            self.delete_server, self.delete_lease, self.pass_time,
            self.pass_time, self.kill,
        ])()
        self.world.look()
        self.world.check_promises()
        assert self.world.ledger.check() == []

    def boot(self):
        """Boot a server on a host on which nova-scheduler would let it pass.
        """
        vcpus = self.random.randint(1, 3)
        node = self.random.choice(NAMES)
        host = self.world.host(node)
        end = FOREVER
        if self.random.random() < 0.3:
            end = self.world.now + self.random.randint(50, 200)
        there = [s for s in self.world.nova.stored.values() if s.node == node]
        used = sum(s.amounts['VCPU'] for s in there)
        probe = self.world.add_server(
            node, vcpus=vcpus, end=end, features=FEATURES,
            created=self.world.now,
        )
        record = self.world.ledger.read_replica(
            lambda replica: self._admitted(replica, probe, host.uuid)
        )
        if not record or used + vcpus > VCPUS:
            del self.world.nova.stored[probe.uuid]
            return
        self.counts['boots'] += 1
        self.world.look()
        self.counts['paths'] += bool(
            self.world.ledger.instance(probe.uuid).path
        )

    def _admitted(self, replica, server, host):
        replica.advance(self.world.now)
        record = instance_record.make(
            replica, host, server, self.world.now, RULES
        )
        return relocation.plan(
            replica, record, self.world.now, RULES
        ) is not None

    def lease(self):
        start = self.random.randint(NOTICE, 3 * NOTICE)
        count = self.random.randint(1, 2)
        before = {
            each.uuid: each.path for each in self.world.ledger.instances()
        }
        try:
            self.world.create(
                {'resource_type': 'physical:host', 'min': count, 'max': count},
                start=start, end=start + self.random.randint(100, 600)
            )
        except exception.NotEnoughHostsAvailable:
            return
        self.counts['leases'] += 1
        self.counts['displaced'] += sum(
            each.path != before[each.uuid]
            for each in self.world.ledger.instances()
        )

    def delete_server(self):
        servers = sorted(self.world.nova.stored)
        if servers:
            del self.world.nova.stored[self.random.choice(servers)]

    def delete_lease(self):
        leases = self.world.ledger.leases()
        if leases:
            self.world.leases.delete(self.random.choice(leases).id, None)

    def pass_time(self):
        for _ in range(self.random.randint(1, 20)):
            before = {s.uuid: s.node for s in self.world.nova.stored.values()}
            self.world.clock.now += LOOK
            for uuid, server in list(self.world.nova.stored.items()):
                if server.end <= self.world.now:
                    del self.world.nova.stored[uuid]
            self.world.look()
            self.counts['moved'] += sum(
                s.node != before[s.uuid]
                for s in self.world.nova.stored.values()
            )
            self.world.check_promises()

    def kill(self):
        self.world.ledger.close()
        self.world.begin(self.conf)


@pytest.mark.row('F95')
@pytest.mark.parametrize('seed', seeds(2))
def test_no_capacity_is_promised_twice_and_no_lease_is_late(world, conf, seed):
    chance = Chance(world, conf, seed)
    for number in range(MAX_ACTIONS):
        chance.act()
        if number >= MIN_ACTIONS and all(map(chance.counts.__getitem__, ALL)):
            break
    assert all(map(chance.counts.__getitem__, ALL))
    assert not any(lease.degraded for lease in world.ledger.leases())


def test_the_check_would_see_it(world):
    """The control: a forced server, and every other host is leased."""
    world.reserve(*NAMES)
    world.check_promises()
    world.boot('a', vcpus=1)
    with pytest.raises(AssertionError):
        world.check_promises()


def test_live_migration_that_does_not_happen_is_requested_again(world):
    server = world.boot('a')
    lease = world.reserve('a')
    world.nova.slowness = 1
    world.look(NOTICE - LEAD)
    assert world.node(server) == 'a'
    world.look(PAUSE - 1)
    assert world.node(server) == 'a'
    world.look(1)
    assert world.node(server) != 'a'
    world.look()
    assert world.path(server) == []
    assert not world.lease(lease).degraded


def test_a_server_that_never_moves_is_told_of_when_the_window_opens(world):
    server = world.boot('a')
    lease = world.reserve('a')
    world.nova.slowness = 1000
    for _ in range(NOTICE // LOOK + 1):
        world.look(LOOK)
    # The server is kept: it never said that it yields.
    assert world.node(server) == 'a'
    assert world.lease(lease).degraded


def test_the_path_of_a_server_ends_when_its_own_lease_does(world):
    end = world.now + 9 * NOTICE
    server = world.add_server(
        'a', vcpus=VCPUS, features=FEATURES, created=world.now, end=end
    )
    world.look()
    [own] = [each for each in world.ledger.leases() if each.is_lifetime]
    lease = world.create(
        {
            'resource_type': 'physical:host', 'min': 1, 'max': 1,
            'resource_properties': '["==", "$hypervisor_hostname", "a"]',
        },
        start=NOTICE, end=2 * NOTICE,
    )
    path = world.ledger.instance(server.uuid).path
    assert path[-1].end == end

    world.leases.update(own.id, None, {'end': end - NOTICE})

    shorter = world.ledger.instance(server.uuid).path
    assert shorter[-1].end == end - NOTICE
    assert shorter[:-1] == path[:-1]

    world.leases.delete(lease.id, None)
    world.leases.update(own.id, None, {'end': end + NOTICE})

    assert world.ledger.instance(server.uuid).path == ()


def test_a_server_that_comes_leaves_the_room_of_an_open_lease(world, slots):
    """Preemptible servers beside an unused slot have to go for the server."""
    world.create(
        slots(1, 1, resource_properties='["==", "$hypervisor_hostname", "b"]'),
        start='now', end=4 * NOTICE,
    )
    world.reserve('c', 'd', start=NOTICE, end=4 * NOTICE)
    world.run()
    server = world.boot('a', vcpus=2)
    guests = [world.boot('b', vcpus=1, preemptible=True) for _ in range(3)]
    world.reserve('a')
    world.look(NOTICE - LEAD)
    world.look(PAUSE)
    assert world.node(server) == 'b'
    # One VCPU of four is the slot's.
    assert sum(g.uuid in world.nova.stored for g in guests) == 1
