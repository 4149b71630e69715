# SPDX-License-Identifier: Apache-2.0
"""The occurrences of a series, against a walk through each day of a year."""

import datetime
import random
import zoneinfo

from dateutil import rrule
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.window import FOREVER
from blazar_sched.parts.series import series
from blazar_sched.parts.series.series import Recurrence

HOUR, DAY = 3600, 86400
DAYS = 'MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU'
BERLIN, NEW_YORK = 'Europe/Berlin', 'America/New_York'


def recurrence(rrule, start, zone=BERLIN, duration=8 * HOUR, excepted=()):
    return Recurrence.parse({
        'rrule': rrule, 'time_zone': zone, 'start': start,
        'duration': duration, 'except_dates': list(excepted),
    })


def epoch(text):
    return int(datetime.datetime.fromisoformat(f'{text}+00:00').timestamp())


def starts(found, after=0, until=FOREVER):
    return [each.window.start for each in found.occurrences(after, until)]


def utc(found, **bounds):
    return [
        datetime.datetime.fromtimestamp(at, datetime.UTC).strftime(
            '%m-%d %H:%M'
        )
        for at in starts(found, **bounds)
    ]


@pytest.mark.row('F33')
@pytest.mark.parametrize('zone', [BERLIN, NEW_YORK])
def test_a_weekly_series_for_a_year(zone):
    """The start stays at 09:00, through both changes of the clocks."""
    found = recurrence('FREQ=WEEKLY;BYDAY=MO,WE', '2030-01-07T09:00', zone)
    local = zoneinfo.ZoneInfo(zone)
    day = datetime.datetime(2030, 1, 7, 9, tzinfo=local)
    walked, offsets = [], set()
    while day.year == 2030:
        if day.weekday() in (0, 2):
            walked.append(int(day.timestamp()))
            offsets.add(day.utcoffset())
        # Wall time: the same time of the next day.
        day += datetime.timedelta(days=1)
    end = int(datetime.datetime(2031, 1, 1, tzinfo=local).timestamp())

    assert starts(found, until=end) == walked
    assert len(walked) == 103
    assert len(offsets) == 2
    assert {
        each.window.duration for each in found.occurrences(0, end)
    } == {8 * HOUR}


@pytest.mark.parametrize('zone, day, start', [
    # On these days the clocks go from 02:00 to 03:00.
    (BERLIN, '2030-03-31', '03-31 01:00'),
    (NEW_YORK, '2030-03-10', '03-10 07:00'),
])
def test_a_start_in_the_gap_is_at_its_end(zone, day, start):
    found = recurrence('FREQ=DAILY;COUNT=1', f'{day}T02:30', zone, HOUR)
    assert utc(found) == [start]


@pytest.mark.parametrize('zone, day, start', [
    # On these days the clocks go back to 02:00, or to 01:00.
    (BERLIN, '2030-10-27', '10-27 00:30'),
    (NEW_YORK, '2030-11-03', '11-03 06:30'),
])
def test_first_of_two_starts_at_one_local_time_counts(zone, day, start):
    hour = 2 if zone == BERLIN else 1
    found = recurrence('FREQ=DAILY;COUNT=1', f'{day}T0{hour}:30', zone, HOUR)
    if zone == NEW_YORK:
        start = '11-03 05:30'
    assert utc(found) == [start]


def test_two_starts_at_the_end_of_a_gap_are_one():
    found = recurrence(
        'FREQ=DAILY;BYHOUR=2,3', '2030-03-31T02:00', duration=HOUR
    )
    until = epoch('2030-04-01T00:00')
    assert utc(found, until=until) == ['03-31 01:00']


def test_rule_with_count_until_and_excepted_dates():
    rule = 'FREQ=DAILY;COUNT=4'
    found = recurrence(rule, '2030-01-07T09:00', excepted=['2030-01-08'])
    assert utc(found) == ['01-07 08:00', '01-09 08:00', '01-10 08:00']
    found = recurrence(rule, '2030-01-07T09:00', excepted=['2030-01-09T09:00'])
    assert utc(found) == ['01-07 08:00', '01-08 08:00', '01-10 08:00']
    # UNTIL is included, in local time or in UTC.
    for until in ('20300108', '20300108T090000', '20300108T080000Z'):
        found = recurrence(f'FREQ=DAILY;UNTIL={until}', '2030-01-07T09:00')
        assert utc(found) == ['01-07 08:00', '01-08 08:00'], until
    found = recurrence('FREQ=DAILY;UNTIL=20300108T075959Z', '2030-01-07T09:00')
    assert utc(found) == ['01-07 08:00']


def test_each_part_of_the_time_is_the_whole():
    """What is yielded does not depend on where the search begins."""
    found = recurrence('FREQ=MONTHLY;BYDAY=-1FR', '2030-01-01T18:00')
    first, last = epoch('2030-01-01T00:00'), epoch('2031-01-01T00:00')
    whole = starts(found, first, last)
    assert len(whole) == 12
    for at in range(first, last, 17 * DAY):
        parts = starts(found, first, at) + starts(found, at, last)
        assert parts == whole
        assert found.following(at) == next(
            (each for each in whole if each >= at),
            starts(found, last, last + 60 * DAY)[0],
        )


def test_a_series_that_is_over_has_nothing_that_follows():
    found = recurrence('FREQ=DAILY;COUNT=2', '2030-01-07T09:00')
    assert found.following(epoch('2030-01-09T00:00')) == FOREVER


@pytest.mark.parametrize('field, values', [
    ('rrule', {'rrule': 'FREQ=MINUTELY'}),
    ('rrule', {'rrule': 'FREQ=SECONDLY;COUNT=2'}),
    ('rrule', {'rrule': 'COUNT=2'}),
    ('rrule', {'rrule': 'FREQ=DAILY;FREQ=DAILY'}),
    ('rrule', {'rrule': 'FREQ=DAILY;COUNT=2;UNTIL=20300108'}),
    ('rrule', {'rrule': 'FREQ=DAILY;COUNT=0'}),
    ('rrule', {'rrule': 'FREQ=DAILY;BYHOUR=25'}),
    ('rrule', {'rrule': 'FREQ=DAILY;UNTIL=20301332'}),
    ('rrule', {'rrule': 'FREQ=HOURLY;BYMINUTE=99'}),
    ('rrule', {'rrule': 'FREQ=DAILY;BYMONTH=13'}),
    ('rrule', {'rrule': 'FREQ=DAILY;BYMONTH=-1'}),
    ('rrule', {'rrule': 'FREQ=DAILY;BYMONTHDAY=0'}),
    ('rrule', {'rrule': 'FREQ=WEEKLY;BYDAY=2MO'}),
    ('rrule', {'rrule': 'FREQ=MONTHLY;BYDAY=6MO'}),
    ('rrule', {'rrule': 'FREQ=YEARLY;BYMONTH=12;BYDAY=53SU'}),
    ('rrule', {'rrule': 'FREQ=YEARLY;BYMONTH=6;BYDAY=1MO,-6TU'}),
    ('rrule', {'rrule': 'FREQ=YEARLY;BYDAY=54SU'}),
    ('rrule', {'rrule': 'FREQ=DAILY;BYSETPOS=300'}),
    ('rrule', {'rrule': 'FREQ=WEEKLY;BYMONTHDAY=1'}),
    ('rrule', {'rrule': 'FREQ=YEARLY;BYYEARDAY=-367'}),
    ('rrule', {'rrule': 'FREQ=YEARLY;BYWEEKNO=3;BYDAY=1MO'}),
    ('rrule', {'rrule': 'every day'}),
    ('rrule', {'rrule': ''}),
    ('time_zone', {'zone': 'Nowhere/Land'}),
    ('time_zone', {'zone': '../etc/passwd'}),
    ('start', {'start': '2030-02-30T09:00'}),
    ('start', {'start': '2030-01-07T09:00Z'}),
    ('start', {'start': 'now'}),
    ('except', {'excepted': ['Monday']}),
])
def test_what_cannot_be_is_refused_by_name(field, values):
    asked = {'rrule': 'FREQ=DAILY', 'start': '2030-01-07T09:00', **values}
    with pytest.raises(exception.InvalidInput) as refusal:
        recurrence(**asked)
    assert refusal.value.field == field


@pytest.mark.parametrize('field, rule, duration', [
    ('duration', 'FREQ=DAILY', DAY + 1),
    # On one day of the year, a day has 23 hours.
    ('duration', 'FREQ=DAILY', DAY),
    ('rrule', 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30', HOUR),
    ('rrule', 'FREQ=DAILY;UNTIL=20200101', HOUR),
    # dateutil alone looks for such starts until the year 9999: for minutes.
    ('rrule', 'FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30', HOUR),
    ('rrule', 'FREQ=HOURLY;BYYEARDAY=366;BYMONTHDAY=1', 60),
    ('rrule', 'FREQ=DAILY;INTERVAL=7;BYDAY=TU', HOUR),
    ('rrule', 'FREQ=MONTHLY;BYDAY=MO;BYMONTHDAY=13;BYSETPOS=2', HOUR),
])
def test_what_never_is_or_overlaps_is_refused(field, rule, duration):
    found = recurrence(rule, '2030-01-07T09:00', duration=duration)
    with pytest.raises(exception.InvalidInput) as refusal:
        found.check(epoch('2030-01-01T00:00'))
    assert refusal.value.field == field


def test_whatever_dateutil_raises_names_the_rule(monkeypatch):
    """dateutil fails in some years only: in 2028, but not in 2027."""
    monkeypatch.setattr(series, '_check_part', lambda *_: None)
    days = ','.join(f'{n}{day}' for n in (1, 2) for day in DAYS)
    found = recurrence(
        f'FREQ=YEARLY;BYMONTH=1,2,3,4,5;BYDAY={days},38SU;BYHOUR=9,10',
        '2027-01-01T00:00', duration=60,
    )
    assert found.following(epoch('2027-04-01T00:00')) < FOREVER
    with pytest.raises(exception.InvalidInput) as refusal:
        found.following(epoch('2027-12-01T00:00'))
    assert refusal.value.field == 'rrule'


def test_a_short_enough_series_is_accepted():
    found = recurrence('FREQ=DAILY', '2030-01-07T09:00', duration=23 * HOUR)
    found.check(epoch('2030-01-01T00:00'))


@pytest.mark.parametrize('start', ['0001-01-01T00:00', '2028-12-01T09:00'])
def test_rule_with_a_start_long_ago_is_refused(start):
    """Each start since then would be evaluated."""
    found = recurrence('FREQ=HOURLY', start, duration=60)
    with pytest.raises(exception.InvalidInput) as refusal:
        found.check_start(epoch('2030-01-01T00:00'))
    assert refusal.value.field == 'start'


def test_no_start_in_the_last_years_of_the_calendar():
    found = recurrence('FREQ=HOURLY', '9999-12-31T23:59:59', duration=60)
    assert starts(found) == []


def random_rule(draw):
    """Return a rule that RFC 5545 allows, and that has starts."""
    freq = draw.choice(['YEARLY', 'MONTHLY', 'WEEKLY', 'DAILY', 'HOURLY'])
    # Hours are skipped for no other reason than by BYHOUR.
    interval = 1 if freq == 'HOURLY' else draw.randint(1, 4)
    parts = {'FREQ': freq, 'INTERVAL': interval}
    days = 'MO', 'WE', 'SU'
    choices = {
        'BYMONTH': [2, 3, 10, 12], 'BYHOUR': [0, 2, 9, 23],
        'BYDAY': [*days, '1MO', '-1FR'] if freq == 'MONTHLY' else days,
    }
    if freq != 'WEEKLY':
        choices['BYMONTHDAY'] = [1, 13, 29, 31, -1, -30]
    if freq in ('YEARLY', 'HOURLY') and draw.random() < .3:
        # No other part may contradict it: dateutil would take minutes.
        choices = {'BYYEARDAY': [1, 60, 360, -1, -300]}
    for name, values in choices.items():
        if draw.random() < .3:
            some = draw.sample(values, draw.randint(1, 3))
            parts[name] = ','.join(map(str, some))
    if freq in ('YEARLY', 'MONTHLY') and draw.random() < .3:
        parts['BYSETPOS'] = draw.choice([1, -1])
    return ';'.join(f'{name}={value}' for name, value in parts.items())


@pytest.mark.parametrize('seed', range(40))
def test_the_starts_are_those_of_the_rule(seed):
    draw = random.Random(seed)
    first = datetime.datetime(2027, 11, 30, draw.randint(0, 23))
    rule = random_rule(draw)
    last = first + datetime.timedelta(days=500)
    # The rule as dateutil evaluates it, without any step of our own.
    plain = rrule.rrulestr(rule, dtstart=first).replace(
        until=last - datetime.timedelta(seconds=1)
    )
    expected = [
        int(at.replace(tzinfo=datetime.UTC).timestamp()) for at in plain
    ]
    until = int(last.replace(tzinfo=datetime.UTC).timestamp())
    found = recurrence(rule, first.isoformat(), 'UTC', 60)
    assert starts(found, until=until) == expected, rule


@pytest.mark.parametrize('zone, gap', [
    (BERLIN, '2030-03-31'), (NEW_YORK, '2030-03-10'),
])
def test_a_rule_that_meets_the_gap_in_a_year(zone, gap):
    """Each day has one start, at the first minute that is not before 02:30.
    """
    found = recurrence('FREQ=DAILY', '2030-01-01T02:30', zone, HOUR)
    local = zoneinfo.ZoneInfo(zone)
    first = int(datetime.datetime(2030, 1, 1, tzinfo=local).timestamp())
    end = int(datetime.datetime(2031, 1, 1, tzinfo=local).timestamp())
    by_day = {}
    for at in range(first, end, 60):
        shown = datetime.datetime.fromtimestamp(at, local)
        if shown.time() >= datetime.time(2, 30):
            by_day.setdefault(shown.date(), at)

    assert starts(found, until=end) == list(by_day.values())
    assert len(by_day) == 365
    day = by_day[datetime.date.fromisoformat(gap)]
    assert f'{datetime.datetime.fromtimestamp(day, local):%H:%M}' == '03:00'
