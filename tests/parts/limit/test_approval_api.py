# SPDX-License-Identifier: Apache-2.0
"""The approval of held offers above a limit, by the real manager."""

import pytest

WORDS = 'a lease may have at most 1 hosts'
APPROVABLE = f'{WORDS}; an administrator can approve a held offer of the lease'


def headers(user, version='1.2'):
    return {
        'X-Auth-Token': user,
        'OpenStack-API-Version': f'reservation {version}',
    }


@pytest.fixture
def options():
    return (
        '[enforcement]\n'
        'enabled_filters = MaxSizeFilter\n'
        'approval_filters = MaxSizeFilter\n'
        'max_hosts_per_lease = 1\n'
    )


@pytest.fixture
def send(api):
    """send(method, path, body, status) -> the answer."""

    def send(
        method, path, body=None, status=200, user='alice:p1', version='1.2'
    ):
        answer = api.simulate_request(
            method, f'/v1/{path}', json=body, headers=headers(user, version)
        )
        assert answer.status_code == status, answer.text
        return answer.json

    return send


def hold(send, **more):
    return send('POST', 'offers', {
        'reservations': [
            {'resource_type': 'physical:host', 'min': 2, 'max': 2},
        ],
        'duration': '1h', 'start_date': '2030-01-01 00:00', 'hold': '5m',
    }, **more)


def accept(send, id_, **more):
    return send('POST', 'leases', {'name': 'night-run', 'offer': id_}, **more)


@pytest.mark.row('F103')
def test_an_administrator_approves_what_the_owner_accepts(send):
    [offer, *_] = hold(send)['offers']
    path = f'offers/{offer["id"]}'

    assert (offer['needs_approval'], offer['limited_by']) == (WORDS, 'policy')
    refusal = accept(send, offer['id'], status=400)
    assert refusal['error_name'] == 'MaxHosts'
    assert refusal['error_message'] == f'reservations: {APPROVABLE}'
    refusal = send('PUT', path, {'approved': True}, status=403)
    assert 'blazar:offers:approve' in refusal['error_message']
    for user in 'bob:p2', 'alice:p1':
        send('PUT', path, {'approved': True}, status=403, user=user)
    [shown] = send('GET', 'offers', user='admin')['offers']
    assert (shown['project_id'], shown['approved_by']) == ('p1', None)
    shown = send(
        'PUT', path, {'approved': True, 'hold': '30m'}, user='admin'
    )['offer']
    assert shown['approved_by'] is not None
    assert shown['held_until'] > offer['held_until']
    assert send('GET', path)['offer'] == shown
    accept(send, offer['id'], status=409, user='bob:p2')
    lease = accept(send, offer['id'], status=201)['lease']
    assert lease['approved_by'] == shown['approved_by']
    assert (lease['user_id'], lease['project_id']) == ('alice', 'p1')
    send('PUT', path, {'approved': False}, status=404, user='admin')


@pytest.mark.parametrize('body, field', [
    ({'approved': 'yes'}, 'approved'), ({'approved': None}, 'approved'),
    ({'hold': '2h'}, 'hold'), ({'hold': 0}, 'hold'), ({'hold': -1}, 'hold'),
    ({'name': 'x'}, 'name'),
])
def test_a_mistake_changes_nothing(send, body, field):
    [offer, *_] = hold(send)['offers']
    refusal = send(
        'PUT', f'offers/{offer["id"]}', {'approved': True, **body}, status=400,
        user='admin',
    )
    assert refusal['error_message'].startswith(f'{field}')
    shown = send('GET', f'offers/{offer["id"]}')['offer']
    assert (shown['approved_by'], shown['held_until']) == (
        None, offer['held_until']
    )


def test_an_older_version_is_as_it_was(send):
    refusal = hold(send, status=400, version='1.1')
    assert refusal['error_message'] == f'reservations: {APPROVABLE}'
    [offer, *_] = hold(send)['offers']
    refusal = send(
        'PUT', f'offers/{offer["id"]}', {'approved': True}, status=404,
        user='admin', version='1.1',
    )
    assert 'reservation 1.2' in refusal['error_message']
    old = send('GET', f'offers/{offer["id"]}', version='1.1')['offer']
    assert not {'needs_approval', 'approved_by'} & old.keys()
