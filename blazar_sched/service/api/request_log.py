# SPDX-License-Identifier: Apache-2.0
"""The log line of each request: its response, duration and refusal.

The caller, and the lease or host concerned, are in the context of the line.
"""

from collections.abc import Callable
from collections.abc import Iterable
import time
from typing import Any
from wsgiref import types as wsgi

from oslo_log import log as logging

from blazar_sched.service.api import errors

LOG = logging.getLogger(__name__)


class RequestLog:
    """A WSGI layer that logs every response of the layers below it."""

    def __init__(self, application: wsgi.WSGIApplication) -> None:
        self._application = application

    def __call__(
        self, environ: wsgi.WSGIEnvironment, start_response: wsgi.StartResponse
    ) -> Iterable[bytes]:
        began = time.monotonic()

        def start(
            status: str, headers: list[tuple[str, str]], exc_info: Any = None
        ) -> Callable[[bytes], object]:
            LOG.info(
                '%s asked %s %r: %s after %.3f s%s',
                environ.get('REMOTE_ADDR', '-'), environ['REQUEST_METHOD'],
                environ['PATH_INFO'], status, time.monotonic() - began,
                f': {environ[errors.REASON]}' if errors.REASON in environ
                else '',
            )
            return start_response(status, headers, exc_info)

        return self._application(environ, start)
