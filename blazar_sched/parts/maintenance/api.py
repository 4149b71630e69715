# SPDX-License-Identifier: Apache-2.0
"""Maintenances: the routes, with their schemas and views."""

import dataclasses
from typing import Any
from typing import cast

import falcon

from blazar_sched.domain import exception
from blazar_sched.domain.lease import NOW
from blazar_sched.domain.window import FOREVER
from blazar_sched.parts.maintenance import calls
from blazar_sched.parts.maintenance.maintenance import MAX_NAME
from blazar_sched.parts.maintenance.maintenance import MAX_REASON
from blazar_sched.parts.maintenance.maintenance import NO_ROOM
from blazar_sched.parts.maintenance.maintenance import PLANNED
from blazar_sched.parts.maintenance.maintenance import STATUSES
from blazar_sched.parts.maintenance.maintenance import WHYS
from blazar_sched.service.api import dry_run
from blazar_sched.service.api import meaning
from blazar_sched.service.api import microversion
from blazar_sched.service.api import times
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.collection import Collection
from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.rule import ADMIN
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.schemas.lease import CHANGING_QUERY
from blazar_sched.service.api.schemas.lease import date_or_null
from blazar_sched.service.api.times import STAMPS
from blazar_sched.service.api.times import WINDOW

# The most hosts that a request names.
MAX_HOSTS = 10_000

_ID = 'ID of the maintenance'
_NAME = 'Name of the maintenance'
_REASON = 'Reason, which the owners of leases on the hosts are told'
_HOSTS = 'Hypervisor hostnames of the hosts'
_MOVED = (
    Field(
        'lease_id', meaning.LEASE_ID, 'b1f5d6c4-0000-4000-8000-000000000000'
    ),
    Field(
        'reservation_id', meaning.RESERVATION_ID,
        'b1f5d6c4-0000-4000-8000-000000000001',
    ),
    Field('hosts', _HOSTS, ['compute-1'], Many(TEXT)),
)
_WHY = Field(
    'why',
    'Why the reservation cannot leave the hosts, in the response to a change: '
    '`servers` if it is open and has servers there, `no_room` if no other '
    'host has room, `changing` if an event of the lease is in progress',
    NO_ROOM, Type({'enum': list(WHYS)}), required=False,
)
_FIELDS = (
    Field('id', _ID, 'e4a7c2d8-0000-4000-8000-000000000009'),
    Field('name', _NAME, 'rack 7 power'),
    Field('reason', _REASON, 'the power supply is replaced'),
    *WINDOW,
    Field(
        'status',
        'Status of the maintenance: hosts are vacated from `DRAINING` on, and '
        'closed while it is `ACTIVE`',
        PLANNED, Type({'enum': list(STATUSES)}),
    ),
    Field('hosts', _HOSTS, ['compute-1'], Many(TEXT)),
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
    meaning='A window in which nothing may be on some hosts, with the '
    'reservations and servers that it concerns',
    columns=('id', 'name', 'status', 'start_date', 'end_date', 'hosts'),
)

_NAMED = Field('name', _NAME, type=Type(text.line(MAX_NAME)))
_TOLD = Field(
    'reason', _REASON, type=Type(text.line(MAX_REASON)), required=False
)
_START = Field(
    'start_date', meaning.START, type=date_or_null('now'), required=False
)
_END = Field(
    'end_date', meaning.END, type=date_or_null('not known yet'), required=False
)
_FORCE = Field(
    'force',
    'Whether to go on although reservations cannot leave the hosts; their '
    'leases are degraded then',
    type=BOOLEAN, required=False,
)
_NEW = Object(
    _NAMED, _TOLD, _START, _END,
    Field(
        'hosts', _HOSTS,
        type=Type({
            'type': 'array', 'minItems': 1, 'maxItems': MAX_HOSTS,
            'items': text.line(255),
        }),
        required=False,
    ),
    Field(
        'resource_properties',
        'Requirement that the hosts meet at this time, in place of `hosts`, '
        'as `["==", "$rack", "7"]`',
        type=text.up_to(4096), required=False,
    ),
    _FORCE,
)
_CHANGED = Object(
    dataclasses.replace(_NAMED, required=False), _TOLD, _START, _END, _FORCE
)
_CREATE = validation.by_version(_NEW.schema)
_UPDATE = validation.by_version(_CHANGED.schema)

Body = dict[str, Any]


def create_maintenance(req: falcon.Request, caller: Caller) -> Body:
    """Close hosts over a window, and move reservations off the hosts.

    The request is refused if reservations cannot leave the hosts, unless
    `force` is true. A dry run is never refused for that: it shows what would
    be moved and what would be in the way.
    """
    only_asks = dry_run.argument(req)
    body = req.media
    validation.check_body(_CREATE, caller.version, body)
    hosts, requirement = body.get('hosts'), body.get('resource_properties')
    if (hosts is None) == (requirement is None):
        raise exception.InvalidInput(
            'hosts or resource_properties is required' if hosts is None
            else 'hosts are chosen by hosts or by resource_properties, not by '
            'both',
            field='hosts',
        )
    return cast(calls.Calls, caller.manager).create_maintenance(
        values={
            'name': body['name'],
            'reason': body.get('reason', ''),
            'start': _start(body),
            'end': _end(body),
            'hosts': hosts,
            'resource_properties': requirement,
        },
        force=body.get('force', False), **only_asks,
    )


def update_maintenance(
    req: falcon.Request, caller: Caller, maintenance_id: str
) -> Body:
    """Change the name, the reason or the window of a maintenance."""
    only_asks = dry_run.argument(req)
    body = req.media
    validation.check_body(_UPDATE, caller.version, body)
    values = {name: body[name] for name in ('name', 'reason') if name in body}
    if 'start_date' in body:
        values['start'] = _start(body)
    if 'end_date' in body:
        values['end'] = _end(body)
    return cast(calls.Calls, caller.manager).update_maintenance(
        maintenance_id=maintenance_id, values=values,
        force=body.get('force', False), **only_asks,
    )


def _start(body: Body) -> int | None:
    """Return the start in epoch seconds, None for now."""
    if body.get('start_date') == NOW:
        return None
    return times.read_time(body, 'start_date')


def _end(body: Body) -> int:
    end = times.read_time(body, 'end_date')
    return FOREVER if end is None else end


MAINTENANCES = Collection(
    '/v1/maintenances', Field('maintenance_id', _ID), 'maintenance',
    'maintenances', 'blazar:maintenances', ADMIN, ADMIN, MAINTENANCE,
    LISTED_MAINTENANCE, microversion.V1_1, calls.MAINTENANCES,
)
ROUTES = (
    MAINTENANCES.to_list('List the maintenances.'),
    MAINTENANCES.to_create(create_maintenance, _CREATE, query=CHANGING_QUERY),
    MAINTENANCES.to_show(
        'Show a maintenance, with the reservations that are in its way.'
    ),
    MAINTENANCES.to_update(update_maintenance, _UPDATE, query=CHANGING_QUERY),
    MAINTENANCES.to_delete(
        'End or cancel a maintenance: its hosts are open again.'
    ),
)
