# SPDX-License-Identifier: Apache-2.0
"""Instance records follow Nova's servers."""


from collections import Counter
import dataclasses
import uuid

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.domain.inventory import Inventory
from blazar_sched.service.upkeep import instance_sync
from tests.functional.manager.conftest import instances

HOUR, DAY = 3600, 86400


@pytest.fixture
def host(world):
    return world.add_host('a')


def records(world):
    return {i.uuid: i for i in world.ledger.instances()}


def sync(world):
    world.manager.instances.sync()
    return records(world)


def look(world, *servers):
    """Synchronize servers by notifications; return all records."""
    for server in servers:
        world.manager.instances.notice(server.uuid)
    world.manager.instances.poll()
    return records(world)


@pytest.fixture
def asked(world, monkeypatch):
    """Count the requests to Nova for a server by its id."""
    asked = Counter()
    ask = world.nova.server

    def server(uuid):
        asked[uuid] += 1
        return ask(uuid)

    monkeypatch.setattr(world.nova, 'server', server)
    return asked


def change(world, server, **values):
    new = dataclasses.replace(server, **values)
    world.nova.stored[server.uuid] = new
    return new


class TestSync:
    def test_record_follows_a_server_that_comes_moves_and_goes(
        self, world, host
    ):
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

    def test_unchanged_servers_have_no_revision(self, world, host):
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

    def test_server_missing_from_the_list_keeps_its_lease(
        self, world, host, monkeypatch
    ):
        """The lease is not created again either: it is never deleted."""
        server = world.add_server('a', end=world.now + 50)
        gone = world.add_server('a', end=world.now + 50)
        before = sync(world)
        leases = {lease.name: lease.id for lease in world.ledger.leases()}
        del world.nova.stored[gone.uuid]
        monkeypatch.setattr(world.nova, 'servers', lambda **filters: [])
        assert sync(world) == {server.uuid: before[server.uuid]}
        [left] = world.ledger.leases()
        assert left.id == leases[f'lease-{server.uuid[:6]}']
        world.check()

    def test_a_shelved_server_that_is_gone_leaves_no_lease(self, world, host):
        server = world.add_server('a', end=world.now + 50)
        sync(world)
        change(world, server, node=None, status='SHELVED_OFFLOADED')
        assert sync(world) == {}
        assert len(world.ledger.leases()) == 1
        del world.nova.stored[server.uuid]
        sync(world)
        assert world.ledger.leases() == []

    def test_some_hundred_are_asked_for_at_a_time(
        self, world, host, asked, monkeypatch
    ):
        monkeypatch.setattr(instance_sync, 'MAX_SERVERS', 2)
        for _ in range(5):
            world.add_server('a')
        sync(world)
        world.nova.stored.clear()
        assert [len(sync(world)) for _ in range(4)] == [3, 1, 0, 0]
        assert asked.total() == 5

    def test_softly_deleted_servers_delay_no_query_of_others(
        self, world, host, monkeypatch
    ):
        """Softly deleted servers are missing from lists until they are purged.
        """
        monkeypatch.setattr(instance_sync, 'MAX_SERVERS', 2)
        *soft, gone = (
            world.add_server('a', uuid=str(uuid.UUID(int=i))) for i in range(5)
        )
        sync(world)
        del world.nova.stored[gone.uuid]
        monkeypatch.setattr(world.nova, 'servers', lambda **filters: [])
        for _ in range(3):
            sync(world)
        assert records(world).keys() == {s.uuid for s in soft}

    def test_a_long_list_is_written_in_pieces(self, world, host, monkeypatch):
        monkeypatch.setattr(instance_sync, 'PAGE', 2)
        servers = {world.add_server('a').uuid for _ in range(5)}
        before = world.ledger.changes(0)['newest']
        assert sync(world).keys() == servers
        assert world.ledger.changes(0)['newest'] == before + 3

    def test_a_lifetime_that_nova_does_not_follow_holds_nobody_up(
        self, world, host, monkeypatch
    ):
        """One server of many cannot be shelved now."""
        monkeypatch.setattr(instance_sync, 'PAGE', 1)
        early = world.add_server(
            'a', start=world.now + 500, end=world.now + 900
        )
        other = world.add_server('a')

        def shelve_servers(servers):
            if list(servers):
                raise exception.Unavailable('compute answered 500')

        monkeypatch.setattr(world.nova, 'shelve_servers', shelve_servers)
        assert sync(world).keys() == {early.uuid, other.uuid}

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


class TestLook:
    def test_record_follows_a_noticed_server(self, world, host):
        other = world.add_host('b')
        server = world.add_server('a', vcpus=3)
        unnoticed = world.add_server('a')
        assert look(world, server)[server.uuid].host == host
        change(world, server, node='b')
        assert look(world, server)[server.uuid].host == other
        change(world, server, amounts={'VCPU': 5})
        assert look(world, server)[server.uuid].amounts == {'VCPU': 5}
        change(world, server, node=None, status='SHELVED_OFFLOADED')
        assert look(world, server) == {}
        change(world, server)
        del world.nova.stored[server.uuid]
        assert look(world, server) == {}
        assert sync(world).keys() == {unnoticed.uuid}
        world.check()

    def test_the_lease_comes_and_goes_with_the_record(self, world, host):
        server = world.add_server('a', end=world.now + 50)
        look(world, server)
        [lease] = world.ledger.leases()
        assert lease.end == world.now + 50
        del world.nova.stored[server.uuid]
        assert look(world, server) == {}
        assert world.ledger.leases() == []

    def test_only_noticed_servers_are_queried_once(self, world, host, asked):
        server = world.add_server('a')
        world.add_server('a')
        look(world, server, server)
        look(world)
        assert asked == {server.uuid: 1}

    @pytest.mark.parametrize(
        'moving', [{'task': 'migrating'}, {'status': 'BUILD'}]
    )
    def test_moving_server_is_queried_until_it_rests(
        self, world, host, asked, moving
    ):
        """No further notification says that the server has arrived."""
        other = world.add_host('b')
        server = world.add_server('a')
        change(world, server, **moving)
        assert look(world, server)[server.uuid].host == host
        look(world)
        change(world, server, node='b')
        assert look(world)[server.uuid].host == other
        look(world)
        assert asked == {server.uuid: 3}

    def test_server_that_never_rests_is_queried_a_few_times(
        self, world, host, asked, monkeypatch
    ):
        monkeypatch.setattr(instance_sync, 'LOOKS', 3)
        server = world.add_server('a', task='deleting')
        look(world, server)
        for _ in range(5):
            look(world)
        assert asked == {server.uuid: 3}
        look(world, server)
        assert asked == {server.uuid: 4}

    def test_nova_away(self, world, host):
        server = world.add_server('a')
        known = look(world, server)
        del world.nova.stored[server.uuid]
        new = world.add_server('a')
        world.nova.failures = 4
        for _ in range(2):
            # The loop logs this once, and pauses longer each time.
            with pytest.raises(exception.Unavailable, match='2 servers'):
                look(world, server, new)
            assert world.manager.instances._view().instances == known
        assert look(world).keys() == {new.uuid}

    def test_unreachable_server_delays_no_other_and_is_logged_once(
        self, world, host, monkeypatch, caplog
    ):
        """For example, the cell of the server is down."""
        lost, server = world.add_server('a'), world.add_server('a')
        ask = world.nova.server

        def ask_all_but_one(uuid):
            if uuid == lost.uuid:
                raise exception.Unavailable('a cell is down')
            return ask(uuid)

        for away, seen, logged in [(True, [server], 1)] * 3 + [
            (False, [lost, server], 1), (True, [lost, server], 2),
        ]:
            monkeypatch.setattr(
                world.nova, 'server', ask_all_but_one if away else ask
            )
            assert look(world, lost, server).keys() == {s.uuid for s in seen}
            assert caplog.text.count('Nova cannot report') == logged

    def test_the_database_away(self, world, host, monkeypatch):
        server = world.add_server('a')

        def commit(work):
            raise exception.Unavailable('the database does not answer')

        with monkeypatch.context() as patch:
            patch.setattr(world.ledger, 'commit', commit)
            with pytest.raises(exception.Unavailable):
                look(world, server)
        assert look(world).keys() == {server.uuid}

    def test_some_hundred_at_a_time(self, world, host, monkeypatch):
        monkeypatch.setattr(instance_sync, 'MAX_SERVERS', 2)
        servers = [world.add_server('a') for _ in range(5)]
        assert len(look(world, *servers)) == 2
        assert len(look(world)) == 4
        assert len(look(world)) == 5

    def test_a_flood_becomes_one_look_at_all(
        self, world, host, asked, monkeypatch
    ):
        monkeypatch.setattr(instance_sync, 'FLOOD', 4)
        instances = world.manager.instances
        monkeypatch.setattr(instances, 'wake', instances.sync)
        servers = [world.add_server('a') for _ in range(6)]
        assert look(world, *servers).keys() == {s.uuid for s in servers}
        look(world)
        assert not asked


class TestSeveralAtOnce:
    """A manager with an older view of Nova must not overwrite newer records.
    """

    @pytest.fixture
    def meanwhile(self, world, conf, monkeypatch):
        """meanwhile(method, do): call `do` once while Nova responds."""
        other = world.another(conf)

        def meanwhile(method, do):
            ask = getattr(world.nova, method)

            def answer(*args, **filters):
                said = ask(*args, **filters)
                monkeypatch.setattr(world.nova, method, ask)
                do(other)
                return said

            monkeypatch.setattr(world.nova, method, answer)

        yield meanwhile
        other.ledger.close()

    @pytest.fixture
    def newer(self, world):
        """newer(server, **values): another manager records a change."""

        def newer(server, **values):
            def do(manager):
                change(world, server, **values)
                manager.instances.notice(server.uuid)
                manager.instances.poll()

            return do

        return newer

    def test_record_of_a_newer_query_is_kept(
        self, world, host, meanwhile, newer
    ):
        other = world.add_host('b')
        server = world.add_server('a')
        look(world, server)
        change(world, server, amounts={'VCPU': 2})
        meanwhile('server', newer(server, node='b'))
        assert look(world, server)[server.uuid].host == other
        # The server is polled again, so that either order is correct.
        change(world, server, node='a')
        assert look(world)[server.uuid].host == host

    def test_record_of_a_newer_query_is_kept_by_the_sync(
        self, world, host, meanwhile, newer
    ):
        other = world.add_host('b')
        server = world.add_server('a')
        meanwhile('servers', newer(server, node='b'))
        assert sync(world)[server.uuid].host == other

    def test_record_of_a_deleted_server_does_not_return(
        self, world, host, meanwhile
    ):
        server = world.add_server('a', end=world.now + 50)
        look(world, server)
        change(world, server, amounts={'VCPU': 2})

        def do(manager):
            del world.nova.stored[server.uuid]
            manager.instances.notice(server.uuid)
            manager.instances.poll()

        meanwhile('servers', do)
        assert sync(world) == {}
        assert world.ledger.leases() == []

    def test_a_host_that_comes_meanwhile(self, world, host, meanwhile):
        """The records of the host's servers stay."""
        new = world.add_host('b', register=False)
        server = world.add_server('b')
        meanwhile('servers', lambda manager: manager.hosts.create('b', {}))
        assert sync(world)[server.uuid].host == new


class TestBound:
    def lease(self, world, **values):
        return world.create(instances(2), start='now', **values)

    def test_to_its_own_projects_reservation(self, world, host):
        lease = self.lease(world)
        id_ = lease.reservations[0].id
        mine = world.add_own_server(lease, end=world.now + 5)
        thief = world.add_own_server(lease, 'a', 'thief')
        unknown = world.add_server('a', 'project', reservation_id='no-such')
        seen = sync(world)
        assert seen[mine.uuid].reservation_id == id_
        assert seen[mine.uuid].end == lease.end
        assert seen[thief.uuid].reservation_id is None
        assert seen[unknown.uuid].reservation_id is None

    @pytest.mark.row('F51')
    def test_by_a_magnetic_reservation_of_its_host(self, world, host):
        lease = world.create({
            'resource_type': 'physical:host', 'min': 1, 'max': 1,
            'magnetic': True,
        }, start='now')
        world.run()
        mine = world.add_server('a', 'project')
        other = world.add_server('a', 'other')
        seen = sync(world)
        assert seen[mine.uuid].reservation_id == lease.reservations[0].id
        assert seen[mine.uuid].end == lease.end
        assert seen[other.uuid].reservation_id is None

    def test_server_is_bound_no_more_once_the_lease_is_gone(self, world, host):
        lease = self.lease(world)
        mine = world.add_own_server(lease)
        sync(world)
        world.leases.delete(lease.id, None)
        assert sync(world)[mine.uuid].reservation_id is None
        world.check()


@pytest.mark.row('F44')
class TestMisplaced:
    """Servers that use capacity of leases are reported."""

    @pytest.fixture
    def misplaced(self, told):
        """misplaced() -> the reports since the last call: (server, leases)."""

        def reports():
            found = [
                (payload['instance_id'], payload['lease_ids'])
                for kind, payload in told if kind == 'instance.misplaced'
            ]
            told.clear()
            return found

        return reports

    def test_on_a_host_that_is_reserved(self, world, host, told, caplog):
        first = world.create()
        second = world.create(start=300, end=400)
        server = world.add_server('a', 'thief')
        look(world, server)
        assert dict(told)['instance.misplaced'] == {
            'instance_id': server.uuid,
            'project_id': 'thief',
            'host_id': host,
            'lease_ids': sorted([first.id, second.id]),
        }
        assert f'Instance {server.uuid} on host {host} is in the way' in (
            caplog.text
        )

    def test_misplaced_server_is_reported_once(self, world, host, misplaced):
        lease = world.create()
        server = world.add_server('a')
        look(world, server)
        assert misplaced() == [(server.uuid, [lease.id])]
        sync(world)
        look(world, server)
        world.add_server('a', end=world.now + 50)
        sync(world)
        assert misplaced() == []
        # The server uses more now, which is reported again.
        change(world, server, amounts={'VCPU': 2})
        sync(world)
        assert misplaced() == [(server.uuid, [lease.id])]

    @pytest.mark.parametrize(
        'values', [{'vcpus': 2}, {'vcpus': 8, 'preemptible': True}]
    )
    def test_server_that_fits_or_yields_is_not_misplaced(
        self, world, host, misplaced, slots, values
    ):
        world.create(slots(3))
        world.add_server('a', **values)
        sync(world)
        assert misplaced() == []

    def test_bound_server_is_not_misplaced(self, world, host, misplaced):
        lease = world.create(start='now')
        [reservation] = lease.reservations
        world.add_own_server(lease, vcpus=8)
        sync(world)
        assert misplaced() == []

    def test_server_that_has_gone_is_not_misplaced(
        self, world, host, misplaced, monkeypatch
    ):
        """Another manager has recorded the end between two commits."""
        world.create()
        server = world.add_server('a')
        ask = world.ledger.allocations

        def allocations(**wanted):
            world.ledger.commit(lambda tx: tx.delete_instances([server.uuid]))
            return ask(**wanted)

        monkeypatch.setattr(world.ledger, 'allocations', allocations)
        assert look(world, server) == {}
        assert misplaced() == []

    def test_server_that_comes_to_its_own_allocation_is_not_misplaced(
        self, world, host, misplaced
    ):
        """The server's lease gives up its allocation once it is active."""
        server = world.add_server(
            'a', vcpus=5, start=world.now + 100, end=world.now + 200
        )
        sync(world)
        sync(world)
        world.clock.now += 100
        change(world, server, node='a', status='ACTIVE')
        assert look(world, server)[server.uuid].end == world.now + 100
        assert [a.host for a, _ in world.ledger.allocations()] == [host]
        assert misplaced() == []

    def test_servers_that_only_fit_one_by_one_are_misplaced(
        self, world, host, misplaced, slots
    ):
        lease = world.create(slots(2))
        servers = sorted(world.add_server('a', vcpus=3).uuid for _ in 'ab')
        sync(world)
        assert sorted(misplaced()) == [(uuid, [lease.id]) for uuid in servers]

    def test_of_another_resource_class(self, world, host, misplaced):
        uuid = world.host('a').uuid
        world.placement.change(uuid, {
            **world.placement.providers[uuid], 'CUSTOM_GPU': Inventory(2),
        })
        world.hosts.sync()
        lease = world.create()
        world.ledger.commit(lambda tx: tx.put_allocations(
            lease.reservations[0].id,
            [dataclasses.replace(
                tx.allocations(lease_id=lease.id)[0][0], whole=False,
                amounts={'CUSTOM_GPU': 2},
            )],
        ))
        world.add_server('a', amounts={'VCPU': 1})
        taker = world.add_server('a', amounts={'VCPU': 1, 'CUSTOM_GPU': 1})
        sync(world)
        assert misplaced() == [(taker.uuid, [lease.id])]

    def test_class_of_a_child_provider_makes_no_server_misplaced(
        self, world, host, misplaced, slots
    ):
        """Such a resource class cannot be reserved."""
        world.create(slots(1))
        world.add_server('a', amounts={'VCPU': 1, 'VGPU': 1})
        sync(world)
        assert misplaced() == []


def test_declared_end_of_a_server_stays_after_a_resize(world, host):
    """A resize to a flavor with another lifetime moves no end."""
    server = world.add_server('a', end=world.now + 50)
    sync(world)
    change(world, server, end=world.now + 5000)
    assert sync(world)[server.uuid].end == world.now + 50
