# SPDX-License-Identifier: Apache-2.0
"""Actions on the managers' processes, on time, and on replicas."""

from tests.simulation import features
from tests.simulation.actions import registry

HOUR = 3600


@registry.action(14)
def tick(world):
    world.live(world.random.choice((1, 5, 20, 70, 400)))
    world.step_all()


@registry.action(14)
def reach_next(world):
    """Advance time until just after the next event is due."""
    next_ = world.ledger.next_event()[0]
    if next_ is not None and world.time < next_ < world.time + HOUR:
        world.live(next_ - world.time + world.random.choice((0, 1, 12)))
    world.step_all()


@registry.action(3, features.CLOCKS)
def step_clock(world):
    member = world.random.choice(world.members)
    member.skew = world.random.choice((-3 * HOUR, -30, 0, 0, 30, 2 * HOUR))
    world.tell(f"{member.name}'s clock is {member.skew} s off")


@registry.action(3, features.KILLS)
def pause(world):
    member = world.random.choice(world.members)
    member.paused = not member.paused
    world.tell(f'{member.name} {"stops" if member.paused else "goes on"}')


@registry.action(2, features.KILLS)
def kill(world):
    member = world.random.choice(world.members)
    if member.manager is not None:
        world.tell(f'{member.name} is killed')
        member.manager.ledger.close()
        member.manager = None


@registry.action(5)
def start(world):
    world.start_all()


@registry.action(1)
def prune(world):
    keep = world.random.choice((1, 5))
    world.quietly(world.some_member(), lambda m: m.ledger.prune(keep))


@registry.action(4)
def pull(world):
    world.pull(world.random.choice(world.schedulers))
