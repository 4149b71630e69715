# SPDX-License-Identifier: Apache-2.0
"""The view of the timeline: rows of hosts with bars."""

from blazar_sched.placing import timeline
from blazar_sched.service.api import meaning
from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.field import TEXT_OR_NULL
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.times import WINDOW

_NOT_SHOWN = '; null if the caller may not see it'
_SHARE = Type({'type': 'number', 'minimum': 0, 'maximum': 1})
_SHARE_OR_NULL = Type({
    'type': ['number', 'null'], 'minimum': 0, 'maximum': 1,
})
_SHARES = Type({
    'type': ['array', 'null'],
    'items': {'type': 'number', 'minimum': 0, 'maximum': 1},
})
_COUNTS = Type({'type': 'array', 'items': {'type': 'integer'}})
_COUNTS_OR_NULL = Type({
    'type': ['array', 'null'], 'items': {'type': 'integer'},
})

_BAR = Object(
    Field(
        'kind',
        'What takes the share: `lease`, `offer` (a held offer), `cleaning` '
        '(the cleaning time beside a lease), `server` (a server without a '
        'lease), `relocation` (the place booked for a server that has to '
        'move), `preemptible` (a server that yields to leases), '
        '`maintenance`, or `closed` (the host has not come yet, or is gone)',
        timeline.LEASE, Type({'type': 'string', 'enum': list(timeline.KINDS)}),
    ),
    *WINDOW, Field('share', 'Share of the row, of 1', 0.5, _SHARE),
    Field(
        'track',
        'Track of the bar in its row, from 0; bars of one track do not '
        'overlap',
        0, INTEGER,
    ),
    Field('mine', 'Whether the project of the caller has it', True, BOOLEAN),
    Field(
        'lease_id', meaning.LEASE_ID + _NOT_SHOWN,
        'b1f5d6c4-0000-4000-8000-000000000000', TEXT_OR_NULL,
    ),
    Field(
        'reservation_id', meaning.RESERVATION_ID + _NOT_SHOWN,
        'b1f5d6c4-0000-4000-8000-000000000001', TEXT_OR_NULL,
    ),
    Field('name', meaning.LEASE_NAME + _NOT_SHOWN, 'night-run', TEXT_OR_NULL),
    Field(
        'status', 'Status of the lease' + _NOT_SHOWN, 'PENDING', TEXT_OR_NULL
    ),
    Field(
        'degraded', 'Whether the lease lacks something' + _NOT_SHOWN, False,
        Type({'type': ['boolean', 'null']}),
    ),
    Field('project_id', 'ID of the project' + _NOT_SHOWN, 'p1', TEXT_OR_NULL),
    Field('server_id', 'ID of the server' + _NOT_SHOWN, None, TEXT_OR_NULL),
)
_ROW = Object(
    Field(
        'key',
        'Key of the row, which stays the same; it tells nothing about a host '
        'unless the caller may see the names of hosts',
        '7',
    ),
    Field(
        'name',
        'Name of the host or of the flavor, or value of the property; null if '
        'there is no value, or the caller may not see the names of hosts',
        'compute-7', TEXT_OR_NULL,
    ),
    Field(
        'zone', 'Zone of the host; null for other rows', 'west-1', TEXT_OR_NULL
    ),
    Field('hosts', 'Number of hosts that are in service', 1, INTEGER),
    Field(
        'available', 'Whether any of the hosts is in service', True, BOOLEAN
    ),
    Field(
        'free',
        'Least free share of the row, of 1, in each part: that of the '
        'resource class with the least; null for a flavor',
        [0.5], _SHARES,
    ),
    Field(
        'free_hosts', 'Number of hosts that are free throughout each part',
        [0], _COUNTS,
    ),
    Field(
        'instances',
        'Number of instances of the flavor that have room throughout each '
        'part; null for other rows',
        None, _COUNTS_OR_NULL,
    ),
    Field(
        'bars',
        'Bars that are in the window, by start: of a host all bars, of a zone '
        'or a property those of the leases of the project of the caller',
        type=Many(_BAR),
    ),
    Field('bars_left_out', 'Number of bars that are not shown', 0, INTEGER),
)
TIMELINE = Object(
    *WINDOW, Field('group_by', 'What a row stands for', 'host', TEXT),
    Field('parts', 'Parts of the window', type=Many(Object(*WINDOW))),
    Field('rows', 'Rows of the page', type=Many(_ROW)),
    Field(
        'marker', '`marker` of the next page; null for the last page', None,
        TEXT_OR_NULL,
    ),
    name='Timeline', meaning='What takes the hosts in a window',
)
