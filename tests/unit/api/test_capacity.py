# SPDX-License-Identifier: Apache-2.0
"""The requests and the responses for the capacity."""

import pytest

V1_1 = {'OpenStack-API-Version': 'reservation 1.1'}
ALICE = {**V1_1, 'X-Auth-Token': 'alice:p1'}
PATH = '/v1/capacity'
ALL = {
    'project_id': 'p1', 'start': 'now', 'end': None, 'parts': 1,
    'resource_properties': '', 'flavor_id': None,
}


@pytest.fixture(autouse=True)
def _answering(manager, capacity):
    manager.answers['get_capacity'] = capacity


def ask(api, headers=ALICE, **query):
    return api.get(PATH, params=query, headers=headers)


def test_capacity_is_shown_with_times_in_utc(api):
    answer = ask(api)
    assert answer.status_code == 200
    assert answer.json == {'capacity': {
        'start_date': '2026-01-01T01:00:00Z',
        'end_date': '2026-01-01T02:00:00Z',
        'hosts': 2,
        'parts': [{
            'start_date': '2026-01-01T01:00:00Z',
            'end_date': '2026-01-01T02:00:00Z',
            'hosts': 1,
            'instances': None,
            'resources': [{
                'resource_class': 'VCPU', 'total': 32, 'reserved': 8,
                'used': 4, 'available': 20,
            }],
        }],
    }}


@pytest.mark.parametrize('query, meant', [
    ({}, {}),
    ({'start_date': 'now'}, {}),
    ({'start_date': '2026-01-01 00:00'}, {'start': 1767225600}),
    ({'start_date': '2026-01-01T01:00:00+01:00'}, {'start': 1767225600}),
    ({'end_date': '2026-01-01T00:00:01Z'}, {'end': 1767225601}),
    ({'parts': '1'}, {}),
    ({'parts': '200'}, {'parts': 200}),
    (
        {'resource_properties': '["==", "$availability_zone", "a,b"]'},
        {'resource_properties': '["==", "$availability_zone", "a,b"]'},
    ),
    ({'resource_properties': ''}, {}),
    ({'flavor_id': '1'}, {'flavor_id': '1'}),
])
def test_query_of_the_capacity_reaches_the_manager(api, manager, query, meant):
    assert ask(api, **query).status_code == 200
    assert manager.calls == [('get_capacity', {**ALL, **meant})]


@pytest.mark.parametrize('query, field', [
    ({'start_date': ''}, 'start_date'),
    ({'start_date': 'never'}, 'start_date'),
    ({'start_date': '2026-02-30 00:00'}, 'start_date'),
    ({'start_date': '2026-01-01'}, 'start_date'),
    ({'start_date': '٢٠٢٦-01-01 00:00'}, 'start_date'),
    ({'start_date': 'x' * 5000}, 'start_date'),
    ({'end_date': ''}, 'end_date'),
    ({'end_date': 'now'}, 'end_date'),
    ({'end_date': '9999-12-31 00:00'}, 'end_date'),
    ({'end_date': '1969-12-31 23:59'}, 'end_date'),
    ({'parts': ''}, 'parts'),
    ({'parts': '0'}, 'parts'),
    ({'parts': '-1'}, 'parts'),
    ({'parts': '201'}, 'parts'),
    ({'parts': '1.0'}, 'parts'),
    ({'parts': '1e2'}, 'parts'),
    ({'parts': '٣'}, 'parts'),
    ({'parts': '9' * 5000}, 'parts'),
    ({'flavor_id': ''}, 'flavor_id'),
    ({'flavor_id': 'x' * 256}, 'flavor_id'),
])
def test_a_bad_value_is_refused_by_name(api, refused, query, field):
    refused(ask(api, **query), start=field)


def test_version_1_0_has_no_capacity(api, manager):
    assert ask(api, headers={}).status_code == 404
    assert manager.calls == []
    document = api.get('/openapi.json').json
    assert PATH not in document['paths']
    assert 'Capacity' not in document['components']['schemas']


def test_an_admin_asks_for_a_project_too(api, manager):
    assert ask(api, {**V1_1, 'X-Auth-Token': 'admin:p1'}).status_code == 200
    assert manager.calls == [('get_capacity', ALL)]
