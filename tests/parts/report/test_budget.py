# SPDX-License-Identifier: Apache-2.0
"""The budgets of projects over a sliding window."""

import pytest

from blazar_sched.parts.limit.exception import MaxWeightHours
from blazar_sched.service import parts
from tests.parts.limit import test_resource_limits
from tests.parts.limit.test_resource_limits import DAY
from tests.parts.limit.test_resource_limits import GPU
from tests.parts.limit.test_resource_limits import gpus
from tests.parts.limit.test_resource_limits import HOUR
from tests.parts.limit.test_resource_limits import refused
from tests.parts.report import usages

conf, world = test_resource_limits.conf, test_resource_limits.world


@pytest.mark.row('F77')
@pytest.mark.parametrize('gone', [False, True])
def test_a_budget_counts_the_last_days(world, limit, conf, gone):
    """GPU hours that were reserved come back once they are old."""
    limit(
        max_weight_hours_per_project=10, max_weight_hours_days=7,
        resource_weights={GPU: 1},
    )
    measure = usages.of(world.manager).step
    measure()
    lease = world.create(gpus(2), start=0, end=4 * HOUR)
    world.run()
    # The lease ends an hour early.
    world.run(3 * HOUR)
    world.leases.update(lease.id, None, {'end': 'now'})
    world.run()
    measure()
    if gone:
        world.leases.delete(lease.id, None)
        world.run()
    with refused(MaxWeightHours, '10'):
        world.create(gpus(1), end=100 + 4 * HOUR + 1)
    [used] = (
        each['used'] for each in world.manager.enforcement.limits(
            'project'
        ) if each['name'] == 'max_weight_hours_per_project'
    )
    assert used == 6
    world.create(gpus(1), end=100 + 4 * HOUR, project_id='other')
    world.create(gpus(1), end=100 + 4 * HOUR)
    world.run(8 * DAY)
    measure()
    world.create(gpus(1), end=100 + 10 * HOUR)


@pytest.mark.parametrize('how', ['remove', 'shrink'])
def test_a_smaller_lease_has_had_what_was_measured(world, limit, how):
    limit(
        max_weight_hours_per_project=20, max_weight_hours_days=7,
        resource_weights={GPU: 1},
    )
    measure = usages.of(world.manager).step
    measure()
    lease = world.create(gpus(1), gpus(3), start=0, end=4 * HOUR)
    world.run()
    world.run(3 * HOUR)
    measure()
    world.leases.update(lease.id, None, {'reservations': [{
        'id': lease.reservations[1].id,
        **{'remove': {'remove': True}, 'shrink': {'amount': 1}}[how],
    }]})
    world.run()
    # 3 hours of 4 GPUs, and an hour of 1 or 2.
    left = 20 - 12 - {'remove': 1, 'shrink': 2}[how]
    with refused(MaxWeightHours, '20'):
        world.create(gpus(1), end=100 + left * HOUR + 60)
    world.create(gpus(1), end=100 + left * HOUR - 60)


@pytest.mark.parametrize('how', ['end', 'delete', 'shrink'])
def test_what_is_over_and_not_measured_counts(world, limit, how):
    """Leases of some seconds are not for nothing, and nothing is counted
    twice once it is measured.
    """
    limit(
        max_weight_hours_per_project=10**6, max_weight_hours_days=7,
        resource_weights={GPU: 3600},
    )
    usages.of(world.manager).step()
    for _ in range(10):
        lease = world.create(gpus(2), start=0, end=29)
        world.run(20)
        if how == 'shrink':
            world.leases.update(lease.id, None, {'reservations': [
                {'id': lease.reservations[0].id, 'amount': 1},
            ]})
        if how == 'delete':
            world.leases.delete(lease.id, None)
        world.run(10)
    used = 10 * {'end': 58, 'delete': 40, 'shrink': 49}[how]
    for _ in range(3):
        limit(max_weight_hours_per_project=used + 10)
        with refused(MaxWeightHours, str(used + 10)):
            world.create(gpus(1), end=111)
        [told] = (
            each['used'] for each in world.manager.enforcement.limits(
                'project'
            ) if each['name'] == 'max_weight_hours_per_project'
        )
        assert told == used
        usages.of(world.manager).step()
    world.create(gpus(1), end=110)


def test_a_budget_reads_no_history(world, limit):
    """As many rows for ten leases of a day as for one."""
    limit(
        max_weight_hours_per_project=10**6, max_weight_hours_days=30,
        resource_weights={GPU: 1},
    )
    counts = []
    for _ in range(2):
        for _ in range(5):
            lease = world.create(gpus(1), start=0, end=10)
            world.run(20)
            usages.of(world.manager).step()
            world.leases.delete(lease.id, None)
        with world.ledger._to_read.connect() as connection:
            found = connection.exec_driver_sql(
                'SELECT COUNT(*), (SELECT COUNT(*) FROM usage_day) '
                'FROM reserved_day'
            ).one()
        counts.append(tuple(found))
    (days, rows), (days_later, rows_later) = counts
    assert days == days_later
    assert rows_later == 2 * rows


def test_a_budget_of_all_time_is_one(world, limit):
    limit(
        max_weight_hours_per_project=1, max_weight_hours_days=10**6,
        resource_weights={GPU: 1},
    )
    usages.of(world.manager).step()
    lease = world.create(gpus(1), start=0, end=HOUR // 2)
    world.run(60)
    usages.of(world.manager).step()
    world.leases.update(lease.id, None, {'end': world.now + HOUR // 2})


def test_a_budget_needs_the_part(world, limit, conf):
    limit(max_weight_hours_days=7)
    conf.set_override('parts', sorted(parts.installed().keys() - {'report'}))
    with pytest.raises(ValueError, match='max_weight_hours_days.* report'):
        world.begin(conf)
