# SPDX-License-Identifier: Apache-2.0
"""Lease requests over REST, with the real manager and ledger."""

import datetime

import pytest

from blazar_sched.service.booking import search

V1_1 = {'OpenStack-API-Version': 'reservation 1.1'}
ALICE = {**V1_1, 'X-Auth-Token': 'alice:p1'}
ADMIN = {**V1_1, 'X-Auth-Token': 'admin:p1'}
BOB = {**V1_1, 'X-Auth-Token': 'bob:p2'}
HOST = {'resource_type': 'physical:host', 'min': 1, 'max': 1}
TODAY = datetime.date.today()


def day(number):
    return f'{TODAY + datetime.timedelta(days=number)}T00:00:00Z'


def create(api, headers=ALICE, **values):
    body = {
        'name': 'night-run', 'duration': '6h', 'start_date': day(2),
        'latest_start_date': day(3),
        'reservations': [{**HOST, 'min': 2, 'max': 2}], **values,
    }
    return api.post('/v1/requests', headers=headers, json=body)


def get(api, path, headers=ALICE):
    return api.get(f'/v1/{path}', headers=headers)


@pytest.fixture
def lease(api):
    """A lease of a host for the whole range of starts."""
    answer = api.post('/v1/leases', headers=ALICE, json={
        'name': 'long', 'start_date': day(1), 'end_date': day(5),
        'reservations': [HOST],
    })
    assert answer.status_code == 201, answer.text
    return answer.json['lease']


@pytest.fixture
def request_(api, lease):
    answer = create(api)
    assert answer.status_code == 201, answer.text
    return answer.json['request']


def test_a_request_that_has_room_is_booked(api):
    made = create(api).json['request']
    assert (made['status'], made['start_date']) == ('BOOKED', day(2))
    lease = get(api, f'leases/{made["lease_id"]}').json['lease']
    assert (lease['name'], lease['start_date']) == ('night-run', day(2))


def test_a_waiting_request_is_shown(api, request_):
    assert request_['status'] == 'WAITING'
    assert (request_['position'], request_['priority']) == (1, 'normal')
    assert request_['wait_until'] == request_['latest_start_date'] == day(3)
    assert (request_['estimate'], request_['duration']) == (day(5), 21600)
    path = f'requests/{request_["id"]}'
    assert get(api, path).json == {'request': request_}
    listed = {k: v for k, v in request_.items() if k != 'estimate'}
    assert get(api, 'requests').json == {'requests': [listed]}
    assert get(api, 'requests', BOB).json == {'requests': []}
    assert get(api, path, BOB).status_code == 404
    assert get(api, 'leases').json['leases'][0]['name'] == 'long'


def test_a_cancelled_request_waits_no_more(api, request_):
    path = f'/v1/requests/{request_["id"]}'
    assert api.delete(path, headers=BOB).status_code == 404
    assert api.delete(path, headers=ALICE).status_code == 204
    shown = get(api, f'requests/{request_["id"]}').json['request']
    assert (shown['status'], shown['estimate']) == ('CANCELLED', None)
    assert api.delete(path, headers=ALICE).status_code == 409


def test_a_high_priority_is_for_administrators(api, request_):
    refused = create(api, priority='high')
    assert refused.status_code == 403
    assert create(api, priority='low').json['request']['position'] == 2
    first = create(api, ADMIN, priority='high').json['request']
    assert (first['position'], first['priority']) == (1, 'high')


@pytest.mark.parametrize('field, value', [
    ('start_date', 'tomorrow'),
    ('start_date', day(-1)),
    ('latest_start_date', day(1)),
    ('latest_start_date', None),
    ('wait_until', day(4)),
    ('wait_until', day(-1)),
    ('duration', '8y'),
    ('duration', 0),
    ('priority', 'urgent'),
    ('priority', 2),
    ('reservations', []),
    ('reservations', [{'resource_type': 'virtual:floatingip', 'amount': 1,
                       'network_id': '5a9b2c0e-0000-4000-8000-000000000001'}]),
    ('name', ''),
])
def test_invalid_lease_request_is_refused_by_field(api, field, value):
    refused = create(api, **{field: value})
    assert refused.status_code == 400, refused.text
    assert field in refused.json['error_message']
    assert get(api, 'requests').json == {'requests': []}


def test_a_request_waits_while_others_search(api, service, lease, monkeypatch):
    monkeypatch.setattr(search, 'MAX_PROJECT_SEARCHES', 1)
    with service.manager.search.turn('p1'):
        assert create(api).json['request']['status'] == 'WAITING'
