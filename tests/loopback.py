# SPDX-License-Identifier: Apache-2.0
"""Requests from a program on the same machine to an API that has noauth."""

from typing import Any
from wsgiref import types as wsgi

from falcon import testing

from tests import serving


class Client(testing.TestClient):
    """A client whose requests may have a token and a version of the API."""

    def simulate_request(
        self, *args: Any, token: str | None = None, version: Any = None,
        headers: dict[str, str] | None = None, **kwargs: Any,
    ) -> testing.Result:
        headers = dict(headers or {})
        if token is not None:
            headers['X-Auth-Token'] = token
        if version is not None:
            headers['OpenStack-API-Version'] = f'reservation {version}'
        return super().simulate_request(*args, headers=headers, **kwargs)

    request = simulate_request


def client(application: wsgi.WSGIApplication) -> Client:
    """Return a client of the API in process, by default an admin's."""
    return Client(application, headers={'Host': 'localhost', **serving.ADMIN})
