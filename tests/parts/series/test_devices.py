# SPDX-License-Identifier: Apache-2.0
"""Series of leases with GPUs."""

import datetime

from blazar_sched.parts.series.manager import AllSeries
from tests import looped
from tests.functional.manager.test_devices import add  # noqa: F401
from tests.functional.manager.test_devices import flavors  # noqa: F401
from tests.functional.manager.test_devices import gpus
from tests.functional.manager.test_devices import world  # noqa: F401
from tests.told import notified


def test_a_series_without_its_flavor_lists_what_is_missing(
    conf, world, add, flavors, monkeypatch  # noqa: F811
):
    conf.set_override('series_horizon', 3600, 'manager')
    world.begin(conf)
    add('a', 2)
    told = notified(
        world.manager, monkeypatch, lambda kind, payload: (
            kind, len(payload['occurrences']),
        ) if kind.startswith('series.') else None,
    )
    series = looped.of(world.manager, AllSeries)
    made = series.create({
        'name': 'course', 'project_id': 'project', 'user_id': 'user',
        'rrule': 'FREQ=HOURLY;COUNT=3', 'time_zone': 'UTC',
        'start': datetime.datetime.fromtimestamp(
            world.now + 60, datetime.UTC
        ).strftime('%Y-%m-%dT%H:%M:%S'),
        'duration': 600, 'reservations': [gpus()], 'except_dates': [],
        'if_no_room': 'refuse',
    }, None, False)
    flavors(other={})
    for _ in range(2):
        world.run(3600)
        series.step()

    assert told == [('series.at_risk', 1)] * 2
    shown = series.get(made['id'], None)
    assert [each['lease_id'] is None for each in shown['leases']][-1]
