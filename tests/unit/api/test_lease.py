# SPDX-License-Identifier: Apache-2.0
"""Leases: the calls to the manager, and the views of its responses."""

import unicodedata
from urllib import parse

import pytest

from blazar_sched.domain import exception
from blazar_sched.service.api import deploy
from tests import loopback
from tests import tables

FOREVER = 2**63 - 1
# The request of python-blazarclient 4.6.0 for a bare command line.
HOST_RESERVATION = {
    'resource_type': 'physical:host', 'min': 1, 'max': 2,
    'hypervisor_properties': '', 'resource_properties': '',
}
INSTANCE_RESERVATION = {
    'resource_type': 'virtual:instance', 'vcpus': 2, 'memory_mb': 2048,
    'disk_gb': 0, 'amount': 3, 'affinity': 'None', 'resource_properties': '',
}
BODY = {
    'name': 'night-run', 'start_date': '2026-01-01 01:00',
    'end_date': '2026-01-01 02:00', 'before_end_date': None,
    'reservations': [HOST_RESERVATION], 'events': [],
}


SORT_KEYS = 'id, name, status, start, end, created_at, updated_at'
V1_1 = {'OpenStack-API-Version': 'reservation 1.1'}


def without(name):
    return {k: v for k, v in BODY.items() if k != name}


def with_host(**parameters):
    return {**BODY, 'reservations': [{**HOST_RESERVATION, **parameters}]}


def with_instance(**parameters):
    reservation = {**INSTANCE_RESERVATION, **parameters}
    return {**BODY, 'reservations': [reservation]}


def create(api, manager, lease, body, headers=None):
    manager.answers['create_lease'] = lease
    answer = api.post(
        '/v1/leases', json=body,
        headers={'X-Auth-Token': 'alice:p1', **(headers or {})},
    )
    assert answer.status_code == 201, answer.text
    [(method, sent)] = manager.calls
    assert method == 'create_lease'
    return sent['values']


def update(api, manager, lease, body, version=None):
    """Update a lease; return the values that the manager gets."""
    manager.answers['update_lease'] = lease
    answer = api.put('/v1/leases/l1', json=body, version=version)
    assert answer.status_code == 200, answer.text
    method, sent = manager.calls[-1]
    assert method == 'update_lease'
    return sent['values']


def test_a_lease_is_shown_as_blazar_does(api, manager, lease):
    manager.answers['get_lease'] = lease
    answer = api.get(f'/v1/leases/{lease["id"]}')
    assert answer.json == {'lease': {
        'id': lease['id'],
        'name': 'night-run',
        'user_id': 'alice',
        'project_id': 'p1',
        'start_date': '2026-01-01T01:00:00.000000',
        'end_date': '2026-01-01T02:00:00.000000',
        'trust_id': None,
        'status': 'PENDING',
        'degraded': False,
        'created_at': '2026-01-01 00:00:00',
        'updated_at': '2026-01-01 00:01:01',
        'reservations': [{
            'id': lease['reservations'][0]['id'], 'lease_id': lease['id'],
            'resource_id': lease['reservations'][0]['id'],
            'resource_type': 'physical:host', 'status': 'pending',
            'missing_resources': False, 'resources_changed': False, 'min': 1,
            'max': 2, 'hypervisor_properties': '', 'resource_properties': '',
            'before_end': 'default', 'created_at': '2026-01-01 00:00:00',
            'updated_at': None,
        }],
        'events': [{
            'id': lease['events'][0]['id'], 'lease_id': lease['id'],
            'event_type': 'start_lease', 'time': '2026-01-01T01:00:00.000000',
            'status': 'UNDONE', 'created_at': '2026-01-01 00:00:00',
            'updated_at': None,
        }],
    }}


def test_an_instance_reservation_shows_its_flavor(api, manager, lease):
    reservation = lease['reservations'][0]
    reservation['resource_type'] = 'virtual:instance'
    reservation['parameters'] = {
        'vcpus': 2, 'memory_mb': 2048, 'disk_gb': 0, 'amount': 3,
        'affinity': None, 'resource_properties': '',
    }
    manager.answers['list_leases'] = [lease]
    [shown] = api.get('/v1/leases').json['leases']
    [shown] = shown['reservations']
    assert shown['flavor_id'] == reservation['id']
    assert shown['aggregate_id'] is None
    assert shown['server_group_id'] is None
    assert shown['affinity'] is None
    assert shown['amount'] == 3


@pytest.mark.parametrize(
    'headers, end', [({}, '2999-12-31T00:00:00.000000'), (V1_1, None)]
)
def test_no_end_is_null_but_in_1_0_where_it_is_far(
    api, manager, lease, headers, end
):
    lease['end'] = FOREVER
    manager.answers['list_leases'] = [lease]
    manager.answers['list_allocations'] = [
        {'host_id': '7', 'reservations': [
            {'id': 'r1', 'lease_id': 'l1', 'start': 60, 'end': FOREVER},
        ]},
    ]
    answer = api.get('/v1/leases', headers=headers)
    assert answer.json['leases'][0]['end_date'] == end
    answer = api.get('/v1/os-hosts/allocations', headers=headers)
    [host] = answer.json['allocations']
    assert host['reservations'][0]['end_date'] == end


@pytest.mark.parametrize('date, end', [
    ('2999-12-31 00:00', FOREVER),
    ('2999-12-31T00:00:00.000000', FOREVER),
    # The value that `prolong_for` makes of it.
    ('2999-12-31 01:00', FOREVER),
    ('9999-12-31 23:59', FOREVER),
    ('2030-12-31 00:00', 1924905600),
])
def test_far_end_of_1_0_is_an_endless_lease(api, manager, lease, date, end):
    body = {**BODY, 'end_date': date}
    assert create(api, manager, lease, body)['end'] == end
    assert update(api, manager, lease, {'end_date': date}) == {'end': end}


@pytest.mark.parametrize(
    'headers, date', [({}, '2999-12-30 23:59'), (V1_1, '2999-12-31 00:00')]
)
def test_an_end_that_is_out_of_range_is_refused(api, refused, headers, date):
    body = {**BODY, 'end_date': date}
    refused(
        api.post('/v1/leases', json=body, headers=headers), start='end_date'
    )


@pytest.mark.parametrize('name', ['hypervisor_properties',
                                  'resource_properties'])
@pytest.mark.parametrize('reservation', [
    HOST_RESERVATION,
    INSTANCE_RESERVATION,
    {'resource_type': 'flavor:instance', 'flavor_id': '7', 'amount': 1},
], ids=lambda r: r['resource_type'])
def test_no_requirement_may_be_null(api, manager, lease, reservation, name):
    if name == 'hypervisor_properties' and reservation is not HOST_RESERVATION:
        pytest.skip('it has none')
    asked = {**reservation, name: None}
    body = {**BODY, 'reservations': [asked]}
    [sent] = create(api, manager, lease, body)['reservations']
    assert sent[name] == ''
    body = {'reservations': [
        {'id': lease['reservations'][0]['id'], name: None},
    ]}
    [sent] = update(api, manager, lease, body)['reservations']
    assert sent[name] == ''


def test_what_the_client_sends_goes_to_the_manager_in_plain_values(
    api, manager, lease
):
    assert create(api, manager, lease, BODY) == {
        'name': 'night-run',
        'project_id': 'p1',
        'user_id': 'alice',
        'start': 1767229200,
        'end': 1767232800,
        'before_end': 'default',
        'reservations': [{**HOST_RESERVATION, 'before_end': 'default'}],
    }


def test_parameters_have_the_apis_defaults(api, manager, lease):
    body = {
        'name': 'x',
        'end_date': '2026-01-01 02:00',
        'reservations': [
            {'resource_type': 'physical:host', 'min': 1, 'max': 1},
            {
                'resource_type': 'virtual:instance', 'vcpus': 1,
                'memory_mb': 1, 'disk_gb': 0, 'amount': 1,
            },
        ],
    }
    values = create(api, manager, lease, body)
    assert values['start'] == 'now'
    assert values['before_end'] == 'default'
    host, instance = values['reservations']
    assert host['hypervisor_properties'] == host['resource_properties'] == ''
    assert host['before_end'] == 'default'
    assert instance['resource_properties'] == ''
    assert instance['affinity'] is None


@pytest.mark.row('F10')
@pytest.mark.parametrize('name, value, sent', [
    ('start_date', 'now', 'now'),
    ('start_date', None, 'now'),
    ('start_date', '2026-01-01 01:00', 1767229200),
    ('start_date', '2026-01-01 01:00:07', 1767229207),
    ('start_date', '2026-01-01T02:00:00+01:00', 1767229200),
    ('start_date', '2026-01-01T01:00:00.000000', 1767229200),
    ('end_date', '2026-01-01T02:00Z', 1767232800),
    # This time does not exist in most of Europe, but it exists in UTC.
    ('start_date', '2027-03-28 02:30', 1806201000),
    ('start_date', '2030-01-01T14:00:00+14:00', 1893456000),
    ('end_date', '2105-12-31 23:59', 4291747140),
    ('before_end_date', None, 'default'),
    ('before_end_date', '', 'default'),
    ('before_end_date', '2026-01-01 02:00', 1767232800),
])
def test_dates(api, manager, lease, name, value, sent):
    values = create(api, manager, lease, {**BODY, name: value})
    assert values[name.removesuffix('_date')] == sent


@pytest.mark.parametrize('sent, meant', [
    (None, None), ('None', None), ('none', None), ('', None),
    (True, True), ('True', True), ('true', True), (1, True), ('1', True),
    (False, False), ('False', False), (0, False), ('0', False),
])
def test_affinity_is_read_as_the_client_sends_it(
    api, manager, lease, sent, meant
):
    values = create(api, manager, lease, with_instance(affinity=sent))
    assert values['reservations'][0]['affinity'] is meant


@pytest.mark.parametrize('name', ['vcpus', 'memory_mb', 'disk_gb', 'amount'])
def test_numbers_may_be_sent_as_text(api, manager, lease, name):
    values = create(api, manager, lease, with_instance(**{name: '12'}))
    assert values['reservations'][0][name] == 12


# Refused requests, and the field that each refusal names.
BAD = {
    'no name': (without('name'), 'name'),
    'empty name': ({**BODY, 'name': ''}, 'name'),
    'long name': ({**BODY, 'name': 'x' * 81}, 'name'),
    'name no text': ({**BODY, 'name': 7}, 'name'),
    'name newline': ({**BODY, 'name': 'a\nb'}, 'name'),
    'name ends in newline': ({**BODY, 'name': 'a\n'}, 'name'),
    'name escape': ({**BODY, 'name': '\x1b[2J'}, 'name'),
    'name DEL': ({**BODY, 'name': 'a\x7f'}, 'name'),
    'name C1': ({**BODY, 'name': 'a\x9b31m'}, 'name'),
    'name line separator': ({**BODY, 'name': 'a\u2028b'}, 'name'),
    'reservations no list': ({**BODY, 'reservations': {}}, 'reservations'),
    'too many reservations': (
        {**BODY, 'reservations': [HOST_RESERVATION] * 101}, 'reservations'
    ),
    'reservation no object': (
        {**BODY, 'reservations': ['x']}, 'reservations[0]'
    ),
    'no resource_type': (
        {**BODY, 'reservations': [{'min': 1, 'max': 1}]}, 'resource_type'
    ),
    'resource_type too long': (
        with_host(resource_type='x' * 65), 'resource_type'
    ),
    'resource_type no text': (with_host(resource_type=[]), 'resource_type'),
    'events': (
        {**BODY, 'events': [{'event_type': 'x', 'event_date': 'now'}]},
        'events',
    ),
    'min 0': (with_host(min=0), 'min'),
    'min negative': (with_host(min=-1), 'min'),
    'min negative text': (with_host(min='-1'), 'min'),
    'min empty': (with_host(min=''), 'min'),
    'min true': (with_host(min=True), 'min'),
    'min half': (with_host(min=1.5), 'min'),
    'min float': (with_host(min=1.0), 'min'),
    'min null': (with_host(min=None), 'min'),
    'min 2**63': (with_host(min=2**63), 'min'),
    'min full width': (with_host(min='１'), 'min'),
    'min endless text': (with_host(min='9' * 5000), 'min'),
    'no max': (
        {**BODY, 'reservations': [
            {k: v for k, v in HOST_RESERVATION.items() if k != 'max'}
        ]},
        'max',
    ),
    'before_end unknown': (with_host(before_end='explode'), 'before_end'),
    'requirement no JSON': (
        with_host(hypervisor_properties='vcpus > 3'), 'hypervisor_properties'
    ),
    'requirement operator': (
        with_host(resource_properties='["~", "$vcpus", "3"]'),
        'resource_properties',
    ),
    'requirement depth': (
        with_host(resource_properties='[' * 10000), 'resource_properties'
    ),
    'requirement no text': (
        with_host(resource_properties=['==', '$a', 'b']),
        'resource_properties',
    ),
    'vcpus 0': (with_instance(vcpus=0), 'vcpus'),
    'vcpus empty': (with_instance(vcpus=''), 'vcpus'),
    'disk negative': (with_instance(disk_gb=-1), 'disk_gb'),
    'amount 0': (with_instance(amount=0), 'amount'),
    'amount 2**31': (with_instance(amount=2**31), 'amount'),
    'affinity word': (with_instance(affinity='maybe'), 'affinity'),
    'affinity 2': (with_instance(affinity=2), 'affinity'),
    'affinity list': (with_instance(affinity=[]), 'affinity'),
    'start empty': ({**BODY, 'start_date': ''}, 'start_date'),
    'start garbage': ({**BODY, 'start_date': 'soon'}, 'start_date'),
    'start number': ({**BODY, 'start_date': 1767229200}, 'start_date'),
    'start full width': (
        {**BODY, 'start_date': '２０２６-01-01 00:00'}, 'start_date'
    ),
    'start leap second': (
        {**BODY, 'start_date': '2016-12-31 23:59:60'}, 'start_date'
    ),
    'start year 1': ({**BODY, 'start_date': '0001-01-01 00:00'}, 'start_date'),
    'start year 9999': (
        {**BODY, 'start_date': '9999-12-31 00:00'}, 'start_date'
    ),
    'no end': (without('end_date'), 'end_date'),
    'end null': ({**BODY, 'end_date': None}, 'end_date'),
    'projects': (with_host(projects=['p2']), 'projects'),
    'on_end': (with_host(on_end='keep'), 'on_end'),
    'end now': ({**BODY, 'end_date': 'now'}, 'end_date'),
    'end empty': ({**BODY, 'end_date': ''}, 'end_date'),
    'end no day': ({**BODY, 'end_date': '2026-02-30 00:00'}, 'end_date'),
    'before_end garbage': (
        {**BODY, 'before_end_date': 'later'}, 'before_end_date'
    ),
}


@pytest.mark.parametrize('case', BAD)
def test_a_bad_value_is_refused_by_name_and_changes_nothing(
    api, manager, case
):
    body, field = BAD[case]
    answer = api.post('/v1/leases', json=body)
    assert answer.status_code == 400
    assert answer.json['error_code'] == 400
    assert answer.json['error_name'] == 'InvalidInput'
    assert field in answer.json['error_message']
    assert len(answer.json['error_message']) < 400
    assert manager.calls == []


# Blazar ignores what it does not know; the newest version refuses it.
UNKNOWN = [
    ('POST', '', with_host(vcpus=1), 'vcpus'),
    ('POST', '', {**BODY, 'colour': 'red'}, 'colour'),
    ('PUT', '/l1', {'prolong_for': '1h'}, 'prolong_for'),
    ('PUT', '/l1', {'events': [], 'status': 'ACTIVE'}, 'events'),
    ('PUT', '/l1', {'reservations': [{'id': 'r1', 'colour': 0}]}, 'colour'),
]


@pytest.mark.parametrize(('method', 'path', 'body', 'field'), UNKNOWN)
def test_1_0_ignores_unknown_keys(
    api, manager, lease, method, path, body, field
):
    manager.answers |= {'create_lease': lease, 'update_lease': lease}
    said = [
        api.request(method, f'/v1/leases{path}', json=body, version=version)
        for version in ('1.0', '1.1', 'latest')
    ]
    assert [a.status_code for a in said] == [
        201 if method == 'POST' else 200, 400, 400
    ]
    assert all(field in a.json['error_message'] for a in said[1:])
    [(_, sent)] = manager.calls
    assert field not in str(sent)


@pytest.mark.parametrize('name', [
    'nächtlicher Lauf №7 🌙', 'תור', '<script>alert(1)</script>',
    '{{ 7 * 7 }} ${jndi:ldap://x} %s', "'; DROP TABLE lease; --",
])
def test_a_name_is_data_and_stays_as_it_is(api, manager, lease, name):
    values = create(api, manager, lease, {**BODY, 'name': name})
    assert values['name'] == name
    manager.answers['get_lease'] = {**lease, 'name': name}
    answer = api.get('/v1/leases/l1')
    assert answer.json['lease']['name'] == name


def test_no_name_has_what_is_not_seen(api, manager):
    formats = [
        c for c in map(chr, range(0x110000)) if unicodedata.category(c) == 'Cf'
    ]
    assert {'\u202e', '\U000e0041'} < set(formats)
    for c in formats:
        answer = api.post('/v1/leases', json={**BODY, 'name': f'a{c}b'})
        assert answer.status_code == 400, repr(c)
        assert answer.json['error_message'].startswith('name: ')
    assert manager.calls == []


@pytest.mark.parametrize(
    'flavor_id, sent', [('m1.small', 'm1.small'), (7, '7')]
)
def test_an_id_of_digits_is_no_number(api, manager, lease, flavor_id, sent):
    reservation = {
        'resource_type': 'flavor:instance', 'flavor_id': flavor_id,
        'amount': 1,
    }
    values = create(
        api, manager, lease, {**BODY, 'reservations': [reservation]}
    )
    assert values['reservations'][0]['flavor_id'] == sent


def test_from_1_1_on_null_is_the_operators_before_end(api, manager, lease):
    body = {'before_end_date': None}
    assert update(api, manager, lease, body, '1.1') == {
        'before_end': 'default',
    }


def test_an_update_sends_only_what_it_names(api, manager, lease):
    manager.answers['update_lease'] = lease
    for body, values in [
        ({'name': 'day-run'}, {'name': 'day-run'}),
        ({'end_date': 'now'}, {'end': 'now'}),
        ({'end_date': '2026-01-01 02:00'}, {'end': 1767232800}),
        ({'start_date': 'now'}, {'start': 'now'}),
        ({'start_date': '2026-01-01 02:00'}, {'start': 1767232800}),
        # For Blazar's clients such a request is empty.
        ({'before_end_date': None}, {}),
        ({'before_end_date': ''}, {}),
        ({'before_end_date': '2026-01-01 02:00'}, {'before_end': 1767232800}),
        (
            {'reservations': [{'id': 'r1', 'min': '2', 'affinity': 'None'}]},
            {'reservations': [{'id': 'r1', 'min': 2, 'affinity': None}]},
        ),
        ({}, {}),
    ]:
        manager.calls.clear()
        answer = api.put('/v1/leases/l1', json=body)
        assert answer.status_code == 200, answer.text
        assert manager.calls == [
            (
                'update_lease',
                {'lease_id': 'l1', 'project_id': None, 'values': values},
            )
        ]


@pytest.mark.parametrize('body, field', [
    ({'name': ''}, 'name'),
    ({'start_date': None}, 'start_date'),
    ({'end_date': 'soon'}, 'end_date'),
    ({'end_date': None}, 'end_date'),
    ({'reservations': [{'id': 'r1', 'projects': []}]}, 'projects'),
    ({'reservations': [{'min': 1}]}, 'id'),
    ({'reservations': [{'id': 'r1', 'min': 0}]}, 'min'),
    (
        {'reservations': [{'id': 'r1', 'resource_properties': '{}'}]},
        'resource_properties',
    ),
    ({'reservations': [{'id': 1}]}, 'id'),
    ([], 'object'),
])
def test_a_bad_update_is_refused_by_name(api, refused, body, field):
    refused(api.put('/v1/leases/l1', json=body), field)


def test_a_lease_may_be_of_nothing_but_dates(api, manager, lease):
    values = create(api, manager, lease, without('reservations'))
    assert values['reservations'] == []


@pytest.mark.parametrize('body, version, message', [
    (
        with_host(on_end='keep'), '1.0',
        'reservations[0].on_end needs OpenStack-API-Version: reservation 1.1',
    ),
    (
        {**without('end_date'), 'duration': '6h'}, '1.0',
        'duration needs OpenStack-API-Version: reservation 1.1',
    ),
    (
        {**BODY, 'name': 'x' * 300}, '1.0',
        'name: may have 80 characters at most',
    ),
    (
        with_host(resource_propertis=''), '1.1',
        'reservations[0].resource_propertis is unknown; did you mean '
        'resource_properties?',
    ),
])
def test_an_unknown_field_is_explained(api, refused, body, version, message):
    refused(
        api.post('/v1/leases', json=body, version=version), message=message
    )


@pytest.mark.parametrize('missing', ['end_date', 'reservations'])
def test_from_1_1_on_no_end_and_no_reservations_have_to_be_said(
    api, refused, missing
):
    refused(
        api.post('/v1/leases', json=without(missing), headers=V1_1),
        start=f'{missing} is missing'
    )


def test_from_1_1_on_a_lease_may_have_no_end(api, manager, lease):
    body = {**BODY, 'end_date': None, 'reservations': []}
    values = create(api, manager, lease, body, V1_1)
    assert values['reservations'] == []
    assert values['end'] == FOREVER
    assert update(api, manager, lease, {'end_date': None}, '1.1') == {
        'end': FOREVER,
    }


@pytest.mark.parametrize('with_', [with_host, with_instance])
def test_from_1_1_on_a_reservation_may_say_who_uses_it_and_what_stays(
    api, manager, lease, with_
):
    use = {'projects': ['p2', 'p3'], 'on_end': 'keep'}
    values = create(api, manager, lease, with_(**use), V1_1)
    [sent] = values['reservations']
    assert sent.items() >= use.items()
    body = {'reservations': [{'id': 'r1', 'projects': [], 'on_end': 'shelve'}]}
    assert update(api, manager, lease, body, '1.1') == body


def test_from_1_1_on_hosts_may_be_magnetic(api, manager, lease):
    body = with_host(magnetic=True)
    [sent] = create(api, manager, lease, body, V1_1)['reservations']
    assert sent['magnetic'] is True
    for refused, headers in ((with_instance(magnetic=True), V1_1), (body, {})):
        answer = api.post('/v1/leases', json=refused, headers=headers)
        assert answer.status_code == 400
        assert 'magnetic' in answer.json['error_message']


@pytest.mark.parametrize('parameters, field', [
    ({'projects': 'p2'}, 'projects'),
    ({'projects': ['p2', 'p2']}, 'projects'),
    ({'projects': ['']}, 'projects[0]'),
    ({'projects': ['p\n']}, 'projects[0]'),
    ({'projects': ['the physicists']}, 'projects[0]'),
    ({'projects': ['..']}, 'projects[0]'),
    ({'projects': ['p' * 65]}, 'projects[0]'),
    ({'projects': [7]}, 'projects[0]'),
    ({'projects': [f'p{n}' for n in range(51)]}, 'projects'),
    ({'on_end': 'explode'}, 'on_end'),
    ({'on_end': None}, 'on_end'),
    ({'magnetic': 'yes'}, 'magnetic'),
    ({'magnetic': None}, 'magnetic'),
])
def test_1_1_refuses_bad_values_by_name(api, refused, parameters, field):
    answer = api.post('/v1/leases', json=with_host(**parameters), headers=V1_1)
    assert answer.status_code == 400
    assert field in answer.json['error_message']
    changes = [{'id': 'r1', **parameters}]
    refused(
        api.put('/v1/leases/l1', json={'reservations': changes}, headers=V1_1),
        field
    )


def test_from_1_1_on_reservations_come_and_go(api, manager, lease):
    new = {'resource_type': 'physical:host', 'min': 1, 'max': '1'}
    gone = {'id': 'r1', 'remove': True}
    asked = {'reservations': [new, gone, {'id': 'r2', 'min': 3}]}
    whole = {
        **HOST_RESERVATION, 'max': 1, 'before_end': 'default', 'on_start': '',
    }
    assert update(api, manager, lease, asked, '1.1') == {
        'reservations': [whole, gone, {'id': 'r2', 'min': 3}]
    }


@pytest.mark.parametrize('change, version, field', [
    ({'resource_type': 'physical:host', 'min': 1, 'max': 1}, '1.0', 'id'),
    ({'id': 'r1', 'remove': True}, '1.0', 'remove'),
    ({'id': 'r1', 'remove': False}, '1.1', 'remove'),
    ({'resource_type': 'physical:host', 'max': 1}, '1.1', 'min'),
    ({'min': 1}, '1.1', 'resource_type'),
    (
        {**HOST_RESERVATION, 'resource_properties': '["~"]'},
        '1.1',
        'reservations[0].resource_properties',
    ),
])
def test_reservations_that_cannot_come_or_go(
    api, refused, change, version, field
):
    refused(
        api.put(
            '/v1/leases/l1', json={'reservations': [change]},
            version=version,
        ), field
    )


def test_from_1_1_on_times_have_their_zone_and_use_and_hosts_are_shown(
    api, manager, lease
):
    lease['reservations'][0] |= {'hosts': ['compute-1'], 'used': 1}
    manager.answers['get_lease'] = lease
    shown = {
        version: api.get(
            f'/v1/leases/{lease["id"]}', version=version
        ).json['lease']
        for version in ('1.0', '1.1')
    }
    new = shown['1.1']
    assert new['start_date'] == '2026-01-01T01:00:00Z'
    assert new['end_date'] == '2026-01-01T02:00:00Z'
    assert new['created_at'] == '2026-01-01T00:00:00Z'
    assert new['updated_at'] == '2026-01-01T00:01:01Z'
    [event] = new['events']
    assert event['time'] == '2026-01-01T01:00:00Z'
    assert event['updated_at'] is None
    [reservation] = new['reservations']
    assert reservation['created_at'] == '2026-01-01T00:00:00Z'
    assert reservation['projects'] == ['p7']
    assert reservation['on_end'] == 'shelve'
    [old] = shown['1.0']['reservations']
    assert reservation['hosts'] == ['compute-1']
    assert reservation['magnetic'] is True
    assert set(reservation) - set(old) == {
        'projects', 'on_end', 'magnetic', 'labels', 'hosts_waited_for',
        'hosts', 'before_end_failed', 'on_start', 'on_start_failed', 'product',
    }


@pytest.mark.row('F50')
def test_from_1_1_on_what_is_left_of_instances_is_shown(api, manager, lease):
    [noun] = lease['reservations']
    noun['resource_type'] = 'virtual:instance'
    noun['parameters'] = {
        'vcpus': 1, 'memory_mb': 1, 'disk_gb': 0, 'amount': 3,
        'affinity': None, 'resource_properties': '',
    }
    noun |= {'hosts': [], 'used': 2}
    manager.answers['get_lease'] = lease
    shown = {
        version: api.get(
            f'/v1/leases/{lease["id"]}', version=version
        ).json['lease']['reservations'][0]
        for version in ('1.0', '1.1')
    }
    assert shown['1.1']['remaining'] == 1
    assert 'remaining' not in shown['1.0']


def test_the_project_is_asked_for_its_own_leases_only(api, manager, lease):
    manager.answers = {
        'list_leases': [], 'get_lease': lease, 'update_lease': lease,
        'delete_lease': None,
    }
    for token, project in [('alice:p1', 'p1'), ('admin:p1', None)]:
        manager.calls.clear()
        headers = {'X-Auth-Token': token}
        api.get('/v1/leases', headers=headers)
        api.get('/v1/leases/l1', headers=headers)
        api.put('/v1/leases/l1', headers=headers, json={})
        api.delete('/v1/leases/l1', headers=headers)
        assert [sent['project_id'] for _, sent in manager.calls] == (
            [project] * 4
        )


@pytest.mark.parametrize('query, wanted', [
    ('', {}),
    ('name=n', {'name': 'n'}),
    ('status=ACTIVE&name=n', {'status': 'ACTIVE', 'name': 'n'}),
    ('sort=name', {'sort': [['name', False]]}),
    ('sort=end:desc,name:asc', {'sort': [['end', True], ['name', False]]}),
    ('limit=5', {'limit': 6}),
    ('marker=m', {'marker': 'm'}),
    ('project_id=p9', {'project_id': 'p9'}),
    ('colour=red&all_tenants=x', {}),
])
def test_a_list_asks_for_what_is_wanted(api, manager, query, wanted):
    manager.answers['list_leases'] = []
    answer = api.get('/v1/leases', query_string=query)
    assert answer.json == {'leases': []}
    everything = {'project_id': None, 'limit': 1000}
    assert manager.calls == [('list_leases', {**everything, **wanted})]


@pytest.mark.parametrize('query, field', [
    ('limit=0', 'limit'),
    ('limit=-1', 'limit'),
    ('limit=x', 'limit'),
    ('limit=', 'limit'),
    ('limit=1.0', 'limit'),
    ('limit=%EF%BC%91', 'limit'),
    ('limit=99999999999999999999', 'limit'),
    ('marker=', 'marker'),
    ('marker=' + 'm' * 37, 'marker'),
    ('name=', 'name'),
    ('status=active', 'status'),
    ('status=', 'status'),
    ('sort=', 'sort'),
    ('sort=name,', 'sort'),
    ('sort=name:', 'sort'),
    ('sort=name:up', 'sort'),
    ('sort=:asc', 'sort'),
    ('sort=name,name:desc', 'sort'),
    ('sort=Name', SORT_KEYS),
    ('sort=name,start_date:desc', SORT_KEYS),
    ('sort=project_id', SORT_KEYS),
    ('fields=', 'fields'),
    ('fields=name,', 'fields'),
    ('fields=id,name,id', 'fields'),
    ('fields=name,parameters', 'fields'),
    ('project_id=', 'project_id'),
])
def test_a_list_refuses_bad_values_by_name(api, refused, query, field):
    refused(api.get('/v1/leases', query_string=query), field)


@pytest.mark.parametrize('field, value', [
    ('active_at', 'x'), ('start_date', '2030'), ('end_date', ''),
    ('resource_type', 'x' * 256), ('host', ''), ('degraded', 'x'),
])
def test_a_list_of_1_1_refuses_bad_values_by_name(api, refused, field, value):
    refused(api.get('/v1/leases', params={field: value}, headers=V1_1), field)


def test_a_list_may_be_of_some_fields(api, manager, lease):
    manager.answers['list_leases'] = [lease, lease]
    query = 'fields=name,status&limit=1'
    answer = api.get('/v1/leases', query_string=query)
    assert answer.json['leases'] == [
        {'name': 'night-run', 'status': 'PENDING'}
    ]
    [link] = answer.json['leases_links']
    asked = parse.parse_qs(parse.urlsplit(link['href']).query)
    assert asked['fields'] == ['name,status']
    assert asked['marker'] == [lease['id']]


def test_another_project_cannot_be_asked_for(api, manager):
    manager.answers['list_leases'] = []
    api.get('/v1/leases', query_string='project_id=p2', token='alice:p1')
    [(_, sent)] = manager.calls
    assert sent['project_id'] == 'p1'


def test_a_limited_list_links_to_what_follows(api, manager, lease):
    leases = [{**lease, 'id': f'l{n}'} for n in range(3)]
    manager.answers['list_leases'] = leases
    query = 'limit=2&sort=name:desc&marker=l9&name=a%26b'
    answer = api.get('/v1/leases', query_string=query)
    assert [x['id'] for x in answer.json['leases']] == ['l0', 'l1']
    [link] = answer.json['leases_links']
    assert link['rel'] == 'next'
    url = parse.urlsplit(link['href'])
    assert url.path == '/v1/leases'
    assert dict(parse.parse_qsl(url.query)) == {
        'limit': '2', 'sort': 'name:desc', 'marker': 'l1', 'name': 'a&b',
    }
    # Its links can be requested.
    manager.calls.clear()
    manager.answers['list_leases'] = leases[2:]
    answer = api.get('/v1/leases', query_string=url.query)
    assert [x['id'] for x in answer.json['leases']] == ['l2']
    assert 'leases_links' not in answer.json
    [(_, sent)] = manager.calls
    assert (sent['marker'], sent['name']) == ('l1', 'a&b')


class Many:
    """A manager with many leases, some of which are deleted during the reads.
    """

    def __init__(self, lease, number, vanishing=()):
        self.leases = [{**lease, 'id': f'{n:05}'} for n in range(number)]
        self.vanishing = set(vanishing)
        self.sizes = []

    def call(self, ctxt, method, project_id, limit, marker=''):
        known = {x['id'] for x in self.leases} - {''}
        if marker and marker not in known:
            raise exception.InvalidInput('no such lease', field='marker')
        page = [x for x in self.leases if x['id'] > marker][:limit]
        self.sizes.append(len(page))
        self.leases = [x for x in self.leases if x['id'] not in self.vanishing]
        following = page[-1]['id'] if len(page) == limit else None
        return {'items': page, 'next': following}


@pytest.mark.parametrize('number', [0, 999, 1000, 1001, 2500])
def test_a_long_list_comes_in_several_messages(conf, lease, number):
    many = Many(lease, number)
    api = loopback.client(deploy.deploy(conf, many))
    listed = api.get('/v1/leases').json['leases']
    assert [x['id'] for x in listed] == [f'{n:05}' for n in range(number)]
    assert max(many.sizes) <= 1000
    limited = api.get('/v1/leases', query_string='limit=1500').json
    assert len(limited['leases']) == min(1500, number)
    assert ('leases_links' in limited) == (number > 1500)


def test_a_lease_that_vanishes_between_two_messages_hides_none(conf, lease):
    """The last lease of the first message marks the start of the second."""
    many = Many(lease, 2500, vanishing=['00998', '00999'])
    api = loopback.client(deploy.deploy(conf, many))
    listed = [x['id'] for x in api.get('/v1/leases').json['leases']]
    assert listed == [f'{n:05}' for n in range(2500)]


@pytest.mark.parametrize('key', ['k', '"8e03978e-40d5"', '~ ' * 127 + '~'])
def test_an_idempotency_key_goes_along(api, manager, lease, key):
    manager.answers['create_lease'] = lease
    answer = api.post(
        '/v1/leases', json=BODY, headers={'Idempotency-Key': key}
    )
    assert answer.status_code == 201
    [(_, sent)] = manager.calls
    assert sent['idempotency_key'] == key


@pytest.mark.parametrize('key', ['', 'k' * 256, 'é', 'a\tb', '\x7f'])
def test_a_bad_idempotency_key_is_refused_by_name(api, refused, key):
    refused(
        api.post('/v1/leases', json=BODY, headers={'Idempotency-Key': key}),
        'Idempotency-Key'
    )


def test_the_type_of_another_package_goes_to_its_driver(api, manager, lease):
    """The API neither validates nor completes parameters of its type."""
    asked = {'resource_type': 'acme:licence', 'seats': 3}
    create(api, manager, lease, {**BODY, 'reservations': [asked]})
    assert manager.calls[-1][1]['values']['reservations'] == [asked]


@pytest.mark.parametrize('version', ['1.0', '1.1'])
@pytest.mark.parametrize('target, id_', [
    (('POST', '/v1/leases'), {}), (('PUT', '/v1/leases/l1'), {'id': 'r1'}),
])
@pytest.mark.parametrize('name, value', [
    ('hosts', 5), ('hosts', [{}]), ('projects', None), ('labels', 5),
])
def test_a_field_of_all_types_is_validated_for_that_of_another_package(
    api, refused, version, target, id_, name, value
):
    asked = {'resource_type': 'acme:licence', name: value, **id_}
    refused(
        change(api, *target, {**BODY, 'reservations': [asked]}, '', version),
        f'reservations[0].{name}'
    )


@pytest.mark.parametrize('target, reservation, field', [
    (
        ('POST', '/v1/leases'),
        {'resource_type': 'acme:licence', 'product': 5}, 'product',
    ),
    (('PUT', '/v1/leases/l1'), {'id': None}, 'id'),
])
def test_no_product_and_an_id_of_null_are_refused_in_1_0(
    api, refused, target, reservation, field
):
    body = {**BODY, 'reservations': [reservation]}
    refused(change(api, *target, body, '', '1.0'), f'reservations[0].{field}')


CHANGING = [
    ('POST', '/v1/leases', BODY, 'create_lease'),
    ('PUT', '/v1/leases/l1', {'name': 'day-run'}, 'update_lease'),
    ('DELETE', '/v1/leases/l1', None, 'delete_lease'),
]
CHANGES = pytest.mark.parametrize(
    'http_method, path, body, method', CHANGING, ids=lambda x: str(x)[:12]
)


def change(api, http_method, path, body, query, version):
    return api.request(
        http_method, path, json=body, query_string=query, version=version
    )


@pytest.mark.row('F35')
@CHANGES
@pytest.mark.parametrize('query, sent', [
    ('', None), ('dry_run=false', None), ('dry_run=False', None),
    ('dry_run=0', None), ('dry_run=true', True), ('dry_run=True', True),
    ('dry_run=1', True),
])
def test_from_1_1_on_a_request_may_only_ask(
    api, manager, answers, http_method, path, body, method, query, sent
):
    manager.answers = answers
    answer = change(api, http_method, path, body, query, '1.1')
    real = change(api, http_method, path, body, '', '1.1')
    assert (answer.status_code, answer.text) == (real.status_code, real.text)
    assert answer.status_code < 300
    [(asked, arguments), _] = manager.calls
    assert (asked, arguments.get('dry_run')) == (method, sent)


@CHANGES
@pytest.mark.parametrize('query, version', [
    *((query, '1.1') for query in (
        'dry_run', 'dry_run=', 'dry_run=maybe', 'dry_run=2', 'dry_run=true,',
        'dry_run=true&dry_run=false', 'dry_run=false&dry_run=false',
        'dry_run=%20x', 'dry_run=null',
    )),
    # In 1.0 a dry run is never taken for a real request.
    *((query, '1.0') for query in (
        'dry_run', 'dry_run=', 'dry_run=true', 'dry_run=false',
    )),
])
def test_a_dry_run_that_is_not_understood_changes_nothing(
    api, manager, answers, http_method, path, body, method, query, version,
    refused
):
    manager.answers = answers
    refused(
        change(api, http_method, path, body, query, version), start='dry_run'
    )


@pytest.mark.parametrize('version', ['1.0', '1.1'])
def test_a_dry_run_is_described_where_there_is_one(api, version):
    headers = {'OpenStack-API-Version': f'reservation {version}'}
    paths = api.get('/openapi.json', headers=headers).json['paths']
    described = {
        (path, method)
        for path, methods in paths.items()
        for method, operation in methods.items()
        for parameter in operation['parameters']
        if parameter.get('name') == 'dry_run'
    }
    assert described == (
        {
            ('/v1/leases', 'post'),
            ('/v1/leases/{lease_id}', 'put'),
            ('/v1/leases/{lease_id}', 'delete'),
            *((path, method.lower())
              for method, path in tables.names('DRY_RUNS')),
        }
        if version == '1.1'
        else set()
    )
