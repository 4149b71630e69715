# SPDX-License-Identifier: Apache-2.0
"""Views of offers: the amounts and the windows for which there is room."""

from operator import itemgetter

from blazar_sched.domain.host import MAINTENANCE
from blazar_sched.placing import timeline
from blazar_sched.service.api import meaning
from blazar_sched.service.api import microversion
from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import INTEGER_OR_NULL
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.field import TEXT_OR_NULL
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.times import DATE
from blazar_sched.service.api.times import WINDOW

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
        timeline.LEASE,
        Type({'enum': [
            timeline.LEASE, timeline.OFFER, timeline.SERVER,
            MAINTENANCE, timeline.CLOSED,
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
