# SPDX-License-Identifier: Apache-2.0
"""The drawing of a timeline."""

import datetime
import zoneinfo

import pytest

from blazar_sched_client.osc.timeline import Canvas

DAY = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
NEXT = DAY + datetime.timedelta(1)
CANVAS = Canvas(DAY, NEXT, 48)


def bar(start, end, name='night', **more):
    """Return a bar between two hours of the day, None for no end."""
    first, last = (
        n if n is None
        else f'{DAY + datetime.timedelta(hours=n):%Y-%m-%dT%H:%M:%SZ}'
        for n in (start, end)
    )
    return {
        'kind': 'lease', 'start_date': first, 'end_date': last, 'share': 1.0,
        'track': 0, 'mine': True, 'name': name, **more,
    }


def row(*bars, **more):
    return {'bars': bars, 'instances': None, 'free_hosts': [], **more}


@pytest.mark.parametrize(
    ('bars', 'drawn'),
    [
        ([bar(6, 12)], ' ' * 12 + '[night=====]' + ' ' * 24),
        ([bar(-3, 12)], 'night' + '=' * 18 + ']' + ' ' * 24),
        ([bar(20, 30)], ' ' * 40 + '[night=='),
        ([bar(20, None)], ' ' * 40 + '[night=='),
        ([bar(22, None)], ' ' * 44 + '[==='),
        ([bar(0, 24)], '[night' + '=' * 41 + ']'),
        ([bar(0, 12, mine=False, name=None, share=0.5)],
         '[lease 50%' + '-' * 13 + ']' + ' ' * 24),
        ([bar(0, 1)], '[] night' + ' ' * 40),
        ([bar(0, 0.1)], '[ night' + ' ' * 41),
        ([bar(0, 1), bar(2, 4, 'day')], '[] n[==] day' + ' ' * 36),
        ([bar(0, 0.5), bar(0.5, 1, 'day')], '[[ day' + ' ' * 42),
        ([bar(23, 24)], ' ' * 46 + '[]'),
        ([bar(0, 12), bar(12, 24)],
         '[night' + '=' * 17 + '][night' + '=' * 17 + ']'),
    ],
)  # fmt: skip
def test_a_bar_has_its_place(bars, drawn):
    assert CANVAS.draw(row(*bars)) == drawn


def test_bars_that_overlap_are_below_each_other():
    first, second = CANVAS.draw(
        row(bar(0, 12), bar(6, 18, 'day', track=1))
    ).split('\n')
    assert first.startswith('[night=')
    assert second.strip() == '[day===================]'


def test_parts_have_what_is_free():
    drawn = CANVAS.draw(row(bar(0, 12), free_hosts=[1, 12]))
    assert drawn.split('\n')[0] == '1' + ' ' * 23 + '12' + ' ' * 22
    drawn = CANVAS.draw(row(instances=[0, 4], free_hosts=[1, 12]))
    assert drawn == '0' + ' ' * 23 + '4' + ' ' * 23


def test_nothing_is_drawn_of_a_free_host():
    assert CANVAS.draw(row()) == ' ' * 48


def test_an_axis_has_hours_or_days():
    assert CANVAS.axis() == '|01 Jan 00:00           |01 Jan 12:00           '
    month = Canvas(DAY, DAY + datetime.timedelta(30), 30)
    assert month.axis() == '|01 Jan       |15 Jan       |2'
    decade = Canvas(DAY, DAY + datetime.timedelta(3650), 30)
    assert len(decade.axis()) == 30


def test_an_axis_has_the_days_of_the_zone():
    berlin = zoneinfo.ZoneInfo('Europe/Berlin')
    canvas = Canvas(
        DAY.astimezone(berlin), NEXT.astimezone(berlin) + (NEXT - DAY), 48
    )
    # Midnight in Berlin is an hour before midnight in UTC.
    assert canvas.axis().index('|02 Jan') == 23
