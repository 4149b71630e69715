# SPDX-License-Identifier: Apache-2.0
"""The registry of actions: see README.md for how to add an action."""

from collections.abc import Callable
import dataclasses


@dataclasses.dataclass(frozen=True)
class Action:
    """An action; `do` takes the world.

    :ivar weight: how often the action happens, relative to others
    :ivar feature: the feature of a world that the action needs, or None
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
    """Return a random action of a world with these features.

    :param often: names of actions whose weight is `OFTEN` times as large
    """
    there = [a for a in _ALL if a.feature is None or a.feature in features]
    weights = [
        a.weight * (OFTEN if a.do.__name__ in often else 1) for a in there
    ]
    [chosen] = random.choices(there, weights)
    return chosen.do
