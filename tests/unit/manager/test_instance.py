# SPDX-License-Identifier: Apache-2.0
"""Instance records follow Nova's servers."""

import dataclasses

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import window


@pytest.fixture
def host(world):
    return world.add_host('a')


def sync(world):
    world.manager.instances.sync()
    return {i.uuid: i for i in world.ledger.instances()}


def change(world, server, **values):
    new = dataclasses.replace(server, **values)
    world.nova.stored[server.uuid] = new
    return new


class TestSync:
    def test_comes_moves_goes(self, world, host):
        other = world.add_host('b')
        server = world.add_server('a', vcpus=3, preemptible=True)
        world.add_server('not-registered')
        world.add_server(None)
        [record] = sync(world).values()
        assert record.uuid == server.uuid
        assert record.host == host
        assert record.project_id == 'other'
        assert record.amounts == server.amounts
        assert record.end == window.FOREVER
        assert record.preemptible
        assert record.reservation_id is None
        change(world, server, node='b')
        assert sync(world)[server.uuid].host == other
        change(world, server, node=None)
        assert sync(world) == {}
        world.check()

    def test_nothing_new_is_no_revision(self, world, host):
        server = world.add_server('a')
        sync(world)
        before = world.ledger.changes(0)['newest']
        sync(world)
        assert world.ledger.changes(0)['newest'] == before
        for _ in range(3):
            world.add_server('a')
        change(world, server, node=None)
        sync(world)
        assert world.ledger.changes(0)['newest'] == before + 1

    def test_nova_does_not_answer(self, world, host):
        world.add_server('a')
        known = sync(world)
        world.nova.stored.clear()
        world.nova.failures = 1
        with pytest.raises(exception.Unavailable):
            sync(world)
        assert {i.uuid: i for i in world.ledger.instances()} == known

    def test_asks_nova_nothing_without_hosts(self, world):
        world.nova.failures = 1
        assert sync(world) == {}

    def test_a_host_that_goes_meanwhile(self, world, host, monkeypatch):
        world.add_server('a')
        listed = world.nova.servers

        def servers(**filters):
            [gone] = world.ledger.hosts()
            world.hosts.delete(gone.id)
            return listed(**filters)

        monkeypatch.setattr(world.nova, 'servers', servers)
        assert sync(world) == {}
        world.check()


class TestEnd:
    def test_the_first_one_declared_stays(self, world, host):
        """A resize to a flavor with another lifetime moves no end."""
        server = world.add_server('a', end=world.now + 50)
        sync(world)
        change(world, server, end=world.now + 5000)
        assert sync(world)[server.uuid].end == world.now + 50


class TestBound:
    def lease(self, world, **values):
        return world.create(world_slots(), start='now', **values)

    def test_to_its_own_projects_reservation(self, world, host):
        lease = self.lease(world)
        id_ = lease.reservations[0].id
        mine = world.add_server(
            'a', 'project', reservation_id=id_, end=world.now + 5
        )
        thief = world.add_server('a', 'thief', reservation_id=id_)
        unknown = world.add_server('a', 'project', reservation_id='no-such')
        records = sync(world)
        assert records[mine.uuid].reservation_id == id_
        assert records[mine.uuid].end == lease.end
        assert records[thief.uuid].reservation_id is None
        assert records[unknown.uuid].reservation_id is None

    def test_of_a_project_that_it_is_shared_with(self, world, host):
        lease = self.lease(world)
        [own] = lease.reservations
        shared = dataclasses.replace(own, projects=('friend',))
        world.ledger.commit(lambda tx: tx.put_lease(
            dataclasses.replace(lease, reservations=(shared,))
        ))
        friend = world.add_server('a', 'friend', reservation_id=own.id)
        thief = world.add_server('a', 'thief', reservation_id=own.id)
        records = sync(world)
        assert records[friend.uuid].reservation_id == own.id
        assert records[friend.uuid].end == lease.end
        assert records[thief.uuid].reservation_id is None

    def test_lives_as_long_as_the_reservation(self, world, host):
        lease = self.lease(world)
        id_ = lease.reservations[0].id
        mine = world.add_server('a', 'project', reservation_id=id_)
        sync(world)
        world.run()
        world.leases.update(lease.id, None, {'end': lease.end + 100})
        assert sync(world)[mine.uuid].end == lease.end + 100

    def test_is_no_more_once_the_lease_is_gone(self, world, host):
        lease = self.lease(world)
        id_ = lease.reservations[0].id
        mine = world.add_server('a', 'project', reservation_id=id_)
        sync(world)
        world.leases.delete(lease.id, None)
        assert sync(world)[mine.uuid].reservation_id is None
        world.check()


def world_slots():
    return {
        'resource_type': 'virtual:instance',
        'vcpus': 2,
        'memory_mb': 512,
        'disk_gb': 1,
        'amount': 2,
    }
