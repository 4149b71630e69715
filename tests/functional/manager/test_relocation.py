# SPDX-License-Identifier: Apache-2.0
"""Relocation by whole managers, at random, with Nova and time in memory.

What is promised is added up second by second from the ledger's rows.
"""

from collections import Counter
import random

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.relocation import Features
from blazar_sched.domain.relocation import Rules
from blazar_sched.domain.window import FOREVER
from blazar_sched.placing import relocation
from blazar_sched.service.manager.relocation import PAUSE
from blazar_sched.service.resources import instance_record
from tests.functional.manager.conftest import ManagerInMemory

NAMES = ('a', 'b', 'c', 'd')
VCPUS = 4
LEAD, NOTICE = 60, 300
RULES = Rules(lead=LEAD, shortest_stay=60, notice=NOTICE)
# The longest time that passes between two looks.
LOOK = 20
FEATURES = Features({}, {}, None, 512, local_disk=False, devices=False)


@pytest.fixture
def world(conf):
    for name, value in {
        'relocate_instances': True, 'relocation_lead': RULES.lead,
        'relocation_shortest_stay': RULES.shortest_stay,
        'relocation_notice': RULES.notice,
    }.items():
        conf.set_override(name, value, 'manager')
    world = ManagerInMemory(conf)
    for name in NAMES:
        world.add_host(name, VCPUS)
    yield world
    world.ledger.close()


class Chance:
    """Random actions of users, in a cloud where nobody forces anything."""

    def __init__(self, world, conf, seed):
        self.world = world
        self.conf = conf
        self.random = random.Random(seed)
        self.counts = Counter()

    def look(self):
        self.world.manager.instances.sync()
        self.world.manager.relocations.step()
        self.world.run()

    def act(self):
        self.random.choice([
            self.boot, self.boot, self.boot, self.lease, self.lease,
            self.delete_server, self.delete_lease, self.pass_time,
            self.pass_time, self.kill,
        ])()
        self.look()
        self.check()

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
        self.look()
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
                {
                    'resource_type': 'physical:host', 'min': count,
                    'max': count,
                },
                start=start, end=start + self.random.randint(100, 600),
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
            self.look()
            self.counts['moved'] += sum(
                s.node != before[s.uuid]
                for s in self.world.nova.stored.values()
            )
            self.check()

    def kill(self):
        self.world.ledger.close()
        self.world.begin(self.conf)

    def check(self):
        world, now = self.world, self.world.now
        assert world.ledger.check() == []
        allocations = [a for a, _ in world.ledger.allocations()]
        taken = [
            (a.host, a.start, a.end, VCPUS) for a in allocations
        ]
        for each in world.ledger.instances():
            stays = [
                (stay.host, stay.start, stay.end) for stay in each.path
            ] or [(each.host, 0, each.end)]
            assert stays[0][0] == each.host
            assert stays[-1][2] == each.end
            taken += [(*stay, each.amounts['VCPU']) for stay in stays]
            for one, following in zip(stays, stays[1:], strict=False):
                assert following[1] == one[2] - LEAD
        for host in {host for host, *_ in taken}:
            mine = [each[1:] for each in taken if each[0] == host]
            for at in {now, *(start for start, *_ in mine if start > now)}:
                used = sum(n for start, end, n in mine if start <= at < end)
                assert used <= VCPUS, (host, at - now, mine)
        # Nobody but the lease is on its hosts.
        nodes = {s.node for s in world.nova.stored.values()}
        for a in allocations:
            if a.start <= now < a.end:
                [name] = [h.hypervisor_hostname for h in world.ledger.hosts()
                          if h.uuid == a.host]
                assert name not in nodes


@pytest.mark.parametrize('seed', range(6))
def test_nothing_is_promised_twice_and_no_lease_is_late(world, conf, seed):
    chance = Chance(world, conf, seed)

    for _ in range(60):
        chance.act()

    assert not any(lease.degraded for lease in world.ledger.leases())


def test_the_check_would_see_it(world, conf):
    """The control: a forced server, and every other host is leased."""
    chance = Chance(world, conf, 0)
    world.create(
        {'resource_type': 'physical:host', 'min': 4, 'max': 4},
        start=NOTICE, end=2 * NOTICE,
    )
    chance.look()
    chance.check()

    world.add_server(
        'a', vcpus=1, features=FEATURES, created=world.now,
    )
    chance.look()

    with pytest.raises(AssertionError):
        chance.check()


def leased(chance):
    """Return a server, and a lease that begins on the server's host."""
    world = chance.world
    server = world.add_server(
        'a', vcpus=VCPUS, features=FEATURES, created=world.now,
    )
    chance.look()
    lease = world.create(
        {
            'resource_type': 'physical:host', 'min': 1, 'max': 1,
            'resource_properties': '["==", "$hypervisor_hostname", "a"]',
        },
        start=NOTICE, end=2 * NOTICE,
    )
    return server, lease


def test_a_move_that_does_not_happen_is_asked_for_again(world, conf):
    chance = Chance(world, conf, 0)
    server, lease = leased(chance)
    world.nova.slowness = 1

    def node():
        return world.nova.server(server.uuid).node

    world.clock.now += NOTICE - LEAD
    chance.look()
    assert node() == 'a'
    world.clock.now += PAUSE - 1
    chance.look()
    assert node() == 'a'
    world.clock.now += 1
    chance.look()
    assert node() != 'a'
    chance.look()
    assert world.ledger.instance(server.uuid).path == ()
    assert not world.lease(lease).degraded


def test_a_server_that_never_moves_is_told_of_when_the_window_opens(
    world, conf
):
    chance = Chance(world, conf, 0)
    server, lease = leased(chance)
    world.nova.slowness = 1000

    for _ in range(NOTICE // LOOK + 1):
        world.clock.now += LOOK
        chance.look()

    # The server is kept: it never said that it yields.
    assert world.nova.server(server.uuid).node == 'a'
    assert world.lease(lease).degraded
