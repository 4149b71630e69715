# SPDX-License-Identifier: Apache-2.0
"""Lease requests: the routes, with their schemas and views."""

from operator import itemgetter
from typing import Any
from typing import cast

import falcon
from microversion_parse import Version

from blazar_sched.domain import duration
from blazar_sched.domain.lease import NOW
from blazar_sched.parts.request import calls
from blazar_sched.parts.request.lease_request import NORMAL
from blazar_sched.parts.request.lease_request import PRIORITIES
from blazar_sched.parts.request.lease_request import STATUSES
from blazar_sched.parts.request.lease_request import WAITING
from blazar_sched.service.api import idempotency
from blazar_sched.service.api import meaning
from blazar_sched.service.api import microversion
from blazar_sched.service.api import reservation
from blazar_sched.service.api import times
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.collection import Collection
from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import INTEGER_OR_NULL
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.field import TEXT_OR_NULL
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.idempotency import HEADERS
from blazar_sched.service.api.rule import ADMIN
from blazar_sched.service.api.rule import PROJECT_MEMBER_OR_ADMIN
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.rule import Rule
from blazar_sched.service.api.schemas import lease
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.schemas.reservation import new
from blazar_sched.service.api.schemas.reservation import with_defaults
from blazar_sched.service.api.times import DATE
from blazar_sched.service.api.times import DATE_OR_NULL
from blazar_sched.service.api.times import STAMPS

_ID = 'ID of the lease request'
_FIRST_OF_STARTS = 'First start of the lease'
_LAST_OF_STARTS = 'Last start of the lease'
_WAIT_UNTIL = (
    'Time until which the lease request waits, at most until '
    '`latest_start_date`'
)
_PRIORITY = (
    'Priority among the lease requests that wait; within a priority, the '
    'oldest lease request is first, or the projects take turns'
)
_FLEXIBLE = (
    'Whether the lease may be moved in the range of its starts, until it '
    'starts, to make room for a lease request of a higher priority'
)


class _Priority(Type):
    """A priority, by its name."""

    def show(self, value: int, version: Version) -> str:
        return PRIORITIES[value]


_FIELDS = (
    Field('id', _ID, 'e4a7c2d8-0000-4000-8000-00000000000b', TEXT),
    Field('name', meaning.LEASE_NAME, 'night-run', TEXT),
    Field('project_id', 'ID of the project that waits', 'p1', TEXT),
    Field('user_id', 'ID of the user who created the request', 'alice', TEXT),
    Field(
        'start_date', _FIRST_OF_STARTS, 1767229200, DATE, itemgetter('start')
    ),
    Field(
        'latest_start_date', _LAST_OF_STARTS, 1767834000, DATE,
        itemgetter('latest_start'),
    ),
    Field('duration', 'Length of the lease, in seconds', 21600, INTEGER),
    Field('wait_until', _WAIT_UNTIL, 1767834000, DATE),
    Field(
        'priority', _PRIORITY, PRIORITIES.index(NORMAL),
        _Priority({'enum': list(PRIORITIES)}),
    ),
    Field('flexible', _FLEXIBLE, False, BOOLEAN),
    Field(
        'status',
        'Status of the lease request: `BOOKED` has a lease, `LAPSED` has '
        'waited until `wait_until` in vain',
        WAITING, Type({'enum': list(STATUSES)}),
    ),
    Field(
        'position',
        'Position among the waiting lease requests of all projects, from 1; '
        'null if the lease request does not wait',
        3, INTEGER_OR_NULL,
    ),
    Field(
        'lease_id', 'ID of the lease; null if there is none', None,
        TEXT_OR_NULL,
    ),
    *STAMPS,
)
LISTED_LEASE_REQUEST = Object(
    *_FIELDS, name='ListedLeaseRequest', meaning='A lease that waits for room'
)
LEASE_REQUEST = Object(
    *_FIELDS,
    Field(
        'estimate',
        'First start with room as of now that delays no lease request ahead, '
        'also if it is after `latest_start_date`; null if none is known, or '
        'if the lease request does not wait',
        1767920400, DATE_OR_NULL,
    ),
    name='LeaseRequest',
    meaning='A lease that waits for room, with the start that it may expect',
    columns=('id', 'name', 'status', 'position', 'priority', 'lease_id'),
)
_NEW = Object(
    Field('name', meaning.LEASE_NAME, type=Type(text.line(80))),
    Field(
        'reservations', meaning.RESERVATIONS,
        type=lease.Reservations(new, least=1),
    ),
    Field('duration', 'Length of the lease', type=lease.DURATION),
    Field(
        'start_date', f'{_FIRST_OF_STARTS}, now if absent', type=lease.DATE,
        required=False,
    ),
    Field('latest_start_date', _LAST_OF_STARTS, type=lease.DATE),
    Field(
        'wait_until', f'{_WAIT_UNTIL}, `latest_start_date` if absent',
        type=lease.DATE, required=False,
    ),
    Field(
        'priority', f'{_PRIORITY}; the policy decides who may ask for '
        'more than `normal`',
        type=Type({'enum': list(PRIORITIES), 'default': NORMAL}),
        required=False,
    ),
    Field('flexible', _FLEXIBLE, type=BOOLEAN, required=False),
)
_CREATE = validation.by_version(_NEW.schema)

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
    body = lease.plain(req.media)
    validation.check_body(_CREATE, caller.version, body)
    priority = PRIORITIES.index(body.get('priority', NORMAL))
    if priority > PRIORITIES.index(NORMAL):
        caller.require(PRIORITIZE.name)
    reservations = reservation.read(
        caller, [with_defaults(each) for each in body['reservations']]
    )
    start = body.get('start_date', NOW)
    latest_start = times.read_time(body, 'latest_start_date')
    wait_until = times.read_time(body, 'wait_until')
    return cast(calls.Calls, caller.manager).create_lease_request(
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
    '/v1/requests', Field('request_id', _ID), 'request', 'requests',
    'blazar:requests', PROJECT_READER_OR_ADMIN, PROJECT_MEMBER_OR_ADMIN,
    LEASE_REQUEST, LISTED_LEASE_REQUEST, microversion.V1_1,
    calls.LEASE_REQUESTS,
)
ROUTES = (
    LEASE_REQUESTS.to_list(
        'List the lease requests of the project, or of all projects for an '
        'admin.\n\n'
        'The request that was created first is the first of the list.',
        sort=['number'],
    ),
    LEASE_REQUESTS.to_create(
        create_lease_request, _CREATE, headers=HEADERS,
        also=(PRIORITIZE, *reservation.RULES),
    ),
    LEASE_REQUESTS.to_show(
        'Show a lease request, with the start that it may expect.'
    ),
    LEASE_REQUESTS.to_delete('Cancel a lease request that waits for room.'),
)
