# SPDX-License-Identifier: Apache-2.0
"""Histories of late preemptible servers, with maintenances."""

import pytest

from blazar_sched.parts.maintenance.manager import Maintenances
from tests import looped
from tests.nova import test_late_guest_history
from tests.nova.test_late_guest_history import NAMES
from tests.nova.test_late_guest_history import play  # noqa: F401
from tests.seeds import seeds


class History(test_late_guest_history.History):
    def steps(self):
        return {**super().steps(), self.close: 6}

    def close(self):
        maintenances = looped.of(self.site.manager, Maintenances)
        self._change(lambda: maintenances.create({
            'name': 'rack', 'reason': 'power', 'start': self.site.now,
            'end': self.site.now + 300, 'resource_properties': None,
            'hosts': [self.rng.choice(NAMES)],
        }, True))


@pytest.mark.row('F55')
@pytest.mark.parametrize('seed', seeds(8, few=2))
def test_no_owner_is_refused(play, seed):  # noqa: F811
    assert play(seed, History)['close']
