# SPDX-License-Identifier: Apache-2.0
"""Histories of devices, servers and leases, with offers."""

import pytest

from blazar_sched.parts.offer.manager import Offers
from tests.functional.manager import test_device_history
from tests.seeds import seeds

world = test_device_history.world


class History(test_device_history.History):
    def steps(self):
        return {**super().steps(), self.hold: 1}

    def hold(self):
        """Hold an offer, and accept it or not."""
        start, end = self._window()
        held = Offers(self.world.manager).hold({
            'project_id': 'project', 'user_id': 'user',
            'alternatives': [[self._asked()], [self._asked()]],
            'start': start, 'latest_start': None, 'latest_end': None,
            'duration': end - start, 'max_duration': None, 'align': None,
            'best': 'earliest', 'limit': 2, 'distance': 1,
        }, 60)['offers']
        if held and held[0]['id'] and self.rng.random() < 0.7:
            self.leases.append(Offers(self.world.manager).accept({
                'offer': held[0]['id'], 'name': 'lease',
                'project_id': 'project', 'user_id': 'user',
                'before_end': None,
            }, f'offer {held[0]["id"]}', False))


@pytest.mark.row('F94')
@pytest.mark.parametrize('seed', seeds(8))
def test_any_history_keeps_what_was_promised(world, seed):
    history = test_device_history.play(world, seed, History)
    assert not world.ledger.allocations()
    assert history.done['create'] + history.done['hold']
