# SPDX-License-Identifier: Apache-2.0
"""Allocations of hosts by reservations."""

import argparse

from osc_lib.command import command

from blazar_sched_client import resources
from blazar_sched_client.osc import verb


class MoveAllocation(verb.Noun, command.ShowOne):
    """Move reservations of a lease from a host to other hosts."""

    resource = resources.Allocation
    hidden = ('host_id', 'id', 'lease_id', 'reservation_id')

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('host', metavar='<host>', help='Name or ID')
        moved = parser.add_mutually_exclusive_group(required=True)
        moved.add_argument(
            '--lease', metavar='<lease>', help='Name or ID of the lease'
        )
        moved.add_argument(
            '--reservation', metavar='<reservation>',
            help='ID of the reservation',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> verb.Columns:
        host = self.client.find_host(parsed_args.host, ignore_missing=False)
        moved = {'reservation_id': parsed_args.reservation}
        if parsed_args.lease:
            lease = self.client.find_lease(
                parsed_args.lease, ignore_missing=False
            )
            moved = {'lease_id': lease.id}
        left = self.client.update_allocation(host.id, **moved)
        return self.show(left, parsed_args)
