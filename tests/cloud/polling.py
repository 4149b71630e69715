# SPDX-License-Identifier: Apache-2.0
"""Waiting for what is to come about."""

from collections.abc import Callable
import time
from typing import TypeVar

# Seconds: everything runs on one machine, which has other work too.
PATIENCE = 120
PAUSE = 0.25

T = TypeVar('T')


def until(look: Callable[[], T], patience: float = PATIENCE) -> T:
    """Look again and again until there is something; return it."""
    deadline = time.monotonic() + patience
    while not (seen := look()):
        assert time.monotonic() < deadline, f'not in {patience} s'
        time.sleep(PAUSE)
    return seen
