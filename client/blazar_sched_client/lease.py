# SPDX-License-Identifier: Apache-2.0
"""Leases, and how far a lease can be prolonged."""

from collections.abc import Callable
import math
import time
from typing import Any
from typing import Self

from keystoneauth1 import adapter
from openstack import exceptions
from openstack import resource
from openstack import utils

from blazar_sched_client._base import Resource


class Lease(Resource):
    """A project's contract over one window."""

    resource_key = 'lease'
    resources_key = 'leases'
    base_path = '/leases'
    allow_create = True
    allow_fetch = True
    allow_commit = True
    allow_delete = True
    allow_list = True

    _query_mapping = resource.QueryParameters(
        'name', 'status', 'project_id', 'active_at', 'start_date', 'end_date',
        'resource_type', 'host', 'degraded', 'label', 'sort', 'fields',
    )

    #: ID of the user who created the lease.
    user_id: str = resource.Body('user_id')
    #: ID of the project that owns the lease.
    project_id: str = resource.Body('project_id')
    #: Start of the window.
    start_date: str = resource.Body('start_date')
    #: End of the window; None means no end.
    end_date: str | None = resource.Body('end_date')
    #: ID of the Keystone trust with which the service acts for the user.
    trust_id: str | None = resource.Body('trust_id')
    #: Status of the lease.
    status: str = resource.Body('status')
    #: Whether resources of the lease are missing or occupied.
    degraded: bool = resource.Body('degraded', type=bool)
    #: ID of the series; None if there is none.
    series_id: str | None = resource.Body('series_id')
    #: Local start of the occurrence of the series; None if there is none.
    occurrence: str | None = resource.Body('occurrence')
    #: Texts by key, by which the lease is found.
    labels: dict[str, str] = resource.Body('labels', type=dict)
    #: ID of the administrator who has approved the lease above a limit.
    approved_by: str | None = resource.Body('approved_by')
    #: Reservations of the lease, each with the fields of its resource type.
    reservations: list[dict[str, Any]] = resource.Body(
        'reservations', type=list
    )
    #: Events of the lease.
    events: list[dict[str, Any]] = resource.Body('events', type=list)
    #: Time of creation.
    created_at: str = resource.Body('created_at')
    #: Time of the last change.
    updated_at: str | None = resource.Body('updated_at')

    #: Length of the lease, in place of `end_date`: seconds, or as in ``6h``.
    duration: str | int = resource.Body('duration')
    #: Last start: the lease begins at the first start that has room.
    latest_start_date: str = resource.Body('latest_start_date')
    #: Starts that may be chosen, as ``1h`` or ``09:00 Europe/Berlin``.
    align: str = resource.Body('align')
    #: Lists of reservations, each of which would do instead.
    alternatives: list[list[dict[str, Any]]] = resource.Body(
        'alternatives', type=list
    )
    #: Position of the reservations that are booked: 0 for `reservations`, then
    #: those of `alternatives`.
    alternative: int = resource.Body('alternative', type=int)
    #: ID of a held offer, which becomes the lease.
    offer: str = resource.Body('offer')
    #: Time at which the end of the lease is announced.
    before_end_date: str | None = resource.Body('before_end_date')
    #: Whether an update makes the lease end as late as possible.
    as_far_as_possible: bool = resource.Body('as_far_as_possible')
    #: Seconds after which a wait for a status may be continued.
    retry_after: int = resource.Header('Retry-After', type=int)
    #: A request that is sent again with the same key makes no second lease.
    idempotency_key: str = resource.Header('Idempotency-Key')

    def wait_for(
        self, session: adapter.Adapter, status: str, failures: list[str],
        timeout: float, wait: float | None, callback: Callable[[int], None],
    ) -> Self:
        """Wait for a status as `Proxy.wait_for_status` does."""
        # The SDK's own wait for a status ignores case, too.
        status, *failures = wanted = [s.upper() for s in (status, *failures)]
        until = time.monotonic() + (math.inf if wait is None else wait)
        for _ in utils.iterate_timeout(
            wait, f'Lease {self.id} is not {status}', wait=0
        ):
            if self.status == status:
                return self
            if self.status in failures:
                raise exceptions.ResourceFailure(
                    f'Lease {self.id} is {self.status}'
                )
            callback(0)
            left = until - time.monotonic()
            self.fetch(
                session, wait_for=','.join(wanted),
                timeout=max(1, int(min(60, timeout, left))),
            )
            if self.status not in wanted:
                time.sleep(self.retry_after)
        raise AssertionError


class Extension(Resource):
    """How far a lease can be prolonged; nothing is reserved."""

    resource_key = 'extension'
    base_path = '/leases/%(lease_id)s/extension'
    allow_fetch = True

    #: ID of the lease.
    lease_id: str = resource.URI('lease_id')
    #: Latest end with which an update would be accepted; None means no end.
    end_date: str | None = resource.Body('end_date')
    #: Why a later end would be refused: ``capacity``, ``policy`` or None.
    limited_by: str | None = resource.Body('limited_by')
    #: Position of the reservation that has no room until a later end.
    reservation: int | None = resource.Body('reservation')
    #: Number of hosts or instances that have room until a later end.
    available: int | None = resource.Body('available')
    #: End at which the search was given up; None if it was not.
    searched_until: str | None = resource.Body('searched_until')
