# SPDX-License-Identifier: Apache-2.0
"""What an external service is told of floating IPs."""

from blazar_sched.parts.floating_ip import models
from blazar_sched.parts.floating_ip.floating_ip import FloatingIP
from tests.parts.limit import test_external

conf, service = test_external.conf, test_external.service
ADDRESS_ID = '00000000-0000-4000-8000-000000000000'


def test_a_floating_ip_is_an_allocation(world, service):
    world.ledger.commit(
        lambda tx: tx.run(
            models.add,
            FloatingIP(ADDRESS_ID, 'net', 'subnet', '203.0.113.7'),
        )
    )
    world.create(
        {
            'resource_type': 'virtual:floatingip',
            'network_id': 'net',
            'amount': 1,
        }
    )
    [(_, document, _)] = service.questions()
    [reservation] = document['lease']['reservations']
    assert reservation['allocations'] == [
        {
            'id': ADDRESS_ID,
            'floating_network_id': 'net',
            'subnet_id': 'subnet',
            'floating_ip_address': '203.0.113.7',
            'reservable': True,
        }
    ]
    assert document['lease']['resource_requests'] == {}
