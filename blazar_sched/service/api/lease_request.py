# SPDX-License-Identifier: Apache-2.0
"""Lease requests: handlers that translate requests into manager calls."""

import functools
from operator import itemgetter
from typing import Any

import falcon

from blazar_sched import policies
from blazar_sched.domain import duration
from blazar_sched.domain.lease import NOW
from blazar_sched.domain.lease_request import NORMAL
from blazar_sched.domain.lease_request import PRIORITIES
from blazar_sched.service.api import idempotency
from blazar_sched.service.api import listing
from blazar_sched.service.api import reservation
from blazar_sched.service.api import times
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.schemas import lease as lease_schemas
from blazar_sched.service.api.schemas import lease_request as schemas
from blazar_sched.service.api.schemas.reservation import with_defaults
from blazar_sched.service.api.views.lease_request import LEASE_REQUEST
from blazar_sched.service.api.views.lease_request import LISTED_LEASE_REQUEST

Body = dict[str, Any]


def list_lease_requests(req: falcon.Request, caller: Caller) -> Body:
    """List the lease requests of the project, or of all projects for an admin.

    The request that was created first is the first of the list.
    """
    found = listing.whole(
        functools.partial(
            caller.manager.list_lease_requests, project_id=caller.scope
        )
    )
    found.sort(key=itemgetter('number'))
    return {
        'requests': [
            LISTED_LEASE_REQUEST.show(each, caller.version) for each in found
        ]
    }


def show_lease_request(
    req: falcon.Request, caller: Caller, request_id: str
) -> Body:
    """Show a lease request, with the start that it may expect."""
    found = caller.manager.get_lease_request(
        request_id=request_id, project_id=caller.scope
    )
    return {'request': LEASE_REQUEST.show(found, caller.version)}


def create_lease_request(req: falcon.Request, caller: Caller) -> Body:
    """Create a lease at the first start with room, or wait for room.

    The lease request is `BOOKED` at once if there is room. It is refused if
    the hosts are too few, whatever is on them.
    """
    body = lease_schemas.plain(req.media)
    validation.check_body(schemas.CREATE, caller.version, body)
    priority = PRIORITIES.index(body.get('priority', NORMAL))
    if priority > PRIORITIES.index(NORMAL):
        caller.require(policies.lease_request.PRIORITIZE)
    reservations = [with_defaults(each) for each in body['reservations']]
    reservation.check(caller, reservations)
    start = body.get('start_date', NOW)
    latest_start = times.read_time(body, 'latest_start_date')
    wait_until = times.read_time(body, 'wait_until')
    made = caller.manager.create_lease_request(
        values={
            'name': body['name'],
            'project_id': caller.project_id,
            'user_id': caller.user_id,
            'reservations': reservations,
            'start': (
                NOW if start == NOW
                else duration.parse_time(start, 'start_date')
            ),
            'latest_start': latest_start,
            'duration': times.read_duration(body, 'duration'),
            'wait_until': latest_start if wait_until is None else wait_until,
            'priority': priority,
            'flexible': body.get('flexible', False),
        },
        **idempotency.argument(req, dry_run=False),
    )
    caller.context.resource_uuid = made['id']
    return {'request': LEASE_REQUEST.show(made, caller.version)}


def cancel_lease_request(
    req: falcon.Request, caller: Caller, request_id: str
) -> None:
    """Cancel a lease request that waits for room."""
    caller.manager.cancel_lease_request(
        request_id=request_id,
        project_id=caller.scope,
    )
