# SPDX-License-Identifier: Apache-2.0
"""The limits of enforcement filters on series."""

import pytest

from blazar_sched.domain import exception
from blazar_sched.parts.limit.exception import MaxLeases
from blazar_sched.parts.series.manager import AllSeries
from tests import looped
from tests.parts.limit import test_enforcement
from tests.parts.limit.test_enforcement import world  # noqa: F401


class TestLimitsOfKeystone:
    conf = test_enforcement.TestLimitsOfKeystone.conf
    read = test_enforcement.TestLimitsOfKeystone.read

    def test_a_series_has_the_limits_of_its_project(
        self, world, whole, read  # noqa: F811
    ):
        def create(count):
            looped.of(world.manager, AllSeries).create({
                'name': 'course', 'project_id': 'p1', 'user_id': 'user',
                'rrule': f'FREQ=DAILY;COUNT={count}', 'time_zone': 'UTC',
                'start': '2027-01-16T12:00', 'duration': 60,
                'reservations': [whole()], 'except_dates': [],
                'if_no_room': 'refuse',
            })

        with pytest.raises(exception.Unavailable, match='Keystone'):
            create(1)
        read({'p1': {'max_leases_per_project': 2}})
        with pytest.raises(MaxLeases, match='2 leases'):
            create(3)
        create(2)
