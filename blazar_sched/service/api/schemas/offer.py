# SPDX-License-Identifier: Apache-2.0
"""The schemas of requests for offers."""

from blazar_sched.service.api import meaning
from blazar_sched.service.api import validation
from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.schemas import lease
from blazar_sched.service.api.schemas import reservation
from blazar_sched.service.api.schemas.lease import ALIGN
from blazar_sched.service.api.schemas.lease import DATE
from blazar_sched.service.api.schemas.lease import DURATION
from blazar_sched.service.api.schemas.lease import Reservations

MAX_OFFERS = 20
DEFAULT_OFFERS = 6
EARLIEST = 'earliest'
BEST = [EARLIEST, 'longest', 'most']
# The least distance between the starts of two offers.
DEFAULT_DISTANCE = '1h'

_RESERVATIONS = Reservations(reservation.new, least=1)


_SEARCH = Object(
    Field('reservations', meaning.RESERVATIONS, type=_RESERVATIONS),
    lease.alternatives(10),
    Field('duration', 'Least length of the lease', type=DURATION),
    Field(
        'max_duration',
        'Greatest length of the lease, `duration` if absent: each offer is as '
        'long as there is room',
        type=DURATION, required=False,
    ),
    Field(
        'start_date', 'First start, now if absent', type=DATE, required=False
    ),
    Field(
        'latest_start_date', 'Last start, 90 days after the first if absent',
        type=DATE, required=False,
    ),
    Field(
        'latest_end_date', 'Last end, any end if absent', type=DATE,
        required=False,
    ),
    ALIGN,
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
        type=DURATION, required=False,
    ),
    Field(
        'hold',
        'How long the first offer is held for the project; no offer is held '
        'if absent',
        type=DURATION, required=False,
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
        type=DURATION, required=False,
    ),
)
UPDATE = validation.by_version(_UPDATE.schema)
