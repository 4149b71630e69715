# SPDX-License-Identifier: Apache-2.0
"""The timeline of hosts, drawn in the terminal."""

import argparse
from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import datetime
import shutil
from typing import Any

from osc_lib.command import command

from blazar_sched_client import resources
from blazar_sched_client.osc import times
from blazar_sched_client.osc import verb

_ROW = (
    'key', 'name', 'zone', 'hosts', 'available', 'free', 'free_hosts',
    'instances', 'bars', 'bars_left_out',
)
# The least width of the drawing.
_LEAST = 24
_HOUR = datetime.timedelta(hours=1)
_DAY = 24 * _HOUR
# The distances of two times on the axis, and the width that a time takes.
_STEPS = [
    *((_HOUR * n, '|%d %b %H:%M', 15) for n in (1, 2, 3, 6, 12)),
    *((_DAY * n, '|%d %b', 9) for n in (1, 2, 7, 14, 30, 90)),
]


class ShowTimeline(verb.Command, command.Lister):
    """Show what takes the hosts in a window, row by row.

    A table is drawn over time, as wide as the terminal: a bar of your project
    is filled with =, any other bar with -, and has the name of the lease or
    what it is, and its share of the row if it takes a part of it. A bar that
    goes on beyond the window has no bracket there. Rows that stand for several
    hosts have the number of free hosts, or of instances that have room, in
    each part.
    """

    resource = resources.Timeline
    reads = '_query'

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Any]]:
        found = self.client.get_timeline(**self.read(parsed_args))
        if parsed_args.formatter != 'table':
            return verb.rows(_ROW, found.rows, parsed_args)
        labels = [_label(row) for row in found.rows]
        # The frame and the padding of the two columns take seven characters.
        left = max([len('row'), *map(len, labels)]) + 7
        canvas = Canvas(
            times.parse(found.start_date, parsed_args.times),
            times.parse(found.end_date, parsed_args.times),
            max(_LEAST, shutil.get_terminal_size().columns - left),
        )
        return ('row', canvas.axis()), [
            (label, canvas.draw(row))
            for label, row in zip(labels, found.rows)
        ]


def _label(row: dict[str, Any]) -> str:
    # The key of a row without a name is long, and tells nothing.
    name = str(row['name'] or row['key'][:8])
    return name if row['available'] else f'{name} (out of service)'


@dataclasses.dataclass(frozen=True)
class Canvas:
    """A window that is drawn with a number of characters."""

    start: datetime.datetime
    end: datetime.datetime
    width: int

    def axis(self) -> str:
        """Return the days and the times of day above their places."""
        span = self.end - self.start
        step, form = next(
            (
                (step, form) for step, form, width in _STEPS
                if self.width * step >= span * width
            ),
            _STEPS[-1][:2],
        )
        line = [' '] * self.width
        at = self.start.replace(hour=0, minute=0, second=0)
        while at < self.end:
            if at >= self.start:
                self._write(line, self._place(at), f'{at:{form}}')
            at += step
        return ''.join(line)

    def draw(self, row: dict[str, Any]) -> str:
        """Return a line with the free parts, if any, and one for each track.
        """
        free = row['instances'] or row['free_hosts']
        lines = [self._parts(free)] if free else []
        tracks: dict[int, list[str]] = {}
        for bar in row['bars']:
            line = tracks.setdefault(bar['track'], [' '] * self.width)
            self._bar(line, bar)
        lines += [''.join(tracks[track]) for track in sorted(tracks)]
        return '\n'.join(lines or [' ' * self.width])

    def _parts(self, numbers: Sequence[int]) -> str:
        line = [' '] * self.width
        for n, number in enumerate(numbers):
            self._write(line, n * self.width // len(numbers), str(number))
        return ''.join(line)

    def _bar(self, line: list[str], bar: dict[str, Any]) -> None:
        start = times.parse(bar['start_date'], self.start.tzinfo)
        # A bar without an end goes on beyond the window.
        end = (
            times.parse(bar['end_date'], self.start.tzinfo)
            if bar['end_date'] else self.end + _HOUR
        )
        first = max(0, self._place(start))
        size = max(1, min(self.width, self._place(end)) - first)
        opening = '[' if start >= self.start else ''
        closing = ']' if end <= self.end else ''
        inner = max(0, size - len(opening) - len(closing))
        fill = '=' if bar['mine'] else '-'
        share = f' {bar["share"]:.0%}' if bar['share'] < 1 else ''
        name = f'{bar["name"] or bar["kind"]}{share}'
        # The name of a narrow bar is behind it, up to the next bar.
        drawn = (
            f'{opening}{name:{fill}<{inner}}{closing}' if len(name) <= inner
            else f'{f"{opening}{fill * inner}{closing}"[:size]} {name}'
        )
        self._write(line, first, f'{drawn:<{self.width}}')

    def _place(self, at: datetime.datetime) -> int:
        share = (at - self.start) / (self.end - self.start)
        return int(share * self.width)

    def _write(self, line: list[str], place: int, words: str) -> None:
        words = words[: self.width - place]
        line[place : place + len(words)] = words
