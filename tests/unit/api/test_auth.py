# SPDX-License-Identifier: Apache-2.0
"""Authorization by token; other headers cannot grant more."""

from falcon import testing
from keystoneauth1 import fixture as keystone_tokens
from keystonemiddleware import auth_token
from keystonemiddleware import fixture as keystone_fixture
import pytest
import webob.exc

from blazar_sched.domain import exception
from blazar_sched.service.api import deploy
from blazar_sched.service.api import microversion
from blazar_sched.service.api import routes
from tests import loopback
from tests import tables

READ = {
    'blazar:leases:get', 'blazar:capacity:get', 'blazar:properties:get',
    'blazar:flavors:get', 'blazar:limits:get',
    *tables.names('READ'),
}
WRITE = READ | {
    'blazar:leases:post', 'blazar:leases:put', 'blazar:leases:delete',
    *tables.names('WRITE'),
}
# The calls that are about the project of the caller, whoever calls.
OF_ONE_PROJECT = {
    'get_capacity', 'list_public_properties', 'list_flavors', 'list_limits',
    *tables.names('OF_ONE_PROJECT'),
}
ALL = {route.rule.name for route in routes.ROUTES if route.rule}
# Keystone adds implied roles.
MATRIX = {
    'admin': (['admin', 'member', 'reader'], ALL),
    'admin alone': (['admin'], ALL),
    'member': (['member', 'reader'], WRITE),
    'member alone': (['member'], WRITE - READ),
    'reader': (['reader'], READ),
    'service': (['service'], set()),
    'none': ([], set()),
}
# Every header in which a client could claim an identity.
SPOOFED = {
    'X-Identity-Status': 'Confirmed', 'X-User-Id': 'admin', 'X-User': 'admin',
    'X-User-Name': 'admin', 'X-Project-Id': 'other', 'X-Tenant-Id': 'other',
    'X-Tenant': 'other', 'X-Tenant-Name': 'other',
    'X-Roles': 'admin,member,reader', 'X-Role': 'admin',
    'X-Is-Admin-Project': 'True', 'X-Domain-Id': 'default',
    'OpenStack-System-Scope': 'all', 'X-Service-Identity-Status': 'Confirmed',
    'X-Service-Roles': 'admin', 'X-Service-Project-Id': 'other',
}


def version_of(route):
    """Return the header of the first version that has a route."""
    return {microversion.HEADER: f'reservation {route.since}'}


@pytest.fixture
def tokens():
    """A stand-in for Keystone; the rest of its middleware is the real one."""
    with keystone_fixture.AuthTokenFixture() as fixture:
        yield fixture


@pytest.fixture
def keystone_api(conf, manager, tokens, tmp_path):
    file = tmp_path / 'blazar-sched.conf'
    file.write_text(
        '[keystone_authtoken]\n'
        'www_authenticate_uri = http://keystone.example/\n'
    )
    conf.clear_override('auth_strategy', 'api')
    conf([], default_config_files=[str(file)])
    return testing.TestClient(deploy.deploy(conf, manager))


@pytest.mark.row('F85')
@pytest.mark.parametrize('who', MATRIX)
def test_the_role_matrix(
    keystone_api, tokens, manager, answers, requests, who
):
    roles, allowed = MATRIX[who]
    tokens.add_token_data(
        't1', user_id='alice', project_id='p1', role_list=roles
    )
    manager.answers = answers
    for route in routes.ROUTES:
        path, body = requests[route]
        answer = keystone_api.request(
            route.method, path, json=body,
            headers={'X-Auth-Token': 't1', **version_of(route)},
        )
        may = route.rule is None or route.rule.name in allowed
        expected = route.status if may else 403
        assert answer.status_code == expected, (route, answer.text)
        if not may:
            assert answer.json['error_name'] == 'NotAuthorized'
    for method, sent in manager.calls:
        if 'project_id' in sent:
            # An admin can also create leases for a project.
            every = 'admin' in roles and method not in OF_ONE_PROJECT
            assert sent['project_id'] == (None if every else 'p1')


@pytest.mark.parametrize('token', [None, '', 'unknown'])
def test_keystone_lets_nobody_in_without_a_token(
    keystone_api, manager, answers, requests, token
):
    manager.answers = answers
    for route in routes.ROUTES:
        path, body = requests[route]
        headers = {**SPOOFED, **version_of(route)}
        if token is not None:
            headers['X-Auth-Token'] = token
        answer = keystone_api.request(
            route.method, path, json=body, headers=headers
        )
        if route.rule is None:
            assert answer.status_code == route.status
        else:
            assert answer.status_code == 401
            assert answer.json['error_name'] == 'Unauthorized'
            assert answer.headers['www-authenticate'] == (
                'Keystone uri="http://keystone.example/"'
            )
            assert 'x-openstack-request-id' in answer.headers
            assert answer.headers['vary'] == 'OpenStack-API-Version'
            assert answer.headers['openstack-api-version'] == (
                f'reservation {route.since}'
            )
    assert manager.calls == []


def test_keystone_is_believed_and_headers_are_not(
    keystone_api, tokens, manager
):
    tokens.add_token_data(
        't1', user_id='alice', project_id='p1', role_list=['reader']
    )
    manager.answers['list_leases'] = []
    headers = {'X-Auth-Token': 't1', **SPOOFED}
    answer = keystone_api.get('/v1/leases', headers=headers)
    assert answer.status_code == 200
    assert manager.calls == [
        ('list_leases', {'project_id': 'p1', 'limit': 1000})
    ]
    [ctxt] = manager.contexts
    assert ctxt['user'] == 'alice'
    assert ctxt['roles'] == ['reader']
    assert ctxt['system_scope'] is None
    # The bus is not needed.
    assert ctxt['auth_token'] is None
    answer = keystone_api.get('/v1/os-hosts', headers=headers)
    assert answer.status_code == 403


@pytest.mark.parametrize('roles', [['admin'], ['member', 'reader']])
def test_a_token_without_a_project_is_refused(
    keystone_api, tokens, manager, roles
):
    """Even with the right roles: no project would mean every project."""
    token = keystone_tokens.V3Token(user_id='alice')
    token.set_domain_scope()
    for role in roles:
        token.add_role(name=role)
    tokens.add_token(token, 'd1')
    answer = keystone_api.get('/v1/leases', headers={'X-Auth-Token': 'd1'})
    assert answer.status_code == 403
    assert 'no project' in answer.json['error_message']
    assert manager.calls == []


def test_keystone_down_is_503(conf, manager):
    conf.set_override('auth_strategy', 'keystone', 'api')
    api = loopback.Client(deploy.deploy(conf, manager))
    answer = api.get('/v1/leases', token='t1')
    assert answer.status_code == 503
    assert answer.json['error_name'] == 'Unavailable'
    assert answer.headers['Retry-After'] == '5'


def test_keystone_that_cannot_be_reached_is_503(conf, manager, monkeypatch):
    def unreachable(self, request):
        raise webob.exc.HTTPServiceUnavailable('Keystone is away')

    monkeypatch.setattr(
        auth_token.AuthProtocol, 'process_request', unreachable
    )
    conf.set_override('auth_strategy', 'keystone', 'api')
    api = testing.TestClient(deploy.deploy(conf, manager))
    answer = api.simulate_get('/v1/leases', headers={'X-Auth-Token': 't1'})
    assert answer.status_code == 503
    assert answer.headers['Retry-After'] == '5'


@pytest.mark.parametrize('token, user, project, admin', [
    ('admin', 'admin', 'admin', True),
    ('admin:p1', 'admin', 'p1', True),
    ('alice:p1', 'alice', 'p1', False),
    ('alice', 'alice', 'alice', False),
    ('alice:admin', 'alice', 'admin', False),
])
def test_noauth_believes_the_token_alone(
    api, manager, token, user, project, admin
):
    manager.answers['list_leases'] = []
    headers = {**SPOOFED, 'X-Auth-Token': token}
    answer = api.get('/v1/leases', headers=headers)
    assert answer.status_code == 200
    [ctxt] = manager.contexts
    assert (ctxt['user'], ctxt['project_id']) == (user, project)
    assert ('admin' in ctxt['roles']) is admin
    assert manager.calls == [
        (
            'list_leases',
            {'project_id': None if admin else project, 'limit': 1000},
        )
    ]


@pytest.mark.parametrize(
    'token', ['', ':', ':p1', 'a b:p1', 'a:b:c', 'x' * 65, 'a:' + 'x' * 65]
)
def test_noauth_refuses_what_is_no_user_and_project(api, manager, token):
    answer = api.get('/v1/leases', token=token)
    assert answer.status_code == 401
    assert answer.headers['vary'] == 'OpenStack-API-Version'
    assert answer.headers['openstack-api-version'] == 'reservation 1.0'
    assert manager.calls == []


def test_noauth_is_to_be_asked_for(conf):
    conf.clear_override('auth_strategy', 'api')
    assert conf.api.auth_strategy == 'keystone'


def test_noauth_wants_a_token_too(conf, manager):
    api = testing.TestClient(
        deploy.deploy(conf, manager), headers={'Host': 'localhost'}
    )
    for path in ('/v1/leases', '/v1/os-hosts'):
        assert api.get(path).status_code == 401
    for path in ('/', '/versions', '/v1', '/v1/', '/openapi.json'):
        assert api.get(path).status_code in (200, 300)
    assert manager.calls == []


@pytest.mark.parametrize('name, value', [
    ('X-Forwarded-For', '192.0.2.1'),
    ('X-Forwarded-Proto', 'https'),
    ('X-Forwarded-Host', 'cloud.example'),
    ('X-Forwarded-User', 'root'),
    ('X-Real-IP', '192.0.2.1'),
    ('Forwarded', 'for=192.0.2.1'),
    ('Via', '1.1 proxy.example'),
    ('Origin', 'http://evil.example'),
    ('Origin', 'null'),
    ('Host', 'evil.example'),
    ('Host', 'localhost.evil.example:1234'),
    ('Host', '192.0.2.1:1234'),
    ('Host', '[2001:db8::1]:1234'),
    ('Host', '[::1'),
])
@pytest.mark.parametrize('path', ['/v1/leases', '/versions'])
def test_noauth_refuses_what_is_sent_for_others(
    api, manager, path, name, value
):
    answer = api.get(path, headers={name: value})
    assert answer.status_code == 403
    assert answer.json['error_name'] == 'NotAuthorized'
    assert f'header {name.title()}' in answer.json['error_message']
    assert manager.calls == []


@pytest.mark.parametrize('host', [
    'localhost', 'LOCALHOST:1', '127.0.0.1:1234', '127.1.2.3', '[::1]:80',
    'dev.example:1234',
])
def test_noauth_is_for_this_machine(conf, manager, host):
    conf.set_override('host', 'Dev.example', 'api')
    manager.answers['list_leases'] = []
    api = loopback.client(deploy.deploy(conf, manager))
    answer = api.get('/v1/leases', headers={'Host': host})
    assert answer.status_code == 200


def test_keystone_believes_whom_a_proxy_sends(keystone_api, manager, tokens):
    tokens.add_token_data(
        't1', user_id='u1', project_id='p1', role_list=['reader']
    )
    manager.answers['list_leases'] = []
    answer = keystone_api.get('/v1/leases', headers={
        'X-Auth-Token': 't1', 'X-Forwarded-For': '192.0.2.1',
        'Host': 'cloud.example', 'Origin': 'https://cloud.example',
    })
    assert answer.status_code == 200


def test_an_operator_can_change_a_rule(manager, ruled):
    api = ruled('"blazar:oshosts:get": "role:reader"\n')
    manager.answers['list_hosts'] = []
    headers = {'X-Auth-Token': 'alice:p1'}
    assert api.get('/v1/os-hosts', headers=headers).json == {'hosts': []}
    answer = api.delete('/v1/os-hosts/7', headers=headers)
    assert answer.status_code == 403


@pytest.mark.parametrize('projects', [None, [], ['p9']])
def test_an_operator_can_forbid_sharing(manager, ruled, projects):
    api = ruled('"blazar:leases:share": "role:admin"\n')
    # The manager refuses a request that the policy allows.
    refused = exception.LeaseNotFound('no lease')
    for method in ('create_lease', 'update_lease'):
        manager.answers[method] = refused
    asked = {} if projects is None else {'projects': projects}
    one = {'resource_type': 'physical:host', 'min': 1, 'max': 1, **asked}
    for user, status in (
        ('alice:p1', 403 if projects else 404), ('admin:p1', 404)
    ):
        headers = {
            'X-Auth-Token': user, 'OpenStack-API-Version': 'reservation 1.1',
        }
        created = api.post('/v1/leases', headers=headers, json={
            'name': 'x', 'start_date': 'now', 'end_date': '2030-01-01 00:00',
            'reservations': [one],
        })
        changed = api.put(
            '/v1/leases/l1', headers=headers,
            json={'reservations': [{'id': 'r1', **asked}]},
        )
        assert (created.status_code, changed.status_code) == (status, status)
