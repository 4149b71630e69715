# SPDX-License-Identifier: Apache-2.0
"""The route table agrees with the policies."""

from falcon import testing
import pytest

from blazar_sched import policies
from blazar_sched.service.api import deploy
from blazar_sched.service.api import microversion
from blazar_sched.service.api import routes

# The routes of Blazar 18, as far as they exist here.
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
    ('GET', '/v1/floatingips'): 200,
    ('POST', '/v1/floatingips'): 201,
    ('GET', '/v1/floatingips/{floating_ip_id}'): 200,
    ('DELETE', '/v1/floatingips/{floating_ip_id}'): 204,
}
OURS = {
    ('GET', '/openapi'): 200,
    # The route and the rule of Chameleon's Blazar.
    ('PUT', '/v1/os-hosts/{host_id}/allocation'): 200,
    ('GET', '/v1/capacity'): 200,
    ('GET', '/v1/timeline'): 200,
    ('GET', '/v1/properties'): 200,
    ('GET', '/v1/requests'): 200,
    ('POST', '/v1/requests'): 201,
    ('GET', '/v1/requests/{request_id}'): 200,
    ('DELETE', '/v1/requests/{request_id}'): 204,
    ('GET', '/v1/flavors'): 200,
    ('GET', '/v1/series'): 200,
    ('POST', '/v1/series'): 201,
    ('GET', '/v1/series/{series_id}'): 200,
    ('PUT', '/v1/series/{series_id}'): 200,
    ('DELETE', '/v1/series/{series_id}'): 204,
    ('GET', '/v1/maintenances'): 200,
    ('POST', '/v1/maintenances'): 201,
    ('GET', '/v1/maintenances/{maintenance_id}'): 200,
    ('PUT', '/v1/maintenances/{maintenance_id}'): 200,
    ('DELETE', '/v1/maintenances/{maintenance_id}'): 204,
    ('GET', '/v1/thresholds'): 200,
    ('POST', '/v1/thresholds'): 201,
    ('GET', '/v1/thresholds/{threshold_id}'): 200,
    ('DELETE', '/v1/thresholds/{threshold_id}'): 204,
    ('GET', '/v1/offers'): 200,
    ('POST', '/v1/offers'): 200,
    ('GET', '/v1/offers/{offer_id}'): 200,
    ('DELETE', '/v1/offers/{offer_id}'): 204,
    ('GET', '/v1/leases/{lease_id}/extension'): 200,
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
    asked = {(r.method, r.path, r.rule) for r in routes.ROUTES if r.rule}
    # The policy is checked once the body is known.
    shares = {
        ('POST', '/v1/leases', 'blazar:leases:share'),
        ('PUT', '/v1/leases/{lease_id}', 'blazar:leases:share'),
        ('POST', '/v1/offers', 'blazar:leases:share'),
        ('POST', '/v1/series', 'blazar:leases:share'),
        ('PUT', '/v1/series/{series_id}', 'blazar:leases:share'),
        ('POST', '/v1/requests', 'blazar:leases:share'),
        ('POST', '/v1/requests', 'blazar:requests:prioritize'),
    }
    # The policy decides how much of the response is shown.
    names = {('GET', '/v1/timeline', 'blazar:timeline:get_names')}
    assert documented == asked | shares | names


def test_rules_have_blazars_names():
    names = {rule.name for rule in policies.list_rules()}
    ours = {
        'blazar:capacity:get', 'blazar:leases:share', 'blazar:offers:get',
        'blazar:offers:post', 'blazar:offers:delete',
        'blazar:series:get', 'blazar:series:post', 'blazar:series:put',
        'blazar:series:delete',
        'blazar:requests:get', 'blazar:requests:post',
        'blazar:requests:prioritize', 'blazar:requests:delete',
        'blazar:timeline:get', 'blazar:timeline:get_names',
        'blazar:properties:get', 'blazar:flavors:get',
        'blazar:maintenances:get', 'blazar:maintenances:post',
        'blazar:maintenances:put', 'blazar:maintenances:delete',
        'blazar:thresholds:get', 'blazar:thresholds:post',
        'blazar:thresholds:delete',
    }
    assert names - ours == {
        'admin',
        'admin_or_owner',
        'project_member_api',
        'project_reader_api',
        'project_member_or_admin',
        'project_reader_or_admin',
        'blazar:leases:get',
        'blazar:leases:post',
        'blazar:leases:put',
        'blazar:leases:delete',
        'blazar:oshosts:get',
        'blazar:oshosts:post',
        'blazar:oshosts:put',
        'blazar:oshosts:delete',
        'blazar:oshosts:get_allocations',
        'blazar:oshosts:reallocate',
        'blazar:oshosts:get_resource_properties',
        'blazar:oshosts:update_resource_properties',
        'blazar:floatingips:get',
        'blazar:floatingips:post',
        'blazar:floatingips:delete',
    }


@pytest.mark.parametrize('suffix', ['', '.json'])
@pytest.mark.parametrize(
    'route', routes.ROUTES, ids=lambda r: f'{r.method} {r.path}'
)
def test_every_route_answers_with_its_status(
    api, manager, answers, requests, route, suffix
):
    manager.answers = answers
    path, body = requests[route]
    answer = api.simulate_request(
        route.method,
        path + suffix,
        json=body,
        headers={'OpenStack-API-Version': f'reservation {route.since}'},
    )
    assert answer.status_code == route.status
    if route.status == 204:
        assert answer.content == b''
    else:
        assert answer.headers['content-type'] == 'application/json'
        assert isinstance(answer.json, dict)


def test_who_names_json_in_the_path_need_not_accept_it(api, manager):
    manager.answers['list_leases'] = []
    headers = {'Accept': 'text/html'}
    answer = api.simulate_get('/v1/leases.json', headers=headers)
    assert answer.json == {'leases': []}
    answer = api.simulate_get('/v1/leases', headers=headers)
    assert answer.status_code == 406


def test_versions(api):
    for path in ('/', '/versions'):
        answer = api.simulate_get(path, headers={'Host': 'localhost:1234'})
        assert answer.json == {
            'versions': [
                {
                    'id': 'v1.0',
                    'status': 'CURRENT',
                    'min_version': '1.0',
                    'max_version': '1.5',
                    'links': [
                        {
                            'rel': 'self',
                            'href': 'http://localhost:1234/v1',
                        }
                    ],
                }
            ]
        }


@pytest.mark.parametrize(
    ('trusted', 'scheme'), [(True, 'https'), (False, 'http')]
)
def test_versions_behind_a_proxy(conf, manager, trusted, scheme):
    conf.set_override('auth_strategy', 'keystone', 'api')
    layers = deploy.deploy(conf, manager)
    conf.set_override(
        'enable_proxy_headers_parsing', trusted, 'oslo_middleware'
    )
    answer = testing.TestClient(layers).simulate_get(
        '/', host='reservations.example',
        headers={'X-Forwarded-Proto': 'https'},
    )
    [link] = answer.json['versions'][0]['links']
    assert link['href'] == f'{scheme}://reservations.example/v1'


def test_head_is_get_without_a_body(api, manager):
    manager.answers['list_leases'] = []
    answer = api.simulate_head('/v1/leases')
    assert answer.status_code == 200
    assert answer.content == b''
    answer = api.simulate_head('/v1/os-hosts', headers={'X-Auth-Token': 'bob'})
    assert answer.status_code == 403


@pytest.mark.parametrize(
    ('method', 'path'),
    [
        (route.method, route.path)
        for route in routes.ROUTES
        if route.method != 'GET' and not route.path.startswith(routes.LEASES)
        and route.since == microversion.V1_0
    ],
)
@pytest.mark.parametrize('version', ['1.0', '1.2'])
def test_who_only_asks_changes_nothing(api, manager, method, path, version):
    """Only leases have dry runs; see test_lease."""
    answer = api.simulate_request(
        method,
        path.format(host_id=1, floating_ip_id=1, name='gpu'),
        params={'dry_run': 'true'},
        json={},
        headers={'OpenStack-API-Version': f'reservation {version}'},
    )
    assert answer.status_code == 400
    assert 'dry_run' in answer.json['error_message']
    assert manager.calls == []
