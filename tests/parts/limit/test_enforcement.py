# SPDX-License-Identifier: Apache-2.0
"""Limits on the leases and their sizes, and the limits of Keystone."""

from concurrent import futures

import pytest

from blazar_sched.domain import exception
from blazar_sched.parts.limit.exception import MaxHosts
from blazar_sched.parts.limit.exception import MaxInstances
from blazar_sched.parts.limit.exception import MaxLeases
from blazar_sched.parts.limit.manager import UnifiedLimits
from blazar_sched.service.enforcement import base
from tests import looped
from tests.functional.manager import test_enforcement

world = test_enforcement.world

LIMITS = (
    'MaxLeaseDurationFilter', 'MaxHorizonFilter', 'MaxLeasesFilter',
    'MaxSizeFilter',
)


@pytest.fixture
def conf(conf):
    conf.set_override('enabled_filters', LIMITS, 'enforcement')
    return conf


@pytest.mark.row('F76')
def test_the_count_of_leases_has_a_limit(world, limit):
    limit(max_leases_per_project=2)
    first, second = world.create(), world.create()
    with pytest.raises(MaxLeases, match='2') as e:
        world.create()
    assert e.value.status == 400
    world.create(project_id='other')
    world.leases.delete(first.id, None)
    world.create()
    assert world.lease(second).status == 'PENDING'


@pytest.mark.row('F76')
@pytest.mark.parametrize(
    'option, error',
    [
        ('max_hosts_per_lease', MaxHosts),
        ('max_hosts_per_project', MaxHosts),
        ('max_instances_per_lease', MaxInstances),
        ('max_instances_per_project', MaxInstances),
    ],
)
def test_sizes_have_limits(world, limit, whole, slots, option, error):
    def ask(count):
        if error is MaxHosts:
            return whole(1, count)
        return slots(count)

    limit(**{option: 3})
    for many in ([ask(4)], [ask(2), ask(2)]):
        with pytest.raises(error, match='3') as e:
            world.create(*many)
        assert (e.value.status, e.value.field) == (400, 'reservations')
    assert world.ledger.leases() == []
    world.create(ask(2), ask(1))
    world.check()


def test_a_project_has_a_limit_over_all_its_leases(world, limit, whole):
    limit(max_hosts_per_project=3)
    world.create(whole(2, 2))
    # This holds also for another time.
    with pytest.raises(MaxHosts):
        world.create(whole(2, 2), start=300, end=400)
    world.create(whole(1, 1), start=300, end=400)
    world.create(whole(2, 2), start=300, end=400, project_id='other')


def test_a_lease_that_is_over_does_not_count(world, limit):
    limit(max_hosts_per_project=1)
    lease = world.create(start='now', end=100)
    world.run()
    with pytest.raises(MaxHosts):
        world.create(start=300, end=400)
    world.run(101)
    assert world.lease(lease).status == 'TERMINATED'
    world.create()


def test_concurrent_leases_do_not_exceed_a_limit_together(world, limit):
    limit(max_hosts_per_project=3)

    def create(number):
        try:
            return world.create(start=1000 * number, end=1000 * number + 1)
        except MaxHosts:
            return None

    with futures.ThreadPoolExecutor(8) as pool:
        made = list(pool.map(create, range(1, 17)))
    assert sum(lease is not None for lease in made) == 3
    assert len(world.ledger.leases()) == 3


@pytest.mark.row('F76')
@pytest.mark.parametrize('option, exempt, refusal', [
    ('max_leases_per_project', 'max_leases', MaxLeases),
    ('max_hosts_per_lease', 'max_size', MaxHosts),
    ('max_hosts_per_project', 'max_size', MaxHosts),
])
def test_projects_can_be_exempt(world, limit, option, exempt, refusal):
    limit(**{option: 0, f'{exempt}_exempt_project_ids': ['big', 'own']})
    for project_id in ('big', 'own'):
        world.create(project_id=project_id)
    with pytest.raises(refusal):
        world.create(project_id='small')


class TestUpdate(test_enforcement.TestUpdate):
    """A lease that is beyond a new limit can always be made smaller."""

    @pytest.fixture(autouse=True)
    def most(self, lease, limit):
        limit(
            max_leases_per_project=0, max_hosts_per_lease=1,
            max_hosts_per_project=1,
        )

    @pytest.mark.parametrize('option', [
        'max_hosts_per_lease', 'max_hosts_per_project',
    ])
    def test_a_size_beyond_the_limit_does_not_grow(
        self, world, limit, lease, option
    ):
        limit(max_hosts_per_lease=-1, max_hosts_per_project=-1)
        limit(**{option: 1})
        with pytest.raises(MaxHosts):
            world.leases.update(
                lease.id, None, self.values(world, lease, max=3)
            )
        assert world.lease(lease) == lease
        world.check()


class TestLimitsOfKeystone:
    """Limits by project, in place of the options."""

    @pytest.fixture
    def conf(self, conf):
        conf.set_override('unified_limits_interval', 60, 'enforcement')
        conf.set_override('max_leases_per_project', 0, 'enforcement')
        conf.set_override(
            'enabled_filters', [*LIMITS, 'MaxResourcesFilter'], 'enforcement'
        )
        return conf

    @pytest.fixture
    def read(self, world, monkeypatch):
        """read(limits) -> what a look at Keystone finds."""

        def read(limits):
            unified = looped.of(world.manager, UnifiedLimits)
            monkeypatch.setattr(unified, '_limits', limits)

        return read

    def test_nothing_is_booked_before_the_limits_are_known(self, world, read):
        with pytest.raises(exception.Unavailable, match='Keystone'):
            world.create()
        read({None: {'max_leases_per_project': 1}})
        world.create()

    def test_an_option_applies_where_keystone_has_no_limit(self, world, read):
        read({})
        with pytest.raises(MaxLeases, match='0 leases'):
            world.create()

    def test_each_project_has_its_own_limit(self, world, read):
        read({
            None: {'max_leases_per_project': 1},
            'p2': {'max_leases_per_project': 2},
            'p3': {'max_leases_per_project': base.NO_LIMIT},
        })
        for project, most in ('p1', 1), ('p2', 2), ('p3', 3):
            for n in range(1, most + 1):
                world.create(
                    start=1000 * n, end=1000 * n + 500, project_id=project
                )
            [shown] = (
                each for each in world.manager.enforcement.limits(project)
                if each['name'] == 'max_leases_per_project'
            )
            assert shown['used'] == most
        for project in 'p1', 'p2':
            with pytest.raises(MaxLeases):
                world.create(project_id=project)

    def test_a_class_has_a_limit_of_its_own(self, world, slots, read):
        read({None: {
            'max_leases_per_project': base.NO_LIMIT,
            'max_resources_per_lease:VCPU': 4,
        }})
        world.create(slots(4, 1))
        with pytest.raises(exception.MaxResources, match='4 of VCPU'):
            world.create(slots(5, 1))
