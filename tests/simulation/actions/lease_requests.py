# SPDX-License-Identifier: Apache-2.0
"""Actions of projects on lease requests: create, repeat, cancel."""

from tests.simulation import features
from tests.simulation import looks
from tests.simulation.actions import leases
from tests.simulation.actions import registry

HOUR = 3600


@registry.action(8, features.REQUESTS)
def wait_for_room(world):
    """Request a lease that may wait for room, and may be moved."""
    draw = world.random
    start = world.time + draw.choice((0, 60, 900))
    latest = start + draw.choice((60, 600, HOUR))
    project, priority = world.some_project(), draw.choice(('low', 'normal'))
    if world.happens(0.3):
        project, priority = 'admin', 'high'
    world.wait_for_room(f'r{len(world.lease_requests.asked)}', project, {
        'name': 'waiting',
        'reservations': [leases.reservation(world)],
        'start_date': looks.date(start),
        'latest_start_date': looks.date(latest),
        'wait_until': looks.date(
            max(world.time + 1, latest - draw.choice((0, 300)))
        ),
        'duration': draw.choice((120, 600, HOUR)),
        'priority': priority,
        'flexible': world.happens(0.6),
    })


@registry.action(2, features.REQUESTS)
def wait_for_room_again(world):
    """Repeat a request, as a client without a response does."""
    if world.lease_requests.asked:
        key = world.random.choice(list(world.lease_requests.asked))
        world.wait_for_room(key, *world.lease_requests.asked[key])


@registry.action(2, features.REQUESTS)
def wait_no_longer(world):
    """Cancel a lease request, which may have stopped waiting."""
    if world.lease_requests.seen:
        id_ = world.random.choice(list(world.lease_requests.seen))
        world.ask('DELETE', f'/v1/requests/{id_}', None, 'admin')
