# SPDX-License-Identifier: Apache-2.0
"""Spare hosts over REST, with the real manager and ledger."""

import datetime

import pytest

V1_1 = {'OpenStack-API-Version': 'reservation 1.1'}
DAY = datetime.datetime.now() + datetime.timedelta(days=2)


@pytest.fixture
def set_spare(api):
    """set_spare(value) -> the answer to a change of compute-1."""
    return lambda value: api.put(
        '/v1/os-hosts/1', headers=V1_1, json={'spare': value}
    )


def free_hosts(api):
    answer = api.get('/v1/capacity', headers=V1_1)
    return answer.json['capacity']['parts'][0]['hosts']


@pytest.mark.parametrize('value', [True, 'true'])
def test_a_spare_host_is_left_out(api, set_spare, value):
    assert free_hosts(api) == 1
    shown = set_spare(value).json['host']
    assert shown['spare'] is True
    assert free_hosts(api) == 0
    refused = api.post('/v1/leases', headers=V1_1, json={
        'name': 'lease', 'start_date': f'{DAY:%Y-%m-%d %H:%M}',
        'duration': '1h', 'reservations': [
            {'resource_type': 'physical:host', 'min': 1, 'max': 1},
        ],
    })
    assert refused.status_code == 409
    assert 'spare' not in api.get('/v1/os-hosts/1').json['host']
    assert set_spare(None).json['host']['spare'] is False
    assert free_hosts(api) == 1


def test_invalid_value_of_spare_is_refused(set_spare):
    refused = set_spare('perhaps')
    assert refused.status_code == 400
    assert 'spare' in refused.json['error_message']
