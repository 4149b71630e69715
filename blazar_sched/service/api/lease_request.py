# SPDX-License-Identifier: Apache-2.0
"""Lease requests: handlers that translate requests into manager calls."""

from typing import Any

import falcon

from blazar_sched.domain import duration
from blazar_sched.domain.lease import NOW
from blazar_sched.domain.lease_request import NORMAL
from blazar_sched.domain.lease_request import PRIORITIES
from blazar_sched.service.api import idempotency
from blazar_sched.service.api import meaning
from blazar_sched.service.api import microversion
from blazar_sched.service.api import reservation
from blazar_sched.service.api import times
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.collection import Collection
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.rule import ADMIN
from blazar_sched.service.api.rule import PROJECT_MEMBER_OR_ADMIN
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.rule import Rule
from blazar_sched.service.api.schemas import lease as lease_schemas
from blazar_sched.service.api.schemas import lease_request as schemas
from blazar_sched.service.api.schemas.idempotency import HEADERS
from blazar_sched.service.api.schemas.reservation import with_defaults
from blazar_sched.service.api.views.lease_request import LEASE_REQUEST
from blazar_sched.service.api.views.lease_request import LISTED_LEASE_REQUEST

Body = dict[str, Any]

PRIORITIZE = Rule(
    'blazar:requests:prioritize', ADMIN,
    'Give a lease request a priority above normal.',
)


def create_lease_request(req: falcon.Request, caller: Caller) -> Body:
    """Create a lease at the first start with room, or wait for room.

    The lease request is `BOOKED` at once if there is room. It is refused if
    the hosts are too few, whatever is on them.
    """
    body = lease_schemas.plain(req.media)
    validation.check_body(schemas.CREATE, caller.version, body)
    priority = PRIORITIES.index(body.get('priority', NORMAL))
    if priority > PRIORITIES.index(NORMAL):
        caller.require(PRIORITIZE.name)
    reservations = reservation.read(
        caller, [with_defaults(each) for each in body['reservations']]
    )
    start = body.get('start_date', NOW)
    latest_start = times.read_time(body, 'latest_start_date')
    wait_until = times.read_time(body, 'wait_until')
    return caller.manager.create_lease_request(
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


LEASE_REQUESTS = Collection(
    '/v1/requests', Field('request_id', meaning.REQUEST_ID), 'request',
    'requests', 'blazar:requests', PROJECT_READER_OR_ADMIN,
    PROJECT_MEMBER_OR_ADMIN, LEASE_REQUEST, LISTED_LEASE_REQUEST,
    microversion.V1_1, owned=True,
)
ROUTES = (
    LEASE_REQUESTS.to_list(
        'List the lease requests of the project, or of all projects for an '
        'admin.\n\n'
        'The request that was created first is the first of the list.',
        lambda manager: manager.list_lease_requests, 'number',
    ),
    LEASE_REQUESTS.to_create(
        create_lease_request, schemas.CREATE, headers=HEADERS,
        also=(PRIORITIZE, *reservation.RULES),
    ),
    LEASE_REQUESTS.to_show(
        'Show a lease request, with the start that it may expect.',
        lambda manager: manager.get_lease_request,
    ),
    LEASE_REQUESTS.to_delete(
        'Cancel a lease request that waits for room.',
        lambda manager: manager.cancel_lease_request,
    ),
)
