# SPDX-License-Identifier: Apache-2.0
"""The timeline: the route, its query and the view."""

import json
from typing import cast

import falcon

from blazar_sched.domain import requirements
from blazar_sched.domain.lease import NOW
from blazar_sched.parts.timeline.calls import Calls
from blazar_sched.parts.timeline.row import GROUPINGS
from blazar_sched.placing import bar
from blazar_sched.service.api import etag
from blazar_sched.service.api import listing
from blazar_sched.service.api import meaning
from blazar_sched.service.api import microversion
from blazar_sched.service.api import requirement
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.capacity import MAX_PARTS
from blazar_sched.service.api.etag import Tagged
from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.field import TEXT_OR_NULL
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.microversion import V1_1
from blazar_sched.service.api.route import Answer
from blazar_sched.service.api.route import Route
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.rule import Rule
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.schemas.lease import DATE
from blazar_sched.service.api.schemas.reservation import REQUIREMENT
from blazar_sched.service.api.times import BOUNDED
from blazar_sched.service.api.times import WINDOW

_NOT_SHOWN = '; null if the caller may not see it'
_SHARE = Type({'type': 'number', 'minimum': 0, 'maximum': 1})
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
        bar.LEASE, Type({'type': 'string', 'enum': list(bar.KINDS)}),
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
    *BOUNDED, Field('group_by', 'What a row stands for', 'host', TEXT),
    Field('parts', 'Parts of the window', type=Many(Object(*BOUNDED))),
    Field('rows', 'Rows of the page', type=Many(_ROW)),
    Field(
        'marker', '`marker` of the next page; null for the last page', None,
        TEXT_OR_NULL,
    ),
    name='Timeline', meaning='What takes the hosts in a window',
)

MAX_LIMIT = 500
MAX_TEXT = 255
QUERY = (
    Field(
        'start_date', 'Start of the window, the minute of now if absent',
        type=DATE,
    ),
    Field(
        'end_date', 'End of the window, a week after the start if absent',
        type=DATE,
    ),
    Field(
        'group_by',
        'What a row stands for: `host`, `zone`, `flavor`, or `$` and the name '
        'of a property',
        type=Type({
            'type': 'string', 'minLength': 1, 'maxLength': MAX_TEXT,
            'default': 'host',
        }),
    ),
    Field('resource_properties', meaning.REQUIREMENT, type=REQUIREMENT),
    Field(
        'resource_class',
        'Resource class, such as `VCPU` or `CUSTOM_GPU`, of which shares are '
        'shown, on the hosts that have the class; if absent, on all hosts, of '
        'the class of which the most is taken',
        type=text.up_to(MAX_TEXT), since=V1_1,
    ),
    Field(
        'parts',
        'Number of parts of the window for which each row shows what is free; '
        'at most one part per second; if absent, none for hosts and 1 for '
        'other rows',
        type=Type({'type': 'integer', 'minimum': 1, 'maximum': MAX_PARTS}),
    ),
    Field(
        'limit', 'Maximum number of rows, which a page may not reach',
        type=Type({
            'type': 'integer', 'minimum': 1, 'maximum': MAX_LIMIT,
            'default': 100,
        }),
    ),
    Field(
        'marker', '`marker` of the previous page', type=text.up_to(MAX_TEXT)
    ),
)
HEADERS = (
    Field(
        'If-None-Match',
        'Entity tags of pages that the caller has, or `*` for any tag; a page '
        'with such a tag is answered with 304, without a body',
        type=TEXT,
    ),
)


def show_timeline(req: falcon.Request, caller: Caller) -> Tagged:
    """Show what takes the hosts in a window, row by row.

    A row stands for a host, a zone, a value of a property, or a flavor. Of
    other projects the caller sees only that something is taken, unless the
    policy lets the caller see names.
    """
    names = requirement.sees_host_names(caller)
    properties = req.get_param('resource_properties', default='')
    requirement.check(caller, properties, 'resource_properties', names)
    found = cast(Calls, caller.manager).get_timeline(
        known=etag.known(req), project_id=caller.project_id, names=names,
        group_by=_group_by(req, caller, names), start=_start(req),
        end=listing.time(req, 'end_date'), resource_properties=properties,
        resource_class=listing.text(req, 'resource_class', MAX_TEXT),
        parts=listing.number(req, 'parts', MAX_PARTS),
        limit=listing.number(req, 'limit', MAX_LIMIT),
        marker=listing.text(req, 'marker', MAX_TEXT),
    )
    return Tagged(found['tag'], found['timeline'])


def _start(req: falcon.Request) -> int | None:
    """Return the start of the window, None for the minute of now."""
    if req.get_param('start_date') == NOW:
        return None
    return listing.time(req, 'start_date')


def _group_by(req: falcon.Request, caller: Caller, names: bool) -> str:
    """Return what rows stand for: one of GROUPINGS, or `$` and a property."""
    asked = listing.text(req, 'group_by', MAX_TEXT) or GROUPINGS[0]
    if asked in GROUPINGS:
        return asked
    name = asked.removeprefix('$').removeprefix(requirements.SCOPE)
    wanted = json.dumps(['==', f'${name}', ''])
    requirement.check(caller, wanted, 'group_by', names)
    return f'${name}'


ROUTES = (
    Route(
        'GET', '/v1/timeline', show_timeline,
        Rule(
            'blazar:timeline:get', PROJECT_READER_OR_ADMIN,
            'Show the timeline of hosts, without the names of hosts and the '
            'leases of other projects.',
        ),
        Answer(TIMELINE, 'timeline'), since=microversion.V1_1,
        query=QUERY, headers=HEADERS,
        also=(requirement.GET_NAMES,),
    ),
)
