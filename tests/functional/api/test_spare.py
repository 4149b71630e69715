# SPDX-License-Identifier: Apache-2.0
"""Spare hosts over REST, with the real manager and ledger."""


import pytest

V1_1 = {'OpenStack-API-Version': 'reservation 1.1'}


@pytest.fixture
def set_spare(api):
    """set_spare(value) -> the answer to a change of compute-1."""
    return lambda value: api.put(
        '/v1/os-hosts/1', headers=V1_1, json={'spare': value}
    )


def test_invalid_value_of_spare_is_refused(set_spare):
    refused = set_spare('perhaps')
    assert refused.status_code == 400
    assert 'spare' in refused.json['error_message']
