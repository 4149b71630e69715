# SPDX-License-Identifier: Apache-2.0
"""The chart shows each bar on its host, at its time."""

import io

from rich import console

from demo import chart


def rendered(bars, start=0, end=60, width=60):
    out = io.StringIO()
    console.Console(file=out, width=100).print(
        chart.draw(['one', 'two'], bars, start, end, width)
    )
    return out.getvalue().splitlines()


def find(lines, text):
    [line] = [line for line in lines if text in line]
    return line


def test_a_bar_stands_under_its_time():
    lines = rendered([chart.Bar('one', 'x', 20, 40, '')])
    axis, bar = find(lines, '+20s'), find(lines, 'x─')
    assert bar.index('├') == axis.index('+20s')
    assert bar.index('┤') == axis.index('+40s') - 1


def test_bars_of_a_host_come_oldest_first_and_under_each_other():
    lines = rendered([
        chart.Bar('one', 'late', 30, 40, ''),
        chart.Bar('one', 'soon', 0, 10, ''),
        chart.Bar('two', 'other', 0, 10, ''),
    ])
    order = [
        next(n for n, line in enumerate(lines) if label in line)
        for label in ('soon', 'late', 'other')
    ]
    assert order == sorted(order)
    assert 'one' in find(lines, 'soon')
    assert 'two' in find(lines, 'other')


def test_what_reaches_out_of_the_picture_is_cut():
    lines = rendered([chart.Bar('one', 'x', -50, 500, '')])
    drawn = find(lines, 'x─')
    assert drawn.count('─') == 60 - 3
