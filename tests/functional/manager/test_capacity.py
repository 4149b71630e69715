# SPDX-License-Identifier: Apache-2.0
"""The capacity of hosts in a window, as the manager returns it."""

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.domain.flavor import Flavor


class TestCapacity:
    """The capacity of a ledger with leases."""

    @pytest.fixture
    def get(self, world):
        """get(**wanted) -> the capacity, from 100 to 200 s from now."""

        def run(project_id='project', start=100, end=200, **wanted):
            return world.manager.capacity.get(
                project_id, start=world.now + start, end=world.now + end,
                **wanted,
            )

        return run

    @pytest.fixture
    def flavor(self, world):
        """flavor(**values) -> the id of a new flavor that is known."""

        def make(**values):
            made = Flavor(**{
                'id': 'f', 'name': 'small', 'vcpus': 3, 'memory_mb': 512,
                'disk_gb': 1, **values,
            })
            world.nova.known_flavors = [made]
            world.manager.flavors.sync()
            return made.id

        return make

    def figures(self, part, name='VCPU'):
        """Return total, reserved, used and available of a class."""
        [found] = [r for r in part['resources'] if r['resource_class'] == name]
        return tuple(
            found[name] for name in ('total', 'reserved', 'used', 'available')
        )

    @pytest.mark.row('F28')
    def test_leases_are_seen_while_they_last(self, world, get, whole, slots):
        for name in 'abc':
            world.add_host(name)
        world.create(whole(), start=120, end=140)
        world.create(slots(2, 2), start=140, end=180)
        answer = get(parts=5)
        assert (answer['hosts'], len(answer['parts'])) == (3, 5)
        assert [self.figures(part) for part in answer['parts']] == [
            (24, 0, 0, 24),
            (24, 8, 0, 16),
            (24, 4, 0, 20),
            (24, 4, 0, 20),
            (24, 0, 0, 24),
        ]
        assert [part['hosts'] for part in answer['parts']] == [3, 2, 2, 2, 3]
        # A resource that is used in a part of the window is not free
        # throughout.
        [part] = get()['parts']
        assert self.figures(part) == (24, 0, 0, 16)
        assert part['hosts'] == 2

    def test_of_a_server_only_its_own_use_is_used(self, world, get, whole):
        world.add_host('a')
        world.add_host('b')
        lease = world.create(whole(), start='now', end=1000)
        [reservation] = lease.reservations
        world.run()
        [(_, uuid, _)] = world.held(lease)
        [on] = [h for h in world.ledger.hosts() if h.uuid == uuid]
        free = {'a': 'b', 'b': 'a'}[on.hypervisor_hostname]
        world.add_server(
            on.hypervisor_hostname, 'project', 2, reservation_id=reservation.id
        )
        world.add_server(free, vcpus=3, end=world.now + 150)
        world.add_server(free, vcpus=4, preemptible=True)
        world.manager.instances.sync()
        first, second = get(parts=2)['parts']
        assert self.figures(first) == (16, 8, 3, 5)
        assert self.figures(second) == (16, 8, 0, 8)

    @pytest.mark.row('C47')
    def test_what_is_free_on_two_hosts_is_no_room_on_one(
        self, world, get, flavor
    ):
        for name in 'ab':
            world.add_host(name, vcpus=4)
            world.add_server(name, vcpus=2)
        world.manager.instances.sync()
        [part] = get(flavor_id=flavor(vcpus=3))['parts']
        assert self.figures(part) == (8, 0, 4, 4)
        assert part['instances'] == 0
        [part] = get(flavor_id=flavor(vcpus=2))['parts']
        assert part['instances'] == 2

    def test_hosts_are_those_that_the_project_could_reserve(self, world, get):
        world.add_host('a')
        world.add_host('b', disabled=True)
        world.add_host('c', projects=['project'])
        world.add_host('d', projects=['another'])
        world.add_host('e')
        world.fail('e')
        assert get()['hosts'] == 2
        assert get('another')['hosts'] == 2
        assert get('nobody')['hosts'] == 1

    def test_hosts_are_those_that_are_asked_for(self, world, get):
        world.add_host('a', rack='7')
        world.add_host('b', vcpus=4, rack='8')

        def asking(text):
            answer = get(resource_properties=text)
            [part] = answer['parts']
            return answer['hosts'], part['hosts'], sum(
                r['total'] for r in part['resources']
                if r['resource_class'] == 'VCPU'
            )

        assert asking('["==", "$rack", "8"]') == (1, 1, 4)
        assert asking('["==", "$availability_zone", "nova"]') == (2, 2, 12)
        assert asking('["==", "$availability_zone", "mars"]') == (0, 0, 0)

    def test_what_the_flavor_asks_for_chooses_hosts(self, world, get, flavor):
        world.placement.traits_.update(
            {world.add_host(name, register=False): traits
             for name, traits in {'a': ('CUSTOM_X',), 'b': ()}.items()}
        )
        for name in 'ab':
            world.hosts.create(name, {'rack': '7'})
        id_ = flavor(extra_specs={'trait:CUSTOM_X': 'required'})
        answer = get(flavor_id=id_, resource_properties='["==", "$rack", "7"]')
        assert answer['hosts'] == 1
        [part] = answer['parts']
        assert (part['instances'], self.figures(part)) == (2, (8, 0, 0, 8))

    def test_without_a_window_it_is_a_day_from_now_on(self, world):
        world.add_host('a')
        answer = world.manager.capacity.get('project')
        [part] = answer['parts']
        for each in (answer, part):
            assert each['start'] == world.now
            assert each['end'] == world.now + 86400
        assert part['instances'] is None

    def test_no_hosts_at_all(self, get):
        answer = get()
        [part] = answer['parts']
        assert (answer['hosts'], part['hosts'], part['resources']) == (
            0, 0, []
        )

    @pytest.mark.parametrize('wanted, field', [
        ({'start': -100}, 'start_date'),
        ({'start': 100, 'end': 100}, 'end_date'),
        ({'start': 100, 'end': 99}, 'end_date'),
        ({'end': window.FOREVER - 2_000_000_000}, 'end_date'),
        ({'parts': 101}, 'parts'),
        ({'resource_properties': '['}, 'resource_properties'),
        ({'resource_properties': '[' * 5000}, 'resource_properties'),
        ({'resource_properties': '["=="]'}, 'resource_properties'),
        ({'flavor_id': 'unknown'}, 'flavor_id'),
        (
            {'flavor_id': 'f', 'resource_properties': 'x'},
            'resource_properties',
        ),
    ])
    def test_a_bad_value_is_refused_by_name(self, get, flavor, wanted, field):
        flavor()
        with pytest.raises(exception.InvalidInput) as caught:
            get(**wanted)
        assert caught.value.field == field

    def test_another_projects_flavor_is_not_known(self, get, flavor):
        id_ = flavor(projects=('another',))
        with pytest.raises(exception.InvalidInput) as caught:
            get(flavor_id=id_)
        assert caught.value.field == 'flavor_id'
        assert get('another', flavor_id=id_)['hosts'] == 0

    def test_as_many_parts_as_seconds(self, world, get):
        world.add_host('a')
        parts = get(start=100, end=103, parts=3)['parts']
        assert [part['end'] - part['start'] for part in parts] == [1, 1, 1]
