# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched relocations`: the instances that must leave their hosts.

The command reads the database: neither a manager nor the message bus is
needed.
"""

import argparse
import json
import time
import typing
from typing import Any

import rich.console
import rich.table
import rich.text

from blazar_sched.cmd import service
from blazar_sched.domain import duration
from blazar_sched.domain.window import FOREVER

if typing.TYPE_CHECKING:
    from blazar_sched.replica import state


def add_arguments(parser: argparse.ArgumentParser) -> None:
    service.add_arguments(parser)
    parser.add_argument(
        '--json', action='store_true', help='print JSON instead of a table'
    )


def run(args: argparse.Namespace) -> int:
    from blazar_sched.service import database

    ledger = database.open_ledger(service.configuration(args))
    ledger.require_current()
    now = int(time.time())
    found = ledger.read_replica(lambda replica: list_(replica, now))
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        show(found, rich.console.Console())
    return 0


def list_(replica: 'state.Replica', now: int) -> list[dict[str, Any]]:
    """Return the instances that must leave their hosts, the next one first.

    Each instance is in JSON primitives; times are epoch seconds, None for no
    end. `until` is the time at which the instance must have left its `host`,
    and `next` has the later stays of the relocation path.

    :param replica: of the ledger
    """
    from blazar_sched.service.upkeep import relocation

    def name(host: str) -> str:
        return replica.hosts[host].hypervisor_hostname

    return [
        {
            'instance': instance.uuid,
            'project_id': instance.project_id,
            'host': name(instance.host),
            'until': until,
            'state': state,
            'next': [
                {
                    'host': name(stay.host),
                    'start': stay.start,
                    'end': None if stay.end == FOREVER else stay.end,
                }
                for stay in instance.relocations
            ],
        }
        for instance, until, state in relocation.outlook(replica, now)
    ]


def show(found: list[dict[str, Any]], console: rich.console.Console) -> None:
    """Print the result of `list_` as a table."""
    table = rich.table.Table(
        'instance', 'project', 'host', 'until', 'next hosts', 'state'
    )
    for each in found:
        row = (
            each['instance'], each['project_id'], each['host'],
            duration.format_time(each['until']),
            ', '.join(
                f'{stay["host"]} from {duration.format_time(stay["start"])}'
                for stay in each['next']
            ),
            each['state'],
        )
        # Text is shown verbatim: brackets in the text are not markup.
        table.add_row(*map(rich.text.Text, row))
    console.print(table)
