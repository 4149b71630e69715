# SPDX-License-Identifier: Apache-2.0
"""Maintenances over REST, with the real manager and ledger."""

import datetime

import pytest

V1_1 = {'OpenStack-API-Version': 'reservation 1.1'}
DAY = datetime.datetime.now() + datetime.timedelta(days=2)
HOST = {'resource_type': 'physical:host', 'min': 1, 'max': 1}


def at(hours, form='%Y-%m-%d %H:%M'):
    return (DAY + datetime.timedelta(hours=hours)).strftime(form)


@pytest.fixture
def ask(api):
    """ask(method, path, body) -> the status and the content of the answer."""

    def ask(method, path='', body=None, version='1.1'):
        answer = api.simulate_request(
            method, f'/v1/maintenances{path}', json=body, headers={
                'OpenStack-API-Version': f'reservation {version}',
            },
        )
        return answer.status_code, answer.text and answer.json

    return ask


def wanted(**values):
    return {
        'name': 'rack 7', 'reason': 'power', 'start_date': at(0),
        'end_date': at(6), 'hosts': ['compute-1'], **values,
    }


def test_from_the_creation_to_the_end(ask):
    status, made = ask('POST', body=wanted())
    assert status == 201
    shown = made['maintenance']
    assert (shown['hosts'], shown['status']) == (['compute-1'], 'PLANNED')
    assert shown['start_date'] == at(0, '%Y-%m-%dT%H:%M:00Z')
    path = f'/{shown["id"]}'
    moved = shown.pop('moved')
    assert moved == []
    assert ask('GET', path) == (200, {'maintenance': shown})
    listed = {
        k: v for k, v in shown.items() if k not in ('in_the_way', 'servers')
    }
    assert ask('GET') == (200, {'maintenances': [listed]})

    status, changed = ask('PUT', path, {'end_date': None})
    assert (status, changed['maintenance']['end_date']) == (200, None)
    assert ask('DELETE', path)[0] == 204
    status, error = ask('GET', path)
    assert (status, error['error_name']) == (404, 'MaintenanceNotFound')


def test_maintenance_lists_the_leases_in_the_way(api, ask):
    lease = api.simulate_post('/v1/leases', headers=V1_1, json={
        'name': 'lease', 'start_date': at(1), 'end_date': at(2),
        'reservations': [HOST | {
            'resource_properties': '["==", "$rack", "7"]',
        }],
    }).json['lease']
    status, error = ask('POST', body=wanted())
    assert (status, error['error_name']) == (409, 'InTheWay')
    assert error['error_message'] == (
        f'hosts: 1 lease cannot leave the hosts: {lease["id"]} (no_room)'
    )
    status, shown = ask('POST', '?dry_run=true', wanted())
    assert status == 201
    [blocked] = shown['maintenance']['in_the_way']
    assert (blocked['lease_id'], blocked['why']) == (lease['id'], 'no_room')
    assert ask('GET') == (200, {'maintenances': []})
    status, forced = ask('POST', body=wanted(force=True))
    assert status == 201
    assert forced['maintenance']['in_the_way'] == [blocked]


@pytest.mark.parametrize(
    ('values', 'field'),
    [
        ({'hosts': []}, 'hosts'),
        ({'hosts': None}, 'hosts'),
        ({'resource_properties': '["==", "$rack", "7"]'}, 'not by both'),
        ({'name': ''}, 'name'),
        ({'reason': 'x' * 256}, 'reason'),
        ({'start_date': 'soon'}, 'start_date'),
        ({'end_date': at(-1)}, 'end_date'),
        ({'force': 'yes'}, 'force'),
        ({'mode': 'empty'}, 'mode'),
    ],
)
def test_invalid_maintenance_is_refused_by_field(ask, values, field):
    status, error = ask('POST', body=wanted(**values))
    assert status == 400, error
    assert field in error['error_message']
    assert ask('GET') == (200, {'maintenances': []})


def test_hosts_are_named_and_a_start_may_be_now(ask):
    body = wanted(start_date='now')
    del body['hosts']
    status, error = ask('POST', body=body)
    assert status == 400
    assert error['error_message'] == (
        'hosts or resource_properties is required'
    )
    assert ask('POST', body=wanted(start_date='now'))[0] == 201


def test_version_1_0_has_no_maintenances(ask):
    assert ask('GET', version='1.0')[0] == 404
    assert ask('POST', body=wanted(), version='1.0')[0] == 404
