# SPDX-License-Identifier: Apache-2.0
"""Lease requests over REST, in clouds with limits and products."""

import time

import pytest

from blazar_sched.parts.request.manager import LeaseRequests
from tests import looped
from tests.functional.api import test_group_limit
from tests.parts.limit import test_api as test_limits
from tests.parts.product import test_api as test_products


def ask(api, headers, reservation, **values):
    return api.post('/v1/requests', headers=headers, json={
        'name': 'later', 'reservations': [reservation], **values,
    })


def shown(api, headers, made):
    path = f'/v1/requests/{made.json["request"]["id"]}'
    return api.get(path, headers=headers).json['request']


class TestGroupLimit:
    pytestmark = pytest.mark.row('F76')

    @pytest.fixture
    def options(self):
        return test_group_limit.OPTIONS

    def test_a_lease_request_waits_for_the_limit(self, service, api):
        bob, small = test_group_limit.BOB, test_group_limit.SMALL
        lease = test_group_limit.reserve(
            api, bob, **{**small, 'amount': 4}
        ).json['lease']
        made = ask(
            api, bob, small, duration='2h', start_date='2030-01-01 10:00',
            latest_start_date='2030-01-01 10:00',
        )
        assert made.status_code in (200, 201, 202), made.text
        assert made.json['request']['status'] == 'WAITING', made.text
        api.delete(f'/v1/leases/{lease["id"]}', headers=bob)
        looped.of(service.manager, LeaseRequests).step()
        assert shown(api, bob, made)['status'] == 'BOOKED'


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


class TestWeights:
    @pytest.fixture
    def options(self):
        return test_limits.OPTIONS

    def test_a_lease_request_that_can_never_be_booked_is_refused(self, api):
        answer = ask(
            api, test_limits.P1, {**test_limits.SLOTS, 'amount': 2},
            duration='1h', start_date='2099-01-01 00:00',
            latest_start_date='2099-01-02 00:00',
        )
        assert test_limits.refusal(answer)[0] == 'MaxWeight'
