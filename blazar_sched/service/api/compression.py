# SPDX-License-Identifier: Apache-2.0
"""Compression of long responses, for callers that take it."""

from collections.abc import Callable
from collections.abc import Iterable
import gzip
from typing import Any
from wsgiref import headers as wsgi_headers
from wsgiref import types as wsgi

from webob import acceptparse

# Bytes. The body of a page of the timeline is a twentieth of its length then.
SHORTEST = 10_000
_GZIP = 'gzip'


class Compression:
    """A layer that compresses the bodies of the layers below with gzip."""

    def __init__(self, application: wsgi.WSGIApplication) -> None:
        self._application = application

    def __call__(
        self, environ: wsgi.WSGIEnvironment, start_response: wsgi.StartResponse
    ) -> Iterable[bytes]:
        accepted = acceptparse.create_accept_encoding_header(
            environ.get('HTTP_ACCEPT_ENCODING')
        )
        # A caller without the header takes anything, but expects nothing.
        offers = accepted.acceptable_offers([_GZIP])
        if not (accepted.header_value and offers):
            return self._application(environ, start_response)
        begun: list[Any] = []

        def start(
            status: str, headers: list[tuple[str, str]], exc_info: Any = None
        ) -> Callable[[bytes], object]:
            begun[:] = status, headers, exc_info
            return lambda _: None

        body = b''.join(self._application(environ, start))
        status, headers, exc_info = begun
        if len(body) >= SHORTEST and 'Content-Encoding' not in dict(headers):
            body = gzip.compress(body, 5)
            fields = wsgi_headers.Headers(list(headers))
            fields['Content-Encoding'] = _GZIP
            fields['Content-Length'] = str(len(body))
            fields.add_header('Vary', 'Accept-Encoding')
            headers = fields.items()
        start_response(status, headers, exc_info)
        return [body]
