# SPDX-License-Identifier: Apache-2.0
"""What a lease's start and end do in Nova and Placement."""

import pytest

from blazar_sched.service.clients import placement as placement_


@pytest.fixture
def host(world):
    """A host registered empty; servers come onto it afterwards."""
    return world.add_host('a')


class TestHost:
    def start(self, world, **values):
        lease = world.create(start='now', **values)
        world.run()
        return world.lease(lease)

    def test_what_yields_is_deleted(self, world, host):
        preemptible = world.add_server('a', preemptible=True)
        overdue = world.add_server('a', end=world.now)
        elsewhere = world.add_server('b', preemptible=True)
        lease = self.start(world)
        assert not lease.degraded
        assert list(world.nova.stored) == [elsewhere.uuid]
        assert set(world.nova.asked) == {preemptible.uuid, overdue.uuid}

    @pytest.mark.parametrize(
        'values',
        [
            {},
            {'project_id': 'project'},
            {'end': 'later'},
            {'reservation_id': 'of-another-lease'},
        ],
    )
    def test_what_stays_degrades_the_lease(self, world, host, values):
        if 'end' in values:
            values = {'end': world.now + 1}
        server = world.add_server('a', **values)
        lease = self.start(world)
        assert (lease.status, lease.degraded) == ('ACTIVE', True)
        assert list(world.nova.stored) == [server.uuid]

    def test_what_is_bound_is_left_alone(self, world, host):
        lease = world.create(start='now')
        id_ = lease.reservations[0].id
        mine = world.add_server(
            'a', 'project', reservation_id=id_, preemptible=True
        )
        world.run()
        assert list(world.nova.stored) == [mine.uuid]
        assert not world.lease(lease).degraded

    def test_a_claim_of_another_project_is_not_bound(self, world, host):
        lease = world.create(start='now')
        id_ = lease.reservations[0].id
        world.add_server('a', 'thief', reservation_id=id_)
        world.run()
        assert world.lease(lease).degraded

    def test_the_end_deletes_the_projects_servers(self, world, host):
        lease = self.start(world)
        id_ = lease.reservations[0].id
        world.add_server('a', 'project', reservation_id=id_)
        world.add_server('a', 'project')
        world.add_server('moved', 'project', reservation_id=id_)
        world.add_server(None, 'project', reservation_id=id_)
        kept = {
            world.add_server('a', 'other').uuid,
            world.add_server('b', 'project').uuid,
            world.add_server('a', 'project', reservation_id='another').uuid,
        }
        world.run(200)
        world.run(1)
        assert set(world.nova.stored) == kept
        assert world.lease(lease).status == 'TERMINATED'


class TestInstance:
    def test_flavor_and_inventory_in_the_window_only(self, world, slots):
        for name in 'ab':
            world.add_host(name, vcpus=4)
        lease = world.create(slots(3, vcpus=2))
        id_ = lease.reservations[0].id
        class_ = placement_.resource_class(id_)
        assert class_ == 'CUSTOM_RESERVATION_' + id_.upper().replace('-', '_')
        assert not world.nova.flavors
        assert not world.placement.classes
        world.run(100)
        assert world.nova.flavors == {
            id_: (
                f'reservation:{id_}',
                {'VCPU': 2, 'MEMORY_MB': 512, 'DISK_GB': 1},
                {'blazar:reservation': id_, f'resources:{class_}': '1'},
            )
        }
        assert world.nova.access == {(id_, 'project')}
        assert world.placement.classes == {class_}
        assert sorted(world.placement.children.values()) == [1, 2]
        assert {name for _, name in world.placement.children} == {class_}
        world.run(100)
        assert not world.nova.flavors
        assert not world.nova.access
        assert not world.placement.classes
        assert not world.placement.children

    def test_nobody_else_is_touched(self, world, slots):
        world.add_host('a')
        lease = world.create(slots(), start='now')
        world.run()
        id_ = lease.reservations[0].id
        world.add_server('a', 'project', reservation_id=id_)
        kept = {
            world.add_server('a', 'project', preemptible=True).uuid,
            world.add_server('a', 'thief', reservation_id=id_).uuid,
            world.add_server('a', 'project', reservation_id='another').uuid,
        }
        world.run(200)
        world.run(1)
        assert set(world.nova.stored) == kept

    def test_inventory_in_use_is_waited_for(self, world, slots, monkeypatch):
        """Placement gives a deleted server's allocation back a bit later."""
        world.add_host('a')
        lease = world.create(slots(), start='now')
        world.run()
        remove = world.placement.remove_inventory
        answers = [False, False]
        monkeypatch.setattr(
            world.placement,
            'remove_inventory',
            lambda *args: answers.pop() if answers else remove(*args),
        )
        world.run(200)
        assert world.placement.classes
        for _ in range(2):
            world.run(1)
        assert not world.placement.classes
        assert world.lease(lease).status == 'TERMINATED'
