# SPDX-License-Identifier: Apache-2.0
"""The servers of a reservation: which they are, and until when.

The record of a server changes in the commit of the lease, not with the next
poll of Nova.
"""

from collections import Counter
import dataclasses

import pytest

from blazar_sched.domain import window
from tests.functional.manager.conftest import at


def records(world):
    return {i.uuid: i for i in world.ledger.instances()}


def sync(world):
    world.manager.instances.sync()
    return records(world)


def own(world, lease, node='a', **values):
    """Boot a server that names a lease's first reservation."""
    return world.add_server(
        node, 'project', reservation_id=lease.reservations[0].id,
        created=world.now, **values,
    )


@pytest.fixture
def host(world):
    return world.add_host('a')


@pytest.fixture(params=['whole', 'slots'])
def kept(request, whole, slots):
    """Return a request for a whole host whose servers are to be kept."""
    if request.param == 'whole':
        return whole(on_end='keep')
    return slots(2, 4, on_end='keep')


@pytest.mark.row('F60')
class TestKept:
    @pytest.mark.parametrize('looked', [True, False])
    def test_stay_and_degrade_the_next_lease(
        self, world, whole, host, kept, looked
    ):
        one = world.start_lease(kept, end=1000)
        two = world.create(whole(), start=1000, end=2000, project_id='other')
        servers = [own(world, one, vcpus=4) for _ in range(2)]
        sync(world)
        world.run(1000)
        if looked:
            sync(world)
        assert world.nova.stored.keys() == {s.uuid for s in servers}
        assert world.lease(one).status == 'TERMINATED'
        assert world.lease(two).degraded
        assert set(world.lease(two).reservations[0].made['in_the_way']) == (
            world.nova.stored.keys()
        )
        world.check()

    def test_count_from_the_commit_on(self, world, whole, host, kept):
        lease = world.start_lease(kept, end=86400)
        own(world, lease, vcpus=4)
        sync(world)
        world.run(100)
        world.update_lease(lease, end='now')
        world.run(1)
        assert world.lease(lease).status == 'TERMINATED'
        world.refuse(whole(), start='now', end=7200)

    def test_kept_servers_count_however_long_the_end_takes(
        self, world, whole, host, kept
    ):
        lease = world.start_lease(kept, end=1000)
        own(world, lease, vcpus=4)
        sync(world)
        world.nova.failures, world.nova.refuses = 10**6, True
        world.run(1000)
        assert world.lease(lease).status == 'TERMINATING'
        world.refuse(whole(), start=2000, end=7200)
        world.check()

    def test_count_once_the_lease_is_deleted(self, world, whole, host, kept):
        """This holds also beyond the former end of the lease."""
        lease = world.start_lease(kept, end=3600)
        server = own(world, lease, vcpus=4)
        sync(world)
        world.leases.delete(lease.id, None)
        assert records(world)[server.uuid].claim is None
        world.refuse(whole(), start=4000, end=7200)
        world.check()

    def test_count_from_the_removal_of_the_reservation_on(
        self, world, whole, slots, host
    ):
        """Nova is away, so that the end takes long."""
        world.add_host('b')
        lease = world.start_lease(whole(on_end='keep'), slots(1), end=86400)
        one = lease.reservations[0]
        [held] = [h for id_, h, *_ in world.held(lease) if id_ == one.id]
        server = own(world, lease, world.names()[held], vcpus=4)
        sync(world)
        world.run(100)
        world.nova.failures, world.nova.refuses = 10**6, True
        world.change_reservation(lease, remove=True)
        assert records(world)[server.uuid].claim is None
        world.refuse(whole(), start=10, end=7200)
        world.check()

    def test_count_once_the_reservation_is_removed(self, world, slots, host):
        lease = world.start_lease(slots(1, 2, on_end='keep'), slots(1, 2))
        server = own(world, lease)
        sync(world)
        world.change_reservation(lease, remove=True)
        world.run()
        record = records(world)[server.uuid]
        assert (record.claim, record.reservation_id) == (None, None)
        assert record.end == window.FOREVER

    def test_kept_servers_have_their_declared_end(self, world, host, kept):
        lease = world.start_lease(kept, end=1000)
        server = own(world, lease, end=world.now + 5000)
        early = own(world, lease, end=world.now + 500)
        seen = sync(world)
        world.run(1000)
        for record in (seen, records(world), sync(world)):
            assert record[server.uuid].end == server.end
            # The reservation has overridden it.
            assert record[early.uuid].end == window.FOREVER
        # From now on the server is ended as any other server.
        [lifetime] = [e for e in world.ledger.leases() if e.is_lifetime]
        assert lifetime.end == server.end

    def test_last_on_end_of_the_reservation_decides(self, world, slots, host):
        lease = world.start_lease(slots(1, 2), end=1000)
        server = own(world, lease)
        assert sync(world)[server.uuid].end == lease.end
        for on_end, end in (('keep', window.FOREVER), ('delete', lease.end)):
            world.change_reservation(lease, on_end=on_end)
            world.run()
            assert records(world)[server.uuid].end == end

    def test_come_back_from_being_shelved_as_ordinary_ones(
        self, world, slots, host
    ):
        """A hint that names a past reservation has no effect."""
        lease = world.start_lease(slots(1, 2, on_end='shelve'), end=1000)
        server = own(world, lease)
        sync(world)
        world.run(1000)
        world.run(1)
        assert world.lease(lease).status == 'TERMINATED'
        world.nova.stored[server.uuid] = server
        assert sync(world)[server.uuid].end == window.FOREVER
        world.create(slots(1, 2), start=100, end=200, project_id='other')
        world.run(100)
        assert server.uuid in world.nova.stored


@pytest.mark.parametrize('over', [
    lambda world, lease: world.update_lease(lease, end='now'),
    lambda world, lease: world.leases.delete(lease.id, None),
    lambda world, lease: world.change_reservation(lease, remove=True),
], ids=['ended', 'deleted', 'removed'])
@pytest.mark.parametrize('asked', ['whole', 'slots'])
def test_hosts_of_deleted_servers_are_free_before_the_next_look_at_nova(
    world, whole, slots, host, over, asked
):
    world.add_host('b')
    mine = whole() if asked == 'whole' else slots(2, 4)
    lease = world.start_lease(
        {**mine, 'resource_properties': at('a')},
        slots(1, 2, resource_properties=at('b')), end=86400,
    )
    server = own(world, lease, vcpus=4)
    sync(world)
    world.run(100)

    over(world, lease)
    for _ in range(2):
        world.run(1)

    assert server.uuid not in world.nova.stored
    world.create(
        whole(resource_properties=at('a')), start='now', end=7200,
        project_id='other',
    )
    world.check()


class TestProlonged:
    def test_the_servers_end_with_it(self, world, slots, host):
        lease = world.start_lease(slots(2, 2), end=1000)
        for _ in range(2):
            own(world, lease, vcpus=2)
        sync(world)
        world.run(995)
        world.update_lease(lease, end=world.now + 86400)
        assert {r.end for r in records(world).values()} == {world.now + 86400}
        world.run(6)
        # Half of the host is reserved, and used by the reservation's project.
        world.create(slots(2, 2), start='now', end=100)
        world.check()

    def test_servers_of_a_shortened_lease_end_with_it(
        self, world, slots, host
    ):
        lease = world.start_lease(slots(1, 2), end=1000)
        server = own(world, lease)
        sync(world)
        world.update_lease(lease, end=world.now + 500)
        assert records(world)[server.uuid].end == world.now + 500

    def test_servers_on_a_host_that_the_lease_has_left_are_prolonged(
        self, world, whole, slots
    ):
        world.add_hosts('a', 'b')
        lease = world.start_lease(slots(1, 2), end=1000)
        [(_, held, _)] = world.held(lease)
        name = world.names()[held]
        server = own(world, lease, name, vcpus=2)
        sync(world)
        world.fail(name)
        world.healer.heal()
        world.run()
        # The host is up again, but the reservation is over.
        world.set_up(name)
        record = records(world)[server.uuid]
        assert record.reservation_id is None
        assert record.claim == lease.reservations[0].id
        two = world.create(
            whole(resource_properties=at(name)),
            start=1000, end=2000, project_id='other',
        )
        world.run(995)
        world.update_lease(lease, end=world.now + 86400)
        world.run(5)
        assert server.uuid in world.nova.stored
        assert world.lease(two).degraded


class TestEndedLate:
    def give_up(self, world, lease):
        """Make the end of a lease fail until it is given up."""
        world.clock.now = lease.end
        for _ in range(40):
            world.nova.failures, world.nova.refuses = 10**6, True
            world.run(11)
        world.nova.failures, world.nova.refuses = 0, False
        assert world.lease(lease).status == 'ERROR'

    def test_server_created_after_the_window_stays(self, world, whole, host):
        lease = world.start_lease(whole(), end=1000)
        mine = world.add_server('a', 'project', created=world.now)
        world.clock.now += 999
        world.nova.failures, world.nova.refuses = 10**6, True
        world.run(1)
        world.nova.failures, world.nova.refuses = 0, False
        later = world.add_server('a', 'project', created=world.now)
        for _ in range(3):
            world.run(60)
        assert world.lease(lease).status == 'TERMINATED'
        assert world.nova.stored.keys() == {later.uuid}
        assert world.nova.asked.keys() == {mine.uuid}

    def test_server_of_another_reservation_stays(self, world, whole, host):
        """A lease in ERROR is deleted long after its end."""
        one = world.start_lease(whole(), end=1000)
        self.give_up(world, one)
        two = world.start_lease(whole(magnetic=True), end=100000)
        # The server was created before the end of the first lease, and moved
        # here since.
        mine = world.add_server('a', 'project', created=one.end - 1)
        assert sync(world)[mine.uuid].claim == two.reservations[0].id
        world.run(10000)
        world.leases.delete(one.id, None)
        assert mine.uuid in world.nova.stored

    def test_servers_of_a_late_end_are_shelved(
        self, world, whole, slots, host
    ):
        """This is done also by the next lease, whose start clears the host."""
        one = world.start_lease(slots(1, 2, on_end='shelve'), end=1000)
        two = world.create(whole(), start=3000, end=4000, project_id='other')
        server = own(world, one)
        sync(world)
        self.give_up(world, one)
        world.run(two.start - world.now)
        assert world.lease(two).status == 'ACTIVE'
        assert world.nova.stored[server.uuid].status == 'SHELVED_OFFLOADED'


class TestMagnetic:
    def test_servers_are_copied_before_the_end(self, world, whole, host):
        lease = world.start_lease(
            whole(before_end='snapshot', magnetic=True), end=7200,
            before_end=world.now + 3600,
        )
        server = world.add_server('a', 'project', name='mine')
        assert sync(world)[server.uuid].claim == lease.reservations[0].id
        world.run(3600)
        assert [image[0] for image in world.nova.images] == [server.uuid]
        world.run(3600)
        world.run(1)
        assert not world.nova.stored

    @pytest.mark.parametrize('on_end', ['delete', 'shelve'])
    def test_the_servers_of_others_are_left_alone(
        self, world, whole, host, on_end
    ):
        """Servers of other projects must name the reservation."""
        lease = world.start_lease(
            whole(magnetic=True, projects=['victim'], on_end=on_end,
                  before_end='snapshot'),
            end=1000, before_end=world.now + 500,
        )
        id_ = lease.reservations[0].id
        theirs = world.add_server('a', 'victim', created=world.now)
        guest = world.add_own_server(lease, 'a', 'victim', created=world.now)
        seen = sync(world)
        assert seen[theirs.uuid].claim is None
        assert seen[guest.uuid].claim == id_
        world.run(500)
        assert [image[0] for image in world.nova.images] == [guest.uuid]
        world.run(500)
        world.run(1)
        assert world.lease(lease).status == 'TERMINATED'
        assert world.nova.stored[theirs.uuid] == theirs
        assert world.nova.asked.keys() == {guest.uuid}


class TestLateRecord:
    """No manager polls the servers before the window opens."""

    @pytest.mark.parametrize('magnetic', [True, False])
    @pytest.mark.parametrize('looked', [True, False])
    def test_server_created_before_the_window_is_not_ended(
        self, world, whole, host, looked, magnetic
    ):
        """The server was in the way when the window opened."""
        lease = world.create(whole(magnetic=magnetic), start=100, end=1000)
        mine = world.add_server('a', 'project', created=world.now)
        world.run(100)
        assert world.lease(lease).degraded
        if looked:
            assert sync(world)[mine.uuid].claim is None
        world.run(900)
        world.run(1)
        assert world.lease(lease).status == 'TERMINATED'
        assert mine.uuid in world.nova.stored

    def test_server_created_before_a_late_start_is_not_ended(
        self, world, whole, host
    ):
        lease = world.create(whole(), start=100, end=1000)
        mine = world.add_server('a', 'project', created=world.now)
        world.clock.now += 101
        assert sync(world)[mine.uuid].claim is None
        world.run()
        world.run(900)
        world.run(1)
        assert world.lease(lease).status == 'TERMINATED'
        assert mine.uuid in world.nova.stored

    def test_server_on_an_added_host_is_not_ended(self, world, whole, host):
        world.add_host('b')
        lease = world.start_lease(whole(), end=1000)
        [(_, held, _)] = world.held(lease)
        other = 'b' if world.names()[held] == 'a' else 'a'
        mine = world.add_server(other, 'project', created=world.now - 1)
        world.change_reservation(lease, min=2, max=2)
        world.run()
        assert world.lease(lease).degraded
        world.run(1000)
        world.run(1)
        assert world.lease(lease).status == 'TERMINATED'
        assert mine.uuid in world.nova.stored

    def test_server_created_in_the_window_is_ended(self, world, whole, host):
        lease = world.start_lease(whole(), end=1000)
        moved = world.add_server('a', 'project', created=world.now - 1)
        world.run(1000)
        world.run(1)
        assert world.lease(lease).status == 'TERMINATED'
        assert moved.uuid not in world.nova.stored

    @pytest.mark.parametrize('looked', [True, False])
    @pytest.mark.parametrize('moved_at, stays', [(1000, True), (999, False)])
    def test_only_a_server_that_moved_after_the_late_end_stays(
        self, world, whole, host, looked, moved_at, stays
    ):
        """Nova is away at the end; the server was created in the window."""
        world.add_host('b')
        lease = world.start_lease(whole(), end=1000)
        [(_, held, *_)] = world.held(lease)
        node = world.names()[held]
        elsewhere = 'b' if node == 'a' else 'a'
        server = world.add_server(elsewhere, 'project', created=world.now)
        sync(world)
        moved_at += world.now
        world.nova.failures, world.nova.refuses = 10**6, True
        world.run(1100)
        world.nova.failures, world.nova.refuses = 0, False
        world.nova.stored[server.uuid] = dataclasses.replace(server, node=node)
        world.nova.moved[server.uuid] = moved_at
        if looked:
            sync(world)
        for _ in range(3):
            world.run(60)
        assert world.lease(lease).status == 'TERMINATED'
        assert (server.uuid in world.nova.stored) is stays


class TestDeleted:
    """Nova is away while a lease is deleted."""

    @pytest.fixture
    def delete(self, world):
        """Delete a lease, or its reservation, and return the ending lease."""

        def delete(lease, reservation=None):
            world.nova.failures, world.nova.refuses = 10**6, True
            if reservation is None:
                world.leases.delete(lease.id, None)
            else:
                change = {'id': reservation.id, 'remove': True}
                world.update_lease(lease, reservations=[change])
            world.run(5)
            world.nova.failures, world.nova.refuses = 0, False

        return delete

    @pytest.mark.parametrize('removed', [False, True])
    def test_server_created_after_the_deletion_stays(
        self, world, whole, slots, host, delete, removed
    ):
        world.add_host('b')
        lease = world.start_lease(whole(), slots(1), end=1000)
        one = lease.reservations[0]
        [node] = [
            world.names()[h]
            for id_, h, *_ in world.held(lease) if id_ == one.id
        ]
        world.run(100)
        mine = world.add_server(node, 'project', created=world.now)
        sync(world)
        world.run(100)
        delete(lease, one if removed else None)
        later = world.add_server(node, 'project', created=world.now)
        assert sync(world)[later.uuid].claim is None
        for _ in range(3):
            world.run(60)
        assert set(world.nova.stored) == {later.uuid}
        assert mine.uuid in world.nova.asked
        world.check()


class TestAsked:
    """The number of requests to Nova for lists of servers."""

    @pytest.fixture
    def asked(self, world, monkeypatch):
        asked = Counter()
        listed = world.nova.servers

        def servers(**filters):
            asked.update(filters.items())
            return listed(**filters)

        monkeypatch.setattr(world.nova, 'servers', servers)
        return asked

    def test_once_for_all_reservations_of_a_lease(
        self, world, slots, host, asked
    ):
        lease = world.start_lease(*(slots(1, 1) for _ in range(4)))
        asked.clear()
        world.run(200)
        assert world.lease(lease).status == 'TERMINATED'
        assert asked == {('project_id', 'project'): 1}

    def test_projects_without_a_server_are_not_queried(
        self, world, slots, host, asked
    ):
        """Any user may have invented the ids of such projects."""
        many = [f'nobody-{n}' for n in range(49)]
        shared = slots(2, 1, projects=['friend', *many])
        lease = world.start_lease(shared, shared)
        friend = world.add_own_server(lease, 'a', 'friend')
        sync(world)
        asked.clear()
        world.run(200)
        assert friend.uuid not in world.nova.stored
        assert set(asked) == {
            ('host', 'a'), ('project_id', 'friend'), ('project_id', 'project')
        }
        assert set(asked.values()) == {1}

    def test_servers_are_queried_anew_in_each_try(
        self, world, slots, host, asked
    ):
        lease = world.start_lease(slots(1, 1))
        own(world, lease)
        world.nova.slowness = 1
        asked.clear()
        for _ in range(3):
            world.run(200)
        assert world.lease(lease).status == 'TERMINATED'
        assert asked['project_id', 'project'] == 3


def test_servers_of_a_former_shared_project_still_draw_on_the_reservation(
    world, slots, host
):
    """They draw until its end, as servers of the other projects do."""
    lease = world.start_lease(slots(2, 2, projects=['friend']))
    id_ = lease.reservations[0].id
    friend = world.add_own_server(lease, 'a', 'friend')
    assert sync(world)[friend.uuid].reservation_id == id_
    world.change_reservation(lease, projects=[])
    world.run()
    assert sync(world)[friend.uuid].reservation_id == id_


def test_a_server_without_a_record_keeps_its_window_too(
    conf, world, whole, host
):
    """The server was created while Nova was away, and not polled since."""
    world.nova.set_server_metadata = lambda server, metadata: None
    world.nova.migrate_server = lambda server: False
    conf.set_override('vacate_lead_time', 600, 'manager')
    one = world.start_lease(whole(on_end='shelve'), end=1000)
    two = world.create(whole(), start=1000, end=2000, project_id='other')
    assert two.vacate is not None
    mine = world.add_server('a', 'project', created=world.now)
    world.run(999)
    assert not world.nova.asked
    world.run(1)
    world.run(1)
    assert world.lease(one).status == 'TERMINATED'
    assert world.nova.stored[mine.uuid].status == 'SHELVED_OFFLOADED'


@pytest.mark.parametrize('asked', ['whole', 'slots'])
def test_a_server_is_not_deleted_while_an_image_of_it_is_made(
    request, world, host, asked
):
    """The image of the server's own end, or of its user, would be lost."""
    reservation = {
        'whole': request.getfixturevalue('whole')(),
        'slots': request.getfixturevalue('slots')(2, 4),
    }[asked]
    lease = world.start_lease(reservation, end=100)
    copied = own(world, lease, task='image_uploading')
    other = own(world, lease)

    world.run(100)
    assert set(world.nova.stored) == {copied.uuid}
    assert world.lease(lease).status == 'TERMINATING'

    world.nova.stored[copied.uuid] = dataclasses.replace(copied, task=None)
    world.run(60)
    world.run(60)
    assert other.uuid not in world.nova.stored
    assert world.nova.stored == {}
    assert world.lease(lease).status == 'TERMINATED'
