# SPDX-License-Identifier: Apache-2.0
"""Series over REST, in clouds with products."""

import datetime

import pytest

from tests.parts.product import test_api as test_products

# A series is booked some weeks ahead.
FIRST = datetime.date.today() + datetime.timedelta(days=2)


class TestProducts:
    @pytest.fixture
    def options(self):
        return test_products.OPTIONS

    def test_series_can_name_a_product(self, api):
        alice, bob = test_products.ALICE, test_products.BOB
        asked = [{'product': 'rack 7', 'amount': 1}]
        values = {
            'name': 'course', 'rrule': 'FREQ=DAILY;COUNT=2',
            'time_zone': 'UTC', 'start': f'{FIRST}T09:00', 'duration': '1h',
            'reservations': asked,
        }
        made = api.simulate_post('/v1/series', headers=alice, json=values)
        assert made.status_code == 201, made.text
        series = made.json['series']
        ids = [each['lease_id'] for each in series['leases']]
        assert len(ids) == 2
        # The same reservations again replace no lease.
        same = api.simulate_put(
            f'/v1/series/{series["id"]}', headers=alice,
            json={'reservations': asked},
        ).json['series']
        assert [each['lease_id'] for each in same['leases']] == ids
        test_products.refused(
            api.simulate_post('/v1/series', headers=bob, json={
                **values, 'duration': '2d', 'rrule': 'FREQ=WEEKLY;COUNT=2',
                'start': f'{FIRST + datetime.timedelta(days=7)}T09:00',
            }),
            400, 'MaxLeaseDuration', 'rack 7',
        )
