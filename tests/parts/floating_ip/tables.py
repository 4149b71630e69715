# SPDX-License-Identifier: Apache-2.0
"""What floating IPs add to the tables of the tests: see `tests.tables`."""

from blazar_sched.parts.floating_ip import exception
from blazar_sched.parts.floating_ip import healing
from blazar_sched.parts.floating_ip.floating_ip import FloatingIP
from tests.standins.neutron import NETWORK

NEW = {'floating_network_id': 'n1', 'floating_ip_address': '192.0.2.7'}
# The routes of Blazar 18.
ROUTES = {
    ('GET', '/v1/floatingips'): (200, None),
    ('POST', '/v1/floatingips'): (201, NEW),
    ('GET', '/v1/floatingips/{floating_ip_id}'): (200, None),
    ('DELETE', '/v1/floatingips/{floating_ip_id}'): (204, None),
}
CLIENTS = {'neutron': 'network'}
VARIABLES = {'floating_ip_id': 'f1'}


def _make(service):
    answer = service.api.simulate_post('/v1/floatingips', json={
        'floating_network_id': NETWORK, 'floating_ip_address': '203.0.113.7',
    })
    return answer.json['floatingip']['id']


MADE = {'floating_ip_id': _make}
READ = {'blazar:floatingips:get'}
ADMIN = {'blazar:floatingips:post', 'blazar:floatingips:delete'}
FLOATING_IP = {
    'id': 'b1f5d6c4-0000-4000-8000-000000000004',
    'network_id': 'b1f5d6c4-0000-4000-8000-000000000005',
    'subnet_id': 'b1f5d6c4-0000-4000-8000-000000000006',
    'address': '192.0.2.7',
    'reservable': True,
    'created_at': 1767225600,
    'updated_at': None,
}
ANSWERED = {FloatingIP}
ANSWERS = {
    'list_floating_ips': [FLOATING_IP],
    'get_floating_ip': FLOATING_IP,
    'create_floating_ip': FLOATING_IP,
    'delete_floating_ip': None,
}
RESERVED = {
    'virtual:floatingip': {
        'network_id': 'b1f5d6c4-0000-4000-8000-000000000005',
        'amount': 2,
        'required_floatingips': ['192.0.2.7'],
    },
}
REFUSALS = {
    exception.FloatingIPNotFound: 404, exception.FloatingIPExists: 409,
    exception.CantDeleteFloatingIP: 409,
    exception.NotEnoughFloatingIPAvailable: 409,
}
NO_ROOM = {'NotEnoughFloatingIPAvailable'}
BOUNDS = {'floating_ip': 'registered by an operator'}
OF_LEASES = {'floating_ip_allocation'}
LOOPS = {healing.NAME}
