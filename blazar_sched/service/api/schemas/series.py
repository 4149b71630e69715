# SPDX-License-Identifier: Apache-2.0
"""The schemas of requests for series."""

from blazar_sched.domain.series import MAX_OCCURRENCES
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

_FIELDS = (
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
            'type': 'array', 'maxItems': MAX_OCCURRENCES,
            'items': {'type': 'string', 'maxLength': 19},
        }),
        required=False,
    ),
    Field(
        'if_no_room', meaning.IF_NO_ROOM,
        type=Type({'enum': [REFUSE, SKIP], 'default': REFUSE}), required=False,
    ),
)
_UPDATE = Object(
    *(
        Field(each.name, each.meaning, type=each.type, required=False)
        for each in _FIELDS
    ),
    Field(
        'from', 'Local date or time of the first occurrence that changes; '
        'the next occurrence if left out', type=text.up_to(19),
        required=False,
    ),
)
CREATE = validation.by_version(Object(*_FIELDS).schema)
UPDATE = validation.by_version(_UPDATE.schema)
