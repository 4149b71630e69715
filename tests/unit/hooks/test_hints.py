# SPDX-License-Identifier: Apache-2.0
"""Added hints have the meaning of the given ones, whenever they are read."""

import datetime

from hypothesis import given
from hypothesis import strategies as st
import pytest

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain import hints
from blazar_sched.domain import window
from blazar_sched.hooks import hints as hooked

NOW = 1_900_000_000
HOUR = 3600
DAY = 24 * HOUR
ID = '3b3a1f0e-8c47-4d7e-9a55-0c2f3f1d2e4b'


def text(at, zone='Z'):
    """Generate a time in the formats of users."""
    moment = datetime.datetime.fromtimestamp(at, datetime.UTC)
    return f'{moment:%Y-%m-%d %H:%M:%S}{zone}'


def added(default='', **said):
    return hooked.complete(said, NOW, default)


@pytest.mark.parametrize('said, more', [
    ({}, {}),
    ({'reservation': ID}, {}),
    ({'reservation': 'label:run/1.b=x: "=🙂"'}, {}),
    ({'lifetime': '2h'}, {'lease_end': '2030-03-17T19:46:40Z'}),
    ({'lifetime': 7200}, {'lease_end': '2030-03-17T19:46:40Z'}),
    (
        {'lease_end': '2030-03-18 00:30:00.9+01:00'},
        {'lease_end': '2030-03-17T23:30:00Z'},
    ),
    (
        {'lease_start': 'now', 'lifetime': '1h'},
        {'lease_end': '2030-03-17T18:46:40Z'},
    ),
    (
        {'lease_start': '2030-03-18 00:00', 'lifetime': '1d'},
        {
            'lease_start': '2030-03-18T00:00:00Z',
            'lease_end': '2030-03-19T00:00:00Z',
        },
    ),
    (
        {'lease_start': '2030-03-18 00:00'},
        {'lease_start': '2030-03-18T00:00:00Z'},
    ),
    # The lifetime has begun, so the server does not wait.
    (
        {'lease_start': '2030-03-17 00:00', 'lifetime': '1h'},
        {'lease_end': '2030-03-17T18:46:40Z'},
    ),
    (
        {
            'lease_params': '{"name": "x", "start": "2030-03-18 00:00", '
            '"end": "2030-03-19 00:00", "events": []}',
        },
        {
            'lease_start': '2030-03-18T00:00:00Z',
            'lease_end': '2030-03-19T00:00:00Z',
        },
    ),
    ({'lease_params': '{"start": "now"}'}, {}),
    # Later than the last time of the index.
    ({'lifetime': '36525d'}, {}),
    ({'group': [ID], 'query': {'a': None}, 'other': None}, {}),
], ids=str)
def test_added_hints(said, more):
    assert added(**said) == more


MONTH_ON = '2030-04-16T17:46:40Z'


class TestDefault:
    """C33, C34: requests that declare no end."""

    @pytest.mark.row('C33', 'C34', 'F53')
    def test_default_end_is_a_month_from_now(self):
        assert added('30d') == {'lease_default_end': MONTH_ON}

    def test_beside_other_hints(self):
        said = {'group': ID, 'lease_name': 'mine', 'lease_on_end': 'shelve'}
        assert added('30d', **said) == {'lease_default_end': MONTH_ON}

    def test_default_lifetime_counts_from_the_start(self):
        assert added('1d', lease_start='2030-03-18 00:00') == {
            'lease_start': '2030-03-18T00:00:00Z',
            'lease_default_end': '2030-03-19T00:00:00Z',
        }

    def test_none_where_a_reservation_is_named(self):
        assert added('30d', reservation=ID) == {}

    def test_none_of_who_has_a_reservations_flavor(self):
        stamped = added('30d')
        specs = {'blazar:reservation': ID}
        assert hints.read(stamped, specs, NOW, '30d').end == window.FOREVER
        assert hints.read(stamped, {}, NOW).end < window.FOREVER

    @pytest.mark.parametrize('said', [
        {'lifetime': '60'}, {'lease_end': text(NOW + 60)},
        {'lease_params': f'{{"end": "{text(NOW + 60)}"}}'},
    ], ids=str)
    @pytest.mark.row('C33')
    def test_the_users_own_end_wins(self, said):
        assert added('30d', **said) == {'lease_end': '2030-03-17T17:47:40Z'}

    def test_of_who_lives_longer_than_there_is_time(self):
        assert added('30d', lifetime='36525d') == {}


NOT_TEXT = [None, [], ['60'], {}, {'a': 1}, [{'a': 1}], True, 1.5]
# As text these values have no meaning, or a wrong one.
BAD = ['', ' ', 'soon', "' OR 1=1 --", '\u0001\u202e', '\ud800', '５００',
       'x' * 100_000, '9' * 5000, '\0', -1, 10 ** 30]
BAD_TEXT = {
    'reservation': [
        *BAD, ID.upper(), f'{{{ID}}}', f'urn:uuid:{ID}', f'{ID}\n',
        ID.replace('-', ''), 'label:', 'label:a', 'label:a=', 'label:=b',
        'label:a"=b', f'label:a={"b" * 256}', 'a=b', 'Label:a=b',
    ],
    'lease_start': [*BAD, 0, '2030-02-30 00:00', '9999-12-31 23:59'],
    'lease_end': [
        *BAD, 'now', 0, '2001-01-01 00:00', text(NOW), '2030-03-31 24:00',
        '9999-12-31 23:59', '2026-03-29 02:30+99:00',
    ],
    'lifetime': [*BAD, '0', 0, '-1', '1y', '1h30m', '36526d', '1 h'],
    'lease_name': ['\u0001\u202e', '\0', 'x' * 81, 'two\nlines', '\ud800'],
    'lease_on_end': [*BAD, 'keep', 'Delete', 0],
    'lease_params': [
        *BAD, '[]', '{', 'null', '{"ending": "now"}', '[' * 4000,
        '{"end": 1}', '{"end": "soon"}', '{"start": "soon"}', '{"name": 1}',
        '{"name": ["a"]}', f'{{"end": "{text(NOW)}"}}',
        '{"end": "' + 'x' * 5000 + '"}',
    ],
    'lease_default_end': [text(NOW + 60), '', 'now'],
    'movable': [*BAD, '2', 'maybe'],
}
# The parts of lease_params as hints of their own.
PARTS = {'lease_start', 'lease_end', 'lease_name', 'lease_params'}


@pytest.mark.parametrize('name, value', [
    (name, value)
    for name in hints.ALL
    for value in (*NOT_TEXT, *BAD_TEXT[name])
], ids=lambda value: repr(value)[:30])
def test_invalid_hint_is_refused_by_name(name, value):
    """A3: the error names the wrong hint."""
    with pytest.raises(exception.InvalidInput) as refused:
        hooked.complete({name: value}, NOW, '30d')
    named = PARTS if name == 'lease_params' else {name}
    assert refused.value.field in named
    assert refused.value.field in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize('one, other', [
    ({'lease_end': text(NOW + 60)}, {'lifetime': '60'}),
    ({'lease_params': '{}'}, {'lease_start': 'now'}),
    ({'lease_params': '{}'}, {'lease_end': text(NOW + 60)}),
    ({'lease_params': '{}'}, {'lifetime': '60'}),
    ({'lease_params': '{}'}, {'lease_name': 'mine'}),
    ({'reservation': ID}, {'lease_start': text(NOW + 60)}),
    ({'reservation': ID}, {'lease_params': '{}'}),
], ids=str)
def test_contradictions(one, other):
    hooked.complete(one, NOW, '')
    hooked.complete(other, NOW, '')
    with pytest.raises(exception.InvalidInput, match='together') as refused:
        hooked.complete(one | other, NOW, '')
    assert {refused.value.field} == other.keys()


def test_end_hint_before_the_start_is_refused():
    with pytest.raises(exception.InvalidInput, match='lease_end'):
        added(lease_start=text(NOW + HOUR), lease_end=text(NOW + HOUR))


@st.composite
def said(draw):
    """Generate valid hints."""
    found = {}
    start = draw(st.none() | st.integers(NOW - DAY, NOW + 50 * DAY))
    if start is not None:
        found['lease_start'] = text(start)
    begins = max(start or NOW, NOW)
    match draw(st.sampled_from(['lifetime', 'lease_end', 'none'])):
        case 'lifetime':
            found['lifetime'] = draw(st.sampled_from(['90s', '2h', '5w']))
        case 'lease_end':
            found['lease_end'] = text(
                begins + draw(st.integers(1, 50 * DAY)), ''
            )
    return found


@given(said(), st.sampled_from(['', '45m', '30d']), st.integers(0, 20 * DAY))
def test_what_is_added_says_the_same_whenever_it_is_read(
    found, default, later
):
    """This holds without a default, too, which other services need not know.
    """
    first = hints.read(found, {}, NOW, default)
    more = hooked.complete(found, NOW, default)

    again = hints.read(found | more, {}, NOW)

    assert again == first
    starts = NOW if first.start is None else first.start
    if NOW + later < first.end:
        read = hints.read(found | more, {}, NOW + later)
        assert read.end == first.end
        assert read.start == (first.start if starts > NOW + later else None)
    # The user's own hints are unchanged.
    for name in found.keys() & more.keys():
        assert duration.parse_time(found[name], name) == (
            duration.parse_time(more[name], name)
        )
