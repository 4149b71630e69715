# SPDX-License-Identifier: Apache-2.0
"""Allocations of hosts by reservations: the routes and the view."""

import itertools
import operator
from operator import itemgetter

import falcon

from blazar_sched.service.api import listing
from blazar_sched.service.api import meaning
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.field import described
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.host import HOSTS
from blazar_sched.service.api.route import Answer
from blazar_sched.service.api.route import Route
from blazar_sched.service.api.rule import ADMIN
from blazar_sched.service.api.rule import Rule
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.times import WINDOW

_RESERVATION = Object(
    Field(
        'id', meaning.RESERVATION_ID, 'b1f5d6c4-0000-4000-8000-000000000001'
    ),
    Field(
        'lease_id', meaning.LEASE_ID, 'b1f5d6c4-0000-4000-8000-000000000000'
    ),
    *WINDOW,
)
ALLOCATION = Object(
    Field('resource_id', meaning.HOST_ID, '7', TEXT, itemgetter('host_id')),
    Field(
        'reservations', 'Reservations that have allocations on the host',
        type=Many(_RESERVATION),
    ),
    name='Allocation', meaning='The allocations of a host',
)

QUERY = (
    Field('lease_id', 'Only allocations of this lease, past allocations too'),
    Field(
        'reservation_id',
        'Only allocations of this reservation, past allocations too',
    ),
)
_ONE_OF_BOTH: validation.Schema = {
    'oneOf': [{'required': ['lease_id']}, {'required': ['reservation_id']}],
    'x-refusal': 'lease_id or reservation_id must be given, but not both',
}
UPDATE = validation.by_version(
    lambda version: {
        'type': 'object',
        'properties': {
            'lease_id': described(
                'ID of the lease that is moved from the host, in place of '
                '`reservation_id`',
                text.line(64),
            ),
            'reservation_id': described(
                'ID of the reservation that is moved from the host, in place '
                'of `lease_id`',
                text.line(64),
            ),
        },
        'additionalProperties': False,
        'allOf': [_ONE_OF_BOTH],
    }
)


def list_allocations(
    req: falcon.Request, caller: Caller
) -> list[listing.Item]:
    """List the coming allocations of all hosts.

    With a filter, past allocations are listed too.
    """
    return _held(caller, **_filters(req))


def show_allocation(
    req: falcon.Request, caller: Caller, host_id: str
) -> listing.Item:
    """Show the allocations of a host."""
    [host] = _held(caller, host_id=host_id, **_filters(req))
    return host


def update_allocation(
    req: falcon.Request, caller: Caller, host_id: str
) -> listing.Item:
    """Move reservations of a lease from the host to other hosts.

    The request has exactly one of `lease_id` and `reservation_id`. With
    `lease_id`, all reservations of the lease are moved. The answer shows the
    allocations that are left on the host.
    """
    validation.check_body(UPDATE, caller.version, req.media)
    caller.manager.reallocate(host_id=host_id, **req.media)
    [host] = _held(caller, host_id=host_id)
    return host


def _filters(req: falcon.Request) -> dict[str, str | None]:
    return {
        'lease_id': req.get_param('lease_id'),
        'reservation_id': req.get_param('reservation_id'),
    }


def _held(caller: Caller, **filters: str | None) -> list[listing.Item]:
    """Return the reservations on each host."""
    parts = listing.whole(
        lambda **page: caller.manager.list_allocations(**filters, **page)
    )
    # A host may be on several pages.
    return [
        {
            'host_id': host_id,
            'reservations': [
                each for part in found for each in part['reservations']
            ],
        }
        for host_id, found in itertools.groupby(
            parts, operator.itemgetter('host_id')
        )
    ]


GET = Rule('blazar:oshosts:get_allocations', ADMIN)
_OF_HOST = '/v1/os-hosts/{host_id}/allocation'
_ONE = Answer(ALLOCATION, 'allocation')
ROUTES = (
    Route(
        'GET', '/v1/os-hosts/allocations', list_allocations, GET,
        Answer(ALLOCATION, 'allocations', many=True), query=QUERY,
    ),
    Route(
        'GET', _OF_HOST, show_allocation, GET, _ONE, variable=HOSTS.id,
        query=QUERY,
    ),
    Route(
        'PUT', _OF_HOST, update_allocation,
        Rule('blazar:oshosts:reallocate', ADMIN), _ONE, variable=HOSTS.id,
        body=UPDATE,
    ),
)
