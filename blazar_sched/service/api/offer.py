# SPDX-License-Identifier: Apache-2.0
"""Offers: the search for windows, held offers, and the offer of a refusal."""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import falcon

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain.host import MAINTENANCE
from blazar_sched.domain.lease import NOW
from blazar_sched.placing import bar
from blazar_sched.service.api import errors
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
from blazar_sched.service.api.schemas import lease
from blazar_sched.service.api.schemas.reservation import new
from blazar_sched.service.api.schemas.reservation import with_defaults
from blazar_sched.service.api.times import DATE
from blazar_sched.service.api.times import WINDOW
from blazar_sched.service.bus import calls

_ID = 'c7f1a2d4-0000-4000-8000-000000000009'

OFFER = Object(
    Field(
        'reservation',
        'Position in the request, from 0, of the reservation for which there '
        'is no room',
        None, INTEGER_OR_NULL, lambda offer: offer.get('reservation'),
    ),
    Field(
        'available',
        'Number of hosts or instances for which the requested window has room',
        None, INTEGER_OR_NULL, lambda offer: offer.get('available'),
    ),
    Field(
        'start_date',
        'Start of a window with room for the whole lease: a later start for '
        'the requested length, or the start of a shorter lease; null if no '
        'such window is known',
        None, DATE, itemgetter('start'),
    ),
    Field(
        'end_date',
        'End of that window; for a change, the latest end with room; null if '
        'there is none',
        None, DATE, itemgetter('end'),
    ),
)
_NOT_SHOWN = '; null if the caller may not see it, or if there is none'
_OBSTACLE = Object(
    Field(
        'kind',
        'What takes the hosts: `lease`, `offer` (a held offer), `server` (a '
        'server without a lease), `maintenance`, or `closed` (the host has '
        'not come yet, or is gone)',
        bar.LEASE,
        Type({'enum': [
            bar.LEASE, bar.OFFER, bar.SERVER,
            MAINTENANCE, bar.CLOSED,
        ]}),
    ),
    Field('mine', 'Whether the project of the lease has it', True, BOOLEAN),
    Field(
        'name', 'Name of the lease or of the maintenance' + _NOT_SHOWN,
        'night-run', TEXT_OR_NULL,
    ),
    Field('lease_id', meaning.LEASE_ID + _NOT_SHOWN, _ID, TEXT_OR_NULL),
    Field('server_id', 'ID of the server' + _NOT_SHOWN, None, TEXT_OR_NULL),
    Field(
        'host', 'Name of the host; null unless the caller may see the names '
        'of hosts', None, TEXT_OR_NULL,
    ),
    Field('hosts', 'Number of the hosts', 1, INTEGER),
    Field(
        'end_date', 'End, the last one if there are several; null if there is '
        'none', 1767232800, DATE, itemgetter('end'),
    ),
)
IN_THE_WAY = (
    Field(
        'in_the_way',
        'What takes hosts in the requested window, if a lease is refused for '
        'lack of room: for a caller that may see the names of hosts, on each '
        'host; else for each lease and server of the project and for each '
        'maintenance, and for those of all other projects together',
        type=Many(_OBSTACLE), since=microversion.V1_1, required=False,
    ),
    Field(
        'in_the_way_left_out', 'Number of entries that `in_the_way` leaves '
        'out', 0, INTEGER, since=microversion.V1_1, required=False,
    ),
)

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
    *WINDOW, Field('held_until', _HELD_UNTIL, 1767226200, DATE),
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
)
WINDOW_OFFER = Object(
    Field(
        'id',
        'Id of the offer, and of the lease once accepted; null if the offer '
        'is not held',
        _ID, TEXT_OR_NULL,
    ),
    *WINDOW,
    Field(
        'held_until', f'{_HELD_UNTIL}; null if the offer is not held',
        1767226200, DATE,
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
        None, DATE,
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
        type=lease.Reservations(new, least=1),
    ),
    lease.alternatives(10),
    Field('duration', 'Least length of the lease', type=lease.DURATION),
    Field(
        'max_duration',
        'Greatest length of the lease, `duration` if absent: each offer is as '
        'long as there is room',
        type=lease.DURATION, required=False,
    ),
    Field(
        'start_date', 'First start, now if absent', type=lease.DATE,
        required=False,
    ),
    Field(
        'latest_start_date', 'Last start, 90 days after the first if absent',
        type=lease.DATE, required=False,
    ),
    Field(
        'latest_end_date', 'Last end, any end if absent', type=lease.DATE,
        required=False,
    ),
    lease.ALIGN,
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
        type=lease.DURATION, required=False,
    ),
    Field(
        'hold',
        'How long the first offer is held for the project; no offer is held '
        'if absent',
        type=lease.DURATION, required=False,
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
        type=lease.DURATION, required=False,
    ),
)
UPDATE = validation.by_version(_UPDATE.schema)

Body = dict[str, Any]


def search_offers(req: falcon.Request, caller: Caller) -> Body:
    """Search for windows in which a lease would find room, or hold one.

    The windows and the numbers are exact at the revision that the response
    names. Nothing is reserved, unless the request asks to hold an offer: then
    the room of the first offer is reserved until the offer lapses.
    """
    body = lease.plain(req.media)
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
    if hold is None:
        return caller.manager.search_offers(values=values)
    approval = (
        {'approval': True} if caller.version >= microversion.V1_2 else {}
    )
    return caller.manager.hold_offer(values=values, seconds=hold, **approval)


def update_offer(req: falcon.Request, caller: Caller, offer_id: str) -> Body:
    """Approve a held offer, take the approval back, or hold it longer.

    An approved offer can be accepted although limits of approval filters
    forbid the lease.
    """
    body = req.media
    validation.check_body(UPDATE, caller.version, body)
    return caller.manager.update_offer(
        offer_id=offer_id, project_id=caller.scope,
        values={
            'user_id': caller.user_id,
            'approved': body.get('approved'),
            'hold': times.read_duration(body, 'hold'),
        },
    )


def register(app: errors.App) -> None:
    """Make `app` answer a lack of room as each version does."""
    app.add_error_handler(exception.NoRoom, _refuse)


def _refuse(
    req: falcon.Request, resp: falcon.Response,
    error: exception.BlazarSchedError, params: Mapping[str, Any],
) -> None:
    version = req.env[microversion.VERSION]
    # Blazar answers 500, and 400 if resources beside hosts are lacking: its
    # clients take these two for final, and show the message to their users.
    errors.refuse(
        req, resp, error, params, 400 if version < microversion.V1_1 else None
    )
    if version < microversion.V1_1:
        return
    # The offer is incomplete if no search for a start was made.
    offer = getattr(error, 'offer', None) or {}
    known = {offer.get('start'), offer.get('available')} - {None}
    if 'start' in offer and known:
        resp.media['offer'] = OFFER.show(offer, version)
    if offer.get('in_the_way'):
        resp.media |= {
            each.name: each.type.show(offer[each.name], version)
            for each in IN_THE_WAY
        }


HELD_OFFERS = Collection(
    '/v1/offers', Field('offer_id', meaning.OFFER_ID), 'offer', 'offers',
    'blazar:offers', PROJECT_READER_OR_ADMIN, PROJECT_MEMBER_OR_ADMIN,
    HELD_OFFER, since=microversion.V1_1, calls=calls.OFFERS,
)
ROUTES = (
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
