# SPDX-License-Identifier: Apache-2.0
"""The audit trail of the API, by the real middleware and its notifier."""

import json

from falcon import testing
from keystonemiddleware import fixture as keystone_fixture
from oslo_config import cfg
from oslo_messaging.notify import _impl_test
import pytest

from blazar_sched.domain import exception
from blazar_sched.service.api import audit
from blazar_sched.service.api import deploy
from blazar_sched.service.api import routes
from blazar_sched.service.bus import rpc
from tests import tables

ID = 'b1f5d6c4-0000-4000-8000-000000000000'
TOKEN = 'gAAAAABsecret-secret-secret-secret-secret'
GLOBAL = 'req-11111111-2222-3333-4444-555555555555'


@pytest.fixture
def trail(conf):
    """trail() -> the events since the last call: (type, payload)."""
    _impl_test.reset()
    rpc.notifications(conf)
    conf.set_override('transport_url', 'fake://')
    conf.set_override('enabled', True, 'audit')

    def trail():
        messages = [message for _, message, *_ in _impl_test.NOTIFICATIONS]
        _impl_test.reset()
        return [(m['event_type'], m['payload']) for m in messages]

    yield trail
    _impl_test.reset()


@pytest.fixture
def audited(conf, manager, trail, tmp_path):
    """The API behind Keystone's real middleware, with its audit trail."""
    file = tmp_path / 'blazar-sched.conf'
    file.write_text(
        '[keystone_authtoken]\n'
        'www_authenticate_uri = http://keystone.example/\n'
        '[audit_middleware_notifications]\n'
        'driver = test\n'
    )
    conf.clear_override('auth_strategy', 'api')
    conf([], default_config_files=[str(file)])
    with keystone_fixture.AuthTokenFixture() as tokens:
        tokens.add_token_data(
            TOKEN, user_id='alice', project_id='p1',
            role_list=['member', 'reader'],
        )
        tokens._token_data[TOKEN].add_service(
            'reservation', name='blazar'
        ).add_standard_endpoints(public='http://cloud.example/reservation')
        yield testing.TestClient(
            deploy.deploy(conf, manager), headers={'X-Auth-Token': TOKEN}
        )


def test_who_has_deleted_a_lease(audited, manager, trail):
    manager.answers['delete_lease'] = None
    answer = audited.delete(
        f'/v1/leases/{ID}', headers={'X-OpenStack-Request-ID': GLOBAL}
    )
    assert answer.status_code == 204
    (first, before), (last, after) = trail()
    assert (first, last) == ('audit.http.request', 'audit.http.response')
    assert (before['outcome'], after['outcome']) == ('pending', 'success')
    assert after['action'] == 'delete'
    assert after['requestPath'] == f'/v1/leases/{ID}'
    assert after['target']['typeURI'] == (
        'service/compute/reservation/leases/lease'
    )
    assert after['target']['name'] == 'blazar'
    by = after['initiator']
    assert (by['id'], by['project_id']) == ('alice', 'p1')
    assert by['request_id'] == answer.headers['X-OpenStack-Request-ID']
    assert by['global_request_id'] == GLOBAL
    assert TOKEN not in json.dumps([before, after])


def test_a_refusal_is_a_failure(audited, manager, trail):
    manager.answers['get_lease'] = exception.LeaseNotFound('no')
    assert audited.get(f'/v1/leases/{ID}').status_code == 404
    _, (_, event) = trail()
    assert (event['action'], event['outcome']) == ('read', 'failure')
    assert event['reason']['reasonCode'] == '404'


def test_only_callers_with_a_token_are_in_the_trail(audited, manager, trail):
    forged = {'X-Auth-Token': 'wrong', 'X-User-Id': 'alice'}
    for path, status in ('/v1/leases', 401), ('/v1', 200):
        answer = audited.get(path, headers=forged)
        assert answer.status_code == status
    assert trail() == []
    manager.answers['list_leases'] = []
    audited.get('/v1/leases', headers={'X-User-Id': 'bob'})
    assert {each['initiator']['id'] for _, each in trail()} == {'alice'}


def test_an_operator_chooses_what_is_audited(conf, manager, audited, trail):
    conf.set_override('ignore_req_list', ['GET'], 'audit')
    manager.answers |= {'list_leases': [], 'delete_lease': None}
    api = testing.TestClient(
        deploy.deploy(conf, manager), headers={'X-Auth-Token': TOKEN}
    )
    api.get('/v1/leases')
    assert trail() == []
    api.delete(f'/v1/leases/{ID}')
    assert len(trail()) == 2
    conf.set_override('enabled', False, 'audit')
    api = testing.TestClient(
        deploy.deploy(conf, manager), headers={'X-Auth-Token': TOKEN}
    )
    assert api.delete(f'/v1/leases/{ID}').status_code == 204
    assert trail() == []


def test_a_trail_that_is_not_sent_does_not_stop_the_request(
    audited, manager, trail, monkeypatch
):
    def fail(*_):
        raise RuntimeError('no broker')

    monkeypatch.setattr(_impl_test.TestDriver, 'notify', fail)
    manager.answers['list_leases'] = []
    assert audited.get('/v1/leases').json == {'leases': []}


def test_what_cannot_be_audited_stops_the_start(
    conf, manager, trail, tmp_path
):
    path = tmp_path / 'map.conf'

    def refused(said):
        with pytest.raises(cfg.Error, match=said):
            deploy.deploy(conf, manager)

    refused('nowhere')
    shared = 'oslo_messaging_notifications'
    conf.set_override('driver', ['messagingv2'], shared)
    refused('retry')
    conf.set_override('retry', 0, shared)
    deploy.deploy(conf, manager)
    conf.set_override('audit_map_file', str(path), 'audit')
    refused('audit_map_file')
    path.write_text('no section\n')
    refused('audit_map_file')


@tables.EVERY
def test_the_map_knows_each_part_of_each_path():
    known = audit.audit.OpenStackAuditApi(str(audit.MAP))._MAP
    parts = {
        part
        for route in routes.ROUTES if route.rule
        for part in route.path.split('/')[2:] if '{' not in part
    }
    # The parser adds what is in [DEFAULT] to each section.
    assert {*parts, 'target_endpoint_type'} == {
        *known.path_kw, *known.custom_actions,
    }
