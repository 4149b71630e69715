# SPDX-License-Identifier: Apache-2.0
"""A server that declares its lifetime has a lease of its own."""


import dataclasses

import pytest

from blazar_sched.domain import duration
from blazar_sched.domain import event
from blazar_sched.domain import exception
from blazar_sched.domain import reservation
from blazar_sched.domain import window
from blazar_sched.domain.provider import Units
from blazar_sched.domain.relocation import Features
from blazar_sched.service.upkeep import lifetime as lifetimes
from tests.functional.manager.conftest import refused

HOUR = 3600


@pytest.fixture
def host(world):
    return world.add_host('a')


def boot(world, node='a', start=None, end=None, **values):
    """Boot a server in Nova; times are in seconds from now."""
    return world.add_server(
        node, created=world.now, user_id='alice',
        start=None if start is None else world.now + start,
        end=window.FOREVER if end is None else world.now + end, **values,
    )


def sync(world):
    """Synchronize servers; return the leases by the servers' uuids."""
    world.manager.instances.sync()
    return {
        lease.reservations[0].demand.instance_id: lease
        for lease in world.ledger.leases()
        if lease.is_lifetime
    }


def made(world, **values):
    """Boot a server that declares its lifetime; return it and its lease."""
    server = boot(world, **values)
    lease = sync(world)[server.uuid]
    # The server was shelved by then, if it starts later.
    sync(world)
    return server, lease


def record_of(world, server):
    return world.ledger.instance(server.uuid)


def shown(world, server):
    return world.nova.stored.get(server.uuid)


def change(world, server, **values):
    world.nova.stored[server.uuid] = dataclasses.replace(
        shown(world, server), **values
    )


def types(told):
    return [event_type for event_type, _ in told]


def events(lease):
    return {e.event_type: (e.time, e.status) for e in lease.events}


class TestMade:
    @pytest.mark.row('C31', 'C43', 'F52')
    def test_by_what_the_server_declares(self, world, host):
        server = boot(
            world, end=2 * HOUR, project_id='p', lease_name='mine',
            on_end='shelve',
        )
        world.clock.now += 5
        lease = sync(world)[server.uuid]
        assert (lease.name, lease.project_id, lease.user_id) == (
            'mine', 'p', 'alice'
        )
        assert (lease.start, lease.end) == (server.created, server.end)
        assert (lease.status, lease.degraded) == ('ACTIVE', False)
        [own] = lease.reservations
        assert own.id == reservation.lifetime_id(server.uuid)
        assert (own.resource_type, own.status) == (
            'instance:lifetime', 'active'
        )
        assert own.demand.on_end == 'shelve'
        assert events(lease) == {
            event.START_LEASE: (server.created, 'DONE'),
            event.BEFORE_END_LEASE: (server.end - HOUR, 'UNDONE'),
            event.END_LEASE: (server.end, 'UNDONE'),
        }
        assert world.held(lease) == []
        assert record_of(world, server).end == server.end
        world.check()

    def test_lifetime_lease_has_default_values(self, world, conf, host):
        conf.set_override('lifetime_on_end', 'snapshot', 'manager')
        server, lease = made(world, end=HOUR)
        assert lease.name == f'lease-{server.uuid[:6]}'
        assert lease.reservations[0].demand.on_end == 'snapshot'

    def test_server_on_any_host_has_a_lifetime_lease(self, world, host):
        server = boot(world, node='not-registered', end=HOUR)
        assert sync(world).keys() == {server.uuid}
        assert record_of(world, server) is None

    def test_servers_without_a_lifetime_have_no_lease(self, world, host):
        boot(world)
        boot(world, end=HOUR, reservation_id='any')
        boot(world, end=-1)
        boot(world, node=None, end=HOUR, status='BUILD')
        boot(world, node=None, start=HOUR, end=2 * HOUR, status='ERROR')
        assert sync(world) == {}

    def test_lifetime_lease_is_created_once(self, world, host):
        server, lease = made(world, end=HOUR)
        before = world.ledger.changes(0)['newest']
        assert sync(world) == {server.uuid: lease}
        assert world.ledger.changes(0)['newest'] == before

    def test_by_two_managers_at_once(self, world, conf, host, monkeypatch):
        """The other manager polls while this one waits for Nova."""
        server = boot(world, end=HOUR)
        other = world.another(conf)
        listed = world.nova.servers

        def servers(**filters):
            found = listed(**filters)
            monkeypatch.setattr(world.nova, 'servers', listed)
            other.instances.sync()
            return found

        monkeypatch.setattr(world.nova, 'servers', servers)
        assert sync(world).keys() == {server.uuid}
        assert len(world.ledger.leases()) == 1
        other.ledger.close()
        world.check()

    def test_many_are_not_made_in_one_commit(self, world, host, monkeypatch):
        monkeypatch.setattr(lifetimes, 'MAX_LEASES', 2)
        for _ in range(5):
            boot(world, end=HOUR, vcpus=0)
        assert [len(sync(world)) for _ in range(4)] == [2, 4, 5, 5]

    def test_server_seen_after_its_start_has_a_lease(self, world, host):
        """The server is first seen when its start has come."""
        server = boot(world, start=10, end=HOUR)
        world.clock.now += 20
        lease = sync(world)[server.uuid]
        assert (lease.start, lease.status) == (server.start, 'ACTIVE')
        assert shown(world, server).status == 'ACTIVE'
        world.check()

    def test_lifetime_lease_is_notified(self, world, host, told):
        boot(world, end=2 * HOUR)
        sync(world)
        assert types(told) == ['lease.create']


class TestLater:
    """A server that starts later."""

    @pytest.mark.row('C35', 'F54')
    def test_server_is_shelved_until_its_start(self, world, host):
        world.add_host('b')
        server, lease = made(world, start=500, end=900, vcpus=3)
        assert (lease.status, lease.start) == ('PENDING', server.start)
        [(_, place, vcpus)] = world.held(lease)
        assert vcpus == 3
        assert shown(world, server).status == 'SHELVED_OFFLOADED'
        sync(world)
        assert record_of(world, server) is None
        world.run(499)
        assert shown(world, server).node is None
        name = world.names()[place]
        world.run(1)
        assert world.lease(lease).status == 'STARTING'
        # Nova has no room yet.
        world.run(5)
        assert shown(world, server).node is None
        world.nova.lands_on = name
        world.run(5)
        world.run(5)
        assert world.lease(lease).status == 'ACTIVE'
        assert shown(world, server).node == name
        world.check()

    def test_record_replaces_the_allocation_of_an_unshelved_server(
        self, world, host
    ):
        """The commit that records the server on its host drops its allocation.
        """
        server, lease = made(world, start=500, end=900, vcpus=3)
        world.nova.lands_on = 'a'
        for _ in range(3):
            world.run(250)
        assert world.lease(lease).status == 'ACTIVE'
        assert len(world.held(lease)) == 1
        assert record_of(world, server) is None
        before = world.ledger.changes(0)['newest']
        sync(world)
        assert world.ledger.changes(0)['newest'] == before + 1
        assert world.held(lease) == []
        assert record_of(world, server).end == lease.end
        world.check()

    @pytest.mark.parametrize('specs, amounts', [
        ({'trait:CUSTOM_NEAR': 'required'}, {}),
        ({'trait:CUSTOM_FAR': 'forbidden'}, {}),
        (
            {'resources1:CUSTOM_GPU': '1', 'trait1:CUSTOM_FAST': 'required'},
            {'CUSTOM_GPU': 1},
        ),
    ])
    def test_shelved_server_has_a_host_that_its_flavor_requires(
        self, world, specs, amounts
    ):
        for name, traits, of_device in (
            ('a', ('CUSTOM_FAR',), ()),
            ('b', ('CUSTOM_NEAR',), ('CUSTOM_FAST',)),
        ):
            id_ = world.add_host(name, register=False)
            world.placement.traits_[id_] = traits
            world.placement.put_below(
                id_, f'{name}-gpu', {'CUSTOM_GPU': Units(1, 1, 1, 1)},
                of_device,
            )
            world.hosts.create(name, {})
        features = Features(specs, {}, None, 512, False, False)
        size = {'VCPU': 3, 'MEMORY_MB': 512, 'DISK_GB': 1, **amounts}
        _, lease = made(
            world, start=500, end=900, amounts=size, features=features
        )
        assert [name for _, name, _ in world.held(lease)] == [
            world.host('b').uuid
        ]
        world.check()

    def test_place_of_a_shelved_server_is_not_leased(self, world, host, whole):
        server, _ = made(world, start=500, end=900)
        world.refuse(whole(), start=600, end=700)
        world.create(whole(), start=100, end=500)
        world.create(whole(), start=900, end=window.FOREVER)
        assert shown(world, server) is not None

    def test_two_of_one_look_have_a_place_each(self, world, host):
        world.add_host('b')
        servers = [boot(world, start=500, end=900, vcpus=5) for _ in range(2)]
        leases = sync(world)
        places = [world.held(leases[s.uuid])[0][1] for s in servers]
        assert len(set(places)) == 2
        world.check()

    @pytest.mark.row('C32')
    def test_without_room_neither_lease_nor_server(self, world, host, told):
        servers = [boot(world, start=500, end=900, vcpus=5) for _ in range(2)]
        leases = sync(world)
        [stays] = [s for s in servers if s.uuid in leases]
        assert world.nova.stored.keys() == {stays.uuid}
        assert sorted(types(told)) == ['lease.create', 'lease.create.error']
        assert sync(world).keys() == leases.keys()
        world.check()

    def test_room_that_has_come_meanwhile_saves_it(
        self, world, host, whole, monkeypatch
    ):
        """A server is deleted only after its lease was tried once more."""
        rival = world.create(whole(), start=500, end=900)
        server = boot(world, start=500, end=900)
        ask = world.nova.server

        def meanwhile(uuid):
            monkeypatch.setattr(world.nova, 'server', ask)
            world.leases.delete(rival.id, None)
            return ask(uuid)

        monkeypatch.setattr(world.nova, 'server', meanwhile)
        assert sync(world).keys() == {server.uuid}
        assert shown(world, server).status == 'SHELVED_OFFLOADED'

    def test_shelving_is_requested_until_the_server_has_gone(
        self, world, host
    ):
        world.nova.slowness = 2
        server = boot(world, start=500, end=900)
        for status in ('ACTIVE', 'ACTIVE', 'SHELVED_OFFLOADED'):
            sync(world)
            assert shown(world, server).status == status
        assert len(world.ledger.leases()) == 1

    def test_server_that_nova_does_not_shelve_delays_no_other(
        self, world, host, monkeypatch
    ):
        """This covers other servers, also servers without room."""
        stuck, goes = (boot(world, start=500, end=900) for _ in 'ab')
        too_much = boot(world, start=500, end=900, vcpus=8)
        shelve = world.nova.shelve_servers

        def shelve_servers(servers):
            for server in servers:
                if server.uuid == stuck.uuid:
                    raise exception.Unavailable('compute answered 403')
                shelve([server])

        monkeypatch.setattr(world.nova, 'shelve_servers', shelve_servers)
        assert sync(world).keys() == {stuck.uuid, goes.uuid}
        assert shown(world, stuck).status == 'ACTIVE'
        assert shown(world, goes).status == 'SHELVED_OFFLOADED'
        assert shown(world, too_much) is None

    def test_server_is_not_shelved_by_an_old_view_in_its_window(
        self, world, host
    ):
        """Its start comes between the commit and the request to Nova."""
        server = boot(world, start=500, end=900)
        mine = lifetimes.Lifetimes(world.manager.bookings, world.nova, {})
        written = world.ledger.commit(
            lambda tx: mine.write(tx, [server], world.now)
        )
        world.clock.now = server.start
        mine.follow(written)
        assert shown(world, server).status == 'ACTIVE'
        assert len(world.ledger.leases()) == 1

    def test_keeps_its_place_whatever_an_old_view_says(
        self, world, host, monkeypatch
    ):
        """The server was seen on its first host, and its start has come since.
        """
        server, lease = made(world, start=500, end=900)
        monkeypatch.setattr(world.nova, 'servers', lambda **filters: [server])
        world.clock.now = server.start
        sync(world)
        assert len(world.held(lease)) == 1

    def test_that_is_on_a_host_at_its_start_stays(self, world, host):
        """Nova did not shelve the server in time."""
        world.nova.slowness = 10**6
        server, lease = made(world, start=500, end=900)
        world.run(500)
        assert world.lease(lease).status == 'ACTIVE'
        sync(world)
        assert world.held(lease) == []
        assert record_of(world, server).end == lease.end
        world.check()

    def test_start_waits_for_a_server_that_is_being_shelved(self, world, host):
        server, lease = made(world, start=500, end=900)
        change(
            world, server, node='a', status='ACTIVE',
            task='shelving_image_uploading',
        )
        world.run(500)
        assert world.lease(lease).status == 'STARTING'
        change(world, server, node=None, status='SHELVED_OFFLOADED', task=None)
        world.nova.lands_on = 'a'
        world.run(5)
        world.run(5)
        assert world.lease(lease).status == 'ACTIVE'

    def test_moves_with_its_lease(self, world, host, whole):
        server, lease = made(world, start=500, end=900)
        world.create(whole(), start=900, end=950)
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.update_lease(lease, end=lease.end + 10)
        world.update_lease(lease, start=world.now + 10, end=world.now + 60)
        [(held, _)] = world.ledger.allocations(lease_id=lease.id)
        assert (held.start, held.end) == (world.now + 10, world.now + 60)
        world.nova.lands_on = 'a'
        world.run(10)
        world.run(5)
        assert shown(world, server).status == 'ACTIVE'
        world.check()

    def test_place_of_a_shelved_server_is_healed(self, world, host):
        world.add_host('b')
        server, lease = made(world, start=500, end=900)
        [(_, place, _)] = world.held(lease)
        name = world.names()[place]
        world.fail('a', 'b')
        [lost] = world.lease(lease).reservations
        assert lost.missing_resources
        other = 'ab'[name == 'a']
        world.set_up(other)
        [found] = world.lease(lease).reservations
        assert not found.missing_resources
        [(_, place, _)] = world.held(lease)
        assert world.host(other).uuid == place
        world.check()

    def test_that_has_lost_its_place_starts_wherever_there_is_room(
        self, world, host
    ):
        server, lease = made(world, start=500, end=900)
        world.fail('a')
        assert world.lease(lease).degraded
        world.nova.lands_on = 'elsewhere'
        world.run(500)
        world.run(5)
        started = world.lease(lease)
        assert started.status == 'ACTIVE'
        assert not started.reservations[0].missing_resources
        assert shown(world, server).node == 'elsewhere'
        world.check()

    def test_of_an_owner_who_is_restricted_to_hosts(self, world, host):
        world.add_host('b', projects='p')
        server = boot(world, start=500, end=900, vcpus=5)
        other = boot(world, start=500, end=900, vcpus=5, project_id='p')
        leases = sync(world)
        assert world.held(leases[server.uuid])[0][1] == host
        assert world.held(leases[other.uuid])[0][1] == world.host('b').uuid

    def test_deleted_server_leaves_no_allocation(self, world, host, whole):
        server, _ = made(world, start=500, end=900)
        del world.nova.stored[server.uuid]
        assert sync(world) == {}
        world.create(whole(), start=500, end=900)

    def test_server_that_declares_only_a_start_has_an_endless_lease(
        self, world, host
    ):
        """The server declares only a start."""
        server, lease = made(world, start=500)
        assert lease.end == window.FOREVER
        world.nova.lands_on = 'a'
        world.run(500)
        world.run(5)
        sync(world)
        assert record_of(world, server).end == window.FOREVER
        world.check()


class TestEnd:
    def ended(self, world, on_end, **values):
        server, lease = made(world, end=HOUR, on_end=on_end, **values)
        for seconds in (HOUR, 5, 5, 5):
            world.run(seconds)
        return server, world.lease(lease)

    @pytest.mark.row('C35')
    def test_by_delete(self, world, host):
        server, lease = self.ended(world, 'delete')
        assert shown(world, server) is None
        assert lease.status == 'TERMINATED'
        # The server still exists.
        assert sync(world) == {server.uuid: lease}
        assert record_of(world, server) is None
        world.check()

    @pytest.mark.row('C35')
    def test_by_shelve(self, world, host):
        server, lease = self.ended(world, 'shelve')
        assert shown(world, server).status == 'SHELVED_OFFLOADED'
        assert lease.status == 'TERMINATED'
        sync(world)
        # The owner may unshelve the server: then it has no end.
        change(world, server, node='a', status='ACTIVE')
        assert sync(world) == {server.uuid: lease}
        world.run(HOUR)
        assert shown(world, server).status == 'ACTIVE'
        world.refuse(start=10 * HOUR, end=20 * HOUR)

    @pytest.mark.row('C35')
    def test_by_snapshot(self, world, host):
        world.nova.slowness = 1
        server, lease = self.ended(world, 'snapshot', name='box')
        assert world.nova.images == [
            (
                server.uuid, 'lifetime_box',
                {
                    'blazar:reservation': lease.reservations[0].id,
                    'blazar:ending': lease.ending,
                },
            )
        ]
        assert shown(world, server) is None
        assert lease.status == 'TERMINATED'

    def test_no_server_goes_before_its_image_is_complete(
        self, world, host, monkeypatch
    ):
        server, lease = made(world, end=HOUR, on_end='snapshot')
        monkeypatch.setattr(world.nova, 'create_image', lambda *args: False)
        for seconds in (HOUR, 10, 10):
            world.run(seconds)
            assert shown(world, server) is not None
        assert world.lease(lease).status == 'TERMINATING'

    @pytest.mark.parametrize('on_end', ['shelve', 'snapshot'])
    def test_no_lease_that_starts_deletes_what_is_to_last(
        self, world, host, whole, monkeypatch, on_end
    ):
        """Both events are due at once, and the image is not complete."""
        server, lease = made(world, end=HOUR, on_end=on_end)
        other = world.create(
            whole(), start=HOUR, end=2 * HOUR, project_id='other'
        )
        monkeypatch.setattr(world.nova, 'create_image', lambda *args: False)
        for seconds in (HOUR, 10, 10):
            world.run(seconds)
        assert shown(world, server).status == 'SHELVED_OFFLOADED'
        assert world.lease(lease).status == 'TERMINATED'
        assert not world.lease(other).degraded

    def test_by_snapshot_of_one_that_is_shelved(self, world, host):
        """A shelved server has an image, which its deletion would remove."""
        server, lease = made(world, end=HOUR, on_end='snapshot')
        change(world, server, node=None, status='SHELVED_OFFLOADED')
        world.run(HOUR)
        assert shown(world, server).status == 'SHELVED_OFFLOADED'
        assert world.nova.images == []
        assert world.lease(lease).status == 'TERMINATED'

    @pytest.mark.parametrize('softly', [True, False])
    @pytest.mark.parametrize('on_end', reservation.LIFETIME_ON_END)
    def test_lease_of_a_deleted_server_ends(self, world, host, on_end, softly):
        server, lease = made(world, end=HOUR, on_end=on_end)
        if softly:
            change(world, server, status='SOFT_DELETED')
        else:
            del world.nova.stored[server.uuid]
        world.run(HOUR)
        assert world.lease(lease).status == 'TERMINATED'
        assert world.nova.asked == {}

    def test_nova_is_away(self, world, host):
        server, lease = made(world, end=HOUR)
        world.nova.failures = 2
        for seconds in (HOUR, 15, 15, 15):
            world.run(seconds)
        assert shown(world, server) is None
        assert world.lease(lease).status == 'TERMINATED'

    def test_a_lease_that_is_deleted_ends_its_server(self, world, host):
        now = boot(world, end=HOUR)
        later = boot(world, start=500, end=900)
        for lease in sync(world).values():
            world.leases.delete(lease.id, None)
        assert world.ledger.leases() == []
        assert world.nova.stored == {}
        assert now.uuid != later.uuid
        assert sync(world) == {}
        world.check()

    def test_shelved_server_gets_no_second_lease(self, world, host):
        server, lease = made(world, end=HOUR, on_end='shelve')
        world.leases.delete(lease.id, None)
        assert shown(world, server).status == 'SHELVED_OFFLOADED'
        assert sync(world) == {}
        # When the server has a host again, it has its end.
        change(world, server, node='a', status='ACTIVE')
        assert sync(world)[server.uuid].end == server.end

    def test_server_that_outlives_its_lease_gets_no_second_lease(
        self, world, host
    ):
        """Nothing ends the server any more."""
        server, lease = made(world, end=HOUR, on_end='shelve')
        world.update_lease(lease, end='now')
        for _ in range(2):
            world.run(60)
        change(world, server, node='a', status='ACTIVE')
        assert sync(world)[server.uuid].status == 'TERMINATED'
        assert record_of(world, server).end == window.FOREVER

    def test_nor_of_one_that_is_deleted_softly(self, world, host, monkeypatch):
        """Lists do not show the server any more, but it still uses its host.
        """
        server, lease = made(world, end=HOUR)
        change(world, server, status='SOFT_DELETED')
        world.ledger.commit(lambda tx: tx.delete_lease(lease.id))
        monkeypatch.setattr(world.nova, 'servers', lambda **filters: [])
        assert sync(world) == {}
        assert record_of(world, server) is not None

    def test_server_shelved_before_its_start_gets_no_second_lease(
        self, world, host, whole
    ):
        server, lease = made(world, start=500, end=900, on_end='shelve')
        world.leases.delete(lease.id, None)
        assert shown(world, server).status == 'SHELVED_OFFLOADED'
        assert sync(world) == {}
        world.create(whole(), start=500, end=900)


class TestExtend:
    def extend(self, world, lease, end):
        return world.update_lease(lease, end=end)

    @pytest.mark.row('F69')
    def test_as_far_as_its_host_is_free(self, world, host, whole):
        server, lease = made(world, end=HOUR)
        world.create(whole(), start=3 * HOUR, end=4 * HOUR)
        furthest = world.now + 3 * HOUR
        text = duration.format_time(furthest)
        for end in (furthest + 1, window.FOREVER):
            with refused(
                exception.NotEnoughHostsAvailable, 'end_date',
                match=f'end_date.* at most {text}',
            ) as caught:
                self.extend(world, lease, end)
            assert caught.value.status == 409
        assert world.lease(lease) == lease
        extended = self.extend(world, lease, furthest)
        assert extended.end == furthest
        # The change is made at once, not by the next sync.
        assert record_of(world, server).end == furthest
        assert sync(world)[server.uuid].end == furthest
        assert record_of(world, server).end == furthest
        world.run(HOUR)
        assert shown(world, server) is not None
        world.run(2 * HOUR)
        assert shown(world, server) is None
        world.check()

    def test_lease_is_extended_for_ever_on_a_host_without_leases(
        self, world, host
    ):
        # The host has no inventory of one class: a child provider has.
        amounts = {'VCPU': 1, 'MEMORY_MB': 512, 'DISK_GB': 1, 'VGPU': 1}
        server, lease = made(world, end=HOUR, amounts=amounts)
        assert self.extend(world, lease, window.FOREVER).end == window.FOREVER
        assert record_of(world, server).end == window.FOREVER
        world.run(10 * HOUR)
        assert shown(world, server) is not None

    def test_extension_keeps_later_leases_off_the_host(
        self, world, host, whole
    ):
        """The allocation is written in the lease's commit."""
        lease = made(world, end=HOUR)[1]
        self.extend(world, lease, lease.end + HOUR)
        world.refuse(whole(), start=HOUR, end=2 * HOUR)

    def test_extension_counts_where_the_server_has_moved(
        self, world, host, whole
    ):
        """A lease starts on the new host before the move is recorded."""
        world.add_host('b')
        server, lease = made(world, end=HOUR)
        self.extend(world, lease, lease.end + 5 * HOUR)
        other = world.create(
            whole(), start=2 * HOUR, end=3 * HOUR, project_id='other'
        )
        change(world, server, node='b')
        world.run(2 * HOUR)
        assert shown(world, server).status == 'ACTIVE'
        assert world.lease(other).degraded

    def test_lifetime_lease_can_always_be_shortened(self, world, host, whole):
        server, lease = made(world, end=2 * HOUR)
        self.extend(world, lease, world.now + HOUR)
        assert record_of(world, server).end == world.now + HOUR
        world.create(whole(), start=HOUR, end=2 * HOUR)
        world.clock.now += 5
        self.extend(world, lease, 'now')
        world.run()
        assert shown(world, server) is None

    def test_on_a_host_that_is_over_full_already(self, world, host, whole):
        """The lease is not responsible for overcommitment before its old end.
        """
        server, lease = made(world, end=HOUR)
        boot(world, end=HOUR - 1, vcpus=8)
        sync(world)
        self.extend(world, lease, lease.end + HOUR)
        assert record_of(world, server).end == lease.end + HOUR

    def test_lease_is_extended_just_after_its_end(self, world, host):
        """The server counts for ever by then, but not against its own lease.
        """
        server, lease = made(world, end=HOUR, vcpus=5)
        world.clock.now += HOUR + 10
        self.extend(world, lease, world.now + HOUR)
        world.run()
        assert shown(world, server) is not None
        assert record_of(world, server).end == world.now + HOUR

    def test_preemptible_takes_nobodys_room(self, world, host, whole):
        server, lease = made(world, end=HOUR, preemptible=True)
        world.create(whole(), start=3 * HOUR, end=4 * HOUR)
        self.extend(world, lease, world.now + 5 * HOUR)
        assert record_of(world, server).end == world.now + 5 * HOUR

    def test_lease_on_a_host_that_is_not_reservable_is_extended(
        self, world, host
    ):
        _, lease = made(world, node='not-registered', end=HOUR)
        self.extend(world, lease, window.FOREVER)
        assert world.lease(lease).end == window.FOREVER

    def test_while_its_owner_has_it_shelved(self, world, host):
        server, lease = made(world, end=HOUR)
        change(world, server, node=None, status='SHELVED_OFFLOADED')
        sync(world)
        self.extend(world, lease, lease.end + HOUR)
        world.run(10)
        assert shown(world, server).status == 'SHELVED_OFFLOADED'
        world.run(2 * HOUR)
        assert shown(world, server) is None

    def test_lease_is_extended_before_its_server_has_a_record(
        self, world, host, whole
    ):
        """The server keeps its allocation until its record replaces it."""
        server, lease = made(world, start=500, end=900, vcpus=5)
        world.nova.lands_on = 'a'
        world.run(500)
        world.run(5)
        assert world.lease(lease).status == 'ACTIVE'
        self.extend(world, lease, lease.end + 100)
        world.refuse(whole(), start=395 + 50, end=395 + 90)
        sync(world)
        assert world.held(lease) == []
        assert record_of(world, server).end == lease.end + 100
        world.check()


class TestForget:
    def test_a_server_that_its_owner_deletes(self, world, host, told):
        server = boot(world, end=HOUR)
        sync(world)
        del world.nova.stored[server.uuid]
        assert sync(world) == {}
        assert types(told) == ['lease.create', 'lease.delete']
        assert world.nova.asked == {}
        world.run(2 * HOUR)
        world.check()

    def test_lease_that_is_being_ended_is_not_removed(self, world, host):
        server, lease = made(world, end=HOUR)
        world.clock.now += HOUR
        delete = world.nova.delete_servers

        def meanwhile(servers):
            done = delete(servers)
            sync(world)
            return done

        world.nova.delete_servers = meanwhile
        world.run()
        world.run(5)
        assert shown(world, server) is None
        assert world.lease(lease).status == 'TERMINATED'
        world.check()


class TestLease:
    """The requests that clients may make about such a lease."""

    def update(self, world, lease, **values):
        [own] = lease.reservations
        return world.update_lease(
            lease, reservations=[{'id': own.id, **values}],
        )

    def test_lifetime_lease_cannot_be_created_by_a_request(self, world, host):
        with refused(
            exception.InvalidInput, 'resource_type', match='boot a server',
        ):
            world.create(
                {'resource_type': 'instance:lifetime', 'instance_id': 'x'}
            )

    def test_on_end_of_a_lifetime_can_be_changed(self, world, host):
        server, lease = made(world, end=HOUR)
        for wrong in ('keep', None, 3):
            with refused(exception.InvalidInput, 'on_end'):
                self.update(world, lease, on_end=wrong)
        self.update(world, lease, on_end='shelve')
        world.run()
        world.run(HOUR)
        world.run(5)
        assert shown(world, server).status == 'SHELVED_OFFLOADED'

    def test_changed_on_end_does_not_unshelve_the_server(self, world, host):
        server, lease = made(world, end=HOUR)
        change(world, server, node=None, status='SHELVED_OFFLOADED')
        world.nova.lands_on = 'a'
        self.update(world, lease, on_end='shelve')
        world.run(5)
        assert shown(world, server).status == 'SHELVED_OFFLOADED'
        assert world.lease(lease).status == 'ACTIVE'

    @pytest.mark.parametrize('name, value', [
        ('instance_id', 'other'), ('amount', 2), ('resources', {}),
        ('projects', ['friend']), ('magnetic', True),
    ])
    def test_only_name_and_end_of_a_lifetime_lease_can_change(
        self, world, host, name, value
    ):
        lease = made(world, end=HOUR)[1]
        with refused(exception.CantUpdateParameter, name):
            self.update(world, lease, **{name: value})

    def test_lease_of_a_lifetime_has_no_other_reservation(
        self, world, host, slots
    ):
        lease = made(world, end=HOUR)[1]
        with pytest.raises(exception.CantUpdateParameter):
            self.update(world, lease, remove=True)
        with pytest.raises(exception.CantUpdateParameter):
            world.update_lease(lease, reservations=[slots()])
        assert world.lease(lease) == lease


class TestEnforcement:
    @pytest.fixture
    def conf(self, conf):
        for name, value in {
            'enabled_filters': ['MaxLeaseDurationFilter', 'MaxHorizonFilter'],
            'max_lease_duration': HOUR,
        }.items():
            conf.set_override(name, value, 'enforcement')
        return conf

    @pytest.mark.parametrize('option, start, end, reason', [
        ('max_lease_duration', HOUR, 2 * HOUR + 1, 'may last'),
        ('max_start_horizon', HOUR + 1, HOUR + 2, 'may start'),
        ('max_end_horizon', HOUR - 1, HOUR + 1, 'may end'),
    ])
    def test_limits_hold_for_lifetime_leases_that_start_later(
        self, world, conf, host, caplog, option, start, end, reason
    ):
        conf.set_override(option, HOUR, 'enforcement')
        server = boot(world, start=start, end=end)
        assert not sync(world)
        assert server.uuid not in world.nova.stored
        assert reason in caplog.text and server.uuid in caplog.text
        conf.set_override(option, HOUR + 1, 'enforcement')
        server = boot(world, start=start, end=end)
        assert sync(world).keys() == {server.uuid}
        world.check()

    def test_limits_hold_for_changes_of_lifetime_leases_that_start_later(
        self, world, host
    ):
        _, lease = made(world, start=500, end=900)
        with pytest.raises(exception.MaxLeaseDuration):
            world.update_lease(lease, end=lease.start + HOUR + 1)
        world.update_lease(lease, end=lease.start + HOUR)
