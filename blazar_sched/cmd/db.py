# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched db upgrade|check`: make the tables, look through them."""

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
    from blazar_sched.service import assembly

    ledger = assembly.open_ledger(service.configuration(args))
    if args.action == 'upgrade':
        ledger.upgrade()
        return 0
    ledger.require_current()
    faults = ledger.check()
    for fault in faults:
        print(fault)
    print(f'{len(faults)} faults found')
    return 1 if faults else 0
