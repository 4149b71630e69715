# SPDX-License-Identifier: Apache-2.0
"""How long a worker waits before it asks for changes again.

A part of each wait is random: otherwise a thousand workers that heard of one
commit, or lost one manager, would ask all at once, and go on doing so.
"""

import random

# The least part of the time between two polls, and of a pause after errors.
LEAST_OF_POLL = 0.75
LEAST_OF_PAUSE = 0.5
# Seconds between two tries after errors at most; so many times they double.
MAX_PAUSE = 10.0
MAX_DOUBLINGS = 10
# Seconds after which a worker that hears of a commit asks, at least and at
# most. There is no other bound on how often it asks.
SOONEST, LATEST = 0.05, 0.5


def poll(interval: float) -> float:
    """Return the seconds until the next poll, `interval` at most."""
    return interval * random.uniform(LEAST_OF_POLL, 1)


def pause(failures: int, interval: float) -> float:
    """Return the seconds until the next try after so many errors.

    :param failures: 1 after the first error
    :param interval: seconds between two polls; the wait is no less than that,
        but for its random part
    """
    longest = max(interval, min(MAX_PAUSE, 2.0**min(failures, MAX_DOUBLINGS)))
    return longest * random.uniform(LEAST_OF_PAUSE, 1)


def news() -> float:
    """Return the seconds from the news of a commit to the pull."""
    return random.uniform(SOONEST, LATEST)
