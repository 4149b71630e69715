# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched db`: make the tables, look through them, fill them."""

import argparse

from blazar_sched.cmd import importing
from blazar_sched.cmd import service


def add_arguments(parser: argparse.ArgumentParser) -> None:
    service.add_arguments(parser)
    actions = parser.add_subparsers(dest='action', required=True)
    for name, (text, add, run_it) in _ACTIONS.items():
        action = actions.add_parser(
            name,
            help=text,
            description=text,
            # What was said before the action stays so.
            argument_default=argparse.SUPPRESS,
        )
        action.set_defaults(run_it=run_it)
        service.add_arguments(action)
        add(action)


def run(args: argparse.Namespace) -> int:
    status: int = args.run_it(args)
    return status


def _upgrade(args: argparse.Namespace) -> int:
    from blazar_sched.service import database

    database.open_ledger(service.configuration(args)).upgrade()
    return 0


def _check(args: argparse.Namespace) -> int:
    from blazar_sched.service import database

    ledger = database.open_ledger(service.configuration(args))
    ledger.require_current()
    faults = ledger.check()
    for fault in faults:
        print(fault)
    print(f'{len(faults)} faults found')
    return 1 if faults else 0


def _nothing(parser: argparse.ArgumentParser) -> None:
    pass


_ACTIONS = {
    'upgrade': ('bring the tables to this version', _nothing, _upgrade),
    'check': (
        'look through every allocation for what must never be',
        _nothing,
        _check,
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
