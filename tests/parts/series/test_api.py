# SPDX-License-Identifier: Apache-2.0
"""Series over REST, with the real manager and ledger."""

import datetime

import pytest

from blazar_sched.service.bus import calls
from tests.functional.api import test_api

V1_1 = {'OpenStack-API-Version': 'reservation 1.1'}
ALICE = {**V1_1, 'X-Auth-Token': 'alice:p1'}
BOB = {**V1_1, 'X-Auth-Token': 'bob:p2'}
HOST = {'resource_type': 'physical:host', 'min': 1, 'max': 1}
# The first Monday that is more than a day ahead, in Berlin.
FIRST = datetime.date.today() + datetime.timedelta(days=2)
FIRST += datetime.timedelta(days=-FIRST.weekday() % 7)


def create(api, headers=ALICE, query='', **values):
    body = {
        'name': 'course', 'rrule': 'FREQ=WEEKLY;COUNT=4',
        'time_zone': 'Europe/Berlin', 'start': f'{FIRST}T09:00',
        'duration': '8h', 'reservations': [HOST], **values,
    }
    return api.simulate_post(f'/v1/series{query}', headers=headers, json=body)


@pytest.fixture
def series(api):
    answer = create(api)
    assert answer.status_code == 201, answer.text
    return answer.json['series']


def get(api, path, headers=ALICE):
    return api.simulate_get(f'/v1/{path}', headers=headers)


def test_a_series_is_shown_with_its_leases(api, series):
    days = [FIRST + datetime.timedelta(weeks=n) for n in range(4)]
    assert [each['occurrence'] for each in series['leases']] == [
        f'{day}T09:00' for day in days
    ]
    assert (series['booked_until'], series['duration']) == (None, 28800)
    path = f'series/{series["id"]}'
    assert get(api, path).json == {'series': series}
    listed = {k: v for k, v in series.items() if k != 'leases'}
    assert get(api, 'series').json == {'series': [listed]}
    assert get(api, 'series', BOB).json == {'series': []}
    assert get(api, path, BOB).status_code == 404

    occurrence = series['leases'][1]
    lease = get(api, f'leases/{occurrence["lease_id"]}').json['lease']
    assert (lease['series_id'], lease['occurrence']) == (
        series['id'], occurrence['occurrence']
    )
    assert lease['start_date'] == occurrence['start_date']


def test_a_request_again_makes_no_second_series(api):
    headers = {**ALICE, 'Idempotency-Key': 'course, 1st'}
    first, again = create(api, headers), create(api, headers)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json == first.json
    other = create(api, headers, duration='7h')
    assert other.status_code == 409
    assert other.json['error_name'] == 'IdempotencyKeyReused'
    assert len(get(api, 'series').json['series']) == 1

    # For another project, the key has no meaning: the host is booked.
    assert create(api, {**headers, **BOB}).status_code == 409
    assert get(api, 'series', BOB).json == {'series': []}


def test_an_older_client_sees_ordinary_leases(api, series):
    old = {'X-Auth-Token': 'alice:p1'}
    leases = api.simulate_get('/v1/leases', headers=old).json['leases']
    assert len(leases) == 4
    assert not {'series_id', 'occurrence'} & leases[0].keys()
    assert get(api, 'series', old).status_code == 404
    assert create(api, old).status_code == 404


@pytest.mark.row('F33')
def test_occurrences_that_were_altered_or_skipped_are_shown(api, series):
    first, second, *_ = series['leases']
    longer = api.simulate_put(
        f'/v1/leases/{first["lease_id"]}', headers=ALICE,
        json={'duration': '9h'},
    )
    assert longer.status_code == 200, longer.text
    api.simulate_delete(f'/v1/leases/{second["lease_id"]}', headers=ALICE)
    shown = get(api, f'series/{series["id"]}').json['series']
    assert [each['occurrence'] for each in shown['leases']] == [
        each['occurrence'] for each in series['leases'] if each != second
    ]
    assert shown['leases'][0]['end_date'] > first['end_date']


def change(api, series, headers=ALICE, query='', **values):
    return api.simulate_put(
        f'/v1/series/{series["id"]}{query}', headers=headers, json=values
    )


def test_a_series_is_changed_from_an_occurrence_on(api, series):
    third = series['leases'][2]['occurrence']
    asked = {'from': third[:10], 'start': f'{FIRST}T10:00', 'name': 'later'}
    shown = change(api, series, query='?dry_run=true', **asked)
    assert get(api, f'series/{series["id"]}').json['series'] == series
    changed = change(api, series, **asked)
    assert (shown.status_code, changed.status_code) == (200, 200)
    for answer in shown, changed:
        assert [
            each['occurrence'][-5:] for each in answer.json['series']['leases']
        ] == ['09:00', '09:00', '10:00', '10:00']
    assert changed.json['series']['leases'][:2] == series['leases'][:2]
    assert changed.json['series']['name'] == 'later'
    path = f'series/{series["id"]}'
    assert get(api, path).json == changed.json
    assert len(get(api, 'leases').json['leases']) == 4


def test_invalid_change_of_a_series_is_refused(api, series):
    assert change(api, series, BOB, name='mine').status_code == 404
    old = {'X-Auth-Token': 'alice:p1'}
    assert change(api, series, old, name='old').status_code == 404
    for wrong in {'from': 'soon'}, {'duration': '8d'}, {'rrule': 'FREQ=X'}:
        refused = change(api, series, **wrong)
        assert refused.status_code == 400
        assert next(iter(wrong)) in refused.json['error_message']
    unknown = change(api, series, end_date='2030-01-01')
    assert unknown.status_code == 400
    many = [{**HOST, 'min': 9, 'max': 9}]
    assert change(api, series, reservations=many).status_code == 409
    path = f'series/{series["id"]}'
    assert get(api, path).json['series'] == series


def test_a_series_without_room_is_refused(api, series):
    refused = create(api, reservations=[{**HOST, 'min': 2, 'max': 2}])
    assert refused.status_code == 409
    assert f'occurrence {FIRST}T09:00' in refused.json['error_message']
    [mine] = refused.json['in_the_way']
    assert (mine['lease_id'], mine['hosts'], mine['host']) == (
        series['leases'][0]['lease_id'], 1, None
    )
    skipping = create(
        api, reservations=[{**HOST, 'min': 2, 'max': 2}], if_no_room='skip'
    )
    assert {
        each['lease_id'] for each in skipping.json['series']['leases']
    } == {None}


def test_change_that_leaves_out_a_parameter_sets_its_default(api):
    size = {
        'resource_type': 'virtual:instance', 'vcpus': 1, 'memory_mb': 1,
        'disk_gb': 1, 'amount': 1,
    }
    made = create(api, reservations=[
        {**size, 'ephemeral_gb': 5, 'before_end': ''},
    ]).json['series']
    answer = change(api, made, reservations=[size])
    assert answer.status_code == 200, answer.text
    for each in answer.json['series']['leases']:
        lease = get(api, f'leases/{each["lease_id"]}').json['lease']
        [reservation] = lease['reservations']
        assert reservation['ephemeral_gb'] == 0
        assert reservation['before_end'] == 'default'


@pytest.mark.parametrize('field, value', [
    ('rrule', 'FREQ=MINUTELY'),
    ('rrule', 'x' * 256),
    ('time_zone', 'Berlin'),
    ('start', 'tomorrow'),
    ('duration', '8d'),
    ('duration', 0),
    ('except', ['Monday']),
    ('except', 'Monday'),
    ('if_no_room', 'offer'),
    ('reservations', []),
    ('name', ''),
])
def test_invalid_series_is_refused_by_field(api, field, value):
    refused = create(api, **{field: value})
    assert refused.status_code == 400, refused.text
    assert field in refused.json['error_message']
    assert get(api, 'series').json == {'series': []}


class TestNamedHosts:
    api = test_api.TestNamedHosts.api

    def test_name_that_the_caller_may_not_know_is_no_host(self, api):
        """A host of another project, and to a member any host."""
        test_api.name_foreign_hosts(api, 'series', {
            'rrule': 'FREQ=DAILY;COUNT=2', 'time_zone': 'UTC',
            'start': '2030-01-01T00:00', 'duration': '1h',
        })


@pytest.mark.parametrize('call, arguments', [
    ('create_series', {'idempotency_key': 'k'}),
    ('create_series', {'dry_run': True}), ('update_series', {'dry_run': True}),
])
def test_calls_that_can_be_repeated(call, arguments):
    assert not calls.only_reads(call)
    assert calls.can_be_repeated(call, {'values': {}, **arguments})
    assert not calls.can_be_repeated(call, {'values': {}, 'dry_run': False})
