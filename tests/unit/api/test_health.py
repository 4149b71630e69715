# SPDX-License-Identifier: Apache-2.0
"""The health check for load balancers."""

from oslo_middleware.healthcheck import opts
import pytest

from blazar_sched.domain import exception
from blazar_sched.service.api import deploy
from blazar_sched.service.api import health
from tests import loopback

# An API of its own for each test: the answers last for a second.
pytestmark = pytest.mark.usefixtures('conf')


@pytest.fixture(params=['no token', 'bad token'])
def headers(request):
    return {'X-Auth-Token': ':'} if request.param == 'bad token' else {}


def test_healthy_needs_no_token(api, headers):
    answer = api.get('/healthcheck', headers=headers)
    assert answer.status_code == 200
    assert answer.text == 'OK'
    assert 'x-openstack-request-id' in answer.headers
    head = api.head('/healthcheck', headers=headers)
    assert head.status_code == 204


def test_unhealthy_without_a_manager(api, manager):
    manager.trouble = exception.Unavailable('no manager responded')
    answer = api.get('/healthcheck', headers={'Accept': 'application/json'})
    assert answer.status_code == 503
    assert answer.json['reasons'] == ['no manager responded']
    assert api.head('/healthcheck').status_code == 503


def test_an_answer_lasts_a_second(api, manager, monkeypatch):
    now = 1000.0
    monkeypatch.setattr(health.time, 'monotonic', lambda: now)
    assert api.get('/healthcheck').status_code == 200
    manager.trouble = exception.Unavailable('no manager responded')
    now += 0.9
    assert api.get('/healthcheck').status_code == 200
    now += 0.2
    for _ in range(2):
        assert api.get('/healthcheck').status_code == 503
    manager.trouble = None
    now += 1
    assert api.get('/healthcheck').status_code == 200


def test_whom_it_is_not_configured_for_it_does_not_answer(conf, manager):
    conf.register_opts(opts.HEALTHCHECK_OPTS, 'healthcheck')
    conf.set_override('allowed_source_ranges', ['192.0.2.0/24'], 'healthcheck')
    api = loopback.client(deploy.deploy(conf, manager))
    answer = api.get('/healthcheck', remote_addr='127.0.0.1')
    assert answer.status_code == 404
    answer = api.get('/healthcheck', remote_addr='192.0.2.7')
    assert answer.status_code == 200
