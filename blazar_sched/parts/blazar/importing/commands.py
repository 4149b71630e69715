# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched db import-blazar` and `tidy-blazar`: migration from Blazar."""

import argparse
from collections import Counter
from collections.abc import Iterable
import os
import time
from typing import TYPE_CHECKING

import rich.console
import rich.markup
import rich.table

from blazar_sched.cmd import service
from blazar_sched.domain import exception

if TYPE_CHECKING:
    from blazar_sched.parts.blazar.importing.plan import Plan
    from blazar_sched.parts.blazar.importing.plan import RefusedRow

# The environment variable that may have the URL of Blazar's database.
VARIABLE = 'BLAZAR_DATABASE_CONNECTION'


def add_database(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name the database of Blazar."""
    parser.add_argument(
        'url', metavar='URL', nargs='?',
        help='value of [database] connection of Blazar. Other users of this '
        'machine can see the URL while the command runs: pass a URL with a '
        'password in a file or in the environment variable '
        f'{VARIABLE}',
    )
    parser.add_argument(
        '--blazar-config-file', metavar='FILE',
        help='read [database] connection from this file, such as '
        '/etc/blazar/blazar.conf of Blazar',
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_database(parser)
    parser.add_argument(
        '--dry-run', action='store_true', default=False,
        help='print what would be imported and what would be refused, '
        'without writing',
    )
    parser.add_argument(
        '--skip-refused', action='store_true', default=False,
        help='import everything else if some items are refused',
    )


def run(args: argparse.Namespace) -> int:
    from blazar_sched.parts.blazar import tables as blazar
    from blazar_sched.parts.blazar.importing import importer
    from blazar_sched.service.manager import manager

    url = database_url(args)
    conf = service.configuration(args)
    # The manager is not started: only its clients of other services are used.
    services = manager.Manager(conf).services
    console = rich.console.Console()
    with console.status('') as status:
        work = importer.Importer(conf, services, status.update)
        plan = work.plan(url)
        writes = not args.dry_run and (args.skip_refused or not plan.refused)
        if writes:
            blazar.require_stopped(url)
            work.write(plan)
    _show(console, plan)
    if writes:
        console.print('Imported. The database has no inconsistencies.')
        return 0
    console.print('Nothing was imported.', end=' ')
    console.print(
        'Use --skip-refused to import everything else.'
        if plan.refused
        else 'Everything can be imported.'
    )
    return 1 if plan.refused else 0


def tidy(args: argparse.Namespace) -> int:
    from blazar_sched.parts.blazar.importing import cleanup
    from blazar_sched.service.manager import manager

    services = manager.Manager(service.configuration(args)).services
    services.ledger.require_current()
    done = cleanup.clean_up(services, int(time.time()))
    print(
        f'Removed the resources of {done.count} pending leases from other '
        'services'
    )
    for lease_id in done.left:
        print(f'skipped: lease {lease_id}, which starts soon')
    return 0


def database_url(args: argparse.Namespace) -> str:
    """Return the URL of Blazar's database, from wherever the URL is given.

    :raises InvalidInput: if the URL is not given, or is given twice
    :raises oslo_config.cfg.Error: if the file cannot be read
    """
    if args.url and args.blazar_config_file:
        raise exception.InvalidInput(
            'URL and --blazar-config-file cannot be given together'
        )
    url: str | None = args.url
    if args.blazar_config_file:
        url = _connection(args.blazar_config_file)
    url = url or os.environ.get(VARIABLE)
    if not url:
        raise exception.InvalidInput(
            'the URL of the database of Blazar is missing: give URL, '
            f'--blazar-config-file or the environment variable {VARIABLE}'
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


def _show(console: rich.console.Console, plan: 'Plan') -> None:
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
    say_entities(console, 'refused', plan.refused)
    for note in plan.notes:
        say(console, f'note: {note}')


def say_entities(
    console: rich.console.Console, what: str, each_of: Iterable['RefusedRow']
) -> None:
    """Print a line for each entity, with the reason."""
    for each in each_of:
        say(console, f'{what}: {each.kind} {each.id} ({each.name}): '
                     f'{each.reason}')


def say(console: rich.console.Console, text: str) -> None:
    """Print a line without wrapping, as programs may read the line."""
    console.print(rich.markup.escape(text), soft_wrap=True, highlight=False)
