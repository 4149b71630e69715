# SPDX-License-Identifier: Apache-2.0
"""What python-blazarclient cannot ask of a lease."""

import argparse
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from osc_lib import exceptions
from osc_lib.command import command

from blazar_sched_client import resources
from blazar_sched_client.osc import option
from blazar_sched_client.osc import times
from blazar_sched_client.osc import verb
from blazar_sched_client.osc.option import length
from blazar_sched_client.osc.option import moment
from blazar_sched_client.osc.option import text


class Lease(verb.Noun):
    """A command about leases."""

    resource = resources.Lease

    @property
    def hidden(self) -> tuple[str, ...]:
        return (*super().hidden, 'events')


class Started(Lease, verb.Waiting):
    """A command that can wait until the lease has started."""

    goal = 'ACTIVE'
    failures = ('ERROR', 'TERMINATED', 'DELETING')


class BookLease(Started, verb.Create):
    """Create a lease, also without an end, or at the first start with room.

    The same as `reservation lease create` with what version 1.1 of the API
    adds.
    """

    unread = ('events', 'offer')


class ChangeLease(Lease, verb.Set):
    """Change a lease, and add or remove reservations.

    The same as `reservation lease set` with what version 1.1 of the API adds.
    A reservation without an id is added to the lease; id=<id>,remove=true
    removes a reservation.
    """

    unread = ('as_far_as_possible',)
    options = (
        ('--no-label', {
            'action': 'store_const',
            'const': {},
            'dest': 'labels',
            'help': 'Remove all labels of the lease',
        }),
    )


class SearchLease(Lease, verb.List):
    """List the leases that match all of the options.

    The same as `reservation lease list` with what version 1.1 of the API adds.
    """

    unread = ('fields', 'label')
    options = (
        text(
            '--label', 'Label of the leases or of a reservation (may be '
            'repeated)', metavar='<key=value>', action='append',
            type=lambda label: label.replace('=', ':', 1),
        ),
    )


class ExtendLease(Lease, verb.Of, command.ShowOne):
    """Prolong a lease by a duration, or as far as possible up to a time.

    A dry run without --by shows how far the lease can be prolonged, and what
    limits the end.
    """

    options = (
        length('--by', 'Duration by which the end moves'),
        moment(
            '--end-date', 'Latest end; none for as far as possible, also for '
            'no end',
        ),
        moment('--until', 'The same as --end-date', dest='end_date'),
        ('--as-far-as-possible', {
            'action': 'store_const', 'const': times.Time('none'),
            'dest': 'end_date', 'help': 'The same as --end-date none',
        }),
        option.DRY_RUN,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> verb.Columns:
        lease = self.find(parsed_args.which).id
        asked = self.read(parsed_args)
        if parsed_args.dry_run and not parsed_args.by:
            del asked['dry_run']
            extension = self.client.get_lease_extension(lease, **asked)
            return self.show(extension, parsed_args)
        if 'by' not in asked and 'end_date' not in asked:
            raise exceptions.CommandError(
                'by how much, or until when? Name --by, --until or '
                '--as-far-as-possible'
            )
        return self.show(self.client.extend_lease(lease, **asked), parsed_args)


class ListReservation(verb.Command, command.Lister):
    """List the reservations of a lease, or of all leases of the project.

    The hosts, and how many servers a reservation still takes, are only shown
    for one lease.
    """

    options = (
        text('lease', 'Name or ID of the lease', metavar='<lease>', nargs='?'),
    )

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Any]]:
        if parsed_args.lease is None:
            leases = self.client.leases()
        else:
            found = self.client.find_lease(
                parsed_args.lease, ignore_missing=False
            )
            leases = [self.client.get_lease(found.id)]
        names = (
            'id', 'lease_id', 'resource_type', 'status', 'min', 'max',
            'amount', 'hosts', 'remaining',
        )
        return verb.rows(
            names, (r for lease in leases for r in lease.reservations),
            parsed_args,
        )
