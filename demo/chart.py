# SPDX-License-Identifier: Apache-2.0
"""A picture of hosts over time, drawn in the terminal."""

from collections.abc import Sequence
import dataclasses

from rich import table
from rich import text


@dataclasses.dataclass(frozen=True, slots=True)
class Bar:
    """A holder of a host for a window; the end may be past the picture."""

    host: str
    label: str
    start: int
    end: int
    style: str


def _line(bar: Bar, start: int, end: int, width: int) -> text.Text:
    """Draw one bar on a line of `width` columns that spans [start, end)."""

    def column(at: int) -> int:
        return (min(max(at, start), end) - start) * width // (end - start)

    left = column(bar.start)
    inside = max(column(bar.end) - left - 2, 0)
    # The bar has ends and a line, because colours may be off.
    drawn = f'├{bar.label[:inside].ljust(inside, "─")}┤'
    return text.Text(' ' * left).append(drawn, style=bar.style)


def _axis(start: int, end: int, width: int, ticks: int = 6) -> text.Text:
    """Mark seconds since `start`, `ticks` times."""
    line = ''
    for tick in range(ticks):
        place = tick * width // ticks
        line = line.ljust(place) + f'+{tick * (end - start) // ticks}s'
    return text.Text(line, style='dim')


def draw(
    hosts: Sequence[str], bars: Sequence[Bar], start: int, end: int,
    width: int = 72,
) -> table.Table:
    """Return a table with a block per host and a line per bar, oldest first.

    :param start: first second of the picture
    :param end: the second after the last second of the picture
    :param width: columns of the time axis
    """
    grid = table.Table(
        title='Who held which host', title_justify='left', show_lines=True
    )
    grid.add_column('host', no_wrap=True)
    grid.add_column(_axis(start, end, width), no_wrap=True, min_width=width)
    for host in hosts:
        mine = sorted(
            (bar for bar in bars if bar.host == host),
            key=lambda bar: bar.start,
        )
        lines = [_line(bar, start, end, width) for bar in mine]
        grid.add_row(host, text.Text('\n').join(lines))
    return grid
