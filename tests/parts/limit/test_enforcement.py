# SPDX-License-Identifier: Apache-2.0
"""The limit on the number of leases, and the limits of Keystone."""


import pytest

from blazar_sched.domain import exception
from blazar_sched.parts.limit.exception import MaxLeases
from blazar_sched.parts.limit.manager import UnifiedLimits
from blazar_sched.service.enforcement import base
from tests import looped
from tests.functional.manager import test_enforcement

world = test_enforcement.world

LIMITS = (
    'MaxLeaseDurationFilter',
    'MaxHorizonFilter',
    'MaxLeasesFilter',
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
def test_projects_can_be_exempt(world, limit):
    limit(
        max_leases_per_project=0, max_leases_exempt_project_ids=['big', 'own']
    )
    for project_id in ('big', 'own'):
        world.create(project_id=project_id)
    with pytest.raises(MaxLeases):
        world.create(project_id='small')


class TestUpdate(test_enforcement.TestUpdate):
    """A lease that is beyond a new limit can always be made smaller."""

    @pytest.fixture(autouse=True)
    def most(self, lease, limit):
        limit(max_leases_per_project=0)


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
