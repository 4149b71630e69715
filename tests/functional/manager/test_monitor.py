# SPDX-License-Identifier: Apache-2.0
"""The host monitor: periodic polls, and polls after notifications."""

import dataclasses

import pytest


@pytest.fixture
def revision(world):
    return lambda: world.ledger.changes(0)['revision']


def reservable(world):
    return {h.hypervisor_hostname: h.reservable for h in world.ledger.hosts()}


class TestPolling:
    def test_host_is_not_reservable_while_it_is_down(self, world):
        world.add_hosts('a', 'b')
        world.fail('a')
        assert reservable(world) == {'a': False, 'b': True}
        world.set_up('a')
        assert reservable(world) == {'a': True, 'b': True}

    def test_a_hypervisor_that_is_gone_has_failed(self, world):
        world.add_host('a')
        del world.nova.nodes['a']
        world.monitor.step()
        assert reservable(world) == {'a': False}

    def test_unchanged_host_states_are_not_written(self, world, revision):
        world.add_hosts('a', 'b')
        world.fail('a', 'b')
        before = revision()
        for _ in range(2):
            world.monitor.step()
        assert revision() == before

    def test_all_of_a_rack_in_one_commit(self, world, revision):
        world.add_hosts('a', 'b', 'c')
        before = revision()
        world.fail('a', 'b', 'c')
        assert revision() == before + 1

    def test_while_nova_is_away_nothing_has_failed(self, world, caplog):
        world.add_host('a')
        world.nova.failures = 1
        world.fail('a')
        assert reservable(world) == {'a': True}
        assert 'host monitor failed, retrying: ' in caplog.text
        world.monitor.step()
        assert reservable(world) == {'a': False}

    def test_leases_of_failed_hosts_are_healed_while_nova_is_away(self, world):
        world.add_host('a')
        lease = world.create()
        world.ledger.commit(lambda tx: tx.put_host(
            dataclasses.replace(tx.hosts()[0], reservable=False)
        ))
        world.nova.failures = 1
        world.monitor.step()
        assert world.lease(lease).degraded

    def test_hosts_are_not_polled_without_the_option(self, world, conf):
        conf.set_override('enable_polling_monitor', False, 'manager')
        world.add_host('a')
        world.fail('a')
        assert reservable(world) == {'a': True}
        world.monitor.notice()
        world.nova.failures = 1
        world.monitor.step()
        # The notification is kept until a poll succeeds.
        world.monitor.step()
        assert reservable(world) == {'a': False}
