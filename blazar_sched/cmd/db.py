# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched db`: creates, checks, and fills the tables."""

import argparse
import datetime
import typing

from blazar_sched.cmd import importing
from blazar_sched.cmd import service

if typing.TYPE_CHECKING:
    from blazar_sched.service.ledger.ledger import Ledger


def add_arguments(parser: argparse.ArgumentParser) -> None:
    service.add_arguments(parser)
    actions = parser.add_subparsers(dest='action', required=True)
    for name, (text, add, run_it) in _ACTIONS.items():
        action = actions.add_parser(
            name,
            help=text,
            description=text,
        )
        action.set_defaults(run_it=run_it)
        service.add_arguments(action)
        add(action)


def run(args: argparse.Namespace) -> int:
    status: int = args.run_it(args)
    return status


def _upgrade(args: argparse.Namespace) -> int:
    before, after = _open(args).upgrade()
    if before is None:
        print(f'The tables are made, at migration {after}')
    elif before == after:
        print(f'The tables are at migration {after} already')
    else:
        print(f'The tables were at migration {before}, are at {after}')
    return 0


def _check(args: argparse.Namespace) -> int:
    ledger = _open(args)
    ledger.require_current()
    faults = ledger.check()
    for fault in faults:
        print(fault)
    print(f'{len(faults)} faults found')
    return 1 if faults else 0


def _open(args: argparse.Namespace) -> 'Ledger':
    """Return the ledger; print the database and the files that configure it.

    :raises oslo_config.cfg.Error: if no database has such a URL
    """
    from blazar_sched.conf import service as service_conf
    from blazar_sched.service import database

    conf = service.configuration(args)
    ledger = database.open_ledger(conf)
    print(f'Database {ledger.name}, read from: {service_conf.sources(conf)}')
    return ledger


def _add_before(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--before',
        type=_day,
        required=True,
        metavar='DATE',
        help='delete those that had ended by the beginning of this day, '
        'YYYY-MM-DD, in UTC',
    )


def _day(text: str) -> int:
    """Return the beginning of a day, in epoch seconds.

    :raises ValueError: if the text is not a day
    """
    day = datetime.datetime.strptime(text, '%Y-%m-%d')
    return int(day.replace(tzinfo=datetime.UTC).timestamp())


def _purge(args: argparse.Namespace) -> int:
    ledger = _open(args)
    ledger.require_current()
    gone = 0
    for count in ledger.purge(args.before):
        gone += count
    print(f'{gone} leases are deleted')
    return 0


def _nothing(parser: argparse.ArgumentParser) -> None:
    pass


_ACTIONS = {
    'upgrade': ('bring the tables to this version', _nothing, _upgrade),
    'check': (
        'look through every allocation for what must never be',
        _nothing,
        _check,
    ),
    'purge': (
        'delete leases that are over, of which reports need no more',
        _add_before,
        _purge,
    ),
    'import-blazar': (
        "take Blazar 18's leases, hosts and floating IPs over",
        importing.add_arguments,
        importing.run,
    ),
    'tidy-blazar': (
        'remove what Blazar has made ahead for leases to come: after that'
        ' there is no way back to it',
        _nothing,
        importing.tidy,
    ),
}
