# SPDX-License-Identifier: Apache-2.0
"""The times at which people want a lease to start."""

import pytest

from blazar_sched.domain import alignment
from blazar_sched.domain import exception
from blazar_sched.domain.duration import format_time
from blazar_sched.domain.duration import parse_time


def aligned(text, at):
    return format_time(alignment.parse(text, 'align')(parse_time(at, 'at')))


@pytest.mark.parametrize('text, at, expected', [
    ('1h', '2030-01-01 10:00', '2030-01-01T10:00:00Z'),
    ('1h', '2030-01-01 10:00:01', '2030-01-01T11:00:00Z'),
    ('1d', '2030-01-01 10:00', '2030-01-02T00:00:00Z'),
    ('09:00 UTC', '2030-01-01 09:00', '2030-01-01T09:00:00Z'),
    ('09:00 UTC', '2030-01-01 09:00:01', '2030-01-02T09:00:00Z'),
    ('09:00 Europe/Berlin', '2030-01-01 00:00', '2030-01-01T08:00:00Z'),
    ('09:00 Europe/Berlin', '2030-07-01 00:00', '2030-07-01T07:00:00Z'),
    # A day begins earlier in the east, and later in the west.
    ('00:30 Asia/Tokyo', '2030-01-01 15:20', '2030-01-01T15:30:00Z'),
    ('23:30 America/New_York', '2030-01-01 04:10', '2030-01-01T04:30:00Z'),
    # The clocks skip 02:00 to 03:00, and the time is the end of the gap.
    ('02:30 Europe/Berlin', '2030-03-30 12:00', '2030-03-31T01:00:00Z'),
    ('02:00 Europe/Berlin', '2030-03-30 12:00', '2030-03-31T01:00:00Z'),
    ('03:00 Europe/Berlin', '2030-03-30 12:00', '2030-03-31T01:00:00Z'),
    ('02:30 America/New_York', '2030-03-09 12:00', '2030-03-10T07:00:00Z'),
    # The clocks show 02:30 twice, and the first one counts.
    ('02:30 Europe/Berlin', '2030-10-26 12:00', '2030-10-27T00:30:00Z'),
])
def test_the_first_aligned_time(text, at, expected):
    assert aligned(text, at) == expected


@pytest.mark.parametrize('text', [
    '', '9:00 UTC', '24:00 UTC', '09:60 UTC', '09:00', '09:00 Nowhere/No',
    '09:00 ../../etc/passwd', '09:00 /etc/passwd', '0s', '1y',
    '09:00  UTC', '09:00 UTC ',
])
def test_other_texts_are_refused(text):
    with pytest.raises(exception.InvalidInput) as refused:
        alignment.parse(text, 'align')
    assert refused.value.field == 'align'
