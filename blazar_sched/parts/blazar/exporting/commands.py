# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched db export-blazar` and `compare-blazar`: return to Blazar."""

import argparse
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from oslo_config import cfg
import rich.console
import rich.table

from blazar_sched.cmd import service
from blazar_sched.cmd import worker_query
from blazar_sched.domain import exception
from blazar_sched.parts.blazar.importing import commands as importing
from blazar_sched.replica import wire

if TYPE_CHECKING:
    from blazar_sched.parts.blazar.exporting.exporter import Exporter
    from blazar_sched.parts.blazar.exporting.plan import ExportPlan

# Seconds to wait for the answer of a manager.
WAIT = 3.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    importing.add_database(parser)
    parser.add_argument(
        '--dry-run', action='store_true', default=False,
        help='print what would be exported and what would be refused, '
        'without writing',
    )
    parser.add_argument(
        '--skip-refused', action='store_true', default=False,
        help='export everything else if some leases are refused; the refused '
        'leases of the ledger are deleted in Blazar',
    )


def run(args: argparse.Namespace) -> int:
    url = importing.database_url(args)
    conf = service.configuration(args)
    console = rich.console.Console()
    with console.status('') as status:
        work = _exporter(conf, status.update)
        plan = work.plan(url)
        writes = not args.dry_run and (args.skip_refused or not plan.refused)
        notes, found = [], []
        if writes:
            _require_no_manager(conf)
            notes = work.write(url, plan)
            found = work.compare(url, plan)
    _show(console, plan, notes)
    importing.say_entities(console, 'differs', found)
    if writes:
        console.print(f'Exported. {len(found)} differences found.')
        return 1 if found else 0
    console.print('Nothing was exported.', end=' ')
    console.print(
        'Use --skip-refused to export everything else.'
        if plan.refused
        else 'Everything can be exported.'
    )
    return 1 if plan.refused else 0


def compare(args: argparse.Namespace) -> int:
    url = importing.database_url(args)
    console = rich.console.Console()
    with console.status('') as status:
        found = _exporter(
            service.configuration(args), status.update
        ).compare(url)
    importing.say_entities(console, 'differs', found)
    console.print(f'{len(found)} differences found.')
    return 1 if found else 0


def _exporter(conf: cfg.ConfigOpts, tell: Callable[[str], None]) -> 'Exporter':
    from blazar_sched.parts.blazar.exporting import exporter
    from blazar_sched.service.manager import manager

    # The manager is not started: only its clients of other services are used.
    return exporter.Exporter(conf, manager.Manager(conf).services, tell)


def _require_no_manager(conf: cfg.ConfigOpts) -> None:
    """Refuse to export while a manager answers on the message bus.

    Without a message bus, a manager is noticed by its changes of the ledger.

    :raises Conflict: naming a manager
    """
    try:
        answers = worker_query.ask(conf, WAIT, wire.REPORT_METHOD)
    except cfg.Error:
        return
    for name, body in answers:
        if body.get('part') == 'manager':
            raise exception.Conflict(
                f'manager {name} is running: stop all managers'
            )


def _show(
    console: rich.console.Console, plan: 'ExportPlan', notes: list[str]
) -> None:
    """Print a summary, then each deleted and refused lease, and the notes."""
    table = rich.table.Table('', 'exported', 'refused')
    ledger = plan.ledger
    table.add_row('hosts', str(len(ledger.hosts)), '0')
    table.add_row('floating IPs', str(len(ledger.floating_ips)), '0')
    refused = str(len(plan.refused))
    table.add_row('leases', str(len(plan.leases)), refused)
    statuses = Counter(kept.lease.status for kept in plan.leases)
    for status, count in sorted(statuses.items()):
        table.add_row(f'  {status}', str(count), '')
    console.print(table)
    for kept in plan.deleted:
        importing.say(
            console,
            f'deleted in Blazar: lease {kept.lease.id} ({kept.lease.name})',
        )
    importing.say_entities(console, 'refused', plan.refused)
    for note in (*plan.notes, *notes):
        importing.say(console, f'note: {note}')
