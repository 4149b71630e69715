# SPDX-License-Identifier: Apache-2.0
"""Waiting times of a worker before it asks for changes again.

A part of each wait is random: otherwise a thousand workers that heard of one
commit, or lost one manager, would all ask at once, and would continue to do
so.
"""

import random

# The least fraction of the time between two polls, and of a pause after
# errors, that a worker waits.
LEAST_OF_POLL = 0.75
LEAST_OF_PAUSE = 0.5
# The longest pause after errors in seconds, before the random part, and the
# number of times that the pause doubles at most.
MAX_PAUSE = 10.0
MAX_DOUBLINGS = 10
# The least and the most seconds after which a worker that hears of a commit
# asks for changes. There is no other bound on how often a worker asks.
SOONEST, LATEST = 0.05, 0.5


def poll(interval: float) -> float:
    """Return the seconds until the next poll, at most `interval`."""
    return interval * random.uniform(LEAST_OF_POLL, 1)


def pause(failures: int, interval: float) -> float:
    """Return the seconds until the next try after a number of errors.

    :param failures: 1 after the first error
    :param interval: seconds between two polls; the wait is no less than that,
        except for its random part
    """
    longest = max(interval, min(MAX_PAUSE, 2.0**min(failures, MAX_DOUBLINGS)))
    return longest * random.uniform(LEAST_OF_PAUSE, 1)


def news() -> float:
    """Return the seconds between the news of a commit and the pull."""
    return random.uniform(SOONEST, LATEST)
