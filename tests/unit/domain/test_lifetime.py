# SPDX-License-Identifier: Apache-2.0
"""Durations, times and the policy for unbounded instances."""

import datetime

import hypothesis
from hypothesis import strategies as st
import pytest

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain import window

UTC = datetime.UTC


@pytest.mark.parametrize('text, seconds', [
    ('3600', 3600),
    ('1', 1),
    ('90s', 90),
    ('15m', 900),
    ('2h', 7200),
    ('1d', 86400),
    ('1w', 604800),
    ('007d', 7 * 86400),
    ('3155760000', 36525 * 86400),
])
def test_duration(text, seconds):
    assert duration.parse_duration(text, 'lifetime') == seconds


@pytest.mark.parametrize('text', [
    '', '0', '0s', '-1', '+1', '1.5h', '1e3', 'h', '1 h', ' 1', '1\n', '1H',
    '1y', '1hh', '1h30m', '١h', '\uff11h', 'nan', 'inf', '0x10', '3155760001',
    '101w' + '0' * 9, '5219w', '9' * 5000, '1_000', None, 3600, 3600.0, True,
    ['1h'], b'1h',
])
def test_duration_refused(text):
    with pytest.raises(exception.InvalidInput) as caught:
        duration.parse_duration(text, 'lifetime')
    assert caught.value.field == 'lifetime'
    assert str(caught.value).startswith('lifetime ')
    assert len(str(caught.value)) < 160


def at(*parts):
    return int(datetime.datetime(*parts, tzinfo=UTC).timestamp())


@pytest.mark.parametrize('text, expected', [
    ('2026-01-31 09:30', at(2026, 1, 31, 9, 30)),
    ('2026-01-31T09:30', at(2026, 1, 31, 9, 30)),
    ('2026-01-31 09:30:15', at(2026, 1, 31, 9, 30, 15)),
    ('2026-01-31T09:30:15.999999', at(2026, 1, 31, 9, 30, 15)),
    ('2026-01-31T09:30:15.5Z', at(2026, 1, 31, 9, 30, 15)),
    ('2026-01-31 09:30Z', at(2026, 1, 31, 9, 30)),
    ('2026-01-31T09:30+02:00', at(2026, 1, 31, 7, 30)),
    ('2026-01-31T09:30:00-05:30', at(2026, 1, 31, 15, 0)),
    ('2026-01-31T09:30+14:00', at(2026, 1, 30, 19, 30)),
    ('2026-01-31T09:30-00:00', at(2026, 1, 31, 9, 30)),
    # As strftime, Go and Java write times, and as Blazar reads them.
    ('2026-01-31 09:30:15 +0200', at(2026, 1, 31, 7, 30, 15)),
    ('2026-01-31T09:30:15+0200', at(2026, 1, 31, 7, 30, 15)),
    ('2026-01-31T09:30:15.123456789Z', at(2026, 1, 31, 9, 30, 15)),
    ('2026-01-31 09:30 UTC', at(2026, 1, 31, 9, 30)),
    ('2026-1-1 9:5', at(2026, 1, 1, 9, 5)),
    # A time that clocks skip in some zones; times are UTC.
    ('2026-03-29 02:30', at(2026, 3, 29, 2, 30)),
    ('2028-02-29 00:00', at(2028, 2, 29)),
    ('1970-01-01 00:00', 0),
    ('1970-01-01T01:00+01:00', 0),
    ('2106-02-07T06:28:14Z', window.TIME_LIMIT - 1),
])
def test_time(text, expected):
    assert duration.parse_time(text, 'start_date') == expected


@pytest.mark.parametrize('text', [
    '', 'now', '1769851800', '2026-01-31', '09:30', '20260131T0930',
    # ASCII digits, and a whole year.
    '26-01-31 09:30', '2026-001-31 09:30',
    '２０２６-01-31 09:30', '2026-01-31 ٠٩:30',
    # Times that do not exist.
    '2026-02-29 00:00', '2026-13-01 00:00', '2026-00-01 00:00',
    '2026-01-32 00:00', '2026-04-31 00:00', '2026-01-31 24:00',
    '2026-01-31 09:60', '2026-06-30T23:59:60Z', '0000-01-01 00:00',
    # Other formats.
    '2026-01-31  09:30', ' 2026-01-31 09:30', '2026-01-31 09:30 ',
    '2026-01-31 09:30\n', '2026-01-31t09:30', '2026-01-31T09:30z',
    '2026-01-31T09:30.5', '2026-01-31T09:30:15.', '2026-01-31T09:30:15,5',
    '2026-01-31T09:30:15.1234567890', '2026/01/31 09:30',
    '2026-01-31T09:30 CET', '2026-01-31T09:30+02',
    '2026-01-31T09:30+2:00', '2026-01-31T09:30+24:00',
    '2026-01-31T09:30+02:60', '2026-01-31T09:30Z+02:00',
    '-2026-01-31 09:30', '+2026-01-31 09:30', '12026-01-31 09:30',
    # Beyond the range of the index.
    '0001-01-01 00:00', '0001-01-01T00:00+14:00', '1969-12-31 23:59',
    '1970-01-01T00:00+00:01', '2106-02-07T06:28:15Z', '9999-12-31 23:59',
    '9999-12-31T23:59-14:00', '2026-01-31 09:30' * 1000,
    None, 1769851800, 1.5, True, [], {}, b'2026-01-31 09:30',
])
def test_time_refused(text):
    with pytest.raises(exception.InvalidInput) as caught:
        duration.parse_time(text, 'start_date')
    assert caught.value.field == 'start_date'
    assert str(caught.value).startswith('start_date ')
    assert len(str(caught.value)) < 200


def test_the_example_in_the_refusal_of_a_time_is_a_time():
    with pytest.raises(exception.InvalidInput, match='as in (.*)') as caught:
        duration.parse_time('01.02.2030', 'start_date')
    examples = str(caught.value).partition('as in ')[2]
    for text in examples.split(' or '):
        assert duration.parse_time(text, 'start_date')


@hypothesis.given(
    st.datetimes(
        datetime.datetime(1970, 1, 2), datetime.datetime(2106, 2, 6),
        timezones=st.integers(-14 * 60, 14 * 60).map(
            lambda m: datetime.timezone(datetime.timedelta(minutes=m))
        ),
    ),
    st.sampled_from(['T', ' ']),
)
def test_time_is_what_isoformat_wrote(when, separator):
    text = when.isoformat(separator)
    assert duration.parse_time(text, 'x') == int(when.timestamp())


@hypothesis.given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text):
    for parse in (
        duration.parse_time, duration.parse_duration, duration.parse_unbounded,
        duration.parse_fixed,
    ):
        try:
            parse(text, 'x')
        except exception.InvalidInput as e:
            assert e.field == 'x'


def test_unbounded_forever():
    policy = duration.parse_unbounded('forever', 'unbounded')
    assert policy.end(1000) == window.FOREVER


def test_unbounded_never_has_no_end():
    assert duration.parse_unbounded('never', 'unbounded').end(1000) is None


def test_unbounded_assumed():
    assert duration.parse_unbounded('assume:2h', 'u').end(1000) == 8200


@pytest.mark.parametrize('text', [
    '', 'Forever', 'always', 'assume', 'assume:', 'assume:0', 'assume: 2h',
    'never ', 'assume:2y', None, 7, ['never'],
])
def test_invalid_value_of_unbounded_is_refused(text):
    with pytest.raises(exception.InvalidInput) as caught:
        duration.parse_unbounded(text, 'unbounded')
    assert caught.value.field == 'unbounded'


@pytest.mark.parametrize(
    'text, share', [('share:0.6', 0.6), ('share:0', 0), ('share:1', 1)]
)
def test_share_of_fixed_instances(text, share):
    policy = duration.parse_fixed(text, 'unbounded_fixed')
    assert (policy.share, policy.end(1000)) == (share, window.FOREVER)
    assert duration.parse_fixed('never', 'unbounded_fixed').share is None


@pytest.mark.parametrize('text', [
    'relocate', 'share', 'share:', 'share:1.1', 'share:-1', 'share:60%',
    'share:nan', 'share:1e-3', 7,
])
def test_invalid_value_of_unbounded_fixed_is_refused(text):
    with pytest.raises(exception.InvalidInput) as caught:
        duration.parse_fixed(text, 'unbounded_fixed')
    assert caught.value.field == 'unbounded_fixed'


def test_an_end_beyond_the_last_time_is_forever():
    last = window.TIME_LIMIT - 1
    assert duration.end_after(last - 10, 10) == last
    assert duration.end_after(last - 10, 11) == window.FOREVER
    assert duration.end_after(0, window.FOREVER) == window.FOREVER
    assert duration.parse_unbounded('assume:5217w', 'u').end(
        at(2026, 1, 1)
    ) == window.FOREVER
