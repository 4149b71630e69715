# SPDX-License-Identifier: Apache-2.0
"""Histories of devices, servers and leases, with series of leases."""

import datetime

import pytest

from blazar_sched.parts.series.manager import AllSeries
from tests import looped
from tests.functional.manager import test_device_history
from tests.functional.manager.test_device_history import world  # noqa: F401
from tests.seeds import seeds


class History(test_device_history.History):
    def steps(self):
        return {**super().steps(), self.repeat: 1}

    def repeat(self):
        """Create a series."""
        start, end = self._window()
        made = looped.of(self.world.manager, AllSeries).create({
            'name': 'course', 'project_id': 'project', 'user_id': 'user',
            'rrule': 'FREQ=HOURLY;COUNT=3', 'time_zone': 'UTC',
            'start': datetime.datetime.fromtimestamp(
                start, datetime.UTC
            ).strftime('%Y-%m-%dT%H:%M:%S'),
            'duration': min(50, end - start),
            'reservations': [self._asked()], 'except_dates': [],
            'if_no_room': self.rng.choice(('refuse', 'skip')),
        })
        self.leases += [
            self.world.ledger.lease(each['lease_id'])
            for each in made['leases'] if each['lease_id']
        ]


@pytest.mark.row('F94')
@pytest.mark.parametrize('seed', seeds(4))
def test_any_history_keeps_what_was_promised(conf, world, seed):  # noqa: F811
    conf.set_override('series_horizon', 1000, 'manager')
    history = test_device_history.play(world, seed, History)
    assert not world.ledger.allocations()
    assert history.done['create'] + history.done['hold']
    assert history.done['repeat']
