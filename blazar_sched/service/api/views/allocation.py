# SPDX-License-Identifier: Apache-2.0
"""The view of the allocations of a host."""

from operator import itemgetter

from blazar_sched.service.api import meaning
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.times import WINDOW

_RESERVATION = Object(
    Field(
        'id', meaning.RESERVATION_ID, 'b1f5d6c4-0000-4000-8000-000000000001'
    ),
    Field(
        'lease_id', meaning.LEASE_ID, 'b1f5d6c4-0000-4000-8000-000000000000'
    ),
    *WINDOW,
)
ALLOCATION = Object(
    Field('resource_id', meaning.HOST_ID, '7', TEXT, itemgetter('host_id')),
    Field(
        'reservations', 'Reservations that have allocations on the host',
        type=Many(_RESERVATION),
    ),
    name='Allocation', meaning='The allocations of a host',
)
