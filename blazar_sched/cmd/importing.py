# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched db import-blazar` and `tidy-blazar`: migration from Blazar."""

import argparse
from collections import Counter
import os
import time
from typing import Any

import rich.console
import rich.markup
import rich.table

from blazar_sched.cmd import service
from blazar_sched.domain import exception

# The environment variable that may have the URL of Blazar's database.
VARIABLE = 'BLAZAR_DATABASE_CONNECTION'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'url',
        metavar='URL',
        nargs='?',
        help="Blazar's [database] connection; nothing is written there. Other "
        'users of this machine see it while the command runs: one with a '
        f'password belongs in a file or in the environment, as {VARIABLE}',
    )
    parser.add_argument(
        '--blazar-config-file',
        metavar='FILE',
        help="read [database] connection from this file, such as Blazar's "
        '/etc/blazar/blazar.conf',
    )
    parser.add_argument(
        '--dry-run',
        action='store_true',
        default=False,
        help='say what would be imported, and what not; write nothing',
    )
    parser.add_argument(
        '--skip-refused',
        action='store_true',
        default=False,
        help='import the rest where something cannot be kept',
    )


def run(args: argparse.Namespace) -> int:
    from blazar_sched.service.importing import importer
    from blazar_sched.service.manager import manager

    url = _url(args)
    conf = service.configuration(args)
    # The manager is not started: only its clients of other services are used.
    services = manager.Manager(conf).services
    console = rich.console.Console()
    with console.status('') as status:
        work = importer.Importer(conf, services, status.update)
        plan = work.plan(url)
        writes = not args.dry_run and (args.skip_refused or not plan.refused)
        if writes:
            work.write(plan)
    _show(console, plan)
    if writes:
        console.print('Imported. `blazar-sched db check` finds no fault.')
        return 0
    console.print('Nothing is imported.', end=' ')
    console.print(
        'With --skip-refused the rest is.' if plan.refused else 'All can be.'
    )
    return 1 if plan.refused else 0


def tidy(args: argparse.Namespace) -> int:
    from blazar_sched.service.importing import tidying
    from blazar_sched.service.manager import manager

    services = manager.Manager(service.configuration(args)).services
    services.ledger.require_current()
    tidied = tidying.tidy(services, int(time.time()))
    print(f'{tidied.count} leases to come have nothing in other services')
    for lease_id in tidied.left:
        print(f'left: lease {lease_id}, which starts soon')
    return 0


def _url(args: argparse.Namespace) -> str:
    """Return the URL of Blazar's database, from wherever the URL is given.

    :raises InvalidInput: if the URL is not given, or is given twice
    :raises oslo_config.cfg.Error: if the file cannot be read
    """
    if args.url and args.blazar_config_file:
        raise exception.InvalidInput(
            'URL and --blazar-config-file exclude each other'
        )
    url: str | None = args.url
    if args.blazar_config_file:
        url = _connection(args.blazar_config_file)
    url = url or os.environ.get(VARIABLE)
    if not url:
        raise exception.InvalidInput(
            "Blazar's database is to be given, as URL, by "
            f'--blazar-config-file or in {VARIABLE}'
        )
    return url


def _connection(file: str) -> str | None:
    """Return [database] connection of a configuration file."""
    from oslo_config import cfg

    conf = cfg.ConfigOpts()
    conf.register_opts([cfg.StrOpt('connection', secret=True)], 'database')
    conf([], default_config_files=[file], default_config_dirs=[])
    connection: str | None = conf.database.connection
    return connection


def _show(console: rich.console.Console, plan: Any) -> None:
    """Print a summary, then each refused item, and the notes."""
    refused = Counter(each.kind for each in plan.refused)
    table = rich.table.Table('', 'kept', 'refused')
    for kind, kept in (
        ('host', plan.hosts),
        ('floating IP', plan.floating_ips),
        ('lease', plan.leases),
    ):
        table.add_row(f'{kind}s', str(len(kept)), str(refused[kind]))
    statuses = Counter(kept.lease.status for kept in plan.leases)
    for status, count in sorted(statuses.items()):
        table.add_row(f'  {status}', str(count), '')
    console.print(table)
    for each in plan.refused:
        _say(console, f'refused: {each.kind} {each.id} ({each.name}): '
                      f'{each.reason}')
    for note in plan.notes:
        _say(console, f'note: {note}')


def _say(console: rich.console.Console, text: str) -> None:
    """Print a line without wrapping, as programs may read the line."""
    console.print(rich.markup.escape(text), soft_wrap=True, highlight=False)
