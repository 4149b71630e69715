# SPDX-License-Identifier: Apache-2.0
"""Offers: windows in which a lease would find room."""

import argparse
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from osc_lib.command import command

from blazar_sched_client.osc import lease
from blazar_sched_client.osc import verb
from blazar_sched_client.osc.reservation import ALTERNATIVES
from blazar_sched_client.osc.reservation import RESERVATIONS
from blazar_sched_client.osc.verb import length
from blazar_sched_client.osc.verb import moment
from blazar_sched_client.osc.verb import text


class Offer(verb.Noun):
    """A command about held offers."""

    noun = 'offer'
    plural = 'offers'
    columns = (
        'id', 'start_date', 'end_date', 'held_until', 'needs_approval',
        'approved_by', 'reservations',
    )
    hidden = ('alternative', 'limited_by', 'approved', 'hold')


class ListOffer(Offer, verb.List):
    """List the held offers of the project."""


class ShowOffer(Offer, verb.Show):
    """Show a held offer."""


class SetOffer(Offer, verb.Set):
    """Approve a held offer above a limit, or hold it longer, as an admin."""

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
        length('--hold', 'How long the offer is held from now on'),
    )

    def read(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        asked = super().read(parsed_args)
        if parsed_args.approved is False:
            asked['approved'] = False
        return asked


class DeleteOffer(Offer, verb.Delete):
    """Delete held offers, so that their room is free again."""


class SearchOffer(verb.Command, command.Lister):
    """Search for windows in which a lease would find room, or hold one."""

    options = (
        RESERVATIONS,
        ALTERNATIVES,
        length('--duration', 'Least length of the lease', required=True),
        length('--max-duration', 'Greatest length of the lease'),
        moment('--start-date', 'First start, now by default'),
        moment('--latest-start-date', 'Last start, 90 days later by default'),
        moment('--latest-end-date', 'Last end, any end by default'),
        lease.ALIGN,
        text(
            '--best', 'Order of the offers, by start by default',
            choices=('earliest', 'longest', 'most'),
        ),
        text('--limit', 'Most offers to show, 6 by default', type=int),
        length(
            '--distance',
            'Least time between the starts of two offers, 1h by default',
        ),
        length('--hold', 'How long the first offer is held for the project'),
    )

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
        verb.NAME,
        lease.BEFORE_END,
        verb.DRY_RUN,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> verb.Columns:
        made = self.client.accept_offer(**self.read(parsed_args))
        return self.show(made, parsed_args)
