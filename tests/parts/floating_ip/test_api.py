# SPDX-License-Identifier: Apache-2.0
"""Floating IPs, and the reservations of them."""

import pytest

from blazar_sched.domain import exception
from blazar_sched.parts.floating_ip import exception as refusals
from tests.parts.floating_ip.tables import FLOATING_IP
from tests.unit.api.conftest import *  # noqa: F401, F403

SHOWN = {
    'id': 'b1f5d6c4-0000-4000-8000-000000000004',
    'floating_network_id': 'b1f5d6c4-0000-4000-8000-000000000005',
    'subnet_id': 'b1f5d6c4-0000-4000-8000-000000000006',
    'floating_ip_address': '192.0.2.7',
    'reservable': True,
    'created_at': '2026-01-01 00:00:00',
    'updated_at': None,
}
NEW = {'floating_network_id': 'n1', 'floating_ip_address': '203.0.113.7'}
LEASE = {'name': 'lease', 'end_date': '2030-01-01 01:00'}
ASKED = {
    'resource_type': 'virtual:floatingip',
    'network_id': 'n1',
    'amount': 2,
}


@pytest.fixture
def floating_ip():
    """A floating IP as the manager returns it."""
    return dict(FLOATING_IP)


def test_floating_ip_is_shown_as_by_blazar(api, manager, floating_ip):
    manager.answers['get_floating_ip'] = floating_ip
    manager.answers['list_floating_ips'] = [floating_ip]
    assert api.simulate_get('/v1/floatingips/f1').json == {'floatingip': SHOWN}
    assert api.simulate_get('/v1/floatingips').json == {'floatingips': [SHOWN]}
    assert manager.calls == [
        ('get_floating_ip', {'floating_ip_id': 'f1'}),
        ('list_floating_ips', {}),
    ]


def test_create(api, manager, floating_ip):
    manager.answers['create_floating_ip'] = floating_ip
    answer = api.simulate_post('/v1/floatingips', json=NEW)
    assert answer.status_code == 201
    assert answer.json == {'floatingip': SHOWN}
    assert manager.calls == [
        (
            'create_floating_ip',
            {'network_id': 'n1', 'address': '203.0.113.7'},
        )
    ]


@pytest.mark.parametrize(
    'body, field',
    [
        ({}, 'floating_network_id'),
        ([], 'object'),
        ({'floating_network_id': 'n1'}, 'floating_ip_address'),
        ({'floating_ip_address': '203.0.113.7'}, 'floating_network_id'),
        ({**NEW, 'floating_network_id': ''}, 'floating_network_id'),
        ({**NEW, 'floating_network_id': 'n' * 37}, 'floating_network_id'),
        ({**NEW, 'floating_network_id': 'nü'}, 'floating_network_id'),
        ({**NEW, 'floating_network_id': 'n1\n'}, 'floating_network_id'),
        ({**NEW, 'floating_ip_address': 7}, 'floating_ip_address'),
        ({**NEW, 'floating_ip_address': None}, 'floating_ip_address'),
        ({**NEW, 'colour': 'red'}, 'colour'),
    ],
)
def test_a_bad_value_is_refused_by_name(api, manager, body, field):
    answer = api.simulate_post('/v1/floatingips', json=body)
    assert answer.status_code == 400
    assert field in answer.json['error_message']
    assert manager.calls == []


@pytest.mark.parametrize(
    'method, path, refusal',
    [
        ('POST', '', refusals.FloatingIPExists('x')),
        ('POST', '', exception.NotFound('x')),
        ('DELETE', '/f1', refusals.CantDeleteFloatingIP('x')),
        ('DELETE', '/f1', refusals.FloatingIPNotFound('x')),
    ],
)
def test_refusals_keep_their_name(api, manager, method, path, refusal):
    name = 'create' if method == 'POST' else 'delete'
    manager.answers[f'{name}_floating_ip'] = refusal
    answer = api.simulate_request(
        method, f'/v1/floatingips{path}', json=NEW if not path else None
    )
    assert answer.status_code == refusal.status
    assert answer.json['error_name'] == type(refusal).__name__


@pytest.mark.parametrize(
    'method, path', [('POST', ''), ('DELETE', '/f1'), ('GET', '')]
)
def test_a_member_may_look_only(api, manager, answers, method, path):
    manager.answers = answers
    answer = api.simulate_request(
        method, f'/v1/floatingips{path}',
        json=NEW if method == 'POST' else None,
        headers={'X-Auth-Token': 'alice:p1'},
    )
    assert answer.status_code == (200 if method == 'GET' else 403)


class TestReservation:
    def create(self, api, **values):
        return api.simulate_post(
            '/v1/leases', json={**LEASE, 'reservations': [{**ASKED, **values}]}
        )

    @pytest.mark.parametrize(
        'sent, meant',
        [
            ({}, {'required_floatingips': []}),
            ({'amount': '2'}, {'required_floatingips': []}),
            (
                {'required_floatingips': ['203.0.113.7', '2001:db8::7']},
                {'required_floatingips': ['203.0.113.7', '2001:db8::7']},
            ),
        ],
    )
    def test_create(self, api, manager, lease, sent, meant):
        manager.answers['create_lease'] = lease
        assert self.create(api, **sent).status_code == 201
        [(_, asked)] = manager.calls
        assert asked['values']['reservations'] == [{**ASKED, **meant}]

    @pytest.mark.parametrize(
        'sent, field',
        [
            ({'network_id': None}, 'network_id'),
            ({'network_id': ''}, 'network_id'),
            ({'amount': 0}, 'amount'),
            ({'amount': 2**31}, 'amount'),
            ({'amount': None}, 'amount'),
            ({'required_floatingips': 'x'}, 'required_floatingips'),
            ({'required_floatingips': [7]}, r'required_floatingips[0]'),
            ({'required_floatingips': ['x' * 46]}, 'required_floatingips[0]'),
        ],
    )
    def test_a_bad_value_is_named(self, api, manager, sent, field):
        answer = self.create(api, **sent)
        assert answer.status_code == 400
        assert 'reservations[0]' in answer.json['error_message']
        assert field in answer.json['error_message']
        assert manager.calls == []

    @pytest.mark.parametrize('missing', ['network_id', 'amount'])
    def test_reservation_without_a_required_field_is_refused(
        self, api, manager, missing
    ):
        asked = {k: v for k, v in ASKED.items() if k != missing}
        answer = api.simulate_post(
            '/v1/leases', json={**LEASE, 'reservations': [asked]}
        )
        assert answer.status_code == 400
        assert missing in answer.json['error_message']

    def test_update(self, api, manager, lease):
        manager.answers['update_lease'] = lease
        change = {'id': 'r1', 'amount': 3, 'required_floatingips': []}
        answer = api.simulate_put(
            '/v1/leases/l1', json={'reservations': [change]}
        )
        assert answer.status_code == 200
        [(_, asked)] = manager.calls
        assert asked['values']['reservations'] == [change]

    def test_reservation_of_floating_ips_is_shown_as_in_blazar(
        self, api, manager, lease
    ):
        parameters = {
            'network_id': 'n1',
            'amount': 1,
            'required_floatingips': ['203.0.113.7'],
        }
        reservation = lease['reservations'][0]
        reservation.update(
            resource_type='virtual:floatingip', parameters=parameters
        )
        manager.answers['get_lease'] = lease
        [shown] = api.simulate_get('/v1/leases/l1').json['lease'][
            'reservations'
        ]
        assert shown == {
            'id': reservation['id'],
            'lease_id': lease['id'],
            'resource_id': reservation['id'],
            'resource_type': 'virtual:floatingip',
            'status': 'pending',
            'missing_resources': False,
            'resources_changed': False,
            'created_at': '2026-01-01 00:00:00',
            'updated_at': None,
            **parameters,
        }
