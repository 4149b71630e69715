# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched timeline`: what takes the hosts, drawn in the terminal.

The command reads the database, as `relocations` does: it needs no token, and
works while the API, the managers and the message bus are down.
"""

import argparse
import json
import math
import time
from typing import Any

import rich.console
import rich.table
import rich.text

from blazar_sched.cmd import service
from blazar_sched.domain import duration

DAY = 86400
MAX_DAYS = 3660
MIN_WIDTH = 10
# The column of the parts is this much narrower than the terminal, beside the
# names of rows.
BESIDE = 30
MAX_PARTS = 200
# The characters for a share that is taken, of 1: nothing, then eighths.
_EIGHTHS = ' ▁▂▃▄▅▆▇█'
# A part of a row that is not in service.
_OUT = 'x'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    service.add_arguments(parser)
    parser.add_argument(
        '--group-by', default='host', metavar='HOST|ZONE|$PROPERTY',
        help='what a row stands for: host, zone, or a property of hosts',
    )
    parser.add_argument(
        '--days', type=_days, default=7.0, metavar='NUMBER',
        help='days to show from now on, 7 by default',
    )
    parser.add_argument(
        '--width', type=_width, metavar='COLUMNS',
        help='width of the picture, by default that of the terminal',
    )
    parser.add_argument(
        '--json', action='store_true', help='print JSON instead of a picture'
    )


def run(args: argparse.Namespace) -> int:
    from blazar_sched.service import database
    from blazar_sched.service.manager import timeline

    conf = service.configuration(args)
    ledger = database.open_ledger(conf)
    ledger.require_current()
    console = rich.console.Console(width=args.width)
    now = int(time.time())
    start = now // timeline.MINUTE * timeline.MINUTE
    asked = timeline.Query(
        project_id='', names=True, group_by=args.group_by, start=start,
        end=start + int(args.days * DAY),
        parts=min(MAX_PARTS, max(MIN_WIDTH, console.width - BESIDE)),
        limit=timeline.MAX_ROWS,
    )
    found = timeline.whole(
        timeline.Timeline(conf, ledger, None, lambda: now), asked
    )
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        show(found, console)
    return 0


def show(found: dict[str, Any], console: rich.console.Console) -> None:
    """Print the rows, with a character for each part of the window."""
    table = rich.table.Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column('', overflow='ellipsis', max_width=20, no_wrap=True)
    table.add_column(
        rich.text.Text(_scale(found)), no_wrap=True, overflow='crop'
    )
    for row in found['rows']:
        # Text is shown verbatim: brackets in the text are not markup.
        table.add_row(
            rich.text.Text(row['name'] or '-'), rich.text.Text(picture(row))
        )
    console.print(table)
    start, end = (duration.format_time(found[n]) for n in ('start', 'end'))
    console.print(
        f'{start} to {end}. A higher block is a larger share taken; blank is '
        f'free, {_OUT} is out of service.',
        markup=False, highlight=False,
    )


def picture(row: dict[str, Any]) -> str:
    """Return a row as text: the share that is taken in each part.

    Anything taken is visible, and only what is full looks full.
    """
    if not row['available']:
        return _OUT * len(row['free'])
    return ''.join(map(_block, row['free']))


def _block(free: float) -> str:
    eighths = math.ceil((1 - free) * 8)
    return _EIGHTHS[min(eighths, 7) if free > 0 else 8]


def _scale(found: dict[str, Any]) -> str:
    """Return the head of the picture, with a mark at the start of each day.

    A mark is the day of the month; marks that have no room are left out.
    """
    text = [' '] * len(found['parts'])
    last = -4
    day = None
    for n, part in enumerate(found['parts']):
        if part['start'] // DAY == day:
            continue
        day = part['start'] // DAY
        if n >= last + 4 and n + 3 <= len(text):
            mark = duration.format_time(part['start'])[8:10]
            text[n:n + 3] = f'|{mark}'
            last = n
    return ''.join(text)


def _days(text: str) -> float:
    days = float(text)
    if not 1 / 24 <= days <= MAX_DAYS:
        raise argparse.ArgumentTypeError(
            f'must be from 1/24 to {MAX_DAYS}'
        )
    return days


def _width(text: str) -> int:
    width = int(text)
    if width < BESIDE + MIN_WIDTH:
        raise argparse.ArgumentTypeError(
            f'must be at least {BESIDE + MIN_WIDTH}'
        )
    return width
