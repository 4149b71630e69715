# SPDX-License-Identifier: Apache-2.0
"""The processor time of searches, for tests that must be repeatable."""

from collections.abc import Callable
import functools
import itertools


def ticking() -> Callable[[], float]:
    """Return a clock by which each step of a search takes a millisecond."""
    return functools.partial(next, itertools.count(0.0, 0.001))
