# SPDX-License-Identifier: Apache-2.0
"""The limits on amounts of resource classes, for series."""

import pytest

from blazar_sched.domain import exception
from blazar_sched.parts.limit.exception import MaxWeightHours
from blazar_sched.parts.series.manager import AllSeries
from tests import looped
from tests.parts.limit.test_resource_limits import conf  # noqa: F401
from tests.parts.limit.test_resource_limits import DAY
from tests.parts.limit.test_resource_limits import GPU
from tests.parts.limit.test_resource_limits import gpus
from tests.parts.limit.test_resource_limits import HOUR
from tests.parts.limit.test_resource_limits import on  # noqa: F401
from tests.parts.limit.test_resource_limits import refused
from tests.parts.limit.test_resource_limits import world  # noqa: F401


@pytest.fixture
def series(world):  # noqa: F811
    return looped.of(world.manager, AllSeries)


@pytest.fixture
def create(series):
    def create(reservation, count):
        return series.create({
            'name': 'course', 'project_id': 'project', 'user_id': 'user',
            'rrule': f'FREQ=DAILY;COUNT={count}', 'time_zone': 'UTC',
            'start': '2027-01-15T12:00', 'duration': HOUR,
            'reservations': [reservation], 'except_dates': [],
            'if_no_room': 'refuse',
        })

    return create


def test_the_leases_of_a_series_count_together(
    world, limit, on, create  # noqa: F811
):
    limit(max_resources_per_project={GPU: 12})
    with refused(exception.MaxResources, 'occurrence', '12', GPU):
        create(on('b'), 4)
    assert world.ledger.leases() == []
    made = create(on('b'), 3)
    assert len(made['leases']) == 3
    with pytest.raises(exception.MaxResources):
        world.create(gpus(1))


def test_a_series_keeps_to_weight_hours(limit, create):
    limit(resource_weights={GPU: 1}, max_weight_hours_per_project=5)
    with refused(MaxWeightHours, 'occurrence', '5'):
        create(gpus(2), 3)
    create(gpus(1), 5)


def test_a_series_is_changed_within_the_limit(
    world, limit, on, series, create  # noqa: F811
):
    """The leases that a change replaces do not count."""
    limit(max_resources_per_project={GPU: 12})
    made = create(on('b'), 3)
    series.update(made['id'], 'project', {'duration': 2 * HOUR})
    with pytest.raises(exception.MaxResources):
        series.update(made['id'], 'project', {'reservations': [on('a', 'b')]})
    world.check()


def test_the_loop_books_a_series_up_to_the_limit(
    world, conf, limit, on, series, create  # noqa: F811
):
    limit(max_resources_per_project={GPU: 12})
    conf.set_override('series_horizon', 2 * DAY, 'manager')
    made = create(on('b'), 5)
    conf.set_override('series_horizon', 9 * DAY, 'manager')
    series.step()
    assert len(world.ledger.leases()) == 3
    shown = series.get(made['id'], None)
    assert sum(each['lease_id'] is None for each in shown['leases']) == 2
    world.check()
