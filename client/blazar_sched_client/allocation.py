# SPDX-License-Identifier: Apache-2.0
"""Allocations of hosts by reservations."""

from typing import Any

from openstack import resource

from blazar_sched_client._base import Resource


class Allocation(Resource):
    """The allocations of a host."""

    resource_key = 'allocation'
    resources_key = 'allocations'
    base_path = '/os-hosts/%(host_id)s/allocation'
    requires_id = False
    allow_fetch = True
    allow_commit = True
    allow_list = True

    _query_mapping = resource.QueryParameters(
        'lease_id', 'reservation_id', include_pagination_defaults=False
    )

    #: ID of the host.
    host_id: str = resource.URI('host_id')
    #: ID of the host, in a response.
    resource_id: str = resource.Body('resource_id', alternate_id=True)
    #: Reservations that have allocations on the host.
    reservations: list[dict[str, Any]] = resource.Body(
        'reservations', type=list
    )

    #: ID of the lease that an update moves from the host.
    lease_id: str = resource.Body('lease_id')
    #: ID of the reservation that an update moves from the host.
    reservation_id: str = resource.Body('reservation_id')
