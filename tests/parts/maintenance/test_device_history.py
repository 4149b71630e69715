# SPDX-License-Identifier: Apache-2.0
"""Histories of devices, servers and leases, with maintenances."""

import pytest

from blazar_sched.parts.maintenance.manager import Maintenances
from tests import looped
from tests.functional.manager import test_device_history
from tests.functional.manager.test_device_history import world  # noqa: F401
from tests.seeds import seeds


class History(test_device_history.History):
    def steps(self):
        return {**super().steps(), self.maintain: 1}

    def maintain(self):
        host = self.rng.choice(list(self.cards))
        start, end = self._window()
        looped.of(self.world.manager, Maintenances).create({
            'name': 'rack', 'reason': 'power', 'start': start, 'end': end,
            'hosts': [self._host(host).hypervisor_hostname],
            'resource_properties': None,
        }, self.rng.random() < 0.5)


@pytest.mark.row('F94')
@pytest.mark.parametrize('seed', seeds(8))
def test_any_history_keeps_what_was_promised(world, seed):  # noqa: F811
    history = test_device_history.play(world, seed, History)
    assert not world.ledger.allocations()
    assert history.done['maintain'] + history.done['maintain refused']
