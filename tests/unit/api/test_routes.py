# SPDX-License-Identifier: Apache-2.0
"""The route table agrees with the policies."""

import gzip

from falcon import testing
import pytest

from blazar_sched.service.api import deploy
from blazar_sched.service.api import microversion
from blazar_sched.service.api import policies
from blazar_sched.service.api import routes
from tests import tables

# The routes of Blazar 18, as far as the core has them.
BLAZAR = {
    ('GET', '/'): 300,
    ('GET', '/versions'): 300,
    ('GET', '/v1/leases'): 200,
    ('POST', '/v1/leases'): 201,
    ('GET', '/v1/leases/{lease_id}'): 200,
    ('PUT', '/v1/leases/{lease_id}'): 200,
    ('DELETE', '/v1/leases/{lease_id}'): 204,
    ('GET', '/v1/os-hosts'): 200,
    ('POST', '/v1/os-hosts'): 201,
    ('GET', '/v1/os-hosts/{host_id}'): 200,
    ('PUT', '/v1/os-hosts/{host_id}'): 200,
    ('DELETE', '/v1/os-hosts/{host_id}'): 204,
    ('GET', '/v1/os-hosts/allocations'): 200,
    ('GET', '/v1/os-hosts/{host_id}/allocation'): 200,
    ('GET', '/v1/os-hosts/properties'): 200,
    ('PATCH', '/v1/os-hosts/properties/{name}'): 200,
}
OURS = {
    ('GET', '/v1'): 200,
    ('GET', '/openapi'): 200,
    # The route and the rule of Chameleon's Blazar.
    ('PUT', '/v1/os-hosts/{host_id}/allocation'): 200,
    ('GET', '/v1/capacity'): 200,
    ('GET', '/v1/limits'): 200,
    ('GET', '/v1/properties'): 200,
    ('GET', '/v1/flavors'): 200,
    ('GET', '/v1/leases/{lease_id}/extension'): 200,
    **{route: status for route, (status, _) in tables.of('ROUTES').items()},
}


def test_blazars_routes_are_all_there():
    there = {(r.method, r.path): r.status for r in routes.ROUTES}
    assert there == BLAZAR | OURS


def test_every_rule_names_the_routes_that_ask_it():
    documented = {
        (operation['method'], operation['path'], rule.name)
        for rule in policies.list_rules()
        for operation in getattr(rule, 'operations', [])
    }
    asked = {(r.method, r.path, r.rule.name) for r in routes.ROUTES if r.rule}
    # The policy is checked once the body is known.
    reserves = {
        (method, path, rule)
        for method, path in (
            ('POST', '/v1/leases'), ('PUT', '/v1/leases/{lease_id}'),
        )
        for rule in (
            'blazar:leases:share', 'blazar:leases:extra_specs',
            'blazar:timeline:get_names',
        )
    }
    # The policy decides how much of the response is shown.
    names = {('GET', '/v1/capacity', 'blazar:timeline:get_names')}
    assert documented == asked | reserves | names | tables.names('BODY_RULES')


def test_rules_have_blazars_names():
    names = {rule.name for rule in policies.list_rules()}
    ours = {
        'blazar:capacity:get', 'blazar:leases:share',
        'blazar:leases:extra_specs', 'blazar:timeline:get_names',
        'blazar:properties:get', 'blazar:flavors:get', 'blazar:limits:get',
        *tables.names('READ'), *tables.names('WRITE'), *tables.names('ADMIN'),
    }
    assert names - ours == {
        'admin', 'admin_or_owner', 'project_member_api', 'project_reader_api',
        'project_member_or_admin', 'project_reader_or_admin',
        'blazar:leases:get', 'blazar:leases:post', 'blazar:leases:put',
        'blazar:leases:delete', 'blazar:oshosts:get', 'blazar:oshosts:post',
        'blazar:oshosts:put', 'blazar:oshosts:delete',
        'blazar:oshosts:get_allocations', 'blazar:oshosts:reallocate',
        'blazar:oshosts:get_resource_properties',
        'blazar:oshosts:update_resource_properties',
    }


@pytest.mark.parametrize('suffix', ['', '.json', '/'])
@pytest.mark.parametrize(
    'route', routes.ROUTES, ids=lambda r: f'{r.method} {r.path}'
)
def test_every_route_answers_with_its_status(
    api, manager, answers, requests, route, suffix
):
    manager.answers = answers
    path, body = requests[route]
    answer = api.request(
        route.method, path + suffix, json=body, version=route.since
    )
    assert answer.status_code == route.status
    if route.status == 204:
        assert answer.content == b''
    else:
        assert answer.headers['content-type'] == 'application/json'
        assert isinstance(answer.json, dict)


@pytest.mark.parametrize('accepted', ['gzip', 'br, gzip;q=0.5', '*'])
def test_a_long_answer_is_compressed(api, manager, lease, accepted):
    manager.answers['list_leases'] = [lease] * 50
    plain = api.get('/v1/leases')
    assert 'Content-Encoding' not in plain.headers
    answer = api.get('/v1/leases', headers={'Accept-Encoding': accepted})
    assert answer.headers['Content-Encoding'] == 'gzip'
    assert answer.headers['Vary'] == 'Accept-Encoding'
    assert int(answer.headers['Content-Length']) == len(answer.content)
    assert len(answer.content) < len(plain.content) / 10
    assert gzip.decompress(answer.content) == plain.content


@pytest.mark.parametrize('accepted', ['', 'br', 'gzip;q=0', 'identity'])
def test_who_does_not_take_gzip_gets_none(api, manager, lease, accepted):
    manager.answers['list_leases'] = [lease] * 50
    answer = api.get('/v1/leases', headers={'Accept-Encoding': accepted})
    assert 'Content-Encoding' not in answer.headers
    assert len(answer.json['leases']) == 50


def test_a_change_for_a_tag_changes_nothing(api, manager, lease):
    """What can be changed has no tag, so that no tag is the present one."""
    manager.answers['update_lease'] = lease
    path, body = f'/v1/leases/{lease["id"]}', {'name': 'x'}
    for method in ('PUT', 'DELETE'):
        answer = api.request(
            method, path, json=body, headers={'If-Match': '"a"'}
        )
        assert answer.status_code == 412
    assert manager.calls == []
    answer = api.put(path, json=body, headers={'If-Match': '*'})
    assert answer.status_code == 200


def test_who_names_json_in_the_path_need_not_accept_it(api, manager):
    manager.answers['list_leases'] = []
    headers = {'Accept': 'text/html'}
    answer = api.get('/v1/leases.json', headers=headers)
    assert answer.json == {'leases': []}
    answer = api.get('/v1/leases', headers=headers)
    assert answer.status_code == 406


@pytest.mark.parametrize('media_type', [
    'application/json', 'APPLICATION/JSON', 'Application/Json',
    'APPLICATION/JSON; CHARSET=UTF-8',
])
def test_media_types_are_in_any_case(api, manager, answers, media_type):
    manager.answers = answers
    answer = api.post(
        '/v1/os-hosts', body='{"name": "compute-1"}',
        headers={'Accept': media_type, 'Content-Type': media_type},
    )
    assert answer.status_code == 201, answer.text
    accepting = {'Accept': f'text/html, {media_type};Q=0.5'}
    answer = api.get('/v1/leases', headers=accepting)
    assert answer.status_code == 200
    refusing = {'Accept': 'TEXT/HTML'}
    answer = api.get('/v1/leases', headers=refusing)
    assert answer.status_code == 406


def test_versions(api):
    version = {
        'id': 'v1.0',
        'status': 'CURRENT',
        'min_version': '1.0',
        'max_version': '1.2',
        'links': [{'rel': 'self', 'href': 'http://localhost:1234/v1'}],
    }
    for path, body in (
        ('/', {'versions': [version]}),
        ('/versions', {'versions': [version]}),
        ('/v1', {'version': version}),
    ):
        answer = api.get(path, headers={'Host': 'localhost:1234'})
        assert answer.json == body


@pytest.mark.parametrize(
    ('trusted', 'scheme'), [(True, 'https'), (False, 'http')]
)
def test_versions_behind_a_proxy(conf, manager, trusted, scheme):
    conf.set_override('auth_strategy', 'keystone', 'api')
    layers = deploy.deploy(conf, manager)
    conf.set_override(
        'enable_proxy_headers_parsing', trusted, 'oslo_middleware'
    )
    answer = testing.TestClient(layers).get(
        '/', host='reservations.example',
        headers={'X-Forwarded-Proto': 'https'},
    )
    [link] = answer.json['versions'][0]['links']
    assert link['href'] == f'{scheme}://reservations.example/v1'


def test_head_is_get_without_a_body(api, manager):
    manager.answers['list_leases'] = []
    answer = api.head('/v1/leases')
    assert answer.status_code == 200
    assert answer.content == b''
    answer = api.head('/v1/os-hosts', token='bob')
    assert answer.status_code == 403


CHANGING = [route for route in routes.ROUTES if route.method != 'GET']
# The only requests that can be dry runs.
DRY = {
    ('POST', '/v1/leases'),
    ('PUT', '/v1/leases/{lease_id}'),
    ('DELETE', '/v1/leases/{lease_id}'),
    *tables.names('DRY_RUNS'),
}


def send(api, requests, route, version, params):
    path, body = requests[route]
    return api.request(
        route.method, path, json=body, params=params, version=version
    )


@pytest.mark.parametrize('of_the_newest', [False, True])
@pytest.mark.parametrize(
    'route',
    [route for route in CHANGING if (route.method, route.path) not in DRY],
    ids=lambda r: f'{r.method} {r.path}',
)
def test_dry_run_of_a_route_without_one_is_refused(
    api, manager, requests, route, of_the_newest
):
    """See test_lease for the requests that have dry runs."""
    version = microversion.KNOWN[-1] if of_the_newest else route.since
    answer = send(api, requests, route, version, {'dry_run': 'true'})
    assert answer.status_code == 400
    assert answer.json['error_name'] == 'InvalidInput'
    message = answer.json['error_message']
    assert message.startswith('dry_run is only supported by ')
    for method, path in DRY:
        assert f'{method} {path}' in message
    assert manager.calls == []


@pytest.mark.row('F111')
@pytest.mark.parametrize(
    'name', ['DRY_RUN', 'dry-run', 'dryrun', ' dry_run', 'x' * 2000]
)
@pytest.mark.parametrize(
    'route', CHANGING, ids=lambda r: f'{r.method} {r.path}'
)
def test_a_change_with_an_unknown_parameter_is_refused(
    api, manager, requests, route, name
):
    answer = send(api, requests, route, route.since, {name: 'true'})
    assert answer.status_code == 400
    assert answer.json['error_name'] == 'InvalidInput'
    message = answer.json['error_message']
    assert message.startswith(
        f'{name[:64]} is no query parameter of {route.method} {route.path}'
    )
    if (route.method, route.path) in DRY and len(name) < 9:
        assert message.endswith('; did you mean dry_run?') is (
            name != 'DRY_RUN'
        )
    assert manager.calls == []


@pytest.mark.parametrize('query', ['DRY_RUN', 'dry_run=true&DRY_RUN', '=1'])
def test_an_unknown_parameter_needs_no_value(api, manager, query):
    answer = api.delete('/v1/leases/l1', query_string=query, version='1.1')
    assert answer.status_code == 400
    assert manager.calls == []


READING = [
    route for route in routes.ROUTES if route.method == 'GET' and route.rule
]


@pytest.mark.row('F111')
@pytest.mark.parametrize('route', READING, ids=lambda r: r.path)
def test_a_read_with_an_unknown_parameter_is_refused(
    api, manager, answers, requests, route, refused
):
    since = max(route.since, microversion.V1_1)
    refused(
        send(api, requests, route, since, {'stauts': 'ACTIVE'}),
        start=f'stauts is no query parameter of GET {route.path}'
    )
    # Blazar ignores unknown parameters.
    manager.answers = answers
    if route.since == microversion.V1_0:
        answer = send(api, requests, route, '1.0', {'stauts': 'ACTIVE'})
        assert answer.status_code == 200


@pytest.mark.parametrize('path, query, name', [
    ('/v1/leases', 'name=a&name=b', 'name'),
    ('/v1/leases', 'active_at=now&active_at=2030-01-01', 'active_at'),
    ('/v1/leases/l1', 'wait_for=ACTIVE&wait_for=ERROR', 'wait_for'),
    ('/v1/capacity', 'end_date=2030-01-02&end_date=now', 'end_date'),
])
def test_a_parameter_that_is_repeated_is_refused(
    api, refused, path, query, name
):
    refused(
        api.get(path, query_string=query, version='1.1'),
        message=f'{name} must be given once'
    )


def test_a_parameter_of_a_newer_version_is_refused(api, refused):
    refused(
        api.delete('/v1/leases/l1', params={'dry_run': 'true'}),
        message='dry_run needs OpenStack-API-Version: reservation 1.1'
    )


@pytest.mark.parametrize(
    'route', [r for r in routes.ROUTES if r.since > microversion.V1_0],
    ids=lambda r: f'{r.method} {r.path}',
)
def test_a_route_of_a_newer_version_says_so(api, requests, route):
    answer = send(api, requests, route, '1.0', {})
    assert answer.status_code == 404
    assert answer.json['error_message'] == (
        f'{route.method} {route.path} needs OpenStack-API-Version: '
        f'reservation {route.since}'
    )


@pytest.mark.parametrize('path', ['/v1/leases/', '/v1/os-hosts/'])
def test_an_empty_id_is_no_id(api, manager, path):
    answer = api.delete(path)
    assert answer.status_code == 405
    assert manager.calls == []
