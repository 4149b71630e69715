# SPDX-License-Identifier: Apache-2.0
"""Request ids: a local one out, the caller's global one in.

Both stand in the WSGI environ where oslo.context looks for them, so they are
in every log line and go along to the manager.
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
    """WSGI layer: names each request, and says the name in its answer."""

    def __init__(self, application: wsgi.WSGIApplication) -> None:
        self._application = application

    def __call__(
        self, environ: wsgi.WSGIEnvironment, start_response: wsgi.StartResponse
    ) -> Iterable[bytes]:
        given = environ.get('HTTP_X_OPENSTACK_REQUEST_ID', '')
        # Anything else could forge log lines.
        if _FORM.fullmatch(given):
            environ[GLOBAL] = given
        local = environ[LOCAL] = context.generate_request_id()
        # Made to be in this thread's log lines, until the next one is: of
        # who calls nothing is known yet.
        context.RequestContext(
            request_id=local, global_request_id=environ.get(GLOBAL)
        )

        def start(
            status: str,
            headers: list[tuple[str, str]],
            exc_info: Any = None,
        ) -> Callable[[bytes], object]:
            return start_response(
                status, [*headers, (HEADER, local)], exc_info
            )

        return self._application(environ, start)
