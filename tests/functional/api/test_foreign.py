# SPDX-License-Identifier: Apache-2.0
"""Objects of another project are not found by any request."""

import itertools
import re

import pytest

from blazar_sched.service.api import routes

ALICE = {'X-Auth-Token': 'alice:p1'}
BOB = {'X-Auth-Token': 'bob:p2'}
V1_1 = {'OpenStack-API-Version': 'reservation 1.1'}
UNKNOWN = '00000000-0000-4000-8000-000000000000'
WINDOW = {'start_date': '2030-01-01 00:00', 'end_date': '2030-01-01 01:00'}
WHOLE = {'resource_type': 'physical:host', 'min': 1, 'max': 1}
# Valid bodies, so that only the id can be wrong.
BODIES = {('PUT', '/v1/leases/{lease_id}'): [
    {'name': 'mine'}, {'end_date': '2031-01-01 00:00'}, {'reservations': []},
    {'name': 'x' * 81},
]}
ON_LEASES = [r for r in routes.ROUTES if '{lease_id}' in r.path]


@pytest.fixture
def api(service):
    for name in ('compute-1', 'compute-2', 'compute-3'):
        answer = service.api.post('/v1/os-hosts', json={'name': name})
        assert answer.status_code == 201, answer.text
    return service.api


def create(api, headers, **values):
    answer = api.post(
        '/v1/leases', headers=headers,
        json={'name': 'run', **WINDOW, 'reservations': [WHOLE], **values},
    )
    assert answer.status_code == 201, answer.text
    return answer.json['lease']


@pytest.fixture
def theirs(api):
    return create(api, ALICE, name='secret')


def said(answer, id_):
    """Return the whole response except for the ids of lease and request."""
    text = f'{answer.status} {answer.headers} {answer.text}'.replace(id_, 'ID')
    return re.sub('req-[0-9a-f-]{36}', 'REQ', text)


def every_request():
    """Yield the requests about a lease: method, path, body, version."""
    for route in ON_LEASES:
        methods = ('GET', 'HEAD') if route.method == 'GET' else (route.method,)
        yield from itertools.product(
            methods, (route.path, f'{route.path}.json'),
            BODIES.get((route.method, route.path), [None]), ({}, V1_1),
        )


@pytest.mark.row('F85')
def test_a_foreign_lease_is_like_one_that_never_was(api, theirs):
    before = api.get('/v1/leases').text
    for method, path, body, version in every_request():
        foreign, unknown = (
            api.request(
                method, path.format(lease_id=id_), json=body,
                headers={**BOB, **version},
            )
            for id_ in (theirs['id'], UNKNOWN)
        )
        # The status is 400 for a body that is invalid for any lease.
        assert foreign.status_code in (400, 404)
        assert said(foreign, theirs['id']) == said(unknown, UNKNOWN)
    assert api.get('/v1/leases').text == before


@pytest.mark.row('F85')
def test_no_list_shows_a_foreign_lease(api, theirs):
    mine = create(api, BOB)
    for query in (
        '', 'project_id=p1', 'project_id=p1&project_id=p2', 'project_id=',
        'all_projects=true', 'all_tenants=1', 'name=secret', 'status=PENDING',
        'sort=name:desc', 'limit=1000', f'limit=1&marker={mine["id"]}',
        f'id={theirs["id"]}', f'user_id={theirs["user_id"]}',
    ):
        answer = api.get('/v1/leases', query_string=query, headers=BOB)
        assert theirs['id'] not in answer.text, query
        assert 'secret' not in answer.text, query


def test_a_foreign_marker_is_like_one_that_never_was(api, theirs):
    foreign, unknown = (
        api.get('/v1/leases', params={'marker': id_, 'limit': 1}, headers=BOB)
        for id_ in (theirs['id'], UNKNOWN)
    )
    assert foreign.status_code == 400
    assert said(foreign, theirs['id']) == said(unknown, UNKNOWN)


def test_a_foreign_reservation_is_not_ones_own(api, theirs):
    mine = create(api, BOB)
    [reservation] = theirs['reservations']
    before = api.get('/v1/leases').text
    for version in ({}, V1_1):
        foreign, unknown = (
            api.put(
                f'/v1/leases/{mine["id"]}', headers={**BOB, **version},
                json={'reservations': [{'id': id_, 'max': 2}]},
            )
            for id_ in (reservation['id'], UNKNOWN)
        )
        assert foreign.status_code == 400
        assert said(foreign, reservation['id']) == said(unknown, UNKNOWN)
    assert api.get('/v1/leases').text == before


def test_a_foreign_idempotency_key_is_free(api):
    def ask(headers):
        return api.post(
            '/v1/leases', headers={**headers, 'Idempotency-Key': 'k'},
            json={'name': 'run', **WINDOW, 'reservations': [WHOLE]},
        )

    first, second = ask(ALICE), ask(BOB)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json['lease']['id'] != second.json['lease']['id']


@pytest.mark.row('F85')
def test_hosts_tell_nobody_else_who_is_on_them(api, theirs):
    """The response does not reveal whether the host exists either."""
    for path in ('', '/1', '/1/allocation', '/allocations', '/99/allocation'):
        answer = api.get(f'/v1/os-hosts{path}', headers=BOB)
        assert answer.status_code == 403
        assert answer.json['error_name'] == 'NotAuthorized'


def test_refusals_name_no_foreign_lease(api, theirs):
    create(api, ALICE, name='secret')
    create(api, ALICE, name='secret')
    answer = api.post(
        '/v1/leases', headers=BOB,
        json={'name': 'run', **WINDOW, 'reservations': [WHOLE]},
    )
    assert answer.json['error_name'] == 'NotEnoughHostsAvailable'
    for word in ('secret', 'alice', 'p1', theirs['id']):
        assert word not in answer.text
