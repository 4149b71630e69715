# SPDX-License-Identifier: Apache-2.0
"""The views of a maintenance: in a list, and with what it concerns."""

from blazar_sched.domain import states
from blazar_sched.domain.maintenance import NO_ROOM
from blazar_sched.domain.maintenance import WHYS
from blazar_sched.service.api import meaning
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.times import STAMPS
from blazar_sched.service.api.times import WINDOW

_ID = 'e4a7c2d8-0000-4000-8000-000000000009'
_LEASE_ID = 'b1f5d6c4-0000-4000-8000-000000000000'
_RESERVATION_ID = 'b1f5d6c4-0000-4000-8000-000000000001'
_MOVED = (
    Field('lease_id', meaning.LEASE_ID, _LEASE_ID),
    Field('reservation_id', 'ID of the reservation', _RESERVATION_ID),
    Field(
        'hosts', 'Hypervisor hostnames of the hosts', ['compute-1'], Many(TEXT)
    ),
)
_WHY = Field(
    'why',
    'Why the reservation cannot leave the hosts, in the response to a change: '
    '`servers` if it is open and has servers there, `no_room` if no other '
    'host has room, `changing` if an event of the lease is in progress',
    NO_ROOM, Type({'enum': list(WHYS)}), required=False,
)
_FIELDS = (
    Field('id', meaning.MAINTENANCE_ID, _ID),
    Field('name', meaning.MAINTENANCE_NAME, 'rack 7 power'),
    Field('reason', meaning.REASON, 'the power supply is replaced'),
    *WINDOW,
    Field(
        'status',
        'Status of the maintenance: hosts are vacated from `DRAINING` on, and '
        'closed while it is `ACTIVE`',
        states.MAINTENANCE_PLANNED,
        Type({'enum': list(states.MAINTENANCE_STATUSES)}),
    ),
    Field(
        'hosts', 'Hypervisor hostnames of the hosts', ['compute-1'], Many(TEXT)
    ),
    *STAMPS,
)
LISTED_MAINTENANCE = Object(
    *_FIELDS, name='ListedMaintenance',
    meaning='A window in which nothing may be on some hosts',
)
MAINTENANCE = Object(
    *_FIELDS,
    Field(
        'moved',
        'Reservations that have left hosts, in the response to a change',
        type=Many(Object(*_MOVED)), required=False,
        get=lambda item: item.get('moved'),
    ),
    Field(
        'in_the_way',
        'Reservations that have allocations on the hosts in the window',
        type=Many(Object(*_MOVED, _WHY)),
    ),
    Field(
        'servers',
        'Number of servers on the hosts that do not end before the start', 41,
        INTEGER,
    ),
    name='Maintenance',
    meaning=(
        'A window in which nothing may be on some hosts, with the '
        'reservations and servers that it concerns'
    ),
)
