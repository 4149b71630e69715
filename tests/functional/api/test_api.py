# SPDX-License-Identifier: Apache-2.0
"""The API over the real manager and ledger."""

from concurrent import futures
import json
import time
import urllib.parse

import hypothesis
from hypothesis import strategies as st
import pytest

from blazar_sched.service.api import deploy
from blazar_sched.service.api.schemas.lease import SORT_KEYS
from blazar_sched.service.bus import rpc
from tests import loopback
from tests import tables

ALICE = {'X-Auth-Token': 'alice:p1'}
BOB = {'X-Auth-Token': 'bob:p2'}
V1_1 = {'OpenStack-API-Version': 'reservation 1.1'}
ENVELOPE = {'error_code', 'error_message', 'error_name'}
UNKNOWN = '00000000-0000-4000-8000-000000000000'


def lease(**values):
    return {
        'name': 'night-run',
        'start_date': '2030-01-01 00:00',
        'end_date': '2030-01-01 01:00',
        'reservations': [{
            'resource_type': 'physical:host', 'min': 1, 'max': 1,
            'hypervisor_properties': '', 'resource_properties': '',
        }],
        'events': [],
        'before_end_date': None,
        **values,
    }


HOST = {'resource_type': 'physical:host', 'min': 1, 'max': 1}


def instances(**parameters):
    return {
        'resource_type': 'virtual:instance', 'vcpus': 4, 'memory_mb': 1024,
        'disk_gb': 10, 'amount': 1, 'affinity': 'None',
        'resource_properties': '', **parameters,
    }


@pytest.fixture
def api(service):
    """A cloud with one reservable host."""
    answer = service.api.post(
        '/v1/os-hosts', json={'name': 'compute-1', 'gpu': 'a100'}
    )
    assert answer.status_code == 201, answer.text
    return service.api


def create(api, headers=ALICE, **values):
    answer = api.post('/v1/leases', json=lease(**values), headers=headers)
    assert answer.status_code == 201, answer.text
    return answer.json['lease']


def wait_for(api, lease_id, status):
    """Return a lease once it is in this status."""
    for _ in range(300):
        shown = api.get(f'/v1/leases/{lease_id}').json['lease']
        if shown['status'] == status:
            return shown
        time.sleep(0.1)
    raise AssertionError(shown)


def everything(api):
    """Return everything that the API shows."""
    return [
        api.get(path).text
        for path in ('/v1/leases', '/v1/os-hosts', '/v1/os-hosts/allocations')
    ]


def refused(answer, status, *words):
    assert answer.status_code == status, answer.text
    assert set(answer.json) == ENVELOPE
    for word in words:
        assert word in answer.text
    return answer.json


def test_a_service_with_a_manager_is_healthy(service):
    answer = service.api.get('/healthcheck', token=':')
    assert (answer.status_code, answer.text) == (200, 'OK')


@pytest.mark.row('C4', 'C50', 'F18')
def test_the_life_of_a_lease(api):
    made = create(api)
    path = f'/v1/leases/{made["id"]}'
    assert made['status'] == 'PENDING'
    assert made['project_id'] == 'p1'
    assert made['user_id'] == 'alice'
    assert {e['event_type']: e['time'] for e in made['events']} == {
        'start_lease': '2030-01-01T00:00:00.000000',
        'before_end_lease': '2030-01-01T00:30:00.000000',
        'end_lease': '2030-01-01T01:00:00.000000',
    }

    shown = api.get(path, headers=ALICE).json['lease']
    assert shown == made
    listed = api.get('/v1/leases', headers=ALICE).json['leases']
    assert listed == [made]
    shown = api.get(path, headers={**ALICE, **V1_1}).json['lease']
    assert shown['reservations'][0]['hosts'] == ['compute-1']

    answer = api.put(
        path, headers=ALICE,
        json={'name': 'long-run', 'end_date': '2030-01-02 00:00'},
    )
    changed = answer.json['lease']
    assert changed['name'] == 'long-run'
    assert changed['end_date'] == '2030-01-02T00:00:00.000000'

    [allocation] = api.get('/v1/os-hosts/allocations').json['allocations']
    assert allocation['reservations'] == [{
        'id': made['reservations'][0]['id'], 'lease_id': made['id'],
        'start_date': '2030-01-01T00:00:00.000000',
        'end_date': '2030-01-02T00:00:00.000000',
    }]

    assert api.delete(path, headers=ALICE).status_code == 204
    refused(api.get(path, headers=ALICE), 404)
    assert api.get('/v1/leases').json == {'leases': []}


@pytest.mark.row('F19')
@pytest.mark.parametrize(
    ('version', 'status'), [('1.0', 400), ('1.1', 409), ('latest', 409)]
)
def test_no_room_is_refused_and_leaves_nothing(api, version, status):
    create(api)
    before = everything(api)
    headers = {**BOB, 'OpenStack-API-Version': f'reservation {version}'}
    for body in (
        lease(),
        lease(start_date='2030-01-01 00:59', end_date='2040-01-01 00:00'),
        lease(reservations=[instances()]),
        # The first reservation has room, the second has none.
        lease(
            start_date='2030-01-01 01:00', end_date='2030-01-01 02:00',
            reservations=[instances(amount=4), instances()],
        ),
    ):
        answer = api.post('/v1/leases', json=body, headers=headers)
        assert answer.status_code == status
        said = answer.json
        assert said['error_code'] == status
        assert said['error_name'] == 'NotEnoughHostsAvailable'
        assert everything(api) == before


@pytest.mark.row('C50', 'F9')
def test_an_unbounded_lease(api):
    made = create(api, {**ALICE, **V1_1}, end_date=None)
    assert made['end_date'] is None
    path = f'/v1/leases/{made["id"]}'
    shown = api.get(path, headers=ALICE).json['lease']
    far = {'end_date': shown['end_date'], 'name': 'renamed'}
    answer = api.put(path, json=far, headers=ALICE)
    assert answer.json['lease']['name'] == 'renamed'
    answer = api.get(path, headers={**ALICE, **V1_1})
    assert answer.json['lease']['end_date'] is None
    answer = api.put(
        path, json={'end_date': '2030-01-01 01:00'}, headers=ALICE
    )
    assert answer.json['lease']['end_date'] == '2030-01-01T01:00:00.000000'


@pytest.mark.row('F1')
def test_a_lease_is_pending_then_active_then_terminated(api):
    api.post('/v1/os-hosts', json={'name': 'compute-2'})
    two = {'resource_type': 'physical:host', 'min': 2, 'max': 2}
    made = create(api, reservations=[two])
    path = f'/v1/leases/{made["id"]}'
    shown = api.get(path, headers={**ALICE, **V1_1}).json['lease']
    assert shown['status'] == 'PENDING'
    assert shown['reservations'][0]['hosts'] == ['compute-1', 'compute-2']
    for body, status, of_reservation in [
        ({'start_date': 'now'}, 'ACTIVE', 'active'),
        ({'end_date': 'now'}, 'TERMINATED', 'deleted'),
    ]:
        answer = api.put(path, json=body, headers=ALICE)
        assert answer.status_code == 200, answer.text
        shown = wait_for(api, made['id'], status)
        [reservation] = shown['reservations']
        assert reservation['status'] == of_reservation
    assert {e['status'] for e in shown['events']} == {'DONE'}


@pytest.mark.row('C50', 'F8')
@pytest.mark.parametrize('dates', [{'start_date': 'now'}, {}])
def test_without_a_start_a_lease_starts_at_once(api, dates):
    body = {**lease(), **dates}
    if not dates:
        del body['start_date']
    answer = api.post('/v1/leases', json=body, headers=ALICE)
    assert answer.status_code == 201, answer.text
    wait_for(api, answer.json['lease']['id'], 'ACTIVE')


@pytest.mark.row('F68')
def test_a_failed_update_changes_nothing(api):
    made = create(api)
    create(api, start_date='2030-01-01 01:00', end_date='2030-01-01 02:00')
    before = everything(api)
    path = f'/v1/leases/{made["id"]}'
    reservation = made['reservations'][0]['id']
    for body, status in [
        ({'name': 'x', 'end_date': '2030-01-01 01:01'}, 400),
        ({'name': 'x', 'end_date': '2029-12-31 00:00'}, 400),
        ({'name': 'x', 'reservations': [{'id': UNKNOWN, 'min': 1}]}, 400),
        (
            {
                'name': 'x',
                'reservations': [{'id': reservation, 'min': 2, 'max': 2}],
            },
            400,
        ),
        (
            {
                'name': 'x',
                'reservations': [
                    {'id': reservation, 'resource_type': 'virtual:instance'}
                ],
            },
            409,
        ),
    ]:
        answer = api.put(path, json=body, headers=ALICE)
        refused(answer, status)
        assert everything(api) == before


def test_an_id_that_cannot_be_is_not_found(api):
    for id_ in ('x', "'", '9' * 300, 'é', '-1', '{}', '1.0', '１', '\1'):
        for method, path, body in (
            ('GET', '/v1/leases/{}', None),
            ('PUT', '/v1/leases/{}', {'name': 'x'}),
            ('DELETE', '/v1/leases/{}', None),
            ('GET', '/v1/os-hosts/{}', None),
            ('PUT', '/v1/os-hosts/{}', {'gpu': 'x'}),
            ('DELETE', '/v1/os-hosts/{}', None),
            ('GET', '/v1/os-hosts/{}/allocation', None),
            ('PATCH', '/v1/os-hosts/properties/{}', {'private': True}),
        ):
            answer = api.request(method, path.format(id_), json=body)
            refused(answer, 404)


def test_hosts(api):
    refused(api.post('/v1/os-hosts', json={'name': 'compute-1'}),
            409, 'HostExists')
    refused(api.post('/v1/os-hosts', json={'name': 'nowhere'}),
            404, 'HostNotFound')
    refused(
        api.post(
            '/v1/os-hosts', json={'name': 'compute-2', 'hold': 'loosely'}
        ),
        400, 'hold',
    )
    made = api.post(
        '/v1/os-hosts',
        json={'id': 'compute-2', 'hold': 'dedicated', 'unbounded': 'never'},
        headers=V1_1,
    ).json['host']
    assert made['hold'] == 'dedicated'
    assert made['unbounded'] == 'never'
    assert made['id'].isdigit()
    path = f'/v1/os-hosts/{made["id"]}'
    changed = api.put(
        path, json={'rack': '7', 'hold': 'shared'}, headers=V1_1
    ).json['host']
    assert (changed['rack'], changed['hold']) == ('7', 'shared')
    changed = api.put(path, json={'rack': None}).json['host']
    assert 'rack' not in changed
    assert api.get(path).json['host'] == changed
    assert api.delete(path).status_code == 204
    refused(api.get(path), 404, 'HostNotFound')


@pytest.mark.parametrize(
    'name',
    ['$__class__', "$gpu' OR '1'='1", '$gpu"; DROP TABLE host; --', '$%s'],
)
def test_a_hostile_requirement_is_only_the_name_of_nothing(api, name):
    before = everything(api)
    reservation = {
        **lease()['reservations'][0],
        'resource_properties': json.dumps(['==', name, 'a100']),
    }
    answer = api.post(
        '/v1/leases', json=lease(reservations=[reservation]), headers=ALICE
    )
    refused(answer, 400, 'NotEnoughHostsAvailable')
    assert everything(api) == before


def ask_for(api, text, headers=ALICE, path='/v1/leases', method='POST'):
    reservation = {**lease()['reservations'][0], 'resource_properties': text}
    return api.request(
        method, path, json=lease(reservations=[reservation]), headers=headers
    )


@pytest.fixture
def secret(api):
    """A private property of a host."""
    [host] = api.get('/v1/os-hosts').json['hosts']
    api.put(f'/v1/os-hosts/{host["id"]}', json={'secret': 'acme'})
    answer = api.patch(
        '/v1/os-hosts/properties/secret', json={'private': True}
    )
    assert answer.status_code == 200


@pytest.mark.parametrize('requirement', [
    '["==", "${}", "acme"]', '["==", "$capabilities:{}", "acme"]',
    '[">=", "${}", "ac"]', '["in", "${}", "a", "acme"]',
    '["not", ["==", "${}", "other"]]',
    '["or", ["==", "$gpu", "a100"], ["==", "${}", "acme"]]',
])
def test_a_private_property_is_like_one_that_no_host_has(
    api, secret, requirement
):
    before = everything(api)
    v1_1 = {**ALICE, **V1_1}
    said = []
    for name in ('secret', 'nowhere'):
        text = requirement.format(name)
        answers = [
            ask_for(api, text), ask_for(api, text, v1_1),
            ask_for(api, text, v1_1, '/v1/leases?dry_run=true'),
            api.get(
                '/v1/capacity', params={'resource_properties': text},
                headers=v1_1
            ),
        ]
        assert [a.status_code for a in answers] == [400, 409, 409, 400]
        said.append([a.text.replace(name, '?') for a in answers])
    assert said[0] == said[1]
    assert everything(api) == before


def test_an_admin_may_ask_for_a_private_property(api, secret):
    admin = {'X-Auth-Token': 'admin:p1'}
    text = '["==", "$secret", "acme"]'
    answer = ask_for(api, text, admin)
    assert answer.status_code == 201, answer.text
    made = answer.json['lease']
    # A member who sends the shown values back changes nothing.
    [reservation] = made['reservations']
    path = f'/v1/leases/{made["id"]}'
    change = {'id': reservation['id'], 'resource_properties': text}
    body = {'name': 'renamed', 'reservations': [change]}
    answer = api.put(path, json=body, headers=ALICE)
    assert answer.status_code == 200, answer.text
    change['resource_properties'] = '["==", "$secret", "acm"]'
    answer = api.put(path, json=body, headers=ALICE)
    refused(answer, 400, 'no host has secret')


def test_a_capability_that_no_host_has_is_named(api):
    answer = ask_for(api, '["==", "$node_type", "compute_skylake"]')
    refused(answer, 400, 'no host has node_type')
    v1_1 = {**ALICE, **V1_1}
    answer = ask_for(api, '["==", "$node_type", "compute_skylake"]', v1_1)
    assert answer.json['offer'] == {
        'reservation': 0, 'available': 0, 'start_date': None, 'end_date': None,
    }


def test_a_requirement_chooses(api):
    api.post('/v1/os-hosts', json={'name': 'compute-2', 'gpu': 'no'})
    made = create(api, reservations=[{
        'resource_type': 'physical:host', 'min': 1, 'max': 4,
        'hypervisor_properties': '[">=", "$vcpus", "8"]',
        'resource_properties': '["==", "$gpu", "no"]',
    }])
    held = {
        a['resource_id']: [r['lease_id'] for r in a['reservations']]
        for a in api.get('/v1/os-hosts/allocations').json['allocations']
    }
    names = {
        h['id']: h['hypervisor_hostname']
        for h in api.get('/v1/os-hosts').json['hosts']
    }
    assert {names[h]: leases for h, leases in held.items() if leases} == {
        'compute-2': [made['id']]
    }


@pytest.mark.parametrize('name', ['hypervisor_hostname', 'service_name'])
def test_a_reservation_names_hosts_in_every_version(api, name):
    named = json.dumps(['==', f'${name}', 'compute-1'])
    body = lease()
    body['reservations'][0]['resource_properties'] = named
    for path, document in (
        ('/v1/leases?dry_run=true', body),
        ('/v1/leases', body),
        *((f'/v1/{each}', {**more, 'reservations': body['reservations']})
          for each, more in tables.of('RESERVING').items()),
    ):
        answer = api.post(path, json=document, headers=V1_1 | ALICE)
        assert answer.status_code in (200, 201), answer.text
    body |= {'start_date': '2032-01-01 00:00', 'end_date': '2032-01-01 01:00'}
    made = api.post('/v1/leases', json=body, headers=ALICE)
    assert made.status_code == 201


@pytest.mark.parametrize('name', ['hypervisor_hostname', 'service_name'])
def test_a_query_of_a_member_names_no_host(api, name):
    """Else a member learns when a host is free, without a reservation."""
    named = json.dumps(['==', f'${name}', 'compute-1'])
    query = urllib.parse.urlencode({'resource_properties': named})
    path = f'/v1/capacity?{query}'
    answer = api.get(path, headers=V1_1 | ALICE)
    refused(answer, 400, 'InvalidInput', 'resource_properties')
    assert f'{name} is only for callers' in answer.json['error_message']
    assert api.get(path, headers=V1_1).status_code == 200


@pytest.mark.parametrize('name', ['hypervisor_hostname', 'service_name'])
def test_only_an_administrator_compares_names_by_order(api, name):
    """Else anybody finds out all names, character by character."""
    by_order = json.dumps(['not', ['>=', f'${name}', 'compute-3']])
    exact = json.dumps(['in', f'${name}', 'compute-1', 'compute-3'])
    query = '/v1/capacity?' + urllib.parse.urlencode({
        'start_date': 'now', 'end_date': '2040-01-01 00:00',
        'resource_properties': by_order,
    })
    for answer in (
        ask_for(api, by_order), api.get(query, headers=V1_1 | ALICE),
    ):
        refused(answer, 400, 'InvalidInput', 'resource_properties')
        assert f'{name} can be compared' in answer.json['error_message']
    assert ask_for(api, exact).status_code == 201
    assert api.get(query, headers=V1_1).status_code == 200


@pytest.mark.row('F86', 'F112')
def test_lists(api):
    """Each parameter reaches the ledger; see test_list for what it finds."""
    made = {
        name: create(
            api, name=name, start_date=f'203{n}-01-01 00:00',
            end_date=f'203{n}-01-02 00:00',
        )
        for n, name in enumerate(['b', 'a', 'c', 'a'])
    }
    create(
        api, BOB, name='bobs', reservations=[instances()],
        start_date='2040-01-01 00:00', end_date='2040-01-02 00:00',
    )

    def names(query, headers=ALICE):
        # Leases that were made in one second are in the order of their ids.
        answer = api.get(
            '/v1/leases', params={'sort': 'start', **query}, headers=headers
        )
        assert answer.status_code == 200, answer.text
        return [x['name'] for x in answer.json['leases']]

    marker = {'marker': made['c']['id']}
    for query, expected in (
        ({'name': 'a'}, ['a', 'a']),
        ({'status': 'PENDING', 'name': 'b'}, ['b']),
        ({'status': 'ACTIVE'}, []),
        ({'sort': 'name:desc,start:desc'}, ['c', 'b', 'a', 'a']),
        ({'sort': 'start:desc', 'limit': 2}, ['a', 'c']),
        ({'sort': 'start:desc', **marker}, ['a', 'b']),
        ({'project_id': 'p2'}, ['b', 'a', 'c', 'a']),
    ):
        assert names(query) == expected
    for key in SORT_KEYS:
        assert len(names({'sort': f'{key}:desc'})) == 4
    for query, expected in (
        ({'project_id': 'p2'}, ['bobs']),
        ({'active_at': '2030-01-01 10:00'}, ['b']),
        ({'active_at': 'now'}, []),
        ({'start_date': '2032-01-01 10:00', 'end_date': '2035-01-01 10:00'},
         ['c', 'a']),
        ({'end_date': '2030-01-01T12:00:00+02:00'}, ['b']),
        ({'resource_type': 'virtual:instance'}, ['bobs']),
        ({'degraded': 'false', 'limit': 1}, ['b']),
        ({'degraded': 'true'}, []),
        ({'host': 'compute-1'}, ['b', 'a', 'c', 'a', 'bobs']),
    ):
        assert names(query, V1_1) == expected
    # A member does not see which hosts its instances are on.
    assert names({'host': 'compute-1'}, {**V1_1, **BOB}) == []
    # Version 1.0 ignores the parameter, as Blazar does.
    assert len(names({'host': 'none'})) == 4


LABELS = {'team': 'vision: "x"', 'run/1.b_c-d': '租🙂' * 127}


@pytest.mark.row('F97')
def test_labels(api):
    """Two projects with the same labels."""
    v1_1 = {**V1_1, **ALICE}
    body = lease(name='mine', labels=LABELS, reservations=[
        instances(labels={'role': 'db'}), instances(),
    ])
    for headers in (v1_1, {**V1_1, **BOB}):
        answer = api.post('/v1/leases', json=body, headers=headers)
        assert answer.status_code == 201, answer.text
    path = f'/v1/leases/{answer.json["lease"]["id"]}'
    assert answer.json['lease']['labels'] == LABELS
    assert [r['labels'] for r in answer.json['lease']['reservations']] == [
        {'role': 'db'}, {}
    ]
    old = api.get(path, headers=BOB).json['lease']
    assert 'labels' not in {**old, **old['reservations'][0]}

    def found(*labels, headers=v1_1):
        listed = api.get(
            '/v1/leases', params={'label': list(labels)}, params_csv=False,
            headers=headers,
        )
        assert listed.status_code == 200, listed.text
        return len(listed.json['leases'])

    run = f'run/1.b_c-d:{"租🙂" * 127}'
    for label in ('team:vision: "x"', run, 'role:db'):
        assert found(label) == 1
        assert found(label, headers=V1_1) == 2
        assert found(label, 'role:web') == 0
    assert found('team:vision: "x"', 'role:db') == 1
    for label in ('team:vision', 'Team:vision: "x"', 'role:d_', "role:'"):
        assert found(label) == 0

    def update(status=200, **values):
        answer = api.put(path, json=values, headers={**V1_1, **BOB})
        assert answer.status_code == status, answer.text
        return answer.json.get('lease', answer)

    assert update(name='renamed')['labels'] == LABELS
    assert update(labels={'a': 'b'})['labels'] == {'a': 'b'}
    reserved = update(labels={}, reservations=[
        {'id': old['reservations'][1]['id'], 'labels': {'role': 'web'}}
    ])
    assert reserved['labels'] == {}
    assert [r['labels'] for r in reserved['reservations']] == [
        {'role': 'db'}, {'role': 'web'}
    ]
    # The other lease is as it was.
    assert found('team:vision: "x"', headers=V1_1) == 1


SPECS = {'hw:mem_page_size': 'large', 'os:secure_boot': 'required'}


@pytest.mark.row('F118')
def test_flavor_of_a_reservation_has_ephemeral_disk_and_extra_specs(service):
    api = service.api
    api.post('/v1/os-hosts', json={'name': 'compute-1'})
    admin = {**V1_1, 'X-Auth-Token': 'admin:p1'}
    body = lease(reservations=[instances(
        disk_gb=1, ephemeral_gb='5', amount=2, extra_specs=SPECS
    )])
    # 1.0 ignores both, as Blazar does.
    old = api.post('/v1/leases', json=body, headers=ALICE)
    [allocation] = service.manager.ledger.allocations()
    assert allocation[0].amounts['DISK_GB'] == 2
    api.delete(f'/v1/leases/{old.json["lease"]["id"]}', headers=ALICE)
    answer = api.post('/v1/leases', json=body, headers={**V1_1, **ALICE})
    refused(answer, 403, 'blazar:leases:extra_specs')
    answer = api.post('/v1/leases', json=body, headers=admin)
    assert answer.status_code == 201, answer.text
    [made] = answer.json['lease']['reservations']
    assert (made['disk_gb'], made['ephemeral_gb']) == (1, 5)
    assert made['extra_specs'] == SPECS
    [allocation] = service.manager.ledger.allocations()
    assert allocation[0].amounts['DISK_GB'] == 12
    path = f'/v1/leases/{made["lease_id"]}'
    old = api.get(path, headers=ALICE).json['lease']
    assert not {'ephemeral_gb', 'extra_specs'} & set(old['reservations'][0])

    def change(headers=admin, **values):
        return api.put(path, headers=headers, json={
            'reservations': [{'id': made['id'], **values}]
        })

    # What the request does not name stays; the whole disk has to find room.
    [changed] = change({**V1_1, **ALICE}, disk_gb=2).json['lease'][
        'reservations'
    ]
    assert changed == {
        **made, 'disk_gb': 2, 'updated_at': changed['updated_at']
    }
    assert change(ephemeral_gb=10**6).status_code == 409
    refused(change(ephemeral_gb=2**31 - 1), 400, 'ephemeral_gb')
    [changed] = change(ephemeral_gb=0, extra_specs={}).json['lease'][
        'reservations'
    ]
    assert (changed['ephemeral_gb'], changed['extra_specs']) == (0, {})


def of(**parameters):
    return {'reservations': [instances(**parameters)]}


NO_SPECS = (
    'resources:VGPU', 'resources1:VCPU', 'resources_A:VCPU',
    'trait:CUSTOM_A', 'trait9:CUSTOM_A', 'blazar:reservation',
    'blazar:preemptible', 'lifecycle:preemptable',
    'aggregate_instance_extra_specs:reservation',
    'capabilities:hypervisor_type', 'pci_passthrough:alias',
    'accel:device_profile', 'hw:cpu_policy', 'hw:pmem', 'group_policy',
    'noscope', '', 'hw:', ':a', 'hw:ü', 'hw:a=b', 'hw:a\n',
    f'hw:{"x" * 129}',
)
LABELED = [
    ({'a:b': 'c'}, 'labels.a:b'),
    ({'a=b': 'c'}, 'labels.a=b'),
    ({'a\n': 'c'}, 'labels.a'),
    ({'': 'c'}, 'labels.'),
    ({"'": 'c'}, "labels.'"),
    ({'a' * 65: 'c'}, f'labels.{"a" * 65}'),
    ({'a': ''}, 'labels.a'),
    ({'a': 'c' * 256}, 'labels.a'),
    ({'a': 'c' * 4096}, 'labels.a'),
    ({'a': 'b\nc'}, 'labels.a'),
    ({'a': 1}, 'labels.a'),
    ({str(n): 'c' for n in range(33)}, 'labels'),
    (['a'], 'labels'),
]


@pytest.mark.parametrize('values, field', [
    *((of(extra_specs={key: '1'}), f'reservations[0].extra_specs.{key}')
      for key in NO_SPECS),
    *((of(extra_specs={'hw:a': value}), 'reservations[0].extra_specs.hw:a')
      for value in ('', 'x' * 256, 1, None)),
    *((of(extra_specs=value), 'reservations[0].extra_specs') for value in (
        {f'hw:{n}': 'x' for n in range(33)}, [], None, 'hw:a=b',
    )),
    *((of(ephemeral_gb=value), 'reservations[0].ephemeral_gb') for value in (
        -1, 1.5, None, [], True, 2**31, 'x',
    )),
    *((of(hosts=value), 'reservations[0].hosts') for value in (
        [], [''], ['compute-1', 'compute-1'], 'compute-1', None, [1], {},
        ['x' * 256], [str(n) for n in range(51)], ['a\n'],
    )),
    *(({'labels': labels}, field) for labels, field in LABELED),
    *((of(labels=labels), f'reservations[0].{field}')
      for labels, field in LABELED),
    ({'alternatives': [[HOST]] * 6}, 'alternatives'),
    ({'alternatives': [[]]}, 'alternatives[0]'),
    ({'alternatives': [HOST]}, 'alternatives[0]'),
    ({'alternatives': None}, 'alternatives'),
    ({'alternatives': 'x'}, 'alternatives'),
    ({'alternatives': [[{**HOST, 'min': 0}]]}, 'alternatives[0][0].min'),
    ({'alternatives': [[{**HOST, 'min': 2}]]}, 'max'),
    ({'alternatives': [[HOST]], 'end_date': None, 'duration': '1h',
      'latest_start_date': '2030-01-02 00:00'}, 'alternatives'),
])
def test_a_bad_value_is_refused_by_name(api, values, field):
    body = lease(**values)
    if values.get('duration'):
        del body['end_date']
    answer = api.post('/v1/leases', json=body, token='admin:p1', version='1.1')
    message = refused(answer, 400)['error_message']
    assert message.startswith(field[:64]), message
    assert api.get('/v1/leases').json == {'leases': []}


class TestAlternatives:
    @pytest.fixture
    def ask(self, api):
        """A cloud with one host: ask(*lists, **values) for a lease."""

        def ask(first, *others, headers=ALICE, query='', **values):
            return api.post(
                f'/v1/leases{query}', headers={**V1_1, **headers},
                json=lease(reservations=first, alternatives=others, **values),
            )

        return ask

    @pytest.mark.row('F32')
    def test_first_that_has_room_is_booked(self, api, ask):
        shapes = (
            [{**HOST, 'min': 2, 'max': 2}],
            [instances(vcpus=99)],
            [instances(ephemeral_gb=1, disk_gb=1)],
            [instances(disk_gb=1)],
        )
        key = {**ALICE, 'Idempotency-Key': 'once'}
        answer = ask(*shapes, query='?dry_run=true')
        assert answer.json['lease']['alternative'] == 2
        for _ in range(2):
            made = ask(*shapes, headers=key)
            assert made.status_code == 201, made.text
            assert made.json['lease']['alternative'] == 2
        [reservation] = made.json['lease']['reservations']
        assert reservation['ephemeral_gb'] == 1
        [shown] = api.get(
            '/v1/leases', headers={**V1_1, **ALICE}
        ).json['leases']
        assert shown == {
            k: v for k, v in made.json['lease'].items() if k != 'alternative'
        }
        # What is preferred comes first.
        answer = ask([instances()], [instances()])
        assert answer.json['lease']['alternative'] == 0

    def test_refusal_is_that_of_the_first_list(self, api, ask):
        assert ask([HOST], [instances()]).json['lease']['alternative'] == 0
        answer = ask([instances(amount=2)], [HOST])
        assert answer.status_code == 409
        assert '2 instances are needed' in answer.json['error_message']
        assert answer.json['in_the_way'][0]['mine'] is True

    def test_alternatives_need_the_same_rights(self, ask):
        answer = ask([HOST], [instances(extra_specs=SPECS)])
        refused(answer, 403, 'blazar:leases:extra_specs')


def name_foreign_hosts(api, path, more):
    """Name hosts in a request that the caller may not know."""
    for token, name in (
        ('admin:p1', 'compute-3'), ('admin:p1', 'compute-9'),
        ('alice:p1', 'compute-1'), ('alice:p1', 'compute-9'),
    ):
        named = {'name': 'n'} if path != 'offers' else {}
        answer = api.simulate_post(
            f'/v1/{path}', headers={**V1_1, 'X-Auth-Token': token},
            json={**named, **more, 'reservations': [
                HOST, {**HOST, 'hosts': [name]},
            ]},
        )
        refused(
            answer, 400, f"reservations[1].hosts: there is no host '{name}'"
        )


class TestNamedHosts:
    ADMIN = {**V1_1, 'X-Auth-Token': 'admin:p1'}

    @pytest.fixture
    def api(self, service):
        """A cloud of three hosts, of which one is for p2 alone."""
        for n, more in (1, {}), (2, {'gpu': 'yes'}), (3, {'projects': ['p2']}):
            answer = service.api.post(
                '/v1/os-hosts', json={'name': f'compute-{n}', **more}
            )
            assert answer.status_code == 201, answer.text
        return service.api

    @pytest.fixture
    def book(self, api):
        def book(reservation, hosts, headers=self.ADMIN, **values):
            body = lease(reservations=[{
                **reservation, 'hosts': hosts, **values
            }])
            return api.post('/v1/leases', headers=headers, json=body)

        return book

    @pytest.mark.parametrize('path, more', [
        ('leases', {'end_date': '2030-01-01 01:00'}),
        *tables.of('RESERVING').items(),
    ])
    def test_name_that_the_caller_may_not_know_is_no_host(
        self, api, path, more
    ):
        """A host of another project, and to a member any host."""
        name_foreign_hosts(api, path, more)

    @pytest.mark.row('F17')
    def test_only_named_hosts_are_chosen(self, api, book):
        made = book(HOST, ['compute-2'], max=2)
        assert made.status_code == 201, made.text
        path = f'/v1/leases/{made.json["lease"]["id"]}'

        def shown():
            answer = api.get(path, headers=self.ADMIN)
            return answer.json['lease']['reservations'][0]

        assert shown()['hosts'] == ['compute-2']
        assert json.loads(shown()['resource_properties']) == [
            'in', '$hypervisor_hostname', 'compute-2'
        ]
        answer = book(HOST, ['compute-2'])
        assert answer.status_code == 409
        assert [each['host'] for each in answer.json['in_the_way']] == [
            'compute-2'
        ]
        # The hosts also have to be as required.
        both, gpu = ['compute-1', 'compute-2'], '["==", "$gpu", "yes"]'
        for properties, status in (gpu, 409), (f'["not", {gpu}]', 201):
            answer = book(instances(), both, resource_properties=properties)
            assert answer.status_code == status, answer.text
        # A change replaces what was required.
        for hosts, status in (['compute-9'], 400), (['compute-1'], 409):
            answer = api.put(path, headers=self.ADMIN, json={
                'reservations': [{'id': shown()['id'], 'hosts': hosts}]
            })
            assert answer.status_code == status, answer.text
        answer = api.put(path, headers=self.ADMIN, json={
            'end_date': '2030-01-02 02:00', 'start_date': '2030-01-02 01:00',
            'reservations': [{'id': shown()['id'], 'hosts': ['compute-1']}],
        })
        assert answer.status_code == 200, answer.text
        assert shown()['hosts'] == ['compute-1']

    def test_blazars_version_names_no_hosts(self, book):
        refused(
            book(HOST, ['compute-1'], ALICE), 400,
            'reservations[0].hosts needs OpenStack-API-Version',
        )

    def test_malformed_requirement_beside_hosts_is_refused(self, book):
        for text in '["==", "$a", "b"], ["==", "$c", "d"]', '["x"]', '[':
            refused(
                book(HOST, ['compute-1'], resource_properties=text), 400,
                'reservations[0].resource_properties',
            )


def test_labels_of_a_lease_are_limited_in_total(api):
    labels = {str(n): 'x' for n in range(26)}
    answer = api.post('/v1/leases', headers=V1_1, json=lease(
        reservations=[instances(labels=labels)] * 4
    ))
    refused(answer, 400, 'labels')
    for query in ('label=team', 'label=a%22:b', '&'.join(['label=a:b'] * 33)):
        answer = api.get('/v1/leases', query_string=query, headers=V1_1)
        refused(answer, 400, 'label')


@pytest.mark.row('F35')
def test_a_dry_run_changes_nothing(api):
    headers = {**ALICE, **V1_1}
    made = create(api)
    before = everything(api)
    path = f'/v1/leases/{made["id"]}'
    there = {'start_date': '2031-01-01 00:00', 'end_date': '2031-01-02 00:00'}
    beyond = lease()['reservations'] * 2
    for method, where, body, status in (
        ('POST', '/v1/leases', lease(**there), 201),
        ('POST', '/v1/leases', lease(), 409),
        ('PUT', path, there, 200),
        ('PUT', path, {'reservations': beyond}, 409),
        ('DELETE', path, None, 204),
        ('DELETE', f'/v1/leases/{UNKNOWN}', None, 404),
    ):
        answer = api.request(
            method, where, json=body, headers=headers,
            query_string='dry_run=true',
        )
        assert answer.status_code == status, answer.text
        assert everything(api) == before
    old = api.delete(path, headers=ALICE, query_string='dry_run=true')
    refused(old, 400, 'dry_run')
    assert everything(api) == before


def test_a_request_again_makes_no_second_lease(api):
    headers = {**ALICE, 'Idempotency-Key': 'night run, 1st'}
    body = lease(start_date='now')
    first = api.post('/v1/leases', json=body, headers=headers)
    again = api.post('/v1/leases', json=body, headers=headers)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json['lease']['id'] == first.json['lease']['id']
    assert set(again.json['lease']) == set(first.json['lease'])
    refused(
        api.post(
            '/v1/leases', json={**body, 'name': 'other'}, headers=headers
        ),
        409, 'IdempotencyKeyReused', 'Idempotency-Key',
    )
    # For another project the key has no meaning: there is no room.
    refused(
        api.post('/v1/leases', json=body, headers={**headers, **BOB}),
        400, 'NotEnoughHostsAvailable',
    )
    assert len(api.get('/v1/leases').json['leases']) == 1


@pytest.mark.row('F37')
def test_a_request_many_times_at_once_makes_one_lease(api):
    headers = {**ALICE, 'Idempotency-Key': 'k'}
    with futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(
            lambda n: api.post('/v1/leases', json=lease(), headers=headers),
            range(8)
        ))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json['lease']['id'] for answer in answers}) == 1


@pytest.mark.row('F24')
def test_many_ask_for_the_last_host_at_once(api):
    with futures.ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(
            lambda n: api.post('/v1/leases', json=lease()), range(200)
        ))
    codes = sorted(answer.status_code for answer in answers)
    assert codes == [201] + [400] * 199


@pytest.mark.row('C5')
def test_without_a_manager_the_answer_is_503(service):
    service.manager.stop()
    bus = rpc.Client(rpc.transport(service.conf), timeout=0.2)
    api = loopback.client(deploy.deploy(service.conf, bus))
    said = refused(api.get('/v1/leases'), 503)
    assert said['error_name'] == 'Unavailable'


TIMES = st.sampled_from(
    ['now', None, '2030-01-01 00:00', '2030-01-01 01:00', '2020-01-01 00:00',
     '2105-12-31 23:59', '2031-01-01T00:00:00.5+01:00', '1969-12-31 23:59']
)
NUMBERS = st.integers(-1, 5) | st.sampled_from([2**31 - 1, '', '3', None])
REQUIREMENTS = st.sampled_from(
    ['', '["==", "$gpu", "a100"]', '["not", ["in", "$gpu", "a100"]]',
     '[">", "$__class__", "1"]', '["==", "$x\' OR 1=1 --", "1"]', '[]']
)
RESERVATIONS = st.lists(
    st.fixed_dictionaries(
        {'resource_type': st.just('physical:host'), 'min': NUMBERS,
         'max': NUMBERS},
        optional={'resource_properties': REQUIREMENTS,
                  'hypervisor_properties': REQUIREMENTS,
                  'before_end': st.sampled_from(['', 'default'])},
    )
    | st.fixed_dictionaries(
        {'resource_type': st.just('virtual:instance'), 'vcpus': NUMBERS,
         'memory_mb': NUMBERS, 'disk_gb': NUMBERS, 'amount': NUMBERS},
        optional={'resource_properties': REQUIREMENTS,
                  'affinity': st.sampled_from(['None', True, False])},
    ),
    min_size=1, max_size=3,
)


@pytest.mark.row('F87')
@hypothesis.settings(
    max_examples=60, deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(
    st.text(st.characters(exclude_categories=['Cs'], exclude_characters='\0'),
            min_size=1, max_size=80),
    TIMES, TIMES, TIMES, RESERVATIONS, st.integers(0, 3),
)
def test_no_lease_is_a_fault_of_ours(
    service, api, name, start, end, before_end, reservations, move
):
    headers = {**ALICE, **V1_1}
    body = {
        'name': name, 'start_date': start, 'end_date': end,
        'before_end_date': before_end, 'reservations': reservations,
    }
    made = api.post('/v1/leases', json=body, headers=headers)
    assert made.status_code in (201, 400, 409), made.text
    if made.status_code != 201:
        has_no_room = made.json['error_name'].startswith('NotEnough')
        assert set(made.json) - ({'offer'} if has_no_room else set()) == (
            ENVELOPE
        )
        return
    shown = made.json['lease']
    assert shown['name'] == name
    path = f'/v1/leases/{shown["id"]}'
    changed = api.put(path, headers=headers, json={
        'end_date': end if end != 'now' else None,
        'reservations': [{
            'id': shown['reservations'][0]['id'],
            **(
                {'min': move} if 'min' in shown['reservations'][0]
                else {'amount': move}
            ),
        }],
    })
    assert changed.status_code in (200, 400, 409), changed.text
    gone = api.delete(path, headers=headers)
    assert gone.status_code in (204, 409), gone.text


@pytest.mark.row('F29')
def test_a_refusal_offers_a_window_that_has_room(api):
    """It also says what is in the way: to an admin, on which host."""
    made = create(api)

    def ask(version, **values):
        return api.post(
            '/v1/leases', json=lease(**values),
            headers={**ALICE, 'OpenStack-API-Version': version},
        )

    refused(ask('reservation 1.0'), 400, 'NotEnoughHostsAvailable')
    said = ask('reservation 1.1').json
    offer = said.pop('offer')
    [own] = said.pop('in_the_way')
    assert said.pop('in_the_way_left_out') == 0
    assert set(said) == ENVELOPE
    assert own == {
        'kind': 'lease', 'mine': True, 'name': made['name'],
        'lease_id': made['id'], 'server_id': None, 'host': None, 'hosts': 1,
        'end_date': '2030-01-01T01:00:00Z',
    }
    path = '/v1/leases?dry_run=true'
    for token, seen in (
        ('bob:p2', {'mine': False, 'name': None, 'lease_id': None}),
        ('admin:p2', {'mine': False, 'host': 'compute-1'}),
    ):
        answer = api.post(
            path, json=lease(), headers={**V1_1, 'X-Auth-Token': token}
        )
        assert answer.json['in_the_way'] == [{**own, **seen}]
    assert offer == {
        'reservation': 0, 'available': 0, 'start_date': '2030-01-01T01:00:00Z',
        'end_date': '2030-01-01T02:00:00Z',
    }
    dates = {k: v for k, v in offer.items() if k.endswith('_date')}
    assert ask('reservation 1.1', **dates).status_code == 201


def test_a_response_that_the_caller_has_is_not_sent_again(api):
    made = api.post('/v1/leases', headers=ALICE, json=lease()).json['lease']
    for path in '/v1/leases', f'/v1/leases/{made["id"]}':
        first = api.get(path, headers=ALICE)
        assert first.headers['Cache-Control'] == 'private, no-cache'
        known = {**ALICE, 'If-None-Match': first.headers['ETag']}
        for method in 'GET', 'HEAD':
            again = api.request(method, path, headers=known)
            assert (again.status_code, again.text) == (304, '')
            assert again.headers['ETag'] == first.headers['ETag']
        # Nothing is known of another version, project or tag.
        assert api.get(path, headers={**known, **V1_1}).status_code == 200
        assert api.get(path, headers={**known, **BOB}).status_code != 304
        api.put(
            f'/v1/leases/{made["id"]}', headers=ALICE, json={'name': path}
        )
        changed = api.get(path, headers=known)
        assert (changed.status_code, path in changed.text) == (200, True)
