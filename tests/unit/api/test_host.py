# SPDX-License-Identifier: Apache-2.0
"""Hosts, their properties and their allocations."""

import pytest

from blazar_sched.domain import exception

FOREVER = 2**63 - 1
BOTH_OR_NEITHER = 'lease_id or reservation_id must be given, but not both'


def test_a_host_is_shown_as_blazar_does(api, manager, host):
    manager.answers['get_host'] = host
    answer = api.get('/v1/os-hosts/7')
    assert manager.calls == [('get_host', {'host_id': '7'})]
    assert answer.json == {'host': {
        'id': '7', 'hypervisor_hostname': 'compute-1',
        'hypervisor_type': 'QEMU', 'hypervisor_version': 8002000, 'vcpus': 16,
        'cpu_info': '{}', 'memory_mb': 65536, 'local_gb': 1000,
        'availability_zone': 'nova', 'service_name': 'compute-1',
        'status': None, 'reservable': True, 'trust_id': None,
        'created_at': '2026-01-01 00:00:00', 'updated_at': None, 'gpu': 'true',
    }}


def test_what_blazars_hosts_have_not_is_shown_from_1_1_on(api, manager, host):
    manager.answers['get_host'] = host
    manager.answers['list_hosts'] = [host]
    ours = {
        'hold': 'shared', 'unbounded': None, 'disabled': False,
        'projects': ['p7'], 'region': 'west', 'traits': ['HW_CPU_X86_AVX2'],
    }
    headers = {'OpenStack-API-Version': 'reservation 1.1'}
    shown = api.get('/v1/os-hosts/7', headers=headers).json['host']
    assert ours.items() <= shown.items()
    [listed] = api.get('/v1/os-hosts', headers=headers).json['hosts']
    assert listed == shown


@pytest.mark.row('F25')
@pytest.mark.parametrize('minutes, version, shown', [
    (90, '1.1', {'cleaning_time': 90}),
    (0, '1.1', {'cleaning_time': 0}),
    (None, '1.1', {'cleaning_time': None}),
    (90, '1.0', {}),
    (None, '1.0', {}),
])
def test_cleaning_time(api, manager, host, minutes, version, shown):
    manager.answers['get_host'] = host | {'cleaning_time': minutes}
    answer = api.get('/v1/os-hosts/7', version=version)
    found = answer.json['host']
    assert {k: v for k, v in found.items() if k == 'cleaning_time'} == shown


@pytest.mark.parametrize('value', [90, '90'])
def test_cleaning_time_is_sent_as_the_settings_are(api, manager, host, value):
    manager.answers |= {'create_host': host, 'update_host': host}
    body = {'name': 'a', 'cleaning_time': value}
    api.post('/v1/os-hosts', json=body)
    api.put('/v1/os-hosts/7', json={'cleaning_time': None})
    assert [call['values'] for _, call in manager.calls] == [
        {'cleaning_time': '90'}, {'cleaning_time': None},
    ]


def test_a_capability_never_hides_the_hosts_own(api, manager, host):
    host['capabilities'] = {'vcpus': '9000', 'id': 'x'}
    manager.answers['list_hosts'] = [host]
    [shown] = api.get('/v1/os-hosts').json['hosts']
    assert shown['vcpus'] == 16
    assert shown['id'] == '7'


@pytest.mark.parametrize('key', ['name', 'id'])
def test_create(api, manager, host, key):
    manager.answers['create_host'] = host
    body = {
        key: 'compute-1', 'gpu': 'true', 'ssd': 2, 'su_factor': 1.0,
        'nvme': True, 'hold': 'dedicated',
    }
    answer = api.post('/v1/os-hosts', json=body)
    assert answer.status_code == 201
    assert manager.calls == [
        (
            'create_host',
            {
                'name': 'compute-1',
                # As Blazar stores them.
                'values': {
                    'gpu': 'true', 'ssd': '2', 'su_factor': '1.0',
                    'nvme': 'True', 'hold': 'dedicated',
                },
            },
        )
    ]


def test_settings_that_are_no_text_are_sent_as_they_are(api, manager, host):
    manager.answers |= {'create_host': host, 'update_host': host}
    settings = {'disabled': True, 'projects': ['p1', 'p2']}
    api.post('/v1/os-hosts', json={'name': 'a', **settings})
    api.put('/v1/os-hosts/7', json=settings)
    cleared = {'disabled': None, 'projects': None, 'gpu': None}
    api.put('/v1/os-hosts/7', json=cleared)
    # Names of capabilities have 64 characters at most.
    long = {'k' * 64: 'v'}
    assert api.put('/v1/os-hosts/7', json=long).status_code == 200
    assert manager.calls == [
        ('create_host', {'name': 'a', 'values': settings}),
        *(
            ('update_host', {'host_id': '7', 'values': values})
            for values in (settings, cleared, long)
        ),
    ]


@pytest.mark.parametrize('method, body, field', [
    ('POST', {}, 'name'),
    ('POST', {'gpu': 'true'}, 'name'),
    ('POST', {'name': ''}, 'name'),
    ('POST', {'name': 7}, 'name'),
    ('POST', {'name': 'a', 'id': 'b'}, 'id'),
    ('POST', {'name': 'a', 'k' * 65: 'v'}, 'k' * 65),
    ('POST', {'name': 'a', '': 'v'}, "''"),
    ('POST', {'name': 'a', 'k': None}, 'k'),
    ('POST', {'name': 'a', 'k': ['v']}, 'k'),
    ('POST', {'name': 'a', 'k': 'v' * 4097}, 'k'),
    ('POST', {'name': 'a', 'vcpus': '64'}, 'vcpus'),
    ('POST', {'name': 'a', 'traits': 'X'}, 'traits'),
    ('POST', {'name': 'a', 'region': 'west'}, 'region'),
    ('POST', {'name': 'a', 'disabled': 1}, 'disabled'),
    ('POST', {'name': 'a', 'projects': [1]}, 'projects[0]'),
    ('POST', {'name': 'a', 'projects': {}}, 'projects'),
    ('POST', {'name': 'a', 'cleaning_time': -1}, 'cleaning_time'),
    ('POST', {'name': 'a', 'cleaning_time': True}, 'cleaning_time'),
    ('POST', {'name': 'a', 'cleaning_time': 1.5}, 'cleaning_time'),
    ('PUT', {'cleaning_time': '9' * 10}, 'cleaning_time'),
    ('PUT', {'projects': ['p'] * 51}, 'projects'),
    ('POST', {'name': 'a', **{f'k{n}': '' for n in range(200)}}, 'too'),
    ('PUT', {}, '{}'),
    ('PUT', {'k' * 65: 'v'}, 'k' * 65),
    ('PUT', {'hypervisor_hostname': 'b'}, 'hypervisor_hostname'),
    ('PUT', {'id': '8'}, 'id'),
    ('PUT', {'k': {}}, 'k'),
    ('PUT', [], 'object'),
])
def test_a_bad_value_is_refused_by_name(api, refused, method, body, field):
    path = '/v1/os-hosts' if method == 'POST' else '/v1/os-hosts/7'
    refused(api.request(method, path, json=body), field)


RESERVATIONS = [
    {'id': 'r1', 'lease_id': 'l1', 'start': 1767225600, 'end': 1767229200},
    {'id': 'r2', 'lease_id': 'l2', 'start': 1767229200, 'end': FOREVER},
]
SHOWN = {
    'resource_id': '7',
    'reservations': [
        {
            'id': 'r1', 'lease_id': 'l1',
            'start_date': '2026-01-01T00:00:00.000000',
            'end_date': '2026-01-01T01:00:00.000000',
        },
        {
            'id': 'r2', 'lease_id': 'l2',
            'start_date': '2026-01-01T01:00:00.000000',
            'end_date': '2999-12-31T00:00:00.000000',
        },
    ],
}


def test_allocations(api, manager):
    manager.answers['list_allocations'] = [
        {'host_id': '7', 'reservations': RESERVATIONS},
        {'host_id': '8', 'reservations': []},
    ]
    answer = api.get(
        '/v1/os-hosts/allocations', query_string='lease_id=l1&colour=red'
    )
    assert answer.json == {
        'allocations': [SHOWN, {'resource_id': '8', 'reservations': []}]
    }
    assert manager.calls == [
        ('list_allocations', {'lease_id': 'l1', 'reservation_id': None})
    ]


def test_allocation_of_one_host(api, manager):
    manager.answers['list_allocations'] = [
        {'host_id': '7', 'reservations': RESERVATIONS}
    ]
    answer = api.get(
        '/v1/os-hosts/7/allocation', query_string='reservation_id=r1'
    )
    assert answer.json == {'allocation': SHOWN}
    assert manager.calls == [
        (
            'list_allocations',
            {'host_id': '7', 'lease_id': None, 'reservation_id': 'r1'},
        )
    ]


@pytest.mark.parametrize('key', ['lease_id', 'reservation_id'])
def test_moving_off_a_host_shows_what_is_left(api, manager, key):
    manager.answers |= {
        'reallocate': None,
        'list_allocations': [{'host_id': '7', 'reservations': RESERVATIONS}],
    }
    answer = api.put('/v1/os-hosts/7/allocation', json={key: 'x'})
    assert answer.json == {'allocation': SHOWN}
    assert manager.calls == [
        ('reallocate', {'host_id': '7', key: 'x'}),
        ('list_allocations', {'host_id': '7'}),
    ]


def test_moving_off_a_host_without_room(api, manager):
    manager.answers['reallocate'] = exception.NotEnoughHostsAvailable('no')
    answer = api.put(
        '/v1/os-hosts/7/allocation', json={'lease_id': 'x'}, version='1.1'
    )
    assert answer.status_code == 409


@pytest.mark.parametrize('body, message', [
    ({}, BOTH_OR_NEITHER),
    ({'lease_id': 'x', 'reservation_id': 'y'}, BOTH_OR_NEITHER),
    ({'lease_id': 7}, 'lease_id: '),
    ({'lease_id': ''}, 'lease_id: '),
    ({'host_id': '8'}, 'host_id is unknown; known are lease_id, '),
    ([], '[] is not of type '),
])
def test_invalid_reallocation_is_refused(api, refused, body, message):
    refused(api.put('/v1/os-hosts/7/allocation', json=body), start=message)


@pytest.mark.parametrize('query, shown', [
    ('', [{'property': 'gpu'}]),
    ('all=True', [{'property': 'gpu'}, {'property': 'rack'}]),
    (
        'detail=True',
        [{'property': 'gpu', 'private': False, 'values': ['a', 'b']}],
    ),
    (
        'detail&all=1',
        [
            {'property': 'gpu', 'private': False, 'values': ['a', 'b']},
            {'property': 'rack', 'private': True, 'values': ['7']},
        ],
    ),
])
def test_properties(api, manager, query, shown):
    manager.answers['list_properties'] = [
        {'property': 'gpu', 'private': False, 'values': ['a', 'b']},
        {'property': 'rack', 'private': True, 'values': ['7']},
    ]
    answer = api.get('/v1/os-hosts/properties', query_string=query)
    assert answer.json == {'resource_properties': shown}


def test_private_properties_are_an_admins(manager, ruled):
    """Other users see only the public ones, whatever the policy."""
    api = ruled(
        '"blazar:oshosts:get_resource_properties": "rule:admin_or_owner"\n'
    )
    manager.answers['list_properties'] = [
        {'property': 'gpu', 'private': False, 'values': ['a']},
        {'property': 'rack', 'private': True, 'values': ['7']},
    ]

    def shown(token):
        answer = api.get('/v1/os-hosts/properties?all=True', token=token)
        return [p['property'] for p in answer.json['resource_properties']]

    assert shown('admin') == ['gpu', 'rack']
    assert shown('alice:p1') == ['gpu']


def test_update_property(api, manager):
    manager.answers['update_property'] = {'property': 'gpu', 'private': True}
    answer = api.patch('/v1/os-hosts/properties/gpu', json={'private': True})
    assert answer.json == {'resource_property': {
        'property': 'gpu', 'private': True, 'id': 'gpu',
        'property_name': 'gpu', 'resource_type': 'physical:host',
    }}
    assert manager.calls == [
        ('update_property', {'name': 'gpu', 'private': True})
    ]


@pytest.mark.parametrize(
    'body', [{}, {'private': 'yes'}, {'private': 1}, {'private': True, 'a': 1}]
)
def test_a_bad_property_is_refused(api, manager, body):
    answer = api.patch('/v1/os-hosts/properties/gpu', json=body)
    assert answer.status_code == 400
    assert manager.calls == []
