# SPDX-License-Identifier: Apache-2.0
"""Calendars: the routes, and what is at a link.

Programs that read calendars cannot send a token of Keystone: whoever knows the
link of a calendar reads the calendar. The manager gets the digest of the token
in the link, and the log has neither.
"""

from collections.abc import Iterable
import datetime
import hashlib
import importlib.metadata
import json
import re
import secrets
import time
from typing import Any
from typing import cast
from wsgiref import types as wsgi

import falcon
import icalendar
from oslo_config import cfg
from oslo_context import context

from blazar_sched.domain import states
from blazar_sched.domain.window import FOREVER
from blazar_sched.parts.calendar import calls
from blazar_sched.parts.calendar import FUTURE
from blazar_sched.service import turns
from blazar_sched.service.api import errors
from blazar_sched.service.api import etag
from blazar_sched.service.api import microversion
from blazar_sched.service.api import request_id
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.caller import Manager
from blazar_sched.service.api.collection import Collection
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT_OR_NULL
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.route import Beside
from blazar_sched.service.api.rule import PROJECT_MEMBER_OR_ADMIN
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.times import DATE
from blazar_sched.service.bus.calls import sent_by

PATH = '/v1/calendars'
# The path of a link.
LINK = f'{PATH}/{{token}}.ics'
_DAY = 86400
_VERSION = importlib.metadata.version('blazar-sched')
_LINK = re.compile(f'{PATH}/[^/]*[.]ics')
_MAX_NAME = 255
_ID = 'ID of the calendar'
_NAME = 'Name of the calendar, which programs show'

CALENDAR = Object(
    Field('id', _ID, 'e4a7c2d8-0000-4000-8000-00000000000d'),
    Field('project_id', 'ID of the project', 'p1'),
    Field('name', _NAME, 'team'),
    Field(
        'url',
        'Link at which anyone reads the calendar without a token, in the '
        'response to the creation only; null otherwise',
        'https://reservation.example.org/v1/calendars/'
        'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk.ics',
        TEXT_OR_NULL, lambda calendar: calendar.get('url'),
    ),
    Field('created_at', 'Time of creation', 1767225600, DATE), name='Calendar',
    meaning='A link at which programs read the leases of a project',
    columns=('id', 'name', 'created_at'),
)
_CREATE = validation.by_version(
    Object(Field('name', _NAME, type=Type(text.line(_MAX_NAME)))).schema
)


def digest(token: str) -> str:
    """Return the digest by which the calendar of a token is found.

    How long the search takes says nothing of the tokens that there are: who
    guesses a token cannot choose its digest.
    """
    return hashlib.sha256(token.encode()).hexdigest()


def create_calendar(req: falcon.Request, caller: Caller) -> dict[str, Any]:
    """Create a calendar; only the response has its link."""
    body = req.media
    validation.check_body(_CREATE, caller.version, body)
    token = secrets.token_urlsafe(32)
    made = cast(calls.Calls, caller.manager).create_calendar(values={
        **body, 'project_id': caller.project_id, 'digest': digest(token),
    })
    return {**made, 'url': req.prefix + LINK.format(token=token)}


CALENDARS = Collection(
    PATH, Field('calendar_id', _ID), 'calendar', 'calendars',
    'blazar:calendars', PROJECT_READER_OR_ADMIN, PROJECT_MEMBER_OR_ADMIN,
    CALENDAR, since=microversion.V1_1, calls=calls.CALENDARS,
)
ROUTES = (
    CALENDARS.to_list(
        'List the calendars of the project, or of all projects for an admin.',
    ),
    CALENDARS.to_create(create_calendar, _CREATE),
    CALENDARS.to_show('Show a calendar, without its link.'),
    CALENDARS.to_delete('Delete a calendar: its link is not valid any more.'),
)


class Links:
    """A WSGI layer that answers at the links, without a token of Keystone."""

    def __init__(
        self, application: wsgi.WSGIApplication, conf: cfg.ConfigOpts,
        manager: Manager,
    ) -> None:
        self._application = application
        self._links: errors.App = falcon.App()
        errors.register(self._links)
        # The other threads of the API remain for callers with a token.
        most = max(1, conf.api.threads // 4)
        self._links.add_route(LINK, _Link(manager, most))

    def __call__(
        self, environ: wsgi.WSGIEnvironment, start_response: wsgi.StartResponse
    ) -> Iterable[bytes]:
        if not _LINK.fullmatch(environ['PATH_INFO']):
            return self._application(environ, start_response)
        with_token = dict(environ)
        # The outer layers log the path.
        environ['PATH_INFO'] = LINK
        return self._links(with_token, start_response)


class _Link:
    """What is at the link of a calendar."""

    def __init__(self, manager: Manager, most: int) -> None:
        self._manager = manager
        self._most = most
        self._turns = turns.Turns('reads of calendars')

    def on_get(
        self, req: falcon.Request, resp: falcon.Response, token: str
    ) -> None:
        of_token = digest(token)
        # Not while the content is sent: a slow reader keeps no turn.
        with self._turns.take(of_token, max(1, self._most // 2), self._most):
            found = self._calls(req).read_calendar(digest=of_token)
            # What the content is made of, and the program that makes it.
            # The same for a day, so that a reader has the tag for as long.
            until = (int(time.time()) + FUTURE) // _DAY * _DAY
            made_of = json.dumps([found, _VERSION, until], sort_keys=True)
            tag = hashlib.sha256(made_of.encode()).hexdigest()[:16]
            if etag.is_known(req, resp, tag):
                return
            resp.content_type = 'text/calendar; charset=utf-8'
            resp.data = content(found, until)

    on_head = on_get

    def _calls(self, req: falcon.Request) -> calls.Calls:
        ctxt = context.RequestContext(
            request_id=req.env[request_id.LOCAL]
        ).to_dict()
        return cast(calls.Calls, sent_by(
            lambda method, **arguments: self._manager.call(
                ctxt, method, **arguments
            )
        ))


LAYERS = (Beside((LINK,), Links),)


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
