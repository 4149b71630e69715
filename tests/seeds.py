# SPDX-License-Identifier: Apache-2.0
"""The seeds of tests that play random histories."""

import os

import pytest


def seeds(number, few=1):
    """Return the seeds of a test, all but the first few marked `more`.

    :param number: the number of seeds, unless BLAZAR_SCHED_SEEDS is set
    :param few: the number of seeds that `make test` plays
    """
    number = int(os.environ.get('BLAZAR_SCHED_SEEDS', number))
    return [
        *range(min(few, number)),
        *(
            pytest.param(seed, marks=pytest.mark.more)
            for seed in range(few, number)
        ),
    ]
