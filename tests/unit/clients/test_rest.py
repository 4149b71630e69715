# SPDX-License-Identifier: Apache-2.0
"""The proxies of the SDK, and what a failure of a request means."""

from keystoneauth1 import exceptions
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
