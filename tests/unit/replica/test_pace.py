# SPDX-License-Identifier: Apache-2.0
"""The requests of many workers are spread over time."""

import pytest

from blazar_sched.replica import pace

MANY = 1000


@pytest.mark.parametrize('wait, least, most', [
    (lambda: pace.poll(5.0), 3.75, 5.0),
    (pace.news, 0.05, 0.5),
    (lambda: pace.pause(1, 0.1), 1.0, 2.0),
    (lambda: pace.pause(2, 0.1), 2.0, 4.0),
    (lambda: pace.pause(100_000, 0.1), 5.0, 10.0),
    (lambda: pace.pause(1, 60.0), 30.0, 60.0),
])
def test_waits_are_spread_over_their_range(wait, least, most):
    found = sorted(wait() for _ in range(MANY))
    assert least <= found[0]
    assert found[-1] <= most
    # None of ten equal parts of the range has much more than a tenth.
    tenth = (most - least) / 10
    for n in range(10):
        low = least + n * tenth
        assert sum(low <= w < low + tenth for w in found) < MANY / 5
