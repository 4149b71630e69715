# SPDX-License-Identifier: Apache-2.0
"""Lease requests: leases that wait for room."""

from typing import Any

from openstack import resource

from blazar_sched_client._base import Resource


class LeaseRequest(Resource):
    """A lease that waits for room, with the start that it may expect."""

    resource_key = 'request'
    resources_key = 'requests'
    base_path = '/requests'
    allow_create = True
    allow_fetch = True
    allow_delete = True
    allow_list = True

    #: ID of the project that waits.
    project_id: str = resource.Body('project_id')
    #: ID of the user who created the lease request.
    user_id: str = resource.Body('user_id')
    #: First start of the lease.
    start_date: str = resource.Body('start_date')
    #: Last start of the lease.
    latest_start_date: str = resource.Body('latest_start_date')
    #: Length of the lease.
    duration: str | int = resource.Body('duration')
    #: Time until which the lease request waits.
    wait_until: str = resource.Body('wait_until')
    #: Priority among the lease requests: ``low``, ``normal`` or ``high``.
    priority: str = resource.Body('priority')
    #: Whether the lease may be moved in the range of its starts.
    flexible: bool = resource.Body('flexible', type=bool)
    #: ``WAITING``, ``BOOKED``, ``LAPSED`` or ``CANCELLED``.
    status: str = resource.Body('status')
    #: Position among the waiting lease requests of all projects, from 1.
    position: int | None = resource.Body('position')
    #: ID of the lease; None if there is none.
    lease_id: str | None = resource.Body('lease_id')
    #: First start with room as of now; None if none is known.
    estimate: str | None = resource.Body('estimate')
    #: Reservations of the lease.
    reservations: list[dict[str, Any]] = resource.Body(
        'reservations', type=list
    )
    #: Time of creation.
    created_at: str = resource.Body('created_at')
    #: Time of the last change.
    updated_at: str | None = resource.Body('updated_at')

    #: A request that is sent again with the same key makes no second one.
    idempotency_key: str = resource.Header('Idempotency-Key')
