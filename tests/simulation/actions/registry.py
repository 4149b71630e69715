# SPDX-License-Identifier: Apache-2.0
"""The actions that there are: see README.md for how to add one."""

from collections.abc import Callable
import dataclasses


@dataclasses.dataclass(frozen=True)
class Action:
    """What may happen: `do` takes the world.

    :ivar weight: how often, beside the others
    :ivar feature: only in worlds that have it, None for in all
    """

    do: Callable
    weight: int
    feature: str | None


_ALL = []
OFTEN = 5


def action(weight, feature=None):
    """Register a function of the world as an action."""

    def register(do):
        _ALL.append(Action(do, weight, feature))
        return do

    return register


def choose(random, features, often=()):
    """Return one of those that worlds with these features have.

    :param often: names of those that weigh `OFTEN` times as much
    """
    there = [a for a in _ALL if a.feature is None or a.feature in features]
    weights = [
        a.weight * (OFTEN if a.do.__name__ in often else 1) for a in there
    ]
    [chosen] = random.choices(there, weights)
    return chosen.do
