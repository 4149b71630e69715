# SPDX-License-Identifier: Apache-2.0
"""The view of a calendar, and what programs read at its link."""

import datetime
from typing import Any

import icalendar

from blazar_sched.domain import states
from blazar_sched.domain.window import FOREVER
from blazar_sched.service.api import meaning
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT_OR_NULL
from blazar_sched.service.api.times import DATE

CALENDAR = Object(
    Field('id', meaning.CALENDAR_ID, 'e4a7c2d8-0000-4000-8000-00000000000d'),
    Field('project_id', 'ID of the project', 'p1'),
    Field('name', meaning.CALENDAR_NAME, 'team'),
    Field(
        'url',
        'Link at which anyone reads the calendar without a token, in the '
        'response to the creation only; null otherwise',
        'https://reservation.example.org/v1/calendars/'
        'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk.ics',
        TEXT_OR_NULL, lambda calendar: calendar.get('url'),
    ),
    Field('created_at', 'Time of creation', 1767225600, DATE),
    name='Calendar',
    meaning='A link at which programs read the leases of a project',
)


def content(found: dict[str, Any], until: int) -> bytes:
    """Return a calendar and its leases as iCalendar (RFC 5545).

    :param until: the end of the event of a lease that has no end: an event
        without an end would be over when it starts
    """
    calendar = icalendar.Calendar()
    calendar.add('VERSION', '2.0')
    calendar.add('PRODID', '-//blazar-sched//EN')
    # As text, in which some characters are escaped.
    calendar.add('X-WR-CALNAME', icalendar.vText(found['name']))
    for lease in found['items']:
        calendar.add_component(_event(lease, until))
    return bytes(calendar.to_ical())


def _event(lease: dict[str, Any], until: int) -> icalendar.Event:
    created = lease['created_at'] or 0
    changed = lease['updated_at'] or created
    is_deleted = lease['status'] == states.LEASE_DELETING
    event = icalendar.Event()
    event.add('UID', lease['id'])
    event.add('DTSTAMP', _time(changed))
    # Each change raises the number, also within one second. A manager of the
    # release before has the seconds alone.
    event.add('SEQUENCE', changed - created + lease.get('changes', 0))
    event.add('STATUS', 'CANCELLED' if is_deleted else 'CONFIRMED')
    event.add('SUMMARY', lease['name'])
    event.add('DTSTART', _time(lease['start']))
    end = lease['end']
    event.add('DTEND', _time(until if end == FOREVER else end))
    return event


def _time(at: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(at, datetime.UTC)
