# SPDX-License-Identifier: Apache-2.0
"""The timeline over REST, with the real manager and ledger."""

import json

import pytest

V1_1 = {'OpenStack-API-Version': 'reservation 1.1'}
ALICE = {**V1_1, 'X-Auth-Token': 'alice:p1'}
BOB = {**V1_1, 'X-Auth-Token': 'bob:p2'}
ADMIN = V1_1
WINDOW = {'start_date': '2030-01-01 00:00', 'end_date': '2030-01-02 00:00'}
SMALL = {'resource_type': 'flavor:instance', 'flavor_id': 'm1.small'}

REFUSED = (
    ({'start_date': 'soon'}, 'start_date'),
    ({'end_date': ''}, 'end_date'),
    ({'end_date': '2029-12-31 00:00'}, 'end_date'),
    ({'end_date': '2060-12-31 00:00'}, 'end_date'),
    ({'parts': '0'}, 'parts'),
    ({'parts': '201'}, 'parts'),
    ({'parts': 'x'}, 'parts'),
    ({'parts': '2', 'end_date': '2030-01-01 00:00:01'}, 'parts'),
    ({'limit': '501'}, 'limit'),
    ({'limit': '-1'}, 'limit'),
    ({'marker': 'x' * 256}, 'marker'),
    ({'group_by': ''}, 'group_by'),
    ({'group_by': '$'}, 'group_by'),
    ({'group_by': 'nothing'}, 'group_by'),
    ({'group_by': '$$rack'}, 'group_by'),
    ({'group_by': 'x' * 256}, 'group_by'),
    ({'resource_properties': '["=="]'}, 'resource_properties'),
    ({'resource_properties': '["==","$no","1"]'}, 'resource_properties'),
    ({'group_by': 'flavor', 'resource_properties': '{'},
     'resource_properties'),
)


def ask(api, headers=ALICE, path='/v1/timeline', **query):
    return api.get(path, params={**WINDOW, **query}, headers=headers)


def rows(api, headers=ALICE, **query):
    answer = ask(api, headers, **query)
    assert answer.status_code == 200, answer.text
    return answer.json['timeline']['rows']


def book(api, headers=ALICE, name='night-run', **reservation):
    """Create a lease from one to two hours after the start of the window."""
    answer = api.post('/v1/leases', headers=headers, json={
        'name': name, 'start_date': '2030-01-01T01:00:00Z',
        'end_date': '2030-01-01T02:00:00Z', 'reservations': [reservation],
    })
    assert answer.status_code == 201, answer.text
    return answer.json['lease']


@pytest.fixture
def leases(api):
    """A lease of alice in p1 and one of bob in p2, on the same host."""
    return (
        book(api, **SMALL, amount=2, resource_properties='["==","$rack","7"]'),
        book(api, BOB, 'of-bob', **SMALL, amount=4),
    )


@pytest.mark.row('F89')
def test_a_member_sees_the_own_leases_by_name_and_others_as_taken(api, leases):
    mine, other = leases
    # Host compute-2 is open to alice's project alone.
    assert len(rows(api)) == 2
    [row] = rows(api, BOB)
    assert (row['name'], row['hosts'], row['available']) == (None, 1, True)
    theirs, own = sorted(row['bars'], key=lambda bar: bar['mine'])
    assert own['name'] == 'of-bob'
    assert own['lease_id'] == other['id']
    assert own['status'] == 'PENDING'
    assert own['share'] == 0.5
    assert theirs == {
        'kind': 'lease', 'start_date': '2030-01-01T01:00:00Z',
        'end_date': '2030-01-01T02:00:00Z', 'share': 0.25,
        'track': theirs['track'], 'mine': False, 'lease_id': None,
        'reservation_id': None, 'name': None, 'status': None, 'degraded': None,
        'project_id': None, 'server_id': None,
    }
    assert {theirs['track'], own['track']} == {0, 1}
    assert mine['id'] not in json.dumps(row)


def test_an_admin_sees_every_name(api, leases):
    first, second = rows(api, ADMIN)
    assert (first['name'], second['name']) == ('compute-1', 'compute-2')
    assert {
        (bar['name'], bar['project_id'], bar['lease_id'])
        for bar in first['bars']
    } == {(each['name'], each['project_id'], each['id']) for each in leases}
    assert second['bars'] == []


def test_no_foreign_name_in_any_answer(api, leases):
    mine, other = leases
    secret = {'compute-1', 'compute-2', other['id'], 'of-bob', 'p2', 'bob'}
    secret |= {r['id'] for r in other['reservations']}
    hosts = api.get('/v1/os-hosts').json['hosts']
    secret |= {h['service_name'] for h in hosts}
    for query in (
        {}, {'group_by': 'zone'}, {'group_by': '$rack', 'parts': 4},
        {'group_by': 'flavor'}, {'group_by': 'vcpus'}, {'limit': 1},
        {'group_by': '$hypervisor_hostname'}, {'group_by': 'service_name'},
        {'resource_properties': '["==", "$hypervisor_hostname", "x"]'},
        {'marker': 'x'}, {'parts': 0}, {'group_by': '$of'},
    ):
        answer = ask(api, **query)
        text = answer.text + json.dumps(dict(answer.headers))
        if 'hypervisor_hostname' in str(query):
            assert answer.status_code == 400
        assert not [each for each in secret if f'"{each}"' in text], query
        assert not [
            each for each in secret if len(each) > 2 and each in text
        ], query
    text = ask(api, path='/v1/properties').text
    assert not [each for each in secret if len(each) > 2 and each in text]


def test_keys_are_those_of_the_project(api):
    keys = {row['key'] for row in rows(api)}
    assert len(keys) == 2
    assert not keys & {row['key'] for row in rows(api, BOB)}
    assert {row['key'] for row in rows(api, limit=1)} < keys


def test_a_private_property_is_as_one_that_no_host_has(api):
    assert [row['name'] for row in rows(api, group_by='rack')] == ['7', None]
    answer = api.patch('/v1/os-hosts/properties/rack', json={'private': True})
    assert answer.status_code == 200
    for query in (
        {'group_by': 'rack'}, {'group_by': '$rack'},
        {'group_by': '$capabilities:rack'},
        {'resource_properties': '["==", "$rack", "7"]'},
    ):
        private = ask(api, **query)
        unknown = ask(api, **{
            k: v.replace('rack', 'none') for k, v in query.items()
        })
        assert private.status_code == unknown.status_code == 400
        assert private.text.replace('rack', 'none') == unknown.text
    assert 'rack' not in ask(api, path='/v1/properties').text
    assert len(rows(api, ADMIN, group_by='rack')) == 2


def test_a_tag_lasts_until_something_changes(api):
    first = ask(api)
    tag = first.headers['ETag']
    known = {**ALICE, 'If-None-Match': tag}
    again = ask(api, known)
    assert (again.status_code, again.text) == (304, '')
    assert again.headers['ETag'] == tag
    any_tag = ask(api, {**BOB, 'If-None-Match': '*'})
    assert (any_tag.status_code, any_tag.text) == (304, '')
    assert any_tag.headers['ETag'] not in (None, tag)
    for other in (
        ask(api, {**BOB, 'If-None-Match': tag}),
        ask(api, {**ADMIN, 'If-None-Match': tag}),
        ask(api, known, limit=1),
        ask(api, known, group_by='zone'),
    ):
        assert other.status_code == 200
    lease = book(api, **SMALL, amount=1)
    changed = ask(api, known)
    assert changed.status_code == 200
    assert changed.headers['ETag'] != tag
    # A name is no part of what replicas hold, and still part of the answer.
    known = {**ALICE, 'If-None-Match': changed.headers['ETag']}
    answer = api.put(
        f'/v1/leases/{lease["id"]}', json={'name': 'other'}, headers=ALICE
    )
    assert answer.status_code == 200
    assert ask(api, known).status_code == 200


def test_a_tag_is_of_the_page_not_of_the_ledger(api):
    """Else each commit of anybody makes all pages new."""
    later = {'start_date': '2040-01-01 00:00', 'end_date': '2040-01-02 00:00'}
    known = {**ALICE, 'If-None-Match': ask(api, **later).headers['ETag']}
    book(api, **SMALL, amount=1)
    again = ask(api, known, **later)
    assert (again.status_code, again.text) == (304, '')
    # The answer is known now without another look at the hosts.
    assert ask(api, known, **later).status_code == 304


def test_a_bad_value_is_refused_by_name(api):
    for query, field in REFUSED:
        answer = ask(api, **query)
        assert answer.status_code == 400, query
        assert answer.json['error_message'].startswith(field), query


@pytest.mark.parametrize('name', ['hypervisor_hostname', 'service_name'])
def test_a_query_of_a_member_names_no_host(api, name):
    """Else a member learns when a host is free, without a reservation."""
    named = json.dumps(['==', f'${name}', 'compute-1'])
    answer = ask(api, resource_properties=named)
    assert answer.status_code == 400
    assert answer.json['error_name'] == 'InvalidInput'
    message = answer.json['error_message']
    assert message.startswith('resource_properties')
    assert f'{name} is only for callers' in message
    assert ask(api, ADMIN, resource_properties=named).status_code == 200
