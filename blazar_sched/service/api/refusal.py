# SPDX-License-Identifier: Apache-2.0
"""The refusal of a lease for lack of room: its offer, and what is in the way.
"""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import falcon

from blazar_sched.domain import exception
from blazar_sched.domain.host import MAINTENANCE
from blazar_sched.placing import bar
from blazar_sched.service.api import errors
from blazar_sched.service.api import meaning
from blazar_sched.service.api import microversion
from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import INTEGER_OR_NULL
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT_OR_NULL
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.times import DATE_OR_NULL

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
        None, DATE_OR_NULL, itemgetter('start'),
    ),
    Field(
        'end_date',
        'End of that window; for a change, the latest end with room; null if '
        'there is none',
        None, DATE_OR_NULL, itemgetter('end'),
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
    Field(
        'lease_id', meaning.LEASE_ID + _NOT_SHOWN,
        'c7f1a2d4-0000-4000-8000-000000000009', TEXT_OR_NULL,
    ),
    Field('server_id', 'ID of the server' + _NOT_SHOWN, None, TEXT_OR_NULL),
    Field(
        'host', 'Name of the host; null unless the caller may see the names '
        'of hosts', None, TEXT_OR_NULL,
    ),
    Field('hosts', 'Number of the hosts', 1, INTEGER),
    Field(
        'end_date', 'End, the last one if there are several; null if there is '
        'none', 1767232800, DATE_OR_NULL, itemgetter('end'),
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
