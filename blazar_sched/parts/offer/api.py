# SPDX-License-Identifier: Apache-2.0
"""Offers: the routes of the search for windows and of held offers.

A request for a lease may name a held offer, which becomes the lease.
"""

from collections.abc import Callable
import dataclasses
from typing import Any
from typing import cast

import falcon

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain.lease import NOW
from blazar_sched.parts.offer.calls import Calls
from blazar_sched.parts.offer.calls import OFFERS as OFFER_CALLS
from blazar_sched.service.api import lease
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
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.field import TEXT_OR_NULL
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.route import Answer
from blazar_sched.service.api.route import Route
from blazar_sched.service.api.rule import ADMIN
from blazar_sched.service.api.rule import PROJECT_MEMBER_OR_ADMIN
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.rule import Rule
from blazar_sched.service.api.schemas import lease as schemas
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.schemas.reservation import new
from blazar_sched.service.api.schemas.reservation import with_defaults
from blazar_sched.service.api.times import BOUNDED
from blazar_sched.service.api.times import DATE
from blazar_sched.service.api.times import DATE_OR_NULL

_ID = 'c7f1a2d4-0000-4000-8000-000000000009'

_NEAREST = Object(
    Field(
        'reservation',
        'Position, from 0, of the reservation for which there is no room at '
        'the first start',
        None, INTEGER_OR_NULL,
    ),
    Field(
        'available',
        'Number of hosts, instances or other resources for which the first '
        'window has room',
        None, INTEGER_OR_NULL,
    ),
    Field(
        'duration',
        'Greatest length, in seconds, that has room at the first start; null '
        'if there is none, or if it was not found in time',
        None, INTEGER_OR_NULL,
    ),
    Field(
        'message', 'Why a lease at the first start would be refused',
        '2 hosts are needed, 1 is free', TEXT, since=microversion.V1_1,
        required=False,
    ),
)
_HELD_UNTIL = (
    'Time at which the offer lapses, unless it was accepted or deleted before'
)
_NEEDS_APPROVAL = Field(
    'needs_approval',
    'The limits that forbid the lease, and that an administrator can lift by '
    'approving the held offer; null if there are none',
    None, TEXT_OR_NULL, since=microversion.V1_2,
)
_RESERVATIONS = Field(
    'reservations', 'The reservations, in the order of the request',
    type=Many(Object(
        Field('resource_type', meaning.RESOURCE_TYPE, 'physical:host', TEXT),
        Field(
            'available', 'Number of hosts, instances or other resources', 1,
            INTEGER,
        ),
    )),
)
HELD_OFFER = Object(
    Field('id', 'Id of the offer, and of the lease once accepted', _ID, TEXT),
    *BOUNDED, Field('held_until', _HELD_UNTIL, 1767226200, DATE),
    Field(
        'project_id', 'ID of the project for which the offer is held', 'p1',
        since=microversion.V1_1,
    ),
    _NEEDS_APPROVAL,
    Field(
        'approved_by',
        f'{meaning.APPROVED_BY}; null if the offer is not approved', None,
        TEXT_OR_NULL, since=microversion.V1_2,
    ),
    _RESERVATIONS, name='Offer',
    meaning='A window whose room is held for a project',
    columns=(
        'id', 'start_date', 'end_date', 'held_until', 'needs_approval',
        'approved_by', 'reservations',
    ),
)
WINDOW_OFFER = Object(
    Field(
        'id',
        'Id of the offer, and of the lease once accepted; null if the offer '
        'is not held',
        _ID, TEXT_OR_NULL,
    ),
    *BOUNDED,
    Field(
        'held_until', f'{_HELD_UNTIL}; null if the offer is not held',
        1767226200, DATE_OR_NULL,
    ),
    Field(
        'alternative',
        'Position of the reservations that have room: 0 for `reservations`, '
        'then those of `alternatives`',
        0, INTEGER,
    ),
    Field(
        'limited_by',
        '`policy` if a limit of the project forbids the lease; null if not',
        None, Type({'enum': ['policy', None]}),
    ),
    _NEEDS_APPROVAL, _RESERVATIONS,
)
OFFERS = Object(
    Field(
        'offers', 'Windows with room, the best first', type=Many(WINDOW_OFFER)
    ),
    Field(
        'searched_until',
        'Start at which the search was given up; null if there are no further '
        'offers in the requested range',
        None, DATE_OR_NULL,
    ),
    Field(
        'nearest',
        'What there is room for at the first start, if there is no offer',
        type=_NEAREST, required=False,
    ),
    name='Offers', meaning='Windows in which a lease would find room',
)

MAX_OFFERS = 20
DEFAULT_OFFERS = 6
EARLIEST = 'earliest'
BEST = [EARLIEST, 'longest', 'most']
# The least distance between the starts of two offers.
DEFAULT_DISTANCE = '1h'

_SEARCH = Object(
    Field(
        'reservations', meaning.RESERVATIONS,
        type=schemas.Reservations(new, least=1),
    ),
    schemas.alternatives(10),
    Field('duration', 'Least length of the lease', type=schemas.DURATION),
    Field(
        'max_duration',
        'Greatest length of the lease, `duration` if absent: each offer is as '
        'long as there is room',
        type=schemas.DURATION, required=False,
    ),
    Field(
        'start_date', 'First start, now if absent', type=schemas.DATE,
        required=False,
    ),
    Field(
        'latest_start_date', 'Last start, 90 days after the first if absent',
        type=schemas.DATE, required=False,
    ),
    Field(
        'latest_end_date', 'Last end, any end if absent', type=schemas.DATE,
        required=False,
    ),
    schemas.ALIGN,
    Field(
        'best',
        'Order of the offers: by start, by length, or by the number of hosts '
        'in a lease of the least length',
        type=Type({'enum': BEST, 'default': EARLIEST}), required=False,
    ),
    Field(
        'limit', 'Most offers to return',
        type=Type({
            'type': 'integer', 'minimum': 1, 'maximum': MAX_OFFERS,
            'default': DEFAULT_OFFERS,
        }),
        required=False,
    ),
    Field(
        'distance',
        'Least time between the starts of two offers for the same '
        f'reservations, {DEFAULT_DISTANCE} if absent',
        type=schemas.DURATION, required=False,
    ),
    Field(
        'hold',
        'How long the first offer is held for the project; no offer is held '
        'if absent',
        type=schemas.DURATION, required=False,
    ),
)
SEARCH = validation.by_version(_SEARCH.schema)
_UPDATE = Object(
    Field(
        'approved',
        'Whether the offer can be accepted although limits forbid the lease; '
        'unchanged if absent',
        type=BOOLEAN, required=False,
    ),
    Field(
        'hold', 'How long the offer is held from now on; unchanged if absent',
        type=schemas.DURATION, required=False,
    ),
)
UPDATE = validation.by_version(_UPDATE.schema)
OFFER = 'offer'
# The fields of a request that accepts an offer.
_ACCEPTING = ('name', OFFER, 'before_end_date', 'labels', 'events')
CREATE = validation.by_version(Object(
    *schemas.NEW,
    Field(
        OFFER,
        'Id of a held offer, which becomes the lease, in place of the dates '
        'and the reservations',
        type=text.up_to(36), required=False, since=microversion.V1_1,
    ),
).schema)

Body = dict[str, Any]


def search_offers(req: falcon.Request, caller: Caller) -> Body:
    """Search for windows in which a lease would find room, or hold one.

    The windows and the numbers are exact at the revision that the response
    names. Nothing is reserved, unless the request asks to hold an offer: then
    the room of the first offer is reserved until the offer lapses.
    """
    body = schemas.plain(req.media)
    validation.check_body(SEARCH, caller.version, body)
    alternatives = [
        reservation.read(caller, list(map(with_defaults, reservations)))
        for reservations in (
            body['reservations'], *body.get('alternatives', ())
        )
    ]
    start = body.get('start_date', NOW)
    hold = times.read_duration(body, 'hold')
    values = {
        'project_id': caller.project_id,
        'user_id': caller.user_id,
        'alternatives': alternatives,
        'start': (
            NOW if start == NOW else duration.parse_time(start, 'start_date')
        ),
        'latest_start': times.read_time(body, 'latest_start_date'),
        'latest_end': times.read_time(body, 'latest_end_date'),
        'duration': times.read_duration(body, 'duration'),
        'max_duration': times.read_duration(body, 'max_duration'),
        'align': body.get('align'),
        'best': body.get('best', EARLIEST),
        'limit': body.get('limit', DEFAULT_OFFERS),
        'distance': times.read_duration(
            {'distance': DEFAULT_DISTANCE, **body}, 'distance'
        ),
    }
    manager = cast(Calls, caller.manager)
    if hold is None:
        return manager.search_offers(values=values)
    approval = (
        {'approval': True} if caller.version >= microversion.V1_2 else {}
    )
    return manager.hold_offer(values=values, seconds=hold, **approval)


def update_offer(req: falcon.Request, caller: Caller, offer_id: str) -> Body:
    """Approve a held offer, take the approval back, or hold it longer.

    An approved offer can be accepted although limits of approval filters
    forbid the lease.
    """
    body = req.media
    validation.check_body(UPDATE, caller.version, body)
    return cast(Calls, caller.manager).update_offer(
        offer_id=offer_id, project_id=caller.scope,
        values={
            'user_id': caller.user_id,
            'approved': body.get('approved'),
            'hold': times.read_duration(body, 'hold'),
        },
    )


def create_lease(req: falcon.Request, caller: Caller) -> Body:
    """Create a lease with all of its reservations, or create nothing."""
    return lease.make(req, caller, CREATE, _creation)


def _creation(
    req: falcon.Request, caller: Caller, body: Body, only_asks: bool
) -> Callable[..., Body]:
    if OFFER in body:
        return _acceptance(caller, body)
    return lease.creation(req, caller, body, only_asks)


def _acceptance(caller: Caller, body: Body) -> Callable[..., Body]:
    """Return the call that makes the lease of an offer.

    :raises InvalidInput: naming a field that the offer settles
    """
    settled = sorted(set(body) - set(_ACCEPTING))
    if settled:
        raise exception.InvalidInput(
            f'{settled[0]} is settled by the offer', field=settled[0]
        )
    values = {
        'offer': body[OFFER],
        'name': body['name'],
        'project_id': caller.project_id,
        'user_id': caller.user_id,
        'before_end': lease.before_end(body.get('before_end_date')),
        **lease.labels(body),
    }
    # An offer is accepted once, whatever key the client sends. No key of a
    # client has a line end: see idempotency.argument.
    more = {'idempotency_key': f'offer\n{body[OFFER]}'}
    return lease.call(cast(Calls, caller.manager).accept_offer, values, more)


HELD_OFFERS = Collection(
    '/v1/offers', Field('offer_id', 'ID of the held offer'), 'offer', 'offers',
    'blazar:offers', PROJECT_READER_OR_ADMIN, PROJECT_MEMBER_OR_ADMIN,
    HELD_OFFER, since=microversion.V1_1, calls=OFFER_CALLS,
)
ROUTES = (
    dataclasses.replace(lease.TO_CREATE, handler=create_lease, body=CREATE),
    HELD_OFFERS.to_list(
        'List the held offers of the project, or of all projects for an '
        'admin.\n\nThe offer that starts first is the first of the list.',
        sort=('start', 'id'),
    ),
    Route(
        'POST', HELD_OFFERS.path, search_offers, HELD_OFFERS.writable('post'),
        Answer(OFFERS), since=HELD_OFFERS.since, body=SEARCH,
        also=reservation.RULES,
    ),
    HELD_OFFERS.to_show('Show a held offer.'),
    Route(
        'PUT', f'{HELD_OFFERS.path}/{{offer_id}}', update_offer,
        Rule('blazar:offers:approve', ADMIN), Answer(HELD_OFFER, 'offer'),
        since=microversion.V1_2, variable=HELD_OFFERS.id, body=UPDATE,
    ),
    HELD_OFFERS.to_delete(
        'Delete a held offer, so that its room is free again.'
    ),
)
