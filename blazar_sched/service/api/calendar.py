# SPDX-License-Identifier: Apache-2.0
"""Calendars: the handlers of the links, and what is at a link.

Programs that read calendars cannot send a token of Keystone: whoever knows the
link of a calendar reads the calendar. The manager gets the digest of the token
in the link, and the log has neither.
"""

from collections.abc import Iterable
import hashlib
import importlib.metadata
import json
import re
import time
from typing import Any
from wsgiref import types as wsgi

import falcon
from oslo_config import cfg
from oslo_context import context

from blazar_sched.domain import calendar as rules
from blazar_sched.service import turns
from blazar_sched.service.api import errors
from blazar_sched.service.api import etag
from blazar_sched.service.api import meaning
from blazar_sched.service.api import microversion
from blazar_sched.service.api import request_id
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.caller import Manager
from blazar_sched.service.api.collection import Collection
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.rule import PROJECT_MEMBER_OR_ADMIN
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.schemas import calendar as schemas
from blazar_sched.service.api.views import calendar as views
from blazar_sched.service.bus import calls

PATH = '/v1/calendars'
# The path of a link.
LINK = f'{PATH}/{{token}}.ics'
_DAY = 86400
_VERSION = importlib.metadata.version('blazar-sched')
_LINK = re.compile(f'{PATH}/[^/]*[.]ics')


def create_calendar(req: falcon.Request, caller: Caller) -> dict[str, Any]:
    """Create a calendar; only the response has its link."""
    body = req.media
    validation.check_body(schemas.CREATE, caller.version, body)
    token = rules.new_token()
    made = caller.manager.create_calendar(values={
        **body, 'project_id': caller.project_id,
        'digest': rules.digest(token),
    })
    return {**made, 'url': req.prefix + LINK.format(token=token)}


CALENDARS = Collection(
    PATH, Field('calendar_id', meaning.CALENDAR_ID), 'calendar', 'calendars',
    'blazar:calendars', PROJECT_READER_OR_ADMIN, PROJECT_MEMBER_OR_ADMIN,
    views.CALENDAR, since=microversion.V1_1, owned=True,
)
ROUTES = (
    CALENDARS.to_list(
        'List the calendars of the project, or of all projects for an admin.',
        lambda manager: manager.list_calendars,
    ),
    CALENDARS.to_create(create_calendar, schemas.CREATE),
    CALENDARS.to_show(
        'Show a calendar, without its link.',
        lambda manager: manager.get_calendar,
    ),
    CALENDARS.to_delete(
        'Delete a calendar: its link is not valid any more.',
        lambda manager: manager.delete_calendar,
    ),
)


class Links:
    """A WSGI layer that answers at the links, without a token of Keystone."""

    def __init__(
        self,
        application: wsgi.WSGIApplication,
        conf: cfg.ConfigOpts,
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
        digest = rules.digest(token)
        # Not while the content is sent: a slow reader keeps no turn.
        with self._turns.take(digest, max(1, self._most // 2), self._most):
            found = self._calls(req).read_calendar(digest=digest)
            # What the content is made of, and the program that makes it.
            # The same for a day, so that a reader has the tag for as long.
            until = (int(time.time()) + rules.FUTURE) // _DAY * _DAY
            made_of = json.dumps([found, _VERSION, until], sort_keys=True)
            tag = hashlib.sha256(made_of.encode()).hexdigest()[:16]
            etag.Tagged(tag, None).set_headers(resp)
            if tag in etag.known(req) or etag.any_known(req):
                resp.status = falcon.HTTP_NOT_MODIFIED
                return
            resp.content_type = 'text/calendar; charset=utf-8'
            resp.data = views.content(found, until)

    on_head = on_get

    def _calls(self, req: falcon.Request) -> calls.Calls:
        ctxt = context.RequestContext(
            request_id=req.env[request_id.LOCAL]
        ).to_dict()
        return calls.sent_by(
            lambda method, **arguments: self._manager.call(
                ctxt, method, **arguments
            )
        )
