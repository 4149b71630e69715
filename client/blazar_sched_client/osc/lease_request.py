# SPDX-License-Identifier: Apache-2.0
"""Lease requests: leases that wait for room."""

import argparse

from openstack.resource import Resource

from blazar_sched_client.osc import column
from blazar_sched_client.osc import verb
from blazar_sched_client.osc.reservation import RESERVATIONS
from blazar_sched_client.osc.verb import length
from blazar_sched_client.osc.verb import moment
from blazar_sched_client.osc.verb import text


class LeaseRequest(verb.Noun):
    """A command about lease requests."""

    noun = 'lease_request'
    plural = 'lease_requests'
    columns = ('id', 'name', 'status', 'position', 'priority', 'lease_id')

    def show(
        self, found: Resource, parsed_args: argparse.Namespace
    ) -> verb.Columns:
        names, values = super().show(found, parsed_args)
        if found.lease_id is None:
            return names, values
        # A lease that is over may be deleted.
        lease = self.client.find_lease(found.lease_id, ignore_missing=True)
        window = [
            column.column(lease and lease[name], parsed_args.times)
            for name in ('start_date', 'end_date')
        ]
        return (
            [*names, 'lease_start_date', 'lease_end_date'],
            [*values, *window],
        )


class ListLeaseRequest(LeaseRequest, verb.List):
    """List the lease requests of the project."""


class ShowLeaseRequest(LeaseRequest, verb.Show):
    """Show a lease request, with the start that it may expect."""


class CreateLeaseRequest(verb.Waiting, LeaseRequest, verb.Create):
    """Create a lease at the first start with room, or wait for room."""

    goal = 'BOOKED'
    failures = ('LAPSED', 'CANCELLED')
    options = (
        verb.NAME,
        RESERVATIONS,
        length('--duration', 'Length of the lease', required=True),
        moment('--start-date', 'First start, now by default'),
        moment('--latest-start-date', 'Last start', required=True),
        moment(
            '--wait-until',
            'Time until which the request waits, the last start by default',
        ),
        text(
            '--priority', 'Priority among the requests, normal by default',
            choices=('low', 'normal', 'high'),
        ),
        ('--flexible', {
            'action': 'store_true',
            'help': 'Let the lease be moved for a request of higher priority',
        }),
        verb.KEY,
    )


class DeleteLeaseRequest(LeaseRequest, verb.Delete):
    """Cancel lease requests that wait for room."""
