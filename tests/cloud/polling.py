# SPDX-License-Identifier: Apache-2.0
"""Waiting for a state by polling."""

from collections.abc import Callable
import time
from typing import TypeVar

# Seconds; everything runs on one machine, which may be busy.
PATIENCE = 300
PAUSE = 0.1

T = TypeVar('T')


def until(look: Callable[[], T], patience: float = PATIENCE) -> T:
    """Poll until the result is true; return the result."""
    deadline = time.monotonic() + patience
    while not (seen := look()):
        assert time.monotonic() < deadline, f'not in {patience} s'
        time.sleep(PAUSE)
    return seen
