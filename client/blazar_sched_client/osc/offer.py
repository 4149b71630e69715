# SPDX-License-Identifier: Apache-2.0
"""Offers: windows in which a lease would find room."""

import argparse
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from osc_lib.command import command

from blazar_sched_client import resources
from blazar_sched_client.osc import lease
from blazar_sched_client.osc import option
from blazar_sched_client.osc import verb


class SetOffer(verb.Set):
    """Approve a held offer above a limit, or hold it longer, as an admin."""

    resource = resources.Offer
    unread = ('approved',)
    options = (
        ('--approve', {
            'action': 'store_const', 'const': True, 'dest': 'approved',
            'help': 'Let the owner accept the offer despite the limits',
        }),
        ('--refuse', {
            'action': 'store_const', 'const': False, 'dest': 'approved',
            'help': 'Take the approval back; to free the room, too, delete '
            'the offer',
        }),
    )

    def read(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        asked = super().read(parsed_args)
        if parsed_args.approved is False:
            asked['approved'] = False
        return asked


class SearchOffer(verb.Command, command.Lister):
    """Search for windows in which a lease would find room, or hold one."""

    resource = resources.Offers
    reads = '_created'
    required = ('duration',)

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Any]]:
        found = self.client.search_offers(**self.read(parsed_args))
        if found.searched_until is not None:
            self.log.warning(
                'The search was given up at the start %s', found.searched_until
            )
        if found.nearest is not None:
            self.log.warning(
                'No offer: %s', found.nearest.get('message', found.nearest)
            )
        names = (
            'id', 'start_date', 'end_date', 'held_until', 'alternative',
            'limited_by', 'needs_approval', 'reservations',
        )
        return verb.rows(names, found.offers, parsed_args)


class AcceptOffer(lease.Started, command.ShowOne):
    """Make a lease of a held offer."""

    options = (
        ('offer', {'metavar': '<offer>', 'help': 'ID of the offer'}),
        option.NAME,
        option.of(resources.Lease, 'before_end_date'),
        option.DRY_RUN,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> verb.Columns:
        made = self.client.accept_offer(**self.read(parsed_args))
        return self.show(made, parsed_args)
