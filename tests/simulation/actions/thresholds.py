# SPDX-License-Identifier: Apache-2.0
"""Actions of operators on thresholds: create, delete."""

from tests.simulation import features
from tests.simulation.actions import registry


@registry.action(6, features.THRESHOLDS)
def create_threshold(world):
    """Create a threshold of the free hosts, which may be low already."""
    draw = world.random
    world.ask('POST', '/v1/thresholds', {
        'name': 'free hosts',
        'below': draw.choice((1, 2, 2, 3)),
        'within': draw.choice((60, 600, 3600)),
    }, 'admin')


@registry.action(1, features.THRESHOLDS)
def delete_threshold(world):
    known = world.ledger.thresholds()
    if known:
        id_ = world.random.choice(known).id
        world.ask('DELETE', f'/v1/thresholds/{id_}', None, 'admin')
