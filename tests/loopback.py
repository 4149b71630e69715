# SPDX-License-Identifier: Apache-2.0
"""How a program on the same machine asks an API that has noauth."""

from wsgiref import types as wsgi

from falcon import testing

from tests import serving


def client(application: wsgi.WSGIApplication) -> testing.TestClient:
    """Return a client of the API in process, an admin's by default."""
    return testing.TestClient(
        application, headers={'Host': 'localhost', **serving.ADMIN}
    )
