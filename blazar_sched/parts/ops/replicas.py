# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched replicas`: the versions of all processes that are running.

Workers of nova-scheduler also report the revisions of their replicas.
"""

import argparse
import json
import sys

import rich.console
import rich.table

from blazar_sched.cmd import worker_query
from blazar_sched.replica import wire

# The part of an answer that names none.
_WORKER = 'scheduler'

add_arguments = worker_query.add_arguments


def run(args: argparse.Namespace) -> int:
    answers = worker_query.query(args, wire.REPORT_METHOD)
    if args.json:
        found = [{'worker': worker, **body} for worker, body in answers]
        print(json.dumps(found, indent=2))
    else:
        # Readable in a terminal of 80 columns: only long names are folded.
        table = rich.table.Table(box=None, padding=(0, 1, 0, 0))
        table.add_column('worker', overflow='fold')
        for name in (
            'part', 'version', 'rpc', 'wire', 'revision', 'age (s)',
            'stale', 'hosts', 'ledger',
        ):
            table.add_column(name, no_wrap=True)
        for worker, body in answers:
            age, stale = body.get('age'), body.get('stale')
            table.add_row(
                worker, body.get('part', _WORKER),
                # An older worker does not report its versions.
                *(_text(body.get(k)) for k in ('version', 'rpc', 'wire')),
                _text(body.get('revision')),
                '-' if age is None else f'{age:.1f}',
                '-' if stale is None else 'yes' if stale else 'no',
                # The beginning tells ledgers apart.
                _text(body.get('hosts')), _text(body.get('ledger'))[:8],
            )
        rich.console.Console().print(table)
        print(f'The wire version of this installation is {wire.WIRE_VERSION}.')
    workers = [body for _, body in answers if 'part' not in body]
    if not workers:
        print('No nova-scheduler worker responded.', file=sys.stderr)
    return 0 if workers else 1


def _text(value: object) -> str:
    return '-' if value is None else str(value)
