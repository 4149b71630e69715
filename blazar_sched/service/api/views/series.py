# SPDX-License-Identifier: Apache-2.0
"""The views of a series: in a list, and with its occurrences."""

from operator import itemgetter

from blazar_sched.service.api import meaning
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.field import TEXT_OR_NULL
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.times import DATE
from blazar_sched.service.api.times import STAMPS
from blazar_sched.service.api.times import WINDOW

_ID = 'e4a7c2d8-0000-4000-8000-000000000007'
_TEXTS = Type({'type': 'array', 'items': {'type': 'string'}})
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
    Field('id', meaning.SERIES_ID, _ID, TEXT),
    Field('name', meaning.SERIES_NAME, 'course', TEXT),
    Field('project_id', 'ID of the project that owns the series', 'p1', TEXT),
    Field('user_id', 'ID of the user who created the series', 'alice', TEXT),
    Field('rrule', meaning.RRULE, 'FREQ=WEEKLY;COUNT=12', TEXT),
    Field('time_zone', meaning.TIME_ZONE, 'Europe/Berlin', TEXT),
    Field('start', meaning.FIRST_START, '2030-01-07T09:00', TEXT),
    Field('duration', 'Length of each lease, in seconds', 28800, INTEGER),
    Field(
        'except', meaning.EXCEPT, ['2030-02-11'], _TEXTS,
        itemgetter('except_dates'),
    ),
    Field('if_no_room', meaning.IF_NO_ROOM, 'refuse', TEXT),
    Field(
        'booked_until',
        'Start of the first occurrence that is still to be booked; null if '
        'there is none',
        1767229200, DATE,
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
)
