# SPDX-License-Identifier: Apache-2.0
"""The promises that there are: see README.md for how to add one."""

from collections.abc import Callable
import dataclasses


class Broken(AssertionError):
    """A promise that does not hold."""


@dataclasses.dataclass(frozen=True)
class Promise:
    """`broken` takes the world and yields what does not hold, in words.

    :ivar changes: it is looked at after so many changes of the ledger; 0 for
        after each action
    """

    broken: Callable
    changes: int


_ALL = []
# Promises that the service does not hold yet, by name.
AWAITED = set()


def promise(broken):
    """Register what is to hold after each action."""
    _ALL.append(Promise(broken, 0))
    return broken


def promise_of_ledger(changes=1):
    """Register what only a change of the ledger can break.

    :param changes: look after so many: some looks are slow
    """

    def register(broken):
        _ALL.append(Promise(broken, changes))
        return broken

    return register


def check(world, changed):
    """Hold each promise.

    :param changed: whether the ledger is another one than at the last look
    :raises Broken: naming the promise
    """
    for each in _ALL:
        if each.broken.__name__ in AWAITED:
            continue
        if not each.changes or (
            changed and world.changes % each.changes == 0
        ):
            for text in each.broken(world):
                raise Broken(f'{each.broken.__name__}: {text}')
