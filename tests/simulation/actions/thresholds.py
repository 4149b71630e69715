# SPDX-License-Identifier: Apache-2.0
"""Actions of operators on thresholds: create, delete."""

import json

from tests.simulation import features
from tests.simulation.actions import registry


@registry.action(6, features.THRESHOLDS)
def create_threshold(world):
    """Create a threshold of the free hosts, which may be low already."""
    draw = world.random
    _set(world, [*world.conf.manager.capacity_threshold, json.dumps({
        'name': 'free hosts',
        'below': draw.choice((1, 2, 2, 3)),
        'within': draw.choice((60, 600, 3600)),
    })])


@registry.action(1, features.THRESHOLDS)
def delete_threshold(world):
    known = list(world.conf.manager.capacity_threshold)
    if known:
        known.remove(world.random.choice(known))
        _set(world, known)


def _set(world, thresholds):
    """Change the options of all managers."""
    world.conf.set_override('capacity_threshold', thresholds, 'manager')
    world.tell(f'thresholds: {world.conf.manager.capacity_threshold}')
