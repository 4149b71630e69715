# SPDX-License-Identifier: Apache-2.0
"""Requests from a program on the same machine to an API that has noauth."""

from wsgiref import types as wsgi

from falcon import testing

from tests import serving


def client(application: wsgi.WSGIApplication) -> testing.TestClient:
    """Return a client of the API in process, by default an admin's."""
    return testing.TestClient(
        application, headers={'Host': 'localhost', **serving.ADMIN}
    )
