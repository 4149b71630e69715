# SPDX-License-Identifier: Apache-2.0
"""Relocation in a world: the options, and the passing of time."""

import dataclasses

from blazar_sched.domain import duration
from blazar_sched.domain import window
from tests.simulation.cloud.migrations import VERIFY_RESIZE

# Seconds between two looks of the managers while a move is due.
LOOK = 10


@dataclasses.dataclass(frozen=True)
class Setting:
    """The options of relocation in a world.

    :ivar options: the options of the managers, by name
    :ivar times: how many seconds a live migration may take
    :ivar failures: the share of live migrations that fail
    """

    options: dict
    times: tuple[int, ...]
    failures: float

    @property
    def lead(self):
        return self.options['relocation_lead']

    def lead_of(self, movable):
        """Return by how many seconds two stays of a server overlap."""
        cold = movable == 'cold'
        return self.lead + cold * self.options['relocation_cold_notice']

    @property
    def moves(self):
        return self.options['relocation_moves']


def draw(random):
    lead = random.choice((60, 120, 300))
    least = random.choice((30, 60, 600))
    return Setting(
        options={
            'relocation_lead': lead,
            'relocation_cold_notice': lead,
            'relocation_moves': random.choice((1, 2, 3, 3)),
            'relocation_shortest_stay': least,
            'relocation_notice': random.choice((0, 60, 600)),
            'relocation_headroom': random.choice((0.0, 0.0, 0.05)),
            'relocation_host_headroom': random.choice((0.0, 0.0, 0.15)),
            'relocation_ways': {'disk': 'live'},
        },
        times=random.choice(((2, 15), (2, 15), (5, 40, 2 * lead))),
        failures=random.choice((0.0, 0.0, 0.3)),
    )


def configure(setting, conf):
    """Set the options of a manager; without a setting no server moves."""
    options = {'unbounded': duration.FOREVER, 'relocate_instances': False}
    if setting is not None:
        options = setting.options
    for name, value in options.items():
        conf.set_override(name, value, 'manager')


def next_look(world):
    """Return when a manager has something to do for a path, FOREVER for never.

    While a move is due, the managers look every LOOK seconds.
    """
    if any(s.status == VERIFY_RESIZE for s in world.cloud.servers_.values()):
        return world.time + LOOK
    found = window.FOREVER
    for each in world.ledger.instances():
        if not each.path:
            continue
        start = each.relocations[0].start
        if start > world.time:
            found = min(found, start)
        elif each.leaves_at > world.time:
            found = min(found, world.time + LOOK)
    return found
