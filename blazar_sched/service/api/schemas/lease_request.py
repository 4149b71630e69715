# SPDX-License-Identifier: Apache-2.0
"""The schema of a lease request."""

from blazar_sched.domain.lease_request import NORMAL
from blazar_sched.domain.lease_request import PRIORITIES
from blazar_sched.service.api import meaning
from blazar_sched.service.api import validation
from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.schemas import reservation
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.schemas.lease import DATE
from blazar_sched.service.api.schemas.lease import DURATION
from blazar_sched.service.api.schemas.lease import Reservations

_CREATE = Object(
    Field('name', meaning.LEASE_NAME, type=Type(text.line(80))),
    Field(
        'reservations', meaning.RESERVATIONS,
        type=Reservations(reservation.new, least=1),
    ),
    Field('duration', 'Length of the lease', type=DURATION),
    Field(
        'start_date', f'{meaning.FIRST_OF_STARTS}, now if absent', type=DATE,
        required=False,
    ),
    Field('latest_start_date', meaning.LAST_OF_STARTS, type=DATE),
    Field(
        'wait_until',
        f'{meaning.WAIT_UNTIL}, `latest_start_date` if absent', type=DATE,
        required=False,
    ),
    Field(
        'priority', f'{meaning.PRIORITY}; the policy decides who may ask for '
        'more than `normal`',
        type=Type({'enum': list(PRIORITIES), 'default': NORMAL}),
        required=False,
    ),
    Field('flexible', meaning.FLEXIBLE, type=BOOLEAN, required=False),
)
CREATE = validation.by_version(_CREATE.schema)
