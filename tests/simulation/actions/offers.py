# SPDX-License-Identifier: Apache-2.0
"""Actions of projects on offers: hold, accept, delete."""

from tests.simulation import features
from tests.simulation import looks
from tests.simulation.actions import leases
from tests.simulation.actions import registry

HOUR = 3600


@registry.action(8, features.OFFERS)
def hold(world):
    """Search for windows, and hold the first one."""
    draw = world.random
    start = world.time + draw.choice((0, 0, 60, 900))
    world.hold(world.some_project(), {
        'reservations': [leases.reservation(world)],
        'start_date': looks.date(start),
        'latest_start_date': looks.date(start + draw.choice((0, 600, HOUR))),
        'duration': draw.choice((120, 600, HOUR)),
        'max_duration': 2 * HOUR,
        'best': draw.choice(('earliest', 'longest', 'most')),
        'hold': draw.choice((30, 300, 900)),
        'limit': 1,
    })


@registry.action(8, features.OFFERS)
def accept(world):
    """Accept an offer, which may have lapsed or be accepted already."""
    if world.offers:
        world.accept(world.random.choice(list(world.offers)))


@registry.action(2, features.OFFERS)
def drop(world):
    """Delete an offer."""
    if world.offers:
        world.drop(world.random.choice(list(world.offers)))
