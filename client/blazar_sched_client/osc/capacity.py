# SPDX-License-Identifier: Apache-2.0
"""The capacity of hosts over a window."""

import argparse
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from osc_lib.command import command

from blazar_sched_client import resources
from blazar_sched_client.osc import verb

_PART = ('start_date', 'end_date', 'hosts', 'instances')


class ShowCapacity(verb.Command, command.Lister):
    """Show the capacity of hosts over a window, part by part.

    A table has the available amount and the total amount of each resource
    class.
    """

    resource = resources.Capacity
    reads = '_query'

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Any]]:
        parts = self.client.get_capacity(**self.read(parsed_args)).parts
        if parsed_args.formatter != 'table':
            return verb.rows((*_PART, 'resources'), parts, parsed_args)
        classes = sorted({
            each['resource_class']
            for part in parts for each in part['resources']
        })
        return verb.rows(
            (*_PART, *classes),
            (part | _amounts(part['resources']) for part in parts),
            parsed_args,
        )


def _amounts(resources: Iterable[dict[str, Any]]) -> dict[str, str]:
    return {
        each['resource_class']: f'{each["available"]}/{each["total"]}'
        for each in resources
    }
