# SPDX-License-Identifier: Apache-2.0
"""Requests of other clients than Blazar's, and their use of responses.

These are Heat's OS::Blazar::Lease and OS::Blazar::Host, blazar-dashboard,
python-chi, Azimuth's operator of schedules, Nectar's warre, Chameleon's doni
and hammers, Rackspace's splitter of reservations, and gophercloud, all of
which request version 1.0.
"""

import datetime
import json
import pathlib
import time

from blazarclient import exception as client_exception
from oslo_messaging.notify import _impl_test
import pytest

from blazar_sched.service.api import microversion
from tests import serving
from tests.client import conftest

GUIDE = pathlib.Path(__file__).parents[2] / 'doc/source/user/programs.rst'
ALICE = {'X-Auth-Token': 'alice:p1'}
V1_1 = {**ALICE, microversion.HEADER: 'reservation 1.1'}
# The format in which python-chi and the dashboard parse a date.
FORM = '%Y-%m-%dT%H:%M:%S.%f'
WINDOW = {'start_date': '2030-01-01 01:35', 'end_date': '2030-01-01 02:35'}


@pytest.fixture
def options():
    """Notifications are kept for the tests."""
    _impl_test.reset()
    yield '[oslo_messaging_notifications]\ndriver = test\n'
    _impl_test.reset()


@pytest.fixture(autouse=True)
def host(service):
    """A reservable host."""
    answer = service.api.post(
        '/v1/os-hosts', json={'name': 'compute-1', 'gpu': 'a100'},
        headers=serving.ADMIN,
    )
    assert answer.status_code == 201
    return answer.json['host']


@pytest.fixture
def client(login):
    return login('alice:p1')


@pytest.fixture
def endless(service):
    """A lease without an end, as a user of version 1.1 may create it."""
    answer = service.api.post('/v1/leases', json={
        'name': 'endless',
        'start_date': '2031-01-01 00:00',
        'end_date': None,
        'reservations': [
            {'resource_type': 'physical:host', 'min': 1, 'max': 1},
        ],
    }, headers=V1_1)
    assert answer.status_code == 201, answer.text
    return answer.json['lease']['id']


@pytest.mark.row('F93')
def test_chi_reads_the_list_with_an_endless_lease_and_prolongs_it(
    service, client, endless
):
    [shown] = client.lease.list()
    for name in ('start_date', 'end_date'):
        datetime.datetime.strptime(shown[name], FORM)
    # Neither client changes the missing end.
    client.lease.update(lease_id=endless, prolong_for='1h')
    client.lease.update(lease_id=endless, name='renamed')
    answer = service.api.get(f'/v1/leases/{endless}', headers=V1_1)
    assert answer.json['lease']['end_date'] is None
    with pytest.raises(client_exception.BlazarClientException, match='range'):
        client.lease.update(lease_id=endless, reduce_by='1h')


def flavor_lease(name, start, **counts):
    """The request of Azimuth's operator, for a number of servers by flavor."""
    return {
        'name': f'az-{name}',
        'start_date': start,
        'end_date': '2031-01-01 00:00',
        'reservations': [
            {
                'amount': count, 'flavor_id': flavor_id,
                'resource_type': 'flavor:instance', 'affinity': 'None',
            }
            for flavor_id, count in counts.items()
        ],
        'events': [],
        'before_end_date': None,
    }


@pytest.fixture
def active(service):
    """An active lease of Azimuth's, as 1.0 shows the lease."""
    service.manager.flavors.sync()
    made = service.api.post(
        '/v1/leases', json=flavor_lease('x', 'now', **{'m1.small': 2}),
        headers=ALICE,
    )
    assert made.status_code == 201, made.text
    for _ in range(300):
        answer = service.api.get('/v1/leases', headers=ALICE)
        # The operator finds its lease by the name.
        [lease] = [x for x in answer.json['leases'] if x['name'] == 'az-x']
        if lease['status'] == 'ACTIVE':
            return lease
        time.sleep(0.1)
    raise AssertionError(lease)


@pytest.mark.row('F106')
def test_azimuth_finds_the_flavor_to_boot_with(service, active):
    sizes = {
        json.loads(reservation['resource_properties'])['id']: reservation['id']
        for reservation in active['reservations']
        if reservation['resource_type'] == 'flavor:instance'
    }
    [reservation] = active['reservations']
    assert sizes == {'m1.small': reservation['flavor_id']}
    # As Nova shows a flavor in its first version, in the same order.
    assert list(json.loads(reservation['resource_properties']).items()) == [
        ('id', 'm1.small'),
        ('name', 'small'),
        ('ram', 2048),
        ('disk', 20),
        ('swap', ''),
        ('OS-FLV-EXT-DATA:ephemeral', 0),
        ('OS-FLV-DISABLED:disabled', False),
        ('vcpus', 2),
        ('os-flavor-access:is_public', True),
        ('rxtx_factor', 1.0),
        ('extra_specs', {}),
    ]
    # The requirement is there from 1.1 on.
    answer = service.api.get(f'/v1/leases/{active["id"]}', headers=V1_1)
    [reservation] = answer.json['lease']['reservations']
    assert reservation['resource_properties'] == ''


@pytest.mark.row('F106')
def test_azimuth_shows_its_user_that_the_cloud_is_full(service):
    service.manager.flavors.sync()
    answer = service.api.post(
        '/v1/leases', json=flavor_lease('y', 'now', **{'m1.small': 500}),
        headers=ALICE,
    )
    # The operator repeats what is answered with any other status.
    assert answer.status_code in (400, 500)
    assert '500 instances are needed' in answer.json['error_message']


@pytest.mark.row('F106')
def test_azimuth_deletes_its_lease(service, active):
    # The operator sends these headers with each request.
    headers = {
        **ALICE, 'Content-Type': 'application/json',
        'X-OpenStack-Nova-API-Version': '2.61',
    }
    answer = service.api.delete(f'/v1/leases/{active["id"]}', headers=headers)
    assert answer.status_code == 204
    for _ in range(300):
        left = service.api.get('/v1/leases', headers=headers)
        if left.json == {'leases': []}:
            break
        time.sleep(0.1)
    else:
        raise AssertionError(left.json)


def test_the_splitter_reads_what_1_0_shows(service, active):
    for _ in range(300):
        service.manager.notifier.step()
        payloads = [
            message['payload'] for _, message, *_ in _impl_test.NOTIFICATIONS
            if message['event_type'] == 'lease.event.start_lease'
        ]
        if payloads:
            break
        time.sleep(0.1)
    [payload] = payloads
    for field in ('start_date', 'end_date', 'status', 'degraded', 'name'):
        assert payload[field] == active[field]
    [sent], [shown] = payload['reservations'], active['reservations']
    for each in (sent, shown):
        assert each['aggregate_id'] is not None
        assert each['flavor_id'] == each['id']
        # Times have a form of their own.
        del each['created_at'], each['updated_at']
    assert sent == shown
    assert [e['event_type'] for e in payload['events']] == [
        e['event_type'] for e in active['events']
    ]


def test_a_whole_lease_that_is_sent_back_changes_nothing(service, active):
    path = f'/v1/leases/{active["id"]}'
    answer = service.api.put(path, json=active, headers=ALICE)
    assert answer.status_code == 200, answer.text
    assert answer.json == {'lease': active}


@pytest.mark.row('F106')
def test_warre_leases_instances_of_its_fork(client):
    lease = client.lease.create(
        name='Reservation 1', start='2030-01-01 01:00', end='2030-01-01 02:00',
        reservations=[{
            'resource_type': 'virtual:instance', 'amount': 1, 'vcpus': 1,
            'memory_mb': 512, 'disk_gb': 1, 'ephemeral_gb': 10,
            'affinity': None, 'resource_properties': '["==", "$gpu", "a100"]',
            'extra_specs': {'hw:cpu_policy': 'shared'},
        }],
        events=[]
    )
    client.lease.update(lease['id'], end_date='2030-01-01 03:00')
    shown = client.lease.get(lease['id'])
    assert shown['end_date'] == '2030-01-01T03:00:00.000000'
    client.lease.delete(lease['id'])
    with pytest.raises(client_exception.BlazarClientException) as caught:
        client.lease.delete(lease['id'])
    assert caught.value.kwargs['code'] == 404


def test_doni_enrols_a_host_and_closes_it(service):
    def ask(method, path, status, body=None):
        answer = service.api.request(
            method, f'/v1{path}', json=body,
            headers={**serving.ADMIN, microversion.HEADER: 'reservation 1.0'}
        )
        assert answer.status_code == status, answer.text
        return answer.json

    state = {
        'uid': 'compute-2', 'node_name': 'nc02', 'node_type': 'compute',
        'cpu_arch': 'x86_64', 'su_factor': 1.0, 'placement.rack': 'r1',
    }
    ask('POST', '/os-hosts', 201, {**state, 'name': 'compute-2'})
    ask('POST', '/os-hosts', 409, {**state, 'name': 'compute-2'})
    [found] = [
        each for each in ask('GET', '/os-hosts', 200, {})['hosts']
        if each['hypervisor_hostname'] == 'compute-2'
    ]
    assert {**state, 'su_factor': '1.0'}.items() <= found.items()
    path = f'/os-hosts/{found["id"]}'
    changed = ask('PUT', path, 200, {**state, 'su_factor': 2.5})['host']
    assert changed['su_factor'] == '2.5'
    window = {
        'name': 'availability_window_1', 'start_date': '2030-01-01 00:00',
        'end_date': '2030-01-02 00:00',
    }
    reservation = {
        'resource_type': 'physical:host', 'min': 1, 'max': 1,
        'hypervisor_properties': None,
        'resource_properties': '["==","$uid","compute-2"]',
    }
    body = {**window, 'reservations': [reservation]}
    lease = ask('POST', '/leases', 201, body)['lease']
    assert 'compute-2' in str(lease['reservations'])
    later = {**window, 'end_date': '2030-01-03 00:00'}
    ask('PUT', f'/leases/{lease["id"]}', 200, later)
    ask('DELETE', f'/leases/{lease["id"]}', 204)


def test_gophercloud_leases_and_changes(service):
    def ask(method, path, body):
        answer = service.api.request(
            method, f'/v1/leases{path}', json=body, headers=ALICE
        )
        assert answer.status_code in (200, 201), answer.text
        return answer.json['lease']

    service.manager.flavors.sync()
    body = {
        'name': 'my_lease',
        'start_date': '2030-01-01 08:00',
        'end_date': '2030-01-03 18:00',
        'before_end_date': '2030-01-03 16:30',
        'reservations': [
            {
                'resource_type': 'virtual:instance', 'amount': 2, 'vcpus': 1,
                'memory_mb': 2048, 'disk_gb': 20, 'affinity': None,
                'resource_properties': '["==", "$gpu", "a100"]',
            },
            {
                'resource_type': 'flavor:instance', 'amount': 1,
                'flavor_id': 'm1.small', 'affinity': None,
            },
        ],
    }
    lease = ask('POST', '', body)
    assert [e['time'] for e in lease['events'] if e['event_type'] == (
        'before_end_lease'
    )] == ['2030-01-03T16:30:00.000000']
    changed = ask('PUT', f'/{lease["id"]}', {
        'name': 'lease_renamed',
        'start_date': '2030-01-01 09:00',
        'end_date': '2030-01-04 18:00',
        'before_end_date': '2030-01-04 17:00',
        'reservations': [{
            'id': lease['reservations'][0]['id'], 'amount': 3, 'vcpus': 2,
            'memory_mb': 4096, 'disk_gb': 40, 'affinity': True,
        }],
    })
    assert changed['name'] == 'lease_renamed'
    assert changed['reservations'][0]['amount'] == 3
    for name in ('start_date', 'end_date'):
        datetime.datetime.strptime(changed[name], FORM)


# The calls of gophercloud's package of hosts, which the guide has too: the
# operation, the body, the statuses and the key of the answer that it needs.
GOPHERCLOUD = {
    'hosts.Create': (
        'POST /v1/os-hosts', {'name': 'compute-2', 'rack': 'b12'}, 201, 'host'
    ),
    'hosts.List': ('GET /v1/os-hosts', None, 200, 'hosts'),
    'hosts.Get': ('GET /v1/os-hosts/{host_id}', None, 200, 'host'),
    'hosts.Update': (
        'PUT /v1/os-hosts/{host_id}', {'gpu': 'h100', 'rack': None}, 200,
        'host',
    ),
    'hosts.ListAllocations': (
        'GET /v1/os-hosts/allocations', None, 200, 'allocations'
    ),
    'hosts.GetAllocation': (
        'GET /v1/os-hosts/{host_id}/allocation', None, 200, 'allocation'
    ),
    'hosts.ListResourceProperties': (
        'GET /v1/os-hosts/properties', None, 200, 'resource_properties'
    ),
    'hosts.UpdateResourceProperty': (
        'PATCH /v1/os-hosts/properties/{name}', {'private': False}, 200,
        'resource_property',
    ),
    'hosts.Delete': ('DELETE /v1/os-hosts/{host_id}', None, 204, None),
}
# The times that gophercloud parses, and the fields that are no text.
STAMPS = {
    '%Y-%m-%d %H:%M:%S': {'created_at', 'updated_at'},
    FORM: {'start_date', 'end_date'},
}
NO_TEXT = {
    'vcpus': int, 'memory_mb': int, 'local_gb': int, 'hypervisor_version': int,
    'reservable': bool, 'private': bool, 'values': list, 'reservations': list,
}


@pytest.mark.parametrize('call', GOPHERCLOUD)
def test_gophercloud_manages_hosts(service, host, call):
    if call != 'hosts.Delete':
        lease = service.api.post('/v1/leases', headers=ALICE, json={
            **WINDOW, 'name': 'run',
            'reservations': [
                {'resource_type': 'physical:host', 'min': 1, 'max': 1},
            ],
        })
        assert lease.status_code == 201
    operation, body, status, key = GOPHERCLOUD[call]
    method, path = operation.split()
    answer = service.api.request(
        method, path.format(host_id=host['id'], name='gpu'), json=body,
        headers=serving.ADMIN,
    )
    assert answer.status_code == status, answer.text
    if key is None:
        return
    shown = answer.json[key]
    for each in shown if isinstance(shown, list) else [shown]:
        for row in each, *each.get('reservations', ()):
            for name, value in row.items():
                for form, names in STAMPS.items():
                    if name in names and value is not None:
                        datetime.datetime.strptime(value, form)
                if name in NO_TEXT:
                    assert type(value) is NO_TEXT[name]


def test_the_guide_lists_the_calls_of_gophercloud():
    text = GUIDE.read_text()
    for call, (operation, *_) in GOPHERCLOUD.items():
        assert f'* - ``{call}``\n     - ``{operation}``\n' in text
        assert operation in conftest.OPERATIONS
    assert text.count('* - ``hosts.') == len(GOPHERCLOUD)
