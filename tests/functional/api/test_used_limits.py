# SPDX-License-Identifier: Apache-2.0
"""The limits of a project, with what is used, by the real manager."""

import pytest

from tests import tables

V1_1 = {'OpenStack-API-Version': 'reservation 1.1'}
ADMIN, ALICE, BOB = (
    {**V1_1, 'X-Auth-Token': token} for token in ('admin', 'alice:p1', 'bob')
)
SMALL = {
    'resource_type': 'flavor:instance', 'flavor_id': 'm1.small', 'amount': 1,
}
HOST = {'resource_type': 'physical:host', 'min': 1, 'max': 1}


@pytest.fixture
def options():
    return (
        '[enforcement]\n'
        'enabled_filters = MaxLeaseDurationFilter,MaxHorizonFilter,'
        'MaxResourcesFilter\n'
        'max_lease_duration = 86400\n'
        'max_lease_duration_exempt_project_ids = p1\n'
    )


def limits(api, headers=ALICE, **query):
    """Return the limit and the use, by name and unit."""
    answer = api.simulate_get('/v1/limits', headers=headers, params=query)
    assert answer.status_code == 200, answer.text
    return {
        (each['name'], each['unit']): (each['limit'], each['used'])
        for each in answer.json['limits']
    }


def book(api, headers, hours=2, *reservations):
    return api.simulate_post('/v1/leases', headers=headers, json={
        'name': 'run', 'start_date': '2030-01-01 00:00',
        'duration': f'{hours}h', 'reservations': reservations,
    })


@pytest.mark.parametrize('options', [''])
@pytest.mark.parametrize('path, most, refusal, body', [
    (path, most, *refused)
    for (path, _, most), refused in tables.of('LIMITS').items()
])
def test_the_next_is_refused_once_the_limit_is_used(
    api, path, most, refusal, body
):
    """Of the numbers that no filter limits."""
    # Both hosts: the requests wait.
    assert book(api, ALICE, 2, HOST, HOST).status_code == 201
    for number in range(most + 1):
        [found] = [
            use for (_, unit), use in limits(api).items() if unit == path
        ]
        assert found == (most, number)
        assert all(
            use == 0 for (_, unit), (_, use) in limits(api, BOB).items()
            if unit == path
        )
        answer = api.simulate_post(f'/v1/{path}', headers=ALICE, json=body)
        assert (answer.status_code < 300) == (number < most), answer.text
    assert answer.json['error_name'] == refusal


def test_an_exempt_project_has_no_limit(api):
    assert limits(api)['max_lease_duration', 'seconds'] == (-1, None)
    assert limits(api, BOB)['max_lease_duration', 'seconds'] == (86400, None)
