# SPDX-License-Identifier: Apache-2.0
"""The operator's products, with the real manager and ledger."""

import json

import pytest

V1_1 = {'OpenStack-API-Version': 'reservation 1.1'}
ADMIN, ALICE, BOB = (
    {**V1_1, 'X-Auth-Token': token}
    for token in ('admin', 'alice:p1', 'bob:p2')
)
DAY = {'start_date': '2030-01-01 00:00', 'end_date': '2030-01-02 00:00'}
PRODUCTS = [
    {
        'name': 'rack 7', 'resource_type': 'physical:host',
        'resource_properties': ['==', '$$rack', '7'],
        'description': 'A host in rack 7', 'max_duration': 86400,
    },
    {
        'name': 'small', 'resource_type': 'flavor:instance',
        'flavor_id': 'm1.small', 'max_units': 4,
    },
    {
        'name': 'half', 'resource_type': 'virtual:instance', 'vcpus': 8,
        'memory_mb': 1024, 'disk_gb': 1, 'projects': ['p1'],
    },
    {
        'name': 'gone', 'resource_type': 'flavor:instance',
        'flavor_id': 'none',
    },
]


@pytest.fixture
def options():
    return '[manager]\n' + ''.join(
        f'product = {json.dumps(each)}\n' for each in PRODUCTS
    )


def products(api, headers=ALICE, **query):
    answer = api.simulate_get('/v1/products', headers=headers, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json['products']


def free(api, headers=ALICE, **query):
    """Return what is free of each product on a day."""
    return {
        each['name']: each['free']
        for each in products(api, headers, **{**DAY, **query})
    }


def book(api, headers=ALICE, day=DAY, **reservation):
    return api.simulate_post('/v1/leases', headers=headers, json={
        'name': 'run', **day, 'reservations': [reservation],
    })


def test_a_product_has_what_its_users_need_to_know(api):
    shown, *_ = products(api)
    assert shown == {
        'name': 'rack 7', 'description': 'A host in rack 7',
        'resource_type': 'physical:host', 'vcpus': None, 'memory_mb': None,
        'disk_gb': None, 'flavor_id': None, 'max_duration': 86400,
        'max_units': None, 'free': 1,
    }


def test_each_project_sees_its_own_products(api):
    # compute-2 is for p1 alone. At most 4 of the 16 small instances.
    assert free(api) == {'rack 7': 1, 'small': 4, 'half': 4, 'gone': 0}
    assert free(api, BOB) == {'rack 7': 1, 'small': 4, 'gone': 0}


@pytest.mark.row('F28')
def test_what_is_free_is_what_a_lease_can_have_in_the_window(api):
    host = {'resource_type': 'physical:host', 'min': 1, 'max': 1}
    assert book(
        api, BOB, resource_properties='["==", "$rack", "7"]', **host
    ).status_code == 201
    assert free(api) == {'rack 7': 0, 'small': 4, 'half': 2, 'gone': 0}
    assert free(api, end_date='2030-01-03 00:00')['rack 7'] == 0
    later = {'start_date': '2030-01-02 00:00', 'end_date': '2030-01-03 00:00'}
    assert free(api, **later)['rack 7'] == 1
    half = {
        'resource_type': 'virtual:instance', 'vcpus': 8, 'memory_mb': 1024,
        'disk_gb': 1, 'affinity': None,
    }
    assert book(api, ALICE, amount=3, **half).status_code == 409
    assert book(api, ALICE, amount=2, **half).status_code == 201
    assert free(api) == {'rack 7': 0, 'small': 0, 'half': 0, 'gone': 0}


@pytest.mark.parametrize(
    ('query', 'field'),
    [
        ({'start_date': 'friday'}, 'start_date'),
        ({'start_date': '2020-01-01 00:00'}, 'start_date'),
        ({**DAY, 'end_date': '2030-01-01 00:00'}, 'end_date'),
        ({'name': 'small'}, 'name'),
    ],
)
def test_an_invalid_query_is_refused_by_field(api, query, field):
    answer = api.simulate_get('/v1/products', params=query, headers=ALICE)
    assert answer.status_code == 400
    assert answer.json['error_message'].startswith(field)
