# SPDX-License-Identifier: Apache-2.0
"""The limits of enforcement filters, at their exact values."""


import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.domain.lease import Lease
from blazar_sched.service.enforcement import base
from blazar_sched.service.enforcement.admission import Enforcement
from tests import foreign

LIMITS = ('MaxLeaseDurationFilter', 'MaxHorizonFilter')


@pytest.fixture
def conf(conf):
    conf.set_override('enabled_filters', LIMITS, 'enforcement')
    return conf


@pytest.fixture
def world(world):
    world.add_hosts('compute-1', 'compute-2', 'compute-3', 'compute-4')
    return world


def test_without_limits_everything_passes(world, whole):
    lease = world.create(whole(1, 4), end=window.FOREVER)
    assert world.lease(lease).status == 'PENDING'


@pytest.mark.row('F76')
@pytest.mark.parametrize('option, allowed, refused, error, field', [
    (
        'max_lease_duration', (50, 150), (50, end),
        exception.MaxLeaseDuration, 'end_date',
    ) for end in (151, window.FOREVER)
] + [
    (
        'max_end_horizon', (1, 100), (1, end), exception.MaxEndHorizon,
        'end_date',
    ) for end in (101, window.FOREVER)
] + [(
    'max_start_horizon', (100, 1000), (101, 1000), exception.MaxStartHorizon,
    'start_date',
)])
def test_times_have_limits(
    world, limit, option, allowed, refused, error, field
):
    limit(**{option: 100})
    kept = world.create(start=allowed[0], end=allowed[1])
    with pytest.raises(error, match='100') as e:
        world.create(start=refused[0], end=refused[1])
    endless = refused[1] == window.FOREVER
    assert ('the lease has no end: ' in str(e.value)) is endless
    assert (e.value.status, e.value.field) == (400, field)
    assert world.ledger.leases() == [kept]
    world.check()


@pytest.mark.row('F76')
@pytest.mark.parametrize('option, exempt, values', [
    ('max_lease_duration', 'max_lease_duration', {'end': 500}),
    ('max_start_horizon', 'max_horizon', {}),
    ('max_end_horizon', 'max_horizon', {}),
])
def test_projects_can_be_exempt(world, limit, option, exempt, values):
    limit(**{option: 0, f'{exempt}_exempt_project_ids': ['big', 'own']})
    for project_id in ('big', 'own'):
        world.create(project_id=project_id, **values)
    with pytest.raises(exception.LimitExceeded):
        world.create(project_id='small', **values)


class TestUpdate:
    """A lease that is beyond a new limit can always be made smaller."""

    @pytest.fixture
    def lease(self, world, whole):
        return world.create(whole(2, 2), start=100, end=300)

    @pytest.mark.parametrize('option, limited, error', [
        ('max_lease_duration', {'end': 301}, exception.MaxLeaseDuration),
        (
            'max_start_horizon', {'start': 101, 'end': 301},
            exception.MaxStartHorizon,
        ),
        ('max_end_horizon', {'end': 301}, exception.MaxEndHorizon),
    ])
    def test_a_lease_beyond_the_limit_does_not_grow(
        self, world, limit, lease, option, limited, error
    ):
        limit(**{option: 1})
        values = self.values(world, lease, **limited)
        with pytest.raises(error):
            world.leases.update(lease.id, None, values)
        assert world.lease(lease) == lease
        world.check()

    @pytest.mark.parametrize(
        'smaller', [{'end': 299}, {'start': 101, 'end': 298}, {'min': 1}]
    )
    def test_a_lease_beyond_all_limits_can_shrink(
        self, world, limit, lease, smaller
    ):
        limit(max_lease_duration=1, max_start_horizon=1, max_end_horizon=1)
        values = self.values(world, lease, **smaller)
        changed = world.leases.update(lease.id, None, values)
        assert changed == world.lease(lease) != lease

    def test_lease_beyond_a_limit_can_be_renamed(self, world, limit, lease):
        limit(max_lease_duration=1)
        changed = world.update_lease(lease, name='other')
        assert changed.name == 'other'

    def test_lease_beyond_a_limit_can_be_ended(self, world, limit, lease):
        world.run(150)
        limit(max_lease_duration=1, max_end_horizon=1)
        world.update_lease(lease, end='now')
        world.run(1)
        assert world.lease(lease).status == 'TERMINATED'

    @staticmethod
    def values(world, lease, **changes):
        values = {
            k: world.now + changes[k] for k in ('start', 'end') if k in changes
        }
        if {'min', 'max'} & set(changes):
            [reservation] = lease.reservations
            values['reservations'] = [{'id': reservation.id, **changes}]
        return values


def test_limits_can_change_while_the_manager_runs(world, limit):
    limit(max_lease_duration=0)
    with pytest.raises(exception.MaxLeaseDuration):
        world.create()
    limit(max_lease_duration=100)
    world.create()


def test_a_filter_that_is_not_there_is_named(conf):
    conf.set_override('enabled_filters', ['NoFilter'], 'enforcement')
    with pytest.raises(ValueError, match='NoFilter'):
        Enforcement(conf, None)


def test_a_filter_of_another_package_is_found(conf, tmp_path, monkeypatch):
    foreign.install(tmp_path, monkeypatch, 'stranger', """
        from blazar_sched.service.enforcement import base

        class Filter(base.Filter):
            def check(self, asked, project):
                raise RuntimeError(asked.project_id)
    """, """
        [blazar_sched.enforcement]
        StrangerFilter = stranger:Filter
    """)
    conf.set_override('enabled_filters', ['StrangerFilter'], 'enforcement')
    admission = Enforcement(conf, None).admission()
    lease = Lease('l1', 'lease', 'p1', 'u1', 0, 1, 'PENDING')
    with pytest.raises(RuntimeError, match='p1'):
        admission.check(None, base.LeaseChange(lease, None, 0))


@pytest.mark.row('F103')
class TestLeadOfStart:
    @pytest.fixture(autouse=True)
    def lead(self, limit):
        limit(min_start_lead=100)

    def test_a_lease_starts_no_sooner(self, world):
        for start in 'now', 99:
            with pytest.raises(exception.MinStartLead, match='100') as e:
                world.create(start=start, end=500)
            assert e.value.field == 'start_date'
        world.create(start=100, end=500)

    def test_a_start_may_stay_or_become_later(self, world):
        lease = world.create(start=100, end=500)
        world.run(50)
        update = world.leases.update
        update(lease.id, None, {'end': world.now + 600})
        update(lease.id, None, {'start': world.now + 60})
        with pytest.raises(exception.MinStartLead):
            update(lease.id, None, {'start': world.now + 59})

    def test_the_first_start_with_room_is_no_sooner(self, world):
        now = world.now
        ranges = {'align': None, 'duration': 60, 'latest_end': None}
        lease = world.create(start='now', latest_start=now + 300, **ranges)
        assert lease.start == now + 100
        with pytest.raises(exception.MinStartLead):
            world.create(start='now', latest_start=now + 99, **ranges)
