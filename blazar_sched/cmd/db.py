# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched db`: creates, checks, and fills the tables."""

import argparse
from collections.abc import Callable
import dataclasses
import datetime
import itertools
import time
import typing

from blazar_sched.cmd import service
from blazar_sched.service import parts

if typing.TYPE_CHECKING:
    from blazar_sched.service.ledger.ledger import Ledger


def _nothing(parser: argparse.ArgumentParser) -> None:
    pass


@dataclasses.dataclass(frozen=True, slots=True)
class Action:
    """An action of the command, of the core or of a part.

    :param text: what the action does
    :param run: returns the exit status
    :param add: adds the arguments of the action
    """

    text: str
    run: Callable[[argparse.Namespace], int]
    add: Callable[[argparse.ArgumentParser], None] = _nothing


def add_arguments(parser: argparse.ArgumentParser) -> None:
    service.add_arguments(parser)
    actions = parser.add_subparsers(dest='action', required=True)
    for name, each in itertools.chain(
        _ACTIONS.items(),
        *(more.items() for more in parts.each('commands', 'DB')),
    ):
        action = actions.add_parser(
            name, help=each.text, description=each.text
        )
        action.set_defaults(run_it=each.run)
        service.add_arguments(action)
        each.add(action)


def run(args: argparse.Namespace) -> int:
    status: int = args.run_it(args)
    return status


def _upgrade(args: argparse.Namespace) -> int:
    before, after = _open(args).upgrade()
    if before is None:
        print(f'Created the tables, at migration {after}')
    elif before == after:
        print(f'The tables are already at migration {after}')
    else:
        print(f'Upgraded the tables from migration {before} to {after}')
    return 0


def _check(args: argparse.Namespace) -> int:
    ledger = _open(args)
    ledger.require_current()
    faults = ledger.check(int(time.time()))
    for fault in faults:
        print(fault)
    print(f'{len(faults)} inconsistencies found')
    return 1 if faults else 0


def _open(args: argparse.Namespace) -> 'Ledger':
    """Return the ledger; print the database and the files that configure it.

    :raises oslo_config.cfg.Error: if no database has such a URL
    """
    from blazar_sched.conf import service as service_conf
    from blazar_sched.service import database

    conf = service.configuration(args)
    ledger = database.open_ledger(conf)
    print(
        f'Database {ledger.name}, configured in: {service_conf.sources(conf)}'
    )
    return ledger


def _add_before(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--before', type=_day, required=True, metavar='DATE',
        help='delete the leases that ended before this day, YYYY-MM-DD, in '
        'UTC; the day must not be in the future',
    )
    parser.add_argument(
        '--dry-run', action='store_true',
        help='only print what would be deleted',
    )


def _day(text: str) -> int:
    """Return the beginning of a day, in epoch seconds.

    :raises argparse.ArgumentTypeError: if the text is not a day of the past
    """
    try:
        day = datetime.datetime.strptime(text, '%Y-%m-%d')
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'{text!r} is not a day, YYYY-MM-DD'
        ) from None
    day = day.replace(tzinfo=datetime.UTC)
    if day > datetime.datetime.now(datetime.UTC):
        raise argparse.ArgumentTypeError(f'{text} is in the future')
    return int(day.timestamp())


def _purge(args: argparse.Namespace) -> int:
    ledger = _open(args)
    ledger.require_current()
    counts = ledger.count_over(args.before)
    if args.dry_run:
        for name, count in sorted(counts.items()):
            print(f'Would delete from the table {name}: {count}')
        return 0
    gone = 0
    for count in ledger.purge(args.before):
        gone += count
        print(f'Deleted {gone} of {counts["lease"]} leases', flush=True)
    print(f'Deleted {gone} leases')
    return 0


_ACTIONS = {
    'upgrade': Action(
        'create the tables, or upgrade them to this version', _upgrade
    ),
    'check': Action(
        'check all rows of the database for inconsistencies', _check
    ),
    'purge': Action(
        'delete what was over before a date: leases, lease requests, series '
        'and maintenances',
        _purge, _add_before,
    ),
}
