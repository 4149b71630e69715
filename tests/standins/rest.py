# SPDX-License-Identifier: Apache-2.0
"""Services at the level of HTTP, for the clients of the manager.

Stands for the network between a client and a service: a stand-in answers the
requests that the clients make as the service does, with its own status codes.
A test says what goes wrong with which request.
"""

import json
import re
from urllib import parse
import uuid

from keystoneauth1 import access
from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import fixture
from keystoneauth1.fixture import discovery
from keystoneauth1.identity import access as access_plugin
import requests

from blazar_sched.service.clients import rest


def uuid_of(name):
    """Return the uuid of a compute host or an aggregate."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def answer(status, body=None):
    made = requests.Response()
    made.status_code = status
    made._content = b'' if body is None else json.dumps(body).encode()
    if body is not None:
        made.headers['Content-Type'] = 'application/json'
    return made


def conflict(code):
    return answer(409, {'errors': [{'status': 409, 'code': code}]})


def compute_versions(url):
    """Return Nova's document of versions."""
    return discovery.NovaMicroversionDiscovery(
        url, 'v2.1', min_version='2.1', version='2.100'
    )


def placement_versions(url):
    """Return Placement's document of versions."""
    return discovery.MicroversionDiscovery(
        url, 'v1.0', min_version='1.0', max_version='1.39'
    )


# The documents of versions, by the URL of the catalog.
_VERSIONS = {
    'http://compute/v2.1': compute_versions('http://compute/v2.1'),
    'http://placement': placement_versions('http://placement'),
    'http://network': discovery.V2Discovery('http://network/v2.0'),
    'http://image': discovery.V2Discovery('http://image/v2'),
}


def _auth():
    """Return the credentials of a token with a catalog of all services."""
    token = fixture.V3Token()
    token.set_project_scope()
    for url in _VERSIONS:
        service_type = parse.urlsplit(url).hostname
        token.add_service(service_type).add_standard_endpoints(public=url)
    return access_plugin.AccessInfoPlugin(
        access.create(body=token, auth_token='token')
    )


class _Wire(requests.Session):
    """Takes requests to a stand-in instead of to the network."""

    def __init__(self, ask):
        super().__init__()
        self._ask = ask

    def request(self, method, url, params=None, data=None, **kwargs):
        sent = requests.Request(method, url, params=params).prepare()
        body = None if data is None else json.loads(data)
        answered = self._answer(sent, body)
        answered.request = sent
        return answered

    def _answer(self, sent, body):
        versions = _VERSIONS.get(sent.url.rstrip('/'))
        if versions is not None:
            return answer(200, {'version': versions})
        parts = parse.urlsplit(sent.url)
        path = parts.path.removeprefix('/v2.1')
        return self._ask(f'{path}?{parts.query}', sent.method, json=body)


class Service(adapter.Adapter):
    """Answers requests; `meddle` is asked what goes wrong with each.

    To clients it is the adapter of a service; `request` is the far end.

    :param routes: (method, pattern of a path, what does it)
    """

    def __init__(self, *routes):
        self.asked = []
        self.meddle = lambda method, path: None
        self._routes = [
            (method, re.compile(path), do) for method, path, do in routes
        ]
        super().__init__(
            rest.Session(session=_Wire(self._answer), auth=_auth())
        )

    def _answer(self, url, method, json):
        return self.request(url, method, json)

    def request(self, url, method, json=None, **kwargs):
        parts = parse.urlsplit(url)
        query = dict(parse.parse_qsl(parts.query))
        self.asked.append((method, parts.path))
        trouble = self.meddle(method, parts.path)
        if trouble is not None and not trouble.effect:
            return trouble.answer()
        for known, pattern, do in self._routes:
            match = pattern.fullmatch(parts.path)
            if method == known and match:
                groups = map(parse.unquote, match.groups())
                given = [x for x in (json,) if x is not None]
                said = do(*groups, *given, **query)
                return said if trouble is None else trouble.answer()
        raise AssertionError(f'{method} {url}')


class Trouble:
    """What goes wrong with a request.

    :param effect: whether it has its effect all the same
    :param said: what is answered; None if nothing is, in time
    """

    def __init__(self, effect, said=None):
        self.effect = effect
        self._said = said

    def answer(self):
        if self._said is None:
            raise exceptions.ConnectTimeout('timed out')
        return self._said
