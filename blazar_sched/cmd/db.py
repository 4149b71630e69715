# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched db upgrade|check`."""

import argparse

from blazar_sched.cmd import service


def add_arguments(parser: argparse.ArgumentParser) -> None:
    service.add_arguments(parser)
    parser.add_argument(
        'action',
        choices=('upgrade', 'check'),
        help='upgrade: bring the tables to this version; check: look through'
        ' every allocation for what must never be',
    )


def run(args: argparse.Namespace) -> int:
    from blazar_sched.service.ledger import ledger

    conf = service.configuration(args)
    store = ledger.Ledger(conf.database.connection)
    if args.action == 'upgrade':
        store.upgrade()
        return 0
    faults = store.check()
    for fault in faults:
        print(fault)
    print(f'{len(faults)} faults found')
    return 1 if faults else 0
