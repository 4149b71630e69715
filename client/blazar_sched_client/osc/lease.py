# SPDX-License-Identifier: Apache-2.0
"""What python-blazarclient cannot ask of a lease."""

import argparse

from osc_lib import exceptions
from osc_lib.cli import parseractions
from osc_lib.command import command

from blazar_sched_client.osc import verb
from blazar_sched_client.osc.reservation import ALTERNATIVES
from blazar_sched_client.osc.reservation import RESERVATIONS
from blazar_sched_client.osc.verb import length
from blazar_sched_client.osc.verb import moment
from blazar_sched_client.osc.verb import text

ALIGN = text(
    '--align', 'Starts that may be chosen, as 1h or "09:00 Europe/Berlin"'
)
BEFORE_END = moment(
    '--before-end-date', 'Time at which the end of the lease is announced'
)


LABELS: verb.Option = ('--label', {
    'metavar': '<key=value>',
    'action': parseractions.KeyValueAction,
    'dest': 'labels',
    'help': 'Label by which the lease is found, in place of the labels that '
    'it has (may be repeated)',
})
NO_LABELS: verb.Option = ('--no-label', {
    'action': 'store_const',
    'const': {},
    'dest': 'labels',
    'help': 'Remove all labels of the lease',
})


class Lease(verb.Noun):
    """A command about leases."""

    noun = 'lease'
    plural = 'leases'
    columns = ('id', 'name', 'start_date', 'end_date', 'status', 'degraded')
    hidden = (
        'align', 'alternatives', 'as_far_as_possible', 'before_end_date',
        'duration', 'events', 'latest_start_date', 'offer',
    )


class Started(Lease, verb.Waiting):
    """A command that can wait until the lease has started."""

    goal = 'ACTIVE'
    failures = ('ERROR', 'TERMINATED', 'DELETING')


class BookLease(Started, verb.Create):
    """Create a lease, also without an end, or at the first start with room.

    The same as `reservation lease create` with what version 1.1 of the API
    adds.
    """

    options = (
        verb.NAME,
        RESERVATIONS,
        ALTERNATIVES,
        moment('--start-date', 'Start of the lease, now by default'),
        moment('--end-date', 'End of the lease; none for no end'),
        length('--duration', 'Length of the lease, in place of the end'),
        moment(
            '--latest-start-date',
            'Last start: the lease begins at the first start that has room',
        ),
        ALIGN,
        BEFORE_END,
        LABELS,
        verb.KEY,
        verb.DRY_RUN,
    )


class ChangeLease(Lease, verb.Set):
    """Change a lease, and add or remove reservations.

    The same as `reservation lease set` with what version 1.1 of the API adds.
    A reservation without an id is added to the lease; id=<id>,remove=true
    removes a reservation.
    """

    options = (
        text('--name', 'New name of the lease'),
        RESERVATIONS,
        moment('--start-date', 'New start of the lease'),
        moment(
            '--end-date',
            'New end of the lease; none for no end, now to end the lease and '
            'keep its record',
        ),
        length('--duration', 'New length of the lease'),
        BEFORE_END,
        LABELS,
        NO_LABELS,
        verb.DRY_RUN,
    )


class SearchLease(Lease, verb.List):
    """List the leases that match all of the options.

    The same as `reservation lease list` with what version 1.1 of the API adds.
    """

    options = (
        text('--name', 'Name of the leases'),
        text('--status', 'Status of the leases, as ACTIVE'),
        text('--project-id', 'ID of the project, for an administrator'),
        moment('--active-at', 'Time in the window of the leases, as now'),
        moment('--start-date', 'Time before the end of the leases'),
        moment('--end-date', 'Time after the start of the leases'),
        text('--resource-type', 'Type of a reservation, as physical:host'),
        text('--host', 'Hypervisor hostname of a host of the leases'),
        ('--degraded', {
            'action': 'store_true', 'help': 'Leases that are degraded',
        }),
        text(
            '--label', 'Label of the leases or of a reservation (may be '
            'repeated)', metavar='<key=value>', action='append',
            type=lambda label: label.replace('=', ':', 1),
        ),
        text('--sort', 'Sort keys, as name:asc,end:desc'),
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
        verb.DRY_RUN,
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
                'by how much, or until when? Name --by or --end-date; '
                '--end-date none prolongs the lease as far as possible'
            )
        return self.show(self.client.extend_lease(lease, **asked), parsed_args)
