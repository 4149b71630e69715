# SPDX-License-Identifier: Apache-2.0
"""The windows of new and changed leases."""

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import lease
from blazar_sched.domain import states
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window

NOW, HOUR = 10**6, 3600


def a_lease(start, end, status=states.LEASE_PENDING):
    return lease.Lease('l', 'l', 'p', 'u', start, end, status)


def test_a_new_window_has_an_end_or_a_duration():
    assert lease.new_window({'start': 'now', 'end': NOW + 1}, NOW) == (
        Window(NOW, NOW + 1)
    )
    assert lease.new_window(
        {'start': NOW + 5, 'end': FOREVER, 'duration': 7}, NOW
    ) == Window(NOW + 5, NOW + 12)


def test_a_changed_duration_begins_at_the_start():
    old = a_lease(NOW + HOUR, NOW + 2 * HOUR)
    assert lease.changed_window(old, {'duration': 60}, NOW) == (
        Window(NOW + HOUR, NOW + HOUR + 60)
    )
    assert lease.changed_window(
        old, {'start': NOW + 5, 'duration': 60}, NOW
    ) == Window(NOW + 5, NOW + 65)


def test_an_active_lease_can_be_as_long_as_it_has_been():
    old = a_lease(NOW - HOUR, NOW + HOUR, states.LEASE_ACTIVE)
    assert lease.changed_window(old, {'duration': HOUR}, NOW) == (
        Window(NOW - HOUR, NOW)
    )
    with pytest.raises(exception.InvalidInput) as refused:
        lease.changed_window(old, {'duration': HOUR - 61}, NOW)
    assert refused.value.field == 'duration'
