# SPDX-License-Identifier: Apache-2.0
"""Lease requests over REST, in clouds with products."""

import time

import pytest

from tests.parts.product import test_api as test_products


def ask(api, headers, reservation, **values):
    return api.post('/v1/requests', headers=headers, json={
        'name': 'later', 'reservations': [reservation], **values,
    })


def shown(api, headers, made):
    path = f'/v1/requests/{made.json["request"]["id"]}'
    return api.get(path, headers=headers).json['request']


class TestProducts:
    @pytest.fixture
    def options(self):
        return test_products.OPTIONS

    def test_a_lease_request_waits_for_units(self, api):
        alice, bob = test_products.ALICE, test_products.BOB
        lease = test_products.reserve(api, 'small', 4, bob).json['lease']
        made = ask(
            api, alice, {'product': 'small', 'amount': 1}, duration='1h',
            start_date='2030-01-01 00:00', latest_start_date='2030-01-01 06:00'
        )
        assert made.json['request']['status'] == 'WAITING', made.text
        api.delete(f'/v1/leases/{lease["id"]}', headers=bob)
        end = time.monotonic() + 60
        while (
            found := shown(api, alice, made)
        )['status'] == 'WAITING' and time.monotonic() < end:
            time.sleep(0.1)
        assert found['status'] == 'BOOKED'
