# SPDX-License-Identifier: Apache-2.0
"""Maintenances, and held offers."""

from tests.parts.offer import test_held_offer
from tests.parts.offer.test_held_offer import accept

hold = test_held_offer.hold
wanted = test_held_offer.wanted
world = test_held_offer.world


def test_a_maintenance_notifies_of_an_offer_once_it_is_a_lease(
    world, close, maintenances, hold, monkeypatch
):
    offer = hold()[0]
    notifier = world.manager.notifier
    sent = []
    monkeypatch.setattr(notifier, 'is_on', True)
    monkeypatch.setattr(notifier, 'tell', lambda *each: sent.append(each[0]))

    def close_and_open():
        made = close('a', force=True)
        maintenances.delete(made['id'])

    close_and_open()
    assert sent == []
    accept(world, offer['id'])
    del sent[:]
    close_and_open()
    assert sent == ['lease.maintenance', 'lease.degraded', 'lease.healed']
