# SPDX-License-Identifier: Apache-2.0
"""Request ids: a local id per request, and the caller's global id.

Both ids are in the WSGI environ where oslo.context expects them, so both are
in every log line and are sent to the manager.
"""

from collections.abc import Callable
from collections.abc import Iterable
import re
from typing import Any
from wsgiref import types as wsgi

from oslo_context import context

HEADER = 'X-OpenStack-Request-ID'
LOCAL = 'openstack.request_id'
GLOBAL = 'openstack.global_request_id'

_FORM = re.compile(r'req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')


class RequestId:
    """A WSGI layer that gives each request an id, returned in the response."""

    def __init__(self, application: wsgi.WSGIApplication) -> None:
        self._application = application

    def __call__(
        self, environ: wsgi.WSGIEnvironment, start_response: wsgi.StartResponse
    ) -> Iterable[bytes]:
        given = environ.get('HTTP_X_OPENSTACK_REQUEST_ID', '')
        # A text in any other form could forge log lines.
        if _FORM.fullmatch(given):
            environ[GLOBAL] = given
        local = environ[LOCAL] = context.generate_request_id()
        # This context is for the log lines of this thread, until the next
        # context is created: the caller is not known yet.
        context.RequestContext(
            request_id=local, global_request_id=environ.get(GLOBAL)
        )

        def start(
            status: str, headers: list[tuple[str, str]], exc_info: Any = None
        ) -> Callable[[bytes], object]:
            return start_response(
                status, [*headers, (HEADER, local)], exc_info
            )

        return self._application(environ, start)
