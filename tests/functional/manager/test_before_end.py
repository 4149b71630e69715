# SPDX-License-Identifier: Apache-2.0
"""Actions before a lease's end: images of servers, and no action."""

import dataclasses

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.flavor import Flavor

pytestmark = pytest.mark.row('F58')


@pytest.fixture
def world(world):
    furnish(world)
    return world


def furnish(world):
    """Add three hosts and a flavor."""
    world.add_hosts('a', 'b', 'c')
    world.nova.known_flavors = [Flavor('f', 'small', 1, 512, 1)]
    world.manager.flavors.sync()


@pytest.fixture(params=['whole', 'slots', 'flavors'])
def ask(request, whole, slots):
    """ask(**parameters) -> a request for any reservation on hosts."""
    return {'whole': whole, 'slots': slots, 'flavors': flavors}[request.param]


def flavors(**parameters):
    return {
        'resource_type': 'flavor:instance', 'flavor_id': 'f', 'amount': 1,
        **parameters,
    }


def active(world, *reservations, **values):
    """Return an active lease; its end is announced in 50 s."""
    values = {'before_end': world.now + 50, **values}
    lease = world.start_lease(*reservations, **values)
    return world.lease(lease)


def status(world, lease, event_type='before_end_lease'):
    return next(
        e.status for e in world.lease(lease).events
        if e.event_type == event_type
    )


def assert_failed(world, lease, reason):
    """Check that the lease itself reports that the action failed."""
    lease = world.lease(lease)
    assert status(world, lease) == 'ERROR'
    assert (lease.status, lease.degraded) == ('ACTIVE', True)
    assert reason in lease.reservations[0].made['before_end_failed']


def image_of(server, lease, reservation):
    """Return Nova's image for this end."""
    return server.uuid, f'reserved_{server.name}', {
        'blazar:reservation': reservation.id, 'blazar:ending': lease.ending,
    }


class TestSnapshot:
    def test_each_server_of_any_reservation_on_hosts(self, world, ask):
        lease = active(world, ask(before_end='snapshot'))
        mine = world.add_own_server(lease, name='mine')
        world.add_server('a', 'other', name='another')
        world.run(50)
        assert world.nova.images == [
            image_of(mine, lease, lease.reservations[0])
        ]

    def bound(self, world, lease, **values):
        id_ = lease.reservations[0].id
        return world.add_server(
            'a', 'project', **{'reservation_id': id_, 'name': 'mine', **values}
        )

    def test_no_server_goes_before_its_image_is_complete(
        self, world, whole, monkeypatch
    ):
        lease = active(
            world, whole(before_end='snapshot'), end=100,
            before_end=world.now + 100,
        )
        server = self.bound(world, lease)
        created = world.nova.create_image
        monkeypatch.setattr(world.nova, 'create_image', lambda *args: False)
        for seconds in (100, 10, 10):
            world.run(seconds)
            assert server.uuid in world.nova.stored
        monkeypatch.setattr(world.nova, 'create_image', created)
        for _ in range(3):
            world.run(5)
        assert world.nova.images
        assert world.lease(lease).status == 'TERMINATED'

    def test_an_image_that_is_never_complete_is_said(
        self, conf, world, whole, monkeypatch
    ):
        lease = active(world, whole(before_end='snapshot'), end=1000)
        server = self.bound(world, lease)
        monkeypatch.setattr(world.nova, 'create_image', lambda *args: False)
        world.run(50)
        world.run(conf.manager.server_delete_timeout + 1)
        assert_failed(
            world, lease, f'waiting for the image of server {server.uuid}'
        )

    @pytest.mark.parametrize(
        'still', ['ERROR', 'SHELVED', 'SHELVED_OFFLOADED', 'RESCUE']
    )
    def test_a_server_that_cannot_be_copied_is_said_at_once(
        self, world, whole, told, still
    ):
        lease = active(world, whole(before_end='snapshot'))
        copied = self.bound(world, lease)
        server = self.bound(world, lease, status=still)
        for _ in range(2):
            world.run(50)
        assert_failed(world, lease, f'{server.uuid}, which is {still}')
        # The other servers are copied nevertheless.
        assert [image[0] for image in world.nova.images] == [copied.uuid]
        types = {event_type for event_type, _ in told}
        assert {
            'lease.event.before_end_lease.error', 'lease.degraded'
        } <= types
        assert 'lease.event.before_end_lease' not in types

    @pytest.mark.parametrize('passing', ['MIGRATING', 'REBOOT', 'BUILD'])
    def test_a_server_that_cannot_be_copied_yet_is_waited_for(
        self, world, whole, passing
    ):
        lease = active(world, whole(before_end='snapshot'))
        server = self.bound(world, lease, status=passing)
        world.run(50)
        assert status(world, lease) == 'UNDONE'
        world.nova.stored[server.uuid] = dataclasses.replace(
            server, status='ACTIVE'
        )
        for _ in range(2):
            world.run(5)
        assert status(world, lease) == 'DONE'
        assert world.nova.images

    def test_server_that_nova_refuses_to_copy_delays_no_other(
        self, world, whole, monkeypatch
    ):
        lease = active(world, whole(before_end='snapshot'))
        first, second = [self.bound(world, lease) for _ in range(2)]
        created = world.nova.create_image

        def create_image(server, *args):
            if server.uuid == first.uuid:
                raise exception.Unavailable(
                    'compute answered 409', service='compute', refused=True
                )
            return created(server, *args)

        monkeypatch.setattr(world.nova, 'create_image', create_image)
        world.run(50)
        assert [image[0] for image in world.nova.images] == [second.uuid]
        assert status(world, lease) == 'UNDONE'

    def test_each_end_of_a_lease_has_one_snapshot(self, world, whole):
        lease = active(
            world, whole(before_end='snapshot'), end=7200, before_end='default'
        )
        server = self.bound(world, lease)
        for _ in range(2):
            world.run(3600)
            longer = world.update_lease(lease, end=world.now + 7200)
            assert status(world, lease) == 'UNDONE'
        world.run(3600)
        assert len(world.nova.images) == 3
        assert world.nova.images[-1] == image_of(
            server, longer, lease.reservations[0]
        )

    def test_new_end_with_the_old_before_end_date_has_a_snapshot(
        self, world, whole
    ):
        """A client may send the known before_end_date with the new end."""
        lease = active(world, whole(before_end='snapshot'))
        self.bound(world, lease)
        for _ in range(2):
            world.run(50)
        world.update_lease(
            lease, end=lease.end + 1000, before_end=lease.before_end,
        )
        world.run()
        assert len(world.nova.images) == 2

    @pytest.mark.parametrize('length', [2, 1800, 3600, 3601])
    def test_a_lease_that_is_no_longer_than_the_notice(
        self, world, whole, length
    ):
        lease = active(
            world, whole(before_end='snapshot'), end=length,
            before_end='default',
        )
        server = self.bound(world, lease)
        for _ in range(4):
            world.run(max(1, length // 3))
        assert server.uuid not in world.nova.stored
        assert len(world.nova.images) == 1

    def test_by_a_server_that_lives_on(self, world, monkeypatch):
        """The image of an end that was moved does not count for the next end.
        """
        server = world.add_server(
            'a', end=world.now + 1000, created=world.now, on_end='snapshot',
            name='box',
        )
        world.manager.instances.sync()
        [lease] = world.ledger.leases()
        deleted = world.nova.delete_servers

        def delete_servers(servers):
            raise exception.Unavailable('compute answered 409', refused=True)

        monkeypatch.setattr(world.nova, 'delete_servers', delete_servers)
        world.run(1000)
        for _ in range(40):
            world.run(10)
        assert world.lease(lease).status == 'ERROR'
        assert len(world.nova.images) == 1
        monkeypatch.setattr(world.nova, 'delete_servers', deleted)
        world.clock.now += 10 * 86_400
        world.leases.delete(lease.id, None)
        assert server.uuid not in world.nova.stored
        assert len(world.nova.images) == 2

    @pytest.mark.parametrize('seconds', [50, 60])
    @pytest.mark.parametrize('point', [
        'commit:before', 'commit:after', 'before_end_lease:claimed',
        'before_end_lease:stepped', 'before_end_lease:worked',
    ])
    def test_killed_between_the_steps(
        self, conf, world, whole, killed, point, seconds
    ):
        """The kills come while the image is made, and when it is complete."""
        lease = active(world, whole(before_end='snapshot'), end=1000)
        self.bound(world, lease)
        if seconds > 50:
            world.run(50)
        with killed(point):
            world.run(10)
            world.run(40)
        world.begin(conf)
        for wait in (0, 31, 10):
            world.run(wait)
        assert status(world, lease) == 'DONE'
        assert len(world.nova.images) == 1


class TestLate:
    """A reservation is added after the end was announced."""

    def add(self, world, lease, reservation):
        return world.update_lease(lease, reservations=[reservation])

    def test_only_servers_of_the_added_reservation_are_copied(
        self, world, whole
    ):
        lease = active(
            world, whole(before_end='snapshot'), end=7200, before_end='default'
        )
        first = world.add_own_server(lease)
        for seconds in (3600, 1):
            world.run(seconds)
        assert [image[0] for image in world.nova.images] == [first.uuid]
        late = self.add(world, lease, whole(before_end='snapshot'))
        # The time is the middle of the remaining time, so that there are
        # servers.
        assert late.before_end == (world.now + late.end) // 2
        world.run()
        second = world.add_server(
            'b', 'project', reservation_id=late.reservations[1].id
        )
        for _ in range(5):
            world.run(1000)
        assert [image[0] for image in world.nova.images] == [
            first.uuid, second.uuid
        ]
        assert world.lease(lease).status == 'TERMINATED'
        assert second.uuid not in world.nova.stored

    @pytest.mark.parametrize('asked', ['', 'default'])
    def test_reservation_without_action_keeps_the_before_end_date(
        self, world, slots, asked
    ):
        lease = active(world, slots(before_end='snapshot'))
        world.run(50)
        late = self.add(world, lease, slots(before_end=asked))
        assert late.before_end == lease.before_end
        assert status(world, lease) == 'DONE'
