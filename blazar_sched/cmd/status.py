# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched status`: the installed versions and the index in use.

`blazar-sched status upgrade check` checks the whole installation.
"""

import argparse
from collections.abc import Callable
import importlib
import importlib.metadata
import os
import sys

from oslo_config import cfg
import rich.console
import rich.table

from blazar_sched import ext
from blazar_sched.cmd import service
from blazar_sched.domain import exception


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(answer=_show)
    subjects = parser.add_subparsers(metavar='upgrade')
    text = 'check whether this version can be used'
    upgrade = subjects.add_parser('upgrade', help=text, description=text)
    actions = upgrade.add_subparsers(metavar='check', required=True)
    text = (
        'check the configuration, the database and nova.conf before the '
        'services are restarted. The exit status is that of the worst '
        'result: 0 for success, 1 for a warning, 2 for a failure; 255 if a '
        'file cannot be read. `blazar-sched db check` checks the leases and '
        'hosts in the database.'
    )
    check = actions.add_parser('check', help=text, description=text)
    service.add_arguments(check)
    check.add_argument(
        '--nova-config-file', action='append', metavar='FILE',
        help='configuration file of nova-scheduler (default: '
        '/etc/nova/nova.conf, if it exists)',
    )
    check.add_argument(
        '--json', action='store_true', help='print JSON instead of a table'
    )
    check.set_defaults(answer=_check_upgrade)


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return 'not installed'


def run(args: argparse.Namespace) -> int:
    answer: Callable[[argparse.Namespace], int] = args.answer
    return answer(args)


def _check_upgrade(args: argparse.Namespace) -> int:
    from blazar_sched.service import parts

    checks: list[str] = list(parts.each('commands', 'UPGRADE_CHECK'))
    if not checks:
        raise exception.InvalidInput('no part that has checks is installed')
    status: int = max(
        importlib.import_module(check).run(
            args.config, args.nova_config_file, args.json
        )
        for check in checks
    )
    return status


def _show(args: argparse.Namespace) -> int:
    # The option is of no use here, but its file may be mistyped.
    missing = [path for path in args.config[1::2] if not os.path.exists(path)]
    if missing:
        raise cfg.ConfigFilesNotFoundError(missing)
    table = rich.table.Table(show_header=False)
    index = 'compiled' if ext.is_compiled() else 'plain Python (slow)'
    table.add_row('blazar-sched', _version('blazar-sched'))
    table.add_row('timeline index', index)
    table.add_row('python', sys.version.split()[0])
    table.add_row('nova', _version('nova'))
    rich.console.Console().print(table)
    return 0
