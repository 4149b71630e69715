# SPDX-License-Identifier: Apache-2.0
"""The option whether reservations may overcommit."""

import dataclasses

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.window import FOREVER
from tests.functional.manager import conftest

RATIO = 4.0


class TestManager:
    """The effect of the option, from the configuration to the lease."""

    @pytest.fixture
    def world(self, conf):
        conf.set_override('overcommit_reservations', False, 'manager')
        return self.make(conf)

    def make(self, conf):
        world = conftest.ManagerInMemory(conf)
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
            world.leases.create({
                'name': 'second', 'project_id': 'project', 'user_id': 'user',
                'start': first.start, 'end': first.end, 'before_end': None,
                'reservations': [conftest.instances(1, vcpus=2)],
            }, offering=True)
        assert refusal.value.kwargs['offer'].items() >= {
            'reservation': 0, 'available': 0, 'start': first.end,
            'end': first.end + 100,
        }.items()
        world.create(conftest.instances(4, vcpus=2), start=200, end=300)
        world.check()

    def test_servers_without_a_reservation_count_by_the_ratio(self, world):
        # 24 of the 32 VCPUs that the allocation ratio makes of 8.
        for _ in range(24):
            world.add_server('a', end=FOREVER)
        world.manager.instances.sync()
        lease = world.create(conftest.instances(4, vcpus=2))
        assert [vcpus for *_, vcpus in world.held(lease)] == [8]
        world.refuse(conftest.instances(1, vcpus=1))

    def test_the_default_is_to_overcommit(self, conf):
        world = self.make(conf)
        world.create(conftest.instances(16, vcpus=2))
        world.refuse(conftest.instances(1, vcpus=1))

    def test_leases_of_before_stay_and_may_get_less(self, conf):
        world = self.make(conf)
        lease = world.create(conftest.instances(8, vcpus=2), start='now')
        other = world.create(conftest.instances(2, vcpus=2), start=300,
                             end=400)
        world.run()
        conf.set_override('overcommit_reservations', False, 'manager')
        world.begin(conf)

        world.monitor.step()
        assert [vcpus for *_, vcpus in world.held(lease)] == [16]
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.update_lease(lease, end=world.now + 250)
        less = world.update_lease(lease, end=world.now + 150)
        assert less.end == world.now + 150
        [reservation] = world.lease(other).reservations
        world.update_lease(
            other, reservations=[{'id': reservation.id, 'amount': 4}],
        )
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.update_lease(
                other, reservations=[{'id': reservation.id, 'amount': 5}],
            )
        world.check()

    def test_a_host_that_gets_less_is_counted_so(self, world):
        world.create(conftest.instances(2, vcpus=2))
        host = world.host('a')
        world.placement.providers[host.uuid]['VCPU'] = Inventory(
            6, reserved=1, allocation_ratio=RATIO
        )
        world.hosts.sync()
        world.refuse(conftest.instances(1, vcpus=2))
        world.create(conftest.instances(1, vcpus=1))

    def test_a_manager_that_starts_counts_what_is_there(self, world, conf):
        world.create(conftest.instances(3, vcpus=2))
        world.begin(conf)
        world.ledger.warm()
        world.refuse(conftest.instances(2, vcpus=2))
        world.create(conftest.instances(1, vcpus=2))
        world.check()
