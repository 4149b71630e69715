# SPDX-License-Identifier: Apache-2.0
"""Named points at which a test may end the process.

A point that is not armed, as always in operation, costs one comparison.
"""

from collections.abc import Callable
import itertools
import os
import signal

VARIABLE = 'BLAZAR_SCHED_CRASH_AT'

Hook = Callable[[str], None]

_hook: Hook | None = None


def point(name: str) -> None:
    """Report that the process is at the point `name`."""
    if _hook is not None:
        _hook(name)


def arm(hook: Hook | None) -> None:
    """Set the `hook` to call with the name of each point; None disarms."""
    global _hook
    _hook = hook


def arm_from_environment() -> None:
    """Arm the process to be killed at the point in the environment.

    ``BLAZAR_SCHED_CRASH_AT`` is the name of a point, or ``name#3`` for the
    third time that the process passes the point; with ``!SIGSTOP`` after it,
    the process is suspended in place of being killed.

    :raises ValueError: if the text after '#' is not a number
    :raises KeyError: if the text after '!' is not a signal
    """
    where = os.environ.get(VARIABLE)
    if where:
        place, _, number = where.partition('!')
        name, _, pass_ = place.partition('#')
        arm(_killer(
            name, int(pass_ or 1), signal.Signals[number or 'SIGKILL']
        ))


def _killer(fatal: str, last: int, number: signal.Signals) -> Hook:
    passes = itertools.count(1)

    def kill(name: str) -> None:
        if name == fatal and next(passes) == last:
            os.kill(os.getpid(), number)

    return kill
