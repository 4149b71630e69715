# SPDX-License-Identifier: Apache-2.0
"""The limit on the share of all hosts that a project has at one time."""

import pytest

from blazar_sched.domain import exception


@pytest.fixture
def conf(conf):
    conf.set_override('enabled_filters', ['MaxResourcesFilter'], 'enforcement')
    return conf


@pytest.fixture
def world(world):
    """A cloud with four hosts of 8 VCPUs."""
    for name in 'abcd':
        world.add_host(name, rack=name)
    return world


@pytest.fixture
def on(whole):
    """on(name, ...) -> a request for certain whole hosts."""

    def on(*names, minimum=None):
        places = ', '.join(f'["=", "$rack", "{name}"]' for name in names)
        return whole(
            minimum or len(names), len(names),
            resource_properties=f'["or", {places}, ["=", "$rack", "-"]]',
        )

    return on


def refused(error, *parts):
    """Return a context that expects a refusal which names some parts."""
    return pytest.raises(error, match='.*'.join(parts))


class TestPercent:
    """The share of all hosts that a project has at one time."""

    @pytest.fixture(autouse=True)
    def half(self, limit):
        limit(max_percent_per_project=50)

    @pytest.mark.row('F103')
    def test_a_project_has_half_of_the_hosts_at_a_time(self, world, on):
        world.create(on('a'))
        with refused(exception.MaxResources, 'VCPU at a time, 50 %') as e:
            world.create(on('b', 'c'), start=150, end=250)
        assert (e.value.status, e.value.field) == (400, 'reservations')
        world.create(on('b'), start=199, end=250)
        with refused(exception.MaxResources, '50 %'):
            world.create(on('c'), start=198, end=201)
        # Not at that time, and another project.
        world.create(on('c', 'd'), start=250, end=300)
        world.create(on('c', 'd'), project_id='other')
        world.check()

    def test_instances_count_with_their_size(self, world, slots):
        half = 4 * world.host('a').capacity('VCPU') // 2
        world.create(slots(half, vcpus=1))
        with refused(exception.MaxResources, f'{half} of VCPU'):
            world.create(slots(1, vcpus=1))

    def test_one_host_is_never_too_much(self, world, on, limit):
        limit(max_percent_per_project=1)
        world.create(on('a'))
        with refused(exception.MaxResources, '1 %'):
            world.create(on('b'))

    def test_hosts_that_come_count_at_once(self, world, on):
        world.create(on('a', 'b'))
        with refused(exception.MaxResources, '50 %'):
            world.create(on('c'))
        for name in 'e', 'f':
            world.add_host(name, register=False)
            world.hosts.create(name, {'rack': name})
        world.create(on('c'))

    def test_a_lease_beyond_the_limit_stays_and_may_become_less(
        self, world, on, limit
    ):
        limit(max_percent_per_project=-1)
        lease = world.create(on('a', 'b', 'c'))
        limit(max_percent_per_project=50)
        world.update_lease(lease, name='renamed')
        world.update_lease(lease, end=world.now + 150)
        with refused(exception.MaxResources, '50 %'):
            world.update_lease(lease, end=world.now + 250)
