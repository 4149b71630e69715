# SPDX-License-Identifier: Apache-2.0
"""Series: the routes, with their schemas and views."""

from operator import itemgetter
from typing import Any
from typing import cast

import falcon

from blazar_sched.parts.series import calls
from blazar_sched.parts.series.series import MAX_OCCURRENCES
from blazar_sched.parts.series.series import REFUSE
from blazar_sched.parts.series.series import SKIP
from blazar_sched.service.api import dry_run
from blazar_sched.service.api import idempotency
from blazar_sched.service.api import meaning
from blazar_sched.service.api import microversion
from blazar_sched.service.api import requirement
from blazar_sched.service.api import reservation
from blazar_sched.service.api import times
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.collection import Collection
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.field import TEXT_OR_NULL
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.idempotency import HEADERS
from blazar_sched.service.api.rule import PROJECT_MEMBER_OR_ADMIN
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.schemas import lease
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.schemas.reservation import new
from blazar_sched.service.api.schemas.reservation import with_defaults
from blazar_sched.service.api.times import DATE_OR_NULL
from blazar_sched.service.api.times import STAMPS
from blazar_sched.service.api.times import WINDOW

_NAME = 'Name of the series, with which the names of its leases begin'
_RRULE = (
    'Rule of RFC 5545 for the starts, as `FREQ=WEEKLY;BYDAY=MO,WE;COUNT=24`, '
    'in local time'
)
_TIME_ZONE = 'Time zone of the rule, as `Europe/Berlin`'
_FIRST_START = 'First start, in local time, as `2030-01-07T09:00`'
_EXCEPT = 'Dates, or local starts, of occurrences to leave out'
_IF_NO_ROOM = (
    'What is done if an occurrence has no room when the series is created: '
    '`refuse` refuses the request, `skip` leaves the occurrence out'
)
_OCCURRENCE = Object(
    Field('occurrence', meaning.OCCURRENCE, '2030-01-07T09:00', TEXT), *WINDOW,
    Field(
        'lease_id', 'ID of the lease; null if there is no room', None,
        TEXT_OR_NULL,
    ),
    Field(
        'status', 'Status of the lease; null if there is no room', None,
        TEXT_OR_NULL,
    ),
)
_FIELDS = (
    Field(
        'id', meaning.SERIES_ID, 'e4a7c2d8-0000-4000-8000-000000000007', TEXT
    ),
    Field('name', _NAME, 'course', TEXT),
    Field('project_id', 'ID of the project that owns the series', 'p1', TEXT),
    Field('user_id', 'ID of the user who created the series', 'alice', TEXT),
    Field('rrule', _RRULE, 'FREQ=WEEKLY;COUNT=12', TEXT),
    Field('time_zone', _TIME_ZONE, 'Europe/Berlin', TEXT),
    Field('start', _FIRST_START, '2030-01-07T09:00', TEXT),
    Field('duration', 'Length of each lease, in seconds', 28800, INTEGER),
    Field(
        'except', _EXCEPT, ['2030-02-11'],
        Type({'type': 'array', 'items': {'type': 'string'}}),
        itemgetter('except_dates'),
    ),
    Field('if_no_room', _IF_NO_ROOM, 'refuse', TEXT),
    Field(
        'booked_until',
        'Start of the first occurrence that is still to be booked; null if '
        'there is none',
        1767229200, DATE_OR_NULL,
    ),
    *STAMPS,
)
LISTED_SERIES = Object(
    *_FIELDS, name='ListedSeries', meaning='Leases that recur'
)
SERIES = Object(
    *_FIELDS,
    Field(
        'leases',
        'Occurrences that are booked, and that are to be booked as soon as '
        'there is room',
        type=Many(_OCCURRENCE),
    ),
    name='Series',
    meaning='Leases that recur, with the leases that are booked',
    columns=('id', 'name', 'rrule', 'start', 'time_zone', 'booked_until'),
)
_NEW = (
    Field('name', _NAME, type=Type(text.line(60))),
    Field('rrule', _RRULE, type=text.up_to(255)),
    Field('time_zone', _TIME_ZONE, type=text.up_to(64)),
    Field('start', _FIRST_START, type=text.up_to(19)),
    Field('duration', 'Length of each lease', type=lease.DURATION),
    Field(
        'reservations', 'Reservations of each lease',
        type=lease.Reservations(new, least=1),
    ),
    Field(
        'except', _EXCEPT,
        type=Type({
            'type': 'array', 'maxItems': MAX_OCCURRENCES,
            'items': {'type': 'string', 'maxLength': 19},
        }),
        required=False,
    ),
    Field(
        'if_no_room', _IF_NO_ROOM,
        type=Type({'enum': [REFUSE, SKIP], 'default': REFUSE}), required=False,
    ),
)
_CHANGED = Object(
    *(
        Field(each.name, each.meaning, type=each.type, required=False)
        for each in _NEW
    ),
    Field(
        'from', 'Local date or time of the first occurrence that changes; '
        'the next occurrence if left out', type=text.up_to(19),
        required=False,
    ),
)
_CREATE = validation.by_version(Object(*_NEW).schema)
_UPDATE = validation.by_version(_CHANGED.schema)
# The fields that are passed on as they are.
_PLAIN = ('name', 'rrule', 'time_zone', 'start', 'if_no_room')

Body = dict[str, Any]


def create_series(req: falcon.Request, caller: Caller) -> Body:
    """Create a series, and book its occurrences of the next time.

    All of the occurrences that are to be booked now are booked, or nothing is;
    with `skip`, those that have room.
    """
    only_asks = dry_run.argument(req)
    body = lease.plain(req.media)
    validation.check_body(_CREATE, caller.version, body)
    return cast(calls.Calls, caller.manager).create_series(
        values={
            'project_id': caller.project_id,
            'user_id': caller.user_id,
            'except_dates': [],
            'if_no_room': REFUSE,
            **_values(caller, body),
        },
        names=requirement.sees_host_names(caller), **only_asks,
        **idempotency.argument(req, bool(only_asks)),
    )


def update_series(req: falcon.Request, caller: Caller, series_id: str) -> Body:
    """Change a series from an occurrence on.

    The leases that have not started are replaced where the change concerns
    their window or their reservations; the other leases stay.
    """
    only_asks = dry_run.argument(req)
    body = lease.plain(req.media)
    validation.check_body(_UPDATE, caller.version, body)
    return cast(calls.Calls, caller.manager).update_series(
        series_id=series_id, project_id=caller.scope,
        values=_values(caller, body), since=body.get('from'),
        # A manager of the release before accepts None only.
        names=requirement.sees_host_names(caller) or None, **only_asks,
    )


def _values(caller: Caller, body: Body) -> Body:
    """Return the fields of a series that a request has."""
    values = {name: body[name] for name in _PLAIN if name in body}
    if 'duration' in body:
        values['duration'] = times.read_duration(body, 'duration')
    if 'except' in body:
        values['except_dates'] = body['except']
    if 'reservations' in body:
        values['reservations'] = reservation.read(
            caller, [with_defaults(each) for each in body['reservations']]
        )
    return values


ALL_SERIES = Collection(
    '/v1/series', Field('series_id', meaning.SERIES_ID), 'series', 'series',
    'blazar:series', PROJECT_READER_OR_ADMIN, PROJECT_MEMBER_OR_ADMIN, SERIES,
    LISTED_SERIES, microversion.V1_1, calls.ALL_SERIES,
)
ROUTES = (
    ALL_SERIES.to_list(
        'List the series of the project, or of all projects for an admin.',
    ),
    ALL_SERIES.to_create(
        create_series, _CREATE, query=lease.CHANGING_QUERY, headers=HEADERS,
        also=reservation.RULES,
    ),
    ALL_SERIES.to_show('Show a series, with its occurrences.'),
    ALL_SERIES.to_update(
        update_series, _UPDATE, query=lease.CHANGING_QUERY,
        also=reservation.RULES,
    ),
    ALL_SERIES.to_delete(
        'Delete a series with its leases that have not started.'
    ),
)
