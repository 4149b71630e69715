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
