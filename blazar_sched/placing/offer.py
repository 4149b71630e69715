# SPDX-License-Identifier: Apache-2.0
"""An offer: the available room, if a request finds too little room.

`available` is the number of hosts or instances that the window has room for,
and `reservation` the position in the lease of the reservation that lacks room.
`start` and `end` are those of a later window in which the whole lease would
find room; None if no such window is known.
"""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from blazar_sched.domain.window import TIME_LIMIT

Offer = Mapping[str, Any]

# Seconds from the first to the second start that is tried, and how many times
# the step is doubled.
STEP = 3600
TRIES = 16


def search(fits: Callable[[int], bool], start: int) -> int | None:
    """Return a start that fits: the first one, if all later starts fit too.

    Otherwise return a start that fits and comes after a start that does not.
    The steps are doubled, then halved: O(log of the distance) calls of
    `fits`.

    :param fits: tells whether a start fits
    :param start: the first start to try
    """
    if fits(start):
        return start
    failed, step = start, STEP
    for _ in range(TRIES):
        later = failed + step
        if later >= TIME_LIMIT:
            return None
        if fits(later):
            return _between(fits, failed, later)
        failed, step = later, 2 * step
    return None


def last(fits: Callable[[int], bool], end: int, latest: int) -> int:
    """Return the last end that fits, if a later end never fits more easily.

    :param end: an end that fits
    :param latest: the last end to try
    """
    while end < latest:
        middle = (end + latest + 1) // 2
        if fits(middle):
            end = middle
        else:
            latest = middle - 1
    return end


def _between(fits: Callable[[int], bool], failed: int, later: int) -> int:
    while later - failed > 1:
        middle = (failed + later) // 2
        if fits(middle):
            later = middle
        else:
            failed = middle
    return later
