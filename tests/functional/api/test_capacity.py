# SPDX-License-Identifier: Apache-2.0
"""The free capacity of hosts, with the real manager and ledger."""

import pytest

V1_1 = {'OpenStack-API-Version': 'reservation 1.1'}
ALICE = {**V1_1, 'X-Auth-Token': 'alice:p1'}
WINDOW = {'start_date': '2030-01-01 00:00', 'end_date': '2030-01-01 02:00'}
FIGURES = ('total', 'reserved', 'used', 'available')


def ask(api, headers=ALICE, **query):
    """Return the capacity; (hosts, instances, VCPU figures) of each part."""
    answer = api.get(
        '/v1/capacity', params={**WINDOW, **query}, headers=headers
    )
    assert answer.status_code == 200, answer.text
    shown = answer.json['capacity']
    return shown, [
        (
            part['hosts'],
            part['instances'],
            *(
                tuple(r[name] for name in FIGURES)
                for r in part['resources']
                if r['resource_class'] == 'VCPU'
            ),
        )
        for part in shown['parts']
    ]


def book(api, headers=ALICE, **reservation):
    """Create a lease of the window's first hour."""
    return api.post('/v1/leases', headers=headers, json={
        'name': 'night-run', 'start_date': '2030-01-01T00:00:00Z',
        'end_date': '2030-01-01T01:00:00Z', 'reservations': [reservation],
    })


@pytest.mark.row('F28')
def test_capacity_shrinks_after_a_booking(api):
    shown, parts = ask(api, parts=2, flavor_id='m1.small')
    assert shown['hosts'] == 2
    assert [part['start_date'] for part in shown['parts']] == [
        '2030-01-01T00:00:00Z', '2030-01-01T01:00:00Z'
    ]
    assert shown['end_date'] == '2030-01-01T02:00:00Z'
    untouched = (2, 16, (32, 0, 0, 32))
    assert parts == [untouched, untouched]

    small = {'resource_type': 'flavor:instance', 'flavor_id': 'm1.small'}
    lease = book(api, **small, amount=3).json['lease']
    _, parts = ask(api, parts=2, flavor_id='m1.small')
    assert parts == [(1, 13, (32, 6, 0, 26)), untouched]

    # There is room for exactly this number.
    assert book(api, **small, amount=14).status_code == 409
    assert book(api, **small, amount=13).status_code == 201
    _, parts = ask(api, parts=2, flavor_id='m1.small')
    assert parts == [(0, 0, (32, 32, 0, 0)), untouched]

    path = f'/v1/leases/{lease["id"]}'
    assert api.delete(path, headers=ALICE).status_code == 204
    _, [first, _] = ask(api, parts=2, flavor_id='m1.small')
    assert first[1:] == (3, (32, 26, 0, 6))
