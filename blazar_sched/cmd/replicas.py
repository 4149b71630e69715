# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched replicas`: the revisions of nova-scheduler's workers."""

import argparse
import json
import sys

import rich.console
import rich.table

from blazar_sched.cmd import worker_query
from blazar_sched.replica import wire

add_arguments = worker_query.add_arguments


def run(args: argparse.Namespace) -> int:
    answers = worker_query.query(args, wire.REPORT_METHOD)
    if args.json:
        found = [{'worker': worker, **body} for worker, body in answers]
        print(json.dumps(found, indent=2))
    else:
        table = rich.table.Table(
            'worker', 'revision', 'seconds since', 'stale', 'hosts', 'ledger',
            'wire',
        )
        for worker, body in answers:
            age = body['age']
            table.add_row(
                worker, _text(body['revision']),
                '-' if age is None else f'{age:.1f}',
                'yes' if body['stale'] else 'no', _text(body['hosts']),
                _text(body['ledger']),
                # An older worker does not report its wire version.
                _text(body.get('wire')),
            )
        rich.console.Console().print(table)
        print(f'The wire version of this installation is {wire.WIRE_VERSION}.')
    if not answers:
        print('No nova-scheduler worker responded.', file=sys.stderr)
    return 0 if answers else 1


def _text(value: object) -> str:
    return '-' if value is None else str(value)
