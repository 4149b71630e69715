# SPDX-License-Identifier: Apache-2.0
"""How far a lease can be prolonged, with the real manager and ledger."""

import datetime

import pytest

V1_1 = {'OpenStack-API-Version': 'reservation 1.1'}
ALICE = {**V1_1, 'X-Auth-Token': 'alice:p1'}
HOUR = datetime.timedelta(hours=1)
SECOND = datetime.timedelta(seconds=1)
FIRST = datetime.datetime(2030, 1, 1)
HOSTS = {'resource_type': 'physical:host', 'min': 2, 'max': 2}


@pytest.fixture
def api(service):
    """A cloud with two hosts."""
    for name in ('compute-1', 'compute-2'):
        answer = service.api.post('/v1/os-hosts', json={'name': name})
        assert answer.status_code == 201, answer.text
    return service.api


def text(at):
    return f'{at.isoformat()}Z'


def book(api, first, last):
    """Book both hosts for hours; return the lease."""
    answer = api.post('/v1/leases', headers=ALICE, json={
        'name': 'night-run', 'start_date': text(FIRST + first * HOUR),
        'end_date': text(FIRST + last * HOUR), 'reservations': [HOSTS],
    })
    assert answer.status_code == 201, answer.text
    return answer.json['lease']


@pytest.fixture
def lease(api):
    """A lease of an hour; two hours later its hosts are booked again."""
    lease = book(api, 0, 1)
    book(api, 3, 4)
    return lease


def ask(api, lease, status=200, headers=ALICE, **query):
    answer = api.get(
        f'/v1/leases/{lease["id"]}/extension', params=query, headers=headers
    )
    assert answer.status_code == status, answer.text
    return answer.json.get('extension')


def update(api, lease, end, query='', headers=ALICE, far=True):
    more = {'as_far_as_possible': True} if far else {}
    return api.put(
        f'/v1/leases/{lease["id"]}', query_string=query, headers=headers,
        json={'end_date': end, **more},
    )


def test_a_lease_is_prolonged_by_what_is_shown(api, lease):
    last = FIRST + 3 * HOUR
    assert ask(api, lease) == {
        'end_date': text(last), 'limited_by': 'capacity', 'reservation': 0,
        'available': 0, 'searched_until': None,
    }
    assert update(
        api, lease, text(last + SECOND), far=False
    ).status_code == 409
    assert update(api, lease, text(last), far=False).status_code == 200
    assert ask(api, lease)['end_date'] == text(last)
