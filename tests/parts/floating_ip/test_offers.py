# SPDX-License-Identifier: Apache-2.0
"""Requests for windows with floating IPs, to the whole service."""

from tests.functional.api.test_search import create
from tests.parts.offer.test_api import ask


def test_floating_ips_of_an_unknown_network(api):
    found = ask(api, {
        'resource_type': 'virtual:floatingip', 'network_id': 'n', 'amount': 1,
    })
    assert found['offers'] == []
    assert found['nearest'] == {
        'reservation': 0, 'available': 0, 'duration': None,
        'message': 'there are too few floating IPs',
    }


def test_a_range_of_starts_for_floating_ips_of_an_unknown_network(api):
    refused = create(api, {
        'resource_type': 'virtual:floatingip', 'network_id': 'n', 'amount': 1,
    })
    assert refused.status_code == 409
    assert refused.json['error_name'] == 'NotEnoughFloatingIPAvailable'
