# SPDX-License-Identifier: Apache-2.0
"""Offers: the search for windows, held offers, and the offer of a refusal."""

from collections.abc import Mapping
from typing import Any

import falcon

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain.lease import NOW
from blazar_sched.service.api import errors
from blazar_sched.service.api import meaning
from blazar_sched.service.api import microversion
from blazar_sched.service.api import reservation
from blazar_sched.service.api import times
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.collection import Collection
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.route import Answer
from blazar_sched.service.api.route import Route
from blazar_sched.service.api.rule import ADMIN
from blazar_sched.service.api.rule import PROJECT_MEMBER_OR_ADMIN
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.rule import Rule
from blazar_sched.service.api.schemas import lease as lease_schemas
from blazar_sched.service.api.schemas import offer as schemas
from blazar_sched.service.api.schemas.reservation import with_defaults
from blazar_sched.service.api.views.offer import HELD_OFFER
from blazar_sched.service.api.views.offer import IN_THE_WAY
from blazar_sched.service.api.views.offer import OFFER
from blazar_sched.service.api.views.offer import OFFERS
from blazar_sched.service.bus import calls

Body = dict[str, Any]


def search_offers(req: falcon.Request, caller: Caller) -> Body:
    """Search for windows in which a lease would find room, or hold one.

    The windows and the numbers are exact at the revision that the response
    names. Nothing is reserved, unless the request asks to hold an offer: then
    the room of the first offer is reserved until the offer lapses.
    """
    body = lease_schemas.plain(req.media)
    validation.check_body(schemas.SEARCH, caller.version, body)
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
        'best': body.get('best', schemas.EARLIEST),
        'limit': body.get('limit', schemas.DEFAULT_OFFERS),
        'distance': times.read_duration(
            {'distance': schemas.DEFAULT_DISTANCE, **body}, 'distance'
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
    validation.check_body(schemas.UPDATE, caller.version, body)
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
        Answer(OFFERS), since=HELD_OFFERS.since, body=schemas.SEARCH,
        also=reservation.RULES,
    ),
    HELD_OFFERS.to_show('Show a held offer.'),
    Route(
        'PUT', f'{HELD_OFFERS.path}/{{offer_id}}', update_offer,
        Rule('blazar:offers:approve', ADMIN), Answer(HELD_OFFER, 'offer'),
        since=microversion.V1_2, variable=HELD_OFFERS.id, body=schemas.UPDATE,
    ),
    HELD_OFFERS.to_delete(
        'Delete a held offer, so that its room is free again.'
    ),
)
