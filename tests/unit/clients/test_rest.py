# SPDX-License-Identifier: Apache-2.0
"""The proxies of the SDK, and what a failure of a request means."""

from keystoneauth1 import exceptions
from oslo_context import context
from oslo_context import fixture
import pytest

from blazar_sched.domain import exception
from blazar_sched.service.clients import rest
from tests.standins.rest import answer
from tests.standins.rest import Service

SERVICES = ('compute', 'image', 'network', 'placement')


@pytest.fixture
def service():
    return Service(('GET', '/.*', lambda: answer(404)))


@pytest.mark.parametrize('name', SERVICES)
def test_a_catalog_without_the_service_is_unavailable(service, name):
    service.region_name = 'another'
    with pytest.raises(exception.Unavailable, match=name):
        rest.connect(service, name)


@pytest.mark.parametrize('name', SERVICES)
def test_the_refusal_that_is_expected_is_suppressed(service, name):
    with rest.tolerating(404) as refusals:
        rest.connect(service, name).get('/servers')
    assert [refusal.status_code for refusal in refusals] == [404]
    with pytest.raises(exception.Unavailable), rest.tolerating(409):
        rest.connect(service, name).get('/servers')


def test_the_refusal_of_a_token_is_not_the_refusal_of_the_service(
    service, monkeypatch
):
    proxy = rest.connect(service, 'compute')

    def refuse(session, **kwargs):
        raise exceptions.NotFound()

    monkeypatch.setattr(service.session.auth, 'get_headers', refuse)
    with pytest.raises(exception.Unavailable), rest.tolerating(404):
        proxy.get('/servers')


@pytest.mark.parametrize('name', SERVICES)
@pytest.mark.parametrize(('ids', 'told'), [
    (None, None),
    ({'request_id': 'req-own'}, 'req-own'),
    ({'global_request_id': 'req-of-all'}, 'req-of-all'),
])
def test_a_service_is_told_which_request_has_caused_its_request(
    service, monkeypatch, name, ids, told
):
    sent = []
    answering = service.session.session.request

    def request(*args, headers, **kwargs):
        sent.append(headers.get('X-Openstack-Request-Id'))
        return answering(*args, headers=headers, **kwargs)

    proxy = rest.connect(service, name)
    monkeypatch.setattr(service.session.session, 'request', request)
    with fixture.ClearRequestContext(), rest.tolerating(404):
        if ids:
            context.RequestContext(**ids)
        proxy.get('/servers')
    assert sent == [told]


@pytest.mark.parametrize(('status', 'refused'), [
    (400, True), (403, True), (404, True), (409, True), (413, True),
    (501, True),
    (401, False), (408, False), (425, False), (429, False),
    (500, False), (502, False), (503, False), (504, False),
])
def test_only_a_refusal_of_what_was_asked_is_one(status, refused):
    service = Service(('GET', '/.*', lambda: answer(status)))
    with pytest.raises(exception.Unavailable) as caught:
        rest.connect(service, 'compute').get('/servers')
    assert caught.value.refused is refused
    assert caught.value.service == 'compute'


@pytest.mark.parametrize('error', [
    exceptions.ConnectFailure, exceptions.ConnectTimeout, exceptions.SSLError,
    exceptions.UnknownConnectionError, exceptions.DiscoveryFailure,
    exceptions.EmptyCatalog, exceptions.EndpointNotFound,
    exceptions.Unauthorized, exceptions.ServiceUnavailable,
])
def test_a_service_that_cannot_be_reached_has_refused_nothing(
    service, monkeypatch, error
):
    proxy = rest.connect(service, 'compute')

    def fail(*args, **kwargs):
        raise error('away', None) if error is (
            exceptions.UnknownConnectionError
        ) else error('away')

    monkeypatch.setattr(service.session.auth, 'get_headers', fail)
    with pytest.raises(exception.Unavailable) as caught:
        proxy.get('/servers')
    assert (caught.value.refused, caught.value.service) == (False, 'compute')


@pytest.mark.parametrize(('said', 'least', 'most'), [
    ('8', 8, 8), ('', 0, 0), ('soon', 0, 0), ('-1', 0, 0), ('٣', 0, 0),
    ('Fri, 31 Dec 1999 23:59:59 GMT', 0, 0),
    ('Fri, 31 Dec 9999 23:59:59 GMT', 10**9, 10**12),
    ('9' * 400, 10**9, float('inf')),
])
@pytest.mark.parametrize('status', [429, 503])
def test_how_long_a_service_asks_to_be_left_alone(said, least, most, status):
    busy = answer(status)
    busy.headers['Retry-After'] = said
    service = Service(('GET', '/.*', lambda: busy))
    with pytest.raises(exception.Unavailable) as caught:
        rest.connect(service, 'compute').get('/servers')
    assert least <= caught.value.wait <= most
