# SPDX-License-Identifier: Apache-2.0
"""How far a lease can be prolonged: the requests and the responses."""

import pytest

from blazar_sched.domain.window import FOREVER

V1_1 = {'OpenStack-API-Version': 'reservation 1.1'}
ALICE = {**V1_1, 'X-Auth-Token': 'alice:p1'}
PATH = '/v1/leases/l1/extension'
LATER = '2026-01-01T02:00:00Z'


@pytest.fixture(autouse=True)
def _answering(manager, answers):
    manager.answers = answers


def show(api, headers=ALICE, **query):
    return api.get(PATH, params=query, headers=headers)


def update(api, headers=ALICE, query='', **body):
    return api.put(
        '/v1/leases/l1', json=body, headers=headers, query_string=query
    )


def test_extension_is_shown(api):
    answer = show(api)
    assert answer.status_code == 200
    assert answer.json == {'extension': {
        'end_date': LATER, 'limited_by': 'capacity', 'reservation': 0,
        'available': 1, 'searched_until': None,
    }}


def test_a_lease_without_an_end_has_a_null(api, manager):
    manager.answers['get_extension'] = {
        'end': FOREVER, 'limited_by': None, 'reservation': None,
        'available': None, 'searched_until': None,
    }
    assert show(api).json == {'extension': {
        'end_date': None, 'limited_by': None, 'reservation': None,
        'available': None, 'searched_until': None,
    }}


@pytest.mark.parametrize('query, end', [
    ({}, FOREVER),
    ({'end_date': LATER}, 1767232800),
    ({'end_date': '2026-01-01 03:00'}, 1767236400),
])
@pytest.mark.parametrize('token, project_id', [
    ('alice:p1', 'p1'), ('admin', None),
])
def test_query_of_the_extension_reaches_the_manager(
    api, manager, query, end, token, project_id
):
    answer = show(api, {**V1_1, 'X-Auth-Token': token}, **query)
    assert answer.status_code == 200
    assert manager.calls == [('get_extension', {
        'lease_id': 'l1', 'project_id': project_id, 'end': end,
    })]


@pytest.mark.parametrize('text', ['', 'now', 'null', 'soon', '1767232800'])
def test_a_time_that_is_none_is_refused_by_name(api, refused, text):
    refused(
        api.get(PATH, headers=ALICE, query_string=f'end_date={text}'),
        start='end_date'
    )


def test_version_1_0_has_no_extension(api, refused):
    headers = {'X-Auth-Token': 'alice:p1'}
    assert show(api, headers).status_code == 404
    refused(
        update(
            api, headers, end_date='2026-01-01 02:00', as_far_as_possible=True
        ), 'as_far_as_possible'
    )


@pytest.mark.parametrize('asked, sent', [
    (True, {'as_far_as_possible': True}), (False, {}), (None, {}),
])
@pytest.mark.parametrize('end_date, end', [
    (LATER, 1767232800), (None, FOREVER),
])
@pytest.mark.parametrize('query, dry_run', [
    ('', {}), ('dry_run=true', {'dry_run': True}),
])
def test_an_update_as_far_as_possible(
    api, manager, asked, sent, end_date, end, query, dry_run
):
    body = {'name': 'longer', 'end_date': end_date}
    if asked is not None:
        body['as_far_as_possible'] = asked
    answer = update(api, query=query, **body)
    assert answer.status_code == 200, answer.text
    assert manager.calls == [('update_lease', {
        'lease_id': 'l1', 'project_id': 'p1',
        'offering': True, 'names': False,
        'values': {'name': 'longer', 'end': end}, **sent, **dry_run,
    })]


@pytest.mark.parametrize('body, field', [
    ({}, 'as_far_as_possible'),
    ({'name': 'longer'}, 'as_far_as_possible'),
    ({'end_date': 'now'}, 'as_far_as_possible'),
    ({'end_date': LATER, 'start_date': 'now'}, 'start_date'),
    ({'end_date': LATER, 'before_end_date': None}, 'before_end_date'),
    ({'end_date': LATER, 'reservations': []}, 'reservations'),
    ({'end_date': LATER, 'as_far_as_possible': 'yes'}, 'as_far_as_possible'),
    ({'end_date': LATER, 'as_far_as_possible': None}, 'as_far_as_possible'),
    ({'end_date': LATER, 'as_far_as_possible': 1}, 'as_far_as_possible'),
])
def test_invalid_prolongation_is_refused_by_field(api, refused, body, field):
    refused(update(api, **{'as_far_as_possible': True, **body}), start=field)
