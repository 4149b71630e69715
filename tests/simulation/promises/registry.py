# SPDX-License-Identifier: Apache-2.0
"""The registry of promises: see README.md for how to add a promise."""

from collections.abc import Callable
import dataclasses


class Broken(AssertionError):
    """A promise that does not hold."""


@dataclasses.dataclass(frozen=True)
class Promise:
    """A promise; `broken` takes the world and yields the faults, as texts.

    :ivar changes: the promise is checked after this number of changes of the
        ledger; 0 for after each action
    """

    broken: Callable
    changes: int


_ALL = []
# Promises that the service does not keep yet, by name.
AWAITED = set()


def promise(broken):
    """Register a promise that is checked after each action."""
    _ALL.append(Promise(broken, 0))
    return broken


def promise_of_ledger(changes=1):
    """Register a promise that only a change of the ledger can break.

    :param changes: check after this number of changes: some checks are slow
    """

    def register(broken):
        _ALL.append(Promise(broken, changes))
        return broken

    return register


def check(world, changed):
    """Check each promise.

    :param changed: whether the ledger has changed since the last check
    :raises Broken: naming the promise
    """
    for each in _ALL:
        if each.broken.__name__ in AWAITED:
            continue
        if not each.changes or (changed and world.changes % each.changes == 0):
            for text in each.broken(world):
                raise Broken(f'{each.broken.__name__}: {text}')
