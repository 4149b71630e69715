# SPDX-License-Identifier: Apache-2.0
"""Times that users write and read, in the zone that they have chosen."""

import argparse
import time

import pytest

from blazar_sched_client.osc import times
from blazar_sched_client.osc.column import column
from blazar_sched_client.osc.times import Time

BERLIN = times.zone('Europe/Berlin')
UTC = times.zone('UTC')


@pytest.fixture
def tokyo(monkeypatch):
    monkeypatch.setenv('TZ', 'Asia/Tokyo')
    time.tzset()
    yield times.zone('local')
    monkeypatch.undo()
    time.tzset()


def test_a_time_is_read_in_the_zone():
    assert times.read(Time('2030-07-01 10:00'), UTC) == (
        '2030-07-01T10:00:00+00:00'
    )
    assert times.read(Time('2030-07-01 10:00'), BERLIN) == (
        '2030-07-01T10:00:00+02:00'
    )
    assert times.read(Time('2030-07-01T10:00Z'), BERLIN) == (
        '2030-07-01T10:00:00+00:00'
    )
    assert times.read(Time('none'), BERLIN) is None
    for other in ('now', 'soon'):
        assert times.read(Time(other), BERLIN) == other


def test_a_time_is_shown_in_the_zone():
    assert times.show('2030-07-01T10:00:00Z', UTC) == '2030-07-01 10:00 UTC'
    assert times.show('2030-07-01T10:00:07Z', BERLIN) == (
        '2030-07-01 12:00:07 CEST'
    )


def test_local_is_the_zone_of_the_machine(tokyo):
    assert times.read(Time('2030-07-01 10:00'), tokyo) == (
        '2030-07-01T10:00:00+09:00'
    )
    assert times.show('2030-07-01T10:00:00Z', tokyo) == '2030-07-01 19:00 JST'


@pytest.mark.parametrize(
    'name', ['Mars', '', '../etc/passwd', 'a\0b', 'Europe', 'a' * 300]
)
def test_an_unknown_zone_is_refused(name):
    with pytest.raises(argparse.ArgumentTypeError, match='no time zone'):
        times.zone(name)


def test_a_value_is_for_people_and_for_programs():
    value = [{'start_date': '2030-07-01T10:00:00Z', 'hosts': ['a', 'b']}]
    shown = column(value, BERLIN)
    assert shown.machine_readable() == value
    assert shown.human_readable() == (
        'start_date=2030-07-01 12:00 CEST, hosts=a, b'
    )
    assert column('2030-07-01T10:00:00Z', UTC).human_readable() == (
        '2030-07-01 10:00 UTC'
    )
    for plain in (None, 3, True, 'night-run', '2030-07-01T10:00'):
        assert column(plain, UTC) is plain
