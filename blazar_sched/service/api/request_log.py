# SPDX-License-Identifier: Apache-2.0
"""A log line for each request: what was asked, what was answered, how fast.

Who asked, and about which lease or host, is in the line's context.
"""

import time

from oslo_log import log as logging

LOG = logging.getLogger(__name__)


class RequestLog:
    """WSGI layer: logs every answer of the layers below it."""

    def __init__(self, application) -> None:
        self._application = application

    def __call__(self, environ, start_response):
        began = time.monotonic()

        def start(status, headers, exc_info=None):
            LOG.info(
                '%s asked %s %r: %s after %.3f s',
                environ.get('REMOTE_ADDR', '-'),
                environ['REQUEST_METHOD'],
                environ['PATH_INFO'],
                status,
                time.monotonic() - began,
            )
            return start_response(status, headers, exc_info)

        return self._application(environ, start)
