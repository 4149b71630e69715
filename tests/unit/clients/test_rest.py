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
@pytest.mark.parametrize(
    ('ids', 'told'),
    [
        (None, None),
        ({'request_id': 'req-own'}, 'req-own'),
        ({'global_request_id': 'req-of-all'}, 'req-of-all'),
    ],
)
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
