# SPDX-License-Identifier: Apache-2.0
"""Offers of devices."""

from blazar_sched.parts.offer.manager import Offers
from tests.functional.manager import test_devices
from tests.functional.manager.test_devices import DEAD
from tests.functional.manager.test_devices import GPU
from tests.functional.manager.test_devices import gpus
from tests.told import notified

add = test_devices.add
flavors = test_devices.flavors
world = test_devices.world


def test_the_owner_of_an_offer_is_notified_of_a_lost_gpu_as_of_a_lease(
    world, add, flavors, monkeypatch
):
    host = add('a', 2)
    told = notified(
        world.manager, monkeypatch,
        lambda kind, payload: (kind, payload['status']),
    )
    [offer] = Offers(world.manager).hold({
        'project_id': 'project', 'user_id': 'user',
        'alternatives': [[gpus(2)]], 'start': world.now + 100,
        'latest_start': None, 'latest_end': None, 'duration': 100,
        'max_duration': None, 'align': None, 'best': 'earliest',
        'limit': 1, 'distance': 1,
    }, 60)['offers']

    def look():
        world.hosts.sync()
        world.monitor.step()

    world.placement.put_below(host.uuid, 'a-0', {GPU: DEAD})
    look()
    assert told == []

    Offers(world.manager).accept({
        'offer': offer['id'], 'name': 'lease', 'project_id': 'project',
        'user_id': 'user', 'before_end': None,
    }, 'key', False)
    look()
    look()
    assert told == [('lease.create', 'PENDING'), ('lease.at_risk', 'PENDING')]
