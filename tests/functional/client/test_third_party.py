# SPDX-License-Identifier: Apache-2.0
"""Requests of other clients than Blazar's, and their use of responses.

These are Heat's OS::Blazar::Lease and OS::Blazar::Host, blazar-dashboard and
python-chi, all of which request version 1.0.
"""

import datetime
import json

from blazarclient import exception as client_exception
import pytest

from blazar_sched.service.api import microversion
from tests import serving

ALICE = {'X-Auth-Token': 'alice:p1'}
V1_1 = {**ALICE, microversion.HEADER: 'reservation 1.1'}
# The format in which python-chi and the dashboard parse a date.
FORM = '%Y-%m-%dT%H:%M:%S.%f'
WINDOW = {'start_date': '2030-01-01 01:35', 'end_date': '2030-01-01 02:35'}
HEAT = {
    'events': [],
    'before_end_date': None,
    **WINDOW,
}


@pytest.fixture(autouse=True)
def host(service):
    """A reservable host."""
    answer = service.api.simulate_post(
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
    answer = service.api.simulate_post(
        '/v1/leases',
        json={
            'name': 'endless',
            'start_date': '2031-01-01 00:00',
            'end_date': None,
            'reservations': [
                {'resource_type': 'physical:host', 'min': 1, 'max': 1},
            ],
        },
        headers=V1_1,
    )
    assert answer.status_code == 201, answer.text
    return answer.json['lease']['id']


@pytest.mark.parametrize('left_out', [
    {'hypervisor_properties': None, 'resource_properties': None},
    {'hypervisor_properties': None, 'resource_properties': '["==", "$gpu", '
     '"a100"]'},
])
def test_heat_leases_hosts(service, left_out):
    body = {
        'name': 'heat-ho',
        **HEAT,
        'reservations': [
            {
                'resource_type': 'physical:host',
                'min': 1,
                'max': 1,
                **left_out,
                'before_end': 'default',
            },
        ],
    }
    answer = service.api.simulate_post('/v1/leases', json=body, headers=ALICE)
    assert answer.status_code == 201, answer.text
    [reservation] = answer.json['lease']['reservations']
    assert reservation['hypervisor_properties'] == ''
    # The attributes that Heat shows.
    assert answer.json['lease'].keys() >= {
        'name', 'start_date', 'end_date', 'events', 'reservations', 'user_id',
        'project_id', 'trust_id', 'degraded', 'status', 'created_at',
        'updated_at',
    }


def test_heat_leases_instances(service):
    body = {
        'name': 'heat-in',
        **HEAT,
        'reservations': [
            {
                'resource_type': 'virtual:instance',
                'amount': 2,
                'vcpus': 1,
                'memory_mb': 512,
                'disk_gb': 1,
                'affinity': False,
                'resource_properties': None,
            },
        ],
    }
    # One host has no room for two instances with anti-affinity.
    answer = service.api.simulate_post('/v1/leases', json=body, headers=ALICE)
    assert answer.status_code == 409, answer.text
    body['reservations'][0]['affinity'] = True
    answer = service.api.simulate_post('/v1/leases', json=body, headers=ALICE)
    assert answer.status_code == 201, answer.text


def test_heat_registers_a_host(service):
    answer = service.api.simulate_post(
        '/v1/os-hosts',
        json={'name': 'compute-2', 'gpu': 'true'},
        headers=serving.ADMIN,
    )
    assert answer.status_code == 201, answer.text
    shown = answer.json['host']
    # Its attributes; the dashboard takes other fields for capabilities.
    assert shown.keys() - {'gpu'} == {
        'id', 'hypervisor_hostname', 'hypervisor_type', 'hypervisor_version',
        'vcpus', 'cpu_info', 'memory_mb', 'local_gb', 'service_name',
        'reservable', 'status', 'trust_id', 'created_at', 'updated_at',
        'availability_zone',
    }


def test_the_dashboard_reads_what_a_host_is(login, host):
    shown = login('admin').host.get(host['id'])
    assert isinstance(json.loads(shown['cpu_info']), dict)


def test_the_dashboard_draws_a_calendar_with_an_endless_lease(
    login, endless
):
    [host] = login('admin').allocation.list('os-hosts')
    [reservation] = host['reservations']
    for name in ('start_date', 'end_date'):
        datetime.datetime.strptime(reservation[name], FORM)


def test_the_dashboard_changes_what_it_shows(client):
    lease = client.lease.create(
        name='dash',
        start='2030-01-01 01:00',
        end='2030-01-01 02:00',
        reservations=[
            {
                'resource_type': 'physical:host',
                'min': 1,
                'max': 1,
                'hypervisor_properties': '',
                'resource_properties': '["==", "$gpu", "a100"]',
            },
        ],
        events=[],
    )
    [reservation] = lease['reservations']
    changed = client.lease.update(
        lease_id=lease['id'],
        name='dash-2',
        prolong_for='1h',
        reservations=[
            {
                'id': reservation['id'],
                'resource_type': 'physical:host',
                'min': 1,
                'max': 1,
                'hypervisor_properties': '',
                'resource_properties': '',
            },
        ],
    )
    assert changed['name'] == 'dash-2'
    assert changed['end_date'] == '2030-01-01T03:00:00.000000'
    client.lease.delete(lease['id'])


def test_chi_reads_the_list_with_an_endless_lease_and_prolongs_it(
    service, client, endless
):
    [shown] = client.lease.list()
    for name in ('start_date', 'end_date'):
        datetime.datetime.strptime(shown[name], FORM)
    # Neither client changes the missing end.
    client.lease.update(lease_id=endless, prolong_for='1h')
    client.lease.update(lease_id=endless, name='renamed')
    answer = service.api.simulate_get(f'/v1/leases/{endless}', headers=V1_1)
    assert answer.json['lease']['end_date'] is None
    with pytest.raises(client_exception.BlazarClientException, match='range'):
        client.lease.update(lease_id=endless, reduce_by='1h')


@pytest.mark.parametrize(
    'properties',
    ['[]', '["and", ["==", "$gpu", "a100"]]', '["==", "$gpu", "a100"]'],
)
def test_chi_leases_nodes(client, properties):
    lease = client.lease.create(
        name='chi',
        start='2030-01-01 01:00',
        end='2030-01-01 02:00',
        reservations=[
            {
                'resource_type': 'physical:host',
                'resource_properties': properties,
                'hypervisor_properties': '',
                'min': '1',
                'max': '1',
            },
        ],
        events=[],
    )
    assert lease['reservations'][0]['resource_properties'] == properties
