# SPDX-License-Identifier: Apache-2.0
"""Lease requests: leases that wait for room."""

import argparse

from blazar_sched_client import resources
from blazar_sched_client._base import Resource
from blazar_sched_client.osc import column
from blazar_sched_client.osc import verb


class LeaseRequest(verb.Noun):
    """A command about a lease request."""

    resource = resources.LeaseRequest

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


class ShowLeaseRequest(LeaseRequest, verb.Show):
    """Show a lease request, with the start that it may expect."""


class CreateLeaseRequest(verb.Waiting, LeaseRequest, verb.Create):
    """Create a lease at the first start with room, or wait for room."""

    goal = 'BOOKED'
    failures = ('LAPSED', 'CANCELLED')
    # Only the answer to this request still has the reservations.
    hidden = ()
    required = ('duration', 'latest_start_date')
