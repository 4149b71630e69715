# SPDX-License-Identifier: Apache-2.0
"""The schema of a request for a series."""

from blazar_sched.domain.series import MOST
from blazar_sched.domain.series import REFUSE
from blazar_sched.domain.series import SKIP
from blazar_sched.service.api import meaning
from blazar_sched.service.api import validation
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.schemas import reservation
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.schemas.lease import DURATION
from blazar_sched.service.api.schemas.lease import Reservations

_CREATE = Object(
    Field('name', meaning.SERIES_NAME, type=Type(text.line(60))),
    Field('rrule', meaning.RRULE, type=text.up_to(255)),
    Field('time_zone', meaning.TIME_ZONE, type=text.up_to(64)),
    Field('start', meaning.FIRST_START, type=text.up_to(19)),
    Field('duration', 'Length of each lease', type=DURATION),
    Field(
        'reservations', 'Reservations of each lease',
        type=Reservations(reservation.new, least=1),
    ),
    Field(
        'except', meaning.EXCEPT,
        type=Type({
            'type': 'array', 'maxItems': MOST,
            'items': {'type': 'string', 'maxLength': 19},
        }),
        required=False,
    ),
    Field(
        'if_no_room', meaning.IF_NO_ROOM,
        type=Type({'enum': [REFUSE, SKIP], 'default': REFUSE}),
        required=False,
    ),
)
CREATE = validation.by_version(_CREATE.schema)
