# SPDX-License-Identifier: Apache-2.0
"""Offers: the search for windows, held offers, and the offer of a refusal."""

from collections.abc import Mapping
import functools
from operator import itemgetter
from typing import Any

import falcon

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain.lease import NOW
from blazar_sched.service.api import errors
from blazar_sched.service.api import listing
from blazar_sched.service.api import microversion
from blazar_sched.service.api import reservation
from blazar_sched.service.api import times
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.schemas import offer as schemas
from blazar_sched.service.api.schemas.reservation import with_defaults
from blazar_sched.service.api.views.offer import HELD_OFFER
from blazar_sched.service.api.views.offer import OFFER
from blazar_sched.service.api.views.offer import OFFERS

Body = dict[str, Any]


def search_offers(req: falcon.Request, caller: Caller) -> Body:
    """Search for windows in which a lease would find room.

    The windows and the numbers are exact at the revision that the response
    names. Nothing is reserved, unless the request asks to hold an offer: then
    the room of the first offer is reserved until the offer lapses.
    """
    body = schemas.plain(req.media)
    validation.check_body(schemas.SEARCH, caller.version, body)
    alternatives = [
        [with_defaults(each) for each in reservations]
        for reservations in (
            body['reservations'], *body.get('alternatives', ())
        )
    ]
    for reservations in alternatives:
        reservation.check(caller, reservations)
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
        found = caller.manager.search_offers(values=values)
    else:
        found = caller.manager.hold_offer(values=values, seconds=hold)
    return OFFERS.show(found, caller.version)


def list_offers(req: falcon.Request, caller: Caller) -> Body:
    """List the held offers of the project, or of all projects for an admin.

    The offer that starts first is the first of the list.
    """
    held = listing.whole(
        functools.partial(
            caller.manager.list_offers, project_id=caller.scope
        )
    )
    held.sort(key=itemgetter('start', 'id'))
    return {
        'offers': [HELD_OFFER.show(each, caller.version) for each in held]
    }


def show_offer(req: falcon.Request, caller: Caller, offer_id: str) -> Body:
    """Show a held offer."""
    held = caller.manager.get_offer(
        offer_id=offer_id, project_id=caller.scope
    )
    return {'offer': HELD_OFFER.show(held, caller.version)}


def delete_offer(req: falcon.Request, caller: Caller, offer_id: str) -> None:
    """Delete a held offer, so that its room is free again."""
    caller.manager.delete_offer(offer_id=offer_id, project_id=caller.scope)


def register(app: errors.App) -> None:
    """Make `app` answer a lack of room as each version does."""
    app.add_error_handler(exception.NotEnoughHostsAvailable, _refuse)
    app.add_error_handler(exception.NotEnoughFloatingIPAvailable, _refuse)


def _refuse(
    req: falcon.Request,
    resp: falcon.Response,
    error: exception.BlazarSchedError,
    params: Mapping[str, Any],
) -> None:
    version = req.env[microversion.VERSION]
    # Blazar answers 500, and 400 where floating IPs are lacking: its clients
    # take these two for final, and show the message to their users.
    errors.refuse(
        req, resp, error, params, 400 if version < microversion.V1_1 else None
    )
    # The offer is incomplete if no search for a start was made.
    offer = getattr(error, 'offer', None) or {}
    known = {offer.get('start'), offer.get('available')} - {None}
    if version >= microversion.V1_1 and 'start' in offer and known:
        resp.media['offer'] = OFFER.show(offer, version)
