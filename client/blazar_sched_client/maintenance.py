# SPDX-License-Identifier: Apache-2.0
"""Maintenances: windows in which nothing may be on some hosts."""

from typing import Any

from openstack import resource

from blazar_sched_client._base import Resource


class Maintenance(Resource):
    """A window in which nothing may be on some hosts."""

    resource_key = 'maintenance'
    resources_key = 'maintenances'
    base_path = '/maintenances'
    allow_create = True
    allow_fetch = True
    allow_commit = True
    allow_delete = True
    allow_list = True

    #: Reason, which the owners of leases on the hosts are told.
    reason: str = resource.Body('reason')
    #: Start of the window.
    start_date: str = resource.Body('start_date')
    #: End of the window; None if it is not known yet.
    end_date: str | None = resource.Body('end_date')
    #: ``PLANNED``, ``DRAINING``, ``ACTIVE`` or ``OVER``.
    status: str = resource.Body('status')
    #: Hypervisor hostnames of the hosts.
    hosts: list[str] = resource.Body('hosts', type=list)
    #: Reservations that have left hosts, in the response to a change.
    moved: list[dict[str, Any]] | None = resource.Body('moved', type=list)
    #: Reservations that have allocations on the hosts in the window.
    in_the_way: list[dict[str, Any]] = resource.Body('in_the_way', type=list)
    #: Number of servers on the hosts that do not end before the start.
    servers: int = resource.Body('servers', type=int)
    #: Time of creation.
    created_at: str = resource.Body('created_at')
    #: Time of the last change.
    updated_at: str | None = resource.Body('updated_at')

    #: Requirement that the hosts meet, in place of `hosts`.
    resource_properties: str = resource.Body('resource_properties')
    #: Whether to go on although reservations cannot leave the hosts.
    force: bool = resource.Body('force', type=bool)
