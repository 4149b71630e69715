# SPDX-License-Identifier: Apache-2.0
"""Paths with an end that Blazar's server ignores.

Pecan answers ``/v1/leases/`` and ``/v1/leases.json`` as ``/v1/leases``.
"""

from collections.abc import Iterable
from wsgiref import types as wsgi

import falcon

_JSON = '.json'


def without_end(path: str) -> str:
    """Return a path without a slash and without ``.json`` at its end."""
    return path.removesuffix('/').removesuffix(_JSON) or '/'


class WithoutEnd:
    """A layer that removes the end of the path of each request."""

    def __init__(self, application: wsgi.WSGIApplication) -> None:
        self._application = application

    def __call__(
        self, environ: wsgi.WSGIEnvironment, start_response: wsgi.StartResponse
    ) -> Iterable[bytes]:
        path = environ['PATH_INFO']
        # A request with .json in the path need not have an Accept header for
        # JSON as well.
        if path.endswith(_JSON):
            environ['HTTP_ACCEPT'] = falcon.MEDIA_JSON
        environ['PATH_INFO'] = without_end(path)
        return self._application(environ, start_response)
