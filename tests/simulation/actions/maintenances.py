# SPDX-License-Identifier: Apache-2.0
"""Actions of operators on maintenances: close hosts, change, cancel."""

from blazar_sched.parts.maintenance import models
from tests.simulation import features
from tests.simulation import looks
from tests.simulation.actions import registry


@registry.action(6, features.MAINTENANCE)
def close(world):
    """Close one or two hosts, now or later."""
    draw = world.random
    start = world.time + draw.choice((60, 300, 900, 1800))
    body = {
        'name': 'rack', 'reason': 'power',
        'hosts': sorted({world.some_node(), world.some_node()}),
        'end_date': looks.date(start + draw.choice((60, 600, 1800))),
        'force': world.happens(0.5),
    }
    if world.happens(0.8):
        body['start_date'] = looks.date(start)
    world.ask('POST', '/v1/maintenances', body, 'admin')


@registry.action(2, features.MAINTENANCE)
def change(world):
    """Move the end of a maintenance."""
    for each in _some(world):
        end = world.time + world.random.choice((60, 600, 1800))
        world.ask(
            'PUT', f'/v1/maintenances/{each.id}',
            {'end_date': looks.date(end), 'force': world.happens(0.5)},
            'admin',
        )


@registry.action(2, features.MAINTENANCE)
def cancel(world):
    for each in _some(world):
        world.ask('DELETE', f'/v1/maintenances/{each.id}', None, 'admin')


def _some(world):
    """Return a maintenance in a list, which is empty if there is none."""
    known = world.ledger.run(models.list_)
    return [world.random.choice(known)] if known else []
