# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched why SERVER`: the reasons why hosts did not take a server.

The reasons are those of the recent decisions of nova-scheduler's workers
about the server; see worker.decision.
"""

import argparse
import json
import sys

import rich.console
import rich.table
import rich.text

from blazar_sched.cmd import worker_query
from blazar_sched.domain import duration
from blazar_sched.replica import wire
from blazar_sched.worker.decision import Asked
from blazar_sched.worker.decision import DECIDED
from blazar_sched.worker.decision import Explanation


class WorkerExplanation(Explanation):
    """A decision of a worker: see worker.decision."""

    worker: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    worker_query.add_arguments(parser)
    parser.add_argument('server', help='UUID of the server')
    parser.add_argument(
        '--host', metavar='NAME',
        help='show only the reasons for this hypervisor',
    )


def run(args: argparse.Namespace) -> int:
    decisions = in_order(
        worker_query.query(
            args, wire.EXPLAIN_METHOD, instance_uuid=args.server,
            host=args.host,
        )
    )
    if args.json:
        print(json.dumps(decisions, indent=2))
    else:
        show(decisions, rich.console.Console(), args.host)
    if not decisions:
        print(
            'No nova-scheduler worker that responded has a decision about '
            f'server {args.server}. Each worker keeps its last decisions '
            'until it is restarted; see [blazar_sched] decisions_kept. '
            '`blazar-sched replicas` lists the workers that respond.',
            file=sys.stderr,
        )
    return 0 if decisions else 1


def in_order(
    answers: list[tuple[str, list[Explanation]]]
) -> list[WorkerExplanation]:
    """Return the decisions of all workers, the oldest decision first."""
    decisions: list[WorkerExplanation] = [
        {'worker': worker, **each} for worker, body in answers for each in body
    ]
    return sorted(decisions, key=lambda each: each['at'])


def show(
    decisions: list[WorkerExplanation], console: rich.console.Console,
    host: str | None = None,
) -> None:
    """Print the decisions, each with a table of its hosts."""
    for each in decisions:
        # Text is shown verbatim: brackets in the text are not markup.
        console.print(rich.text.Text(_headline(each), style='bold'))
        if each['asked']:
            console.print(rich.text.Text(_asked(each['asked'])))
        console.print(rich.text.Text(_verdict(each)))
        if host is not None and host not in each['hosts']:
            console.print(
                f'Host {host} was not among the hosts of the decision: '
                'Placement or another filter excluded the host, or it does '
                'not exist.',
                markup=False,
            )
        if each['hosts']:
            table = rich.table.Table('host', 'reason')
            for name, reason in sorted(each['hosts'].items()):
                table.add_row(rich.text.Text(name), rich.text.Text(reason))
            console.print(table)


def _headline(decision: WorkerExplanation) -> str:
    revision = decision['revision']
    at = 'no replica' if revision is None else f'revision {revision}'
    return (
        f'{duration.format_time(decision["at"])} {decision["filter"]} in '
        f'{decision["worker"]}, {at}'
    )


def _asked(asked: Asked) -> str:
    amounts = ', '.join(
        f'{amount} {name}' for name, amount in asked['amounts'].items()
    )
    return ', '.join(filter(None, (
        f'asked: {asked["kind"]}',
        f'until {duration.format_time(asked["end"])}' if asked['end'] else '',
        asked['reservation_id'] and f'reservation {asked["reservation_id"]}',
        amounts,
        f'project {asked["project_id"]}',
        asked['moves_from'] and f'move from host {asked["moves_from"]}',
    )))


def _verdict(decision: Explanation) -> str:
    text = f'{decision["passed"]} of {decision["seen"]} hosts passed'
    now = decision['explained_by']
    if decision['outcome'] != DECIDED:
        return f'{text}: {decision["outcome"]}'
    if now is not None and now != decision['revision']:
        text += f'; the reasons are those at revision {now}'
    return text
