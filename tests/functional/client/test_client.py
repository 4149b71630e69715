# SPDX-License-Identifier: Apache-2.0
"""Blazar's own client, unmodified: library, `blazar`, `openstack`.

Against a real HTTP server on loopback, with the whole service behind it.
"""

import json
import os
import pathlib
import subprocess
import sysconfig

from blazarclient import client as blazarclient
from blazarclient import exception as client_exception
from keystoneauth1 import session as session_
from keystoneauth1 import token_endpoint
import pytest

from blazar_sched.service.api import server

HOST_RESERVATION = {
    'resource_type': 'physical:host',
    'min': 1,
    'max': 1,
    'hypervisor_properties': '',
    'resource_properties': '',
}
HOST_ARGUMENT = (
    'resource_type=physical:host,min=1,max=1,'
    'hypervisor_properties=,resource_properties=["==", "$gpu", "a100"]'
)
INSTANCE_ARGUMENT = (
    'resource_type=virtual:instance,vcpus=2,memory_mb=512,disk_gb=0,'
    'amount=3,affinity=True,resource_properties='
)
# The same commands by their names in each program.
PROGRAMS = {
    'blazar': {'prefix': ['blazar'], 'join': '-', 'set': 'update'},
    'openstack': {'prefix': ['openstack', 'reservation'], 'join': ' ',
                  'set': 'set'},
}


@pytest.fixture
def endpoint(service):
    running = server.serve(service.conf, service.bus)
    yield f'http://127.0.0.1:{running.port}/v1'
    running.stop()


@pytest.fixture
def login(endpoint):
    """Return a library client for a token."""

    def make(token):
        auth = token_endpoint.Token(endpoint, token)
        return blazarclient.Client(
            '1', session=session_.Session(auth=auth),
            service_type='reservation',
        )

    return make


class Shell:
    """One of the two programs, as a user of a token runs it."""

    def __init__(self, program, endpoint, home):
        self._program = PROGRAMS[program]
        self._environ = {
            'PATH': os.environ['PATH'],
            'HOME': str(home),
            'LANG': 'C.UTF-8',
            # What the demonstration tells its users to set.
            'OS_AUTH_TYPE': 'admin_token',
            'OS_ENDPOINT': endpoint,
            'OS_TOKEN': 'admin',
        }

    def run(self, noun, verb, *arguments):
        prefix, join = self._program['prefix'], self._program['join']
        verb = self._program.get(verb, verb)
        command = [*prefix, *f'{noun}{join}{verb}'.split(), *arguments]
        scripts = pathlib.Path(sysconfig.get_path('scripts'))
        return subprocess.run(
            [scripts / command[0], *command[1:]],
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def do(self, *words):
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def read(self, *words):
        shown = self.do(*words, '-f', 'json')
        # create says so before it shows what it made.
        return json.loads(shown[min(
            shown.index(c) for c in '{[' if c in shown
        ):])


@pytest.fixture(params=PROGRAMS)
def shell(request, endpoint, tmp_path):
    return Shell(request.param, endpoint, tmp_path)


def test_hosts_by_the_library(login):
    hosts = login('admin').host
    made = hosts.create('compute-1', gpu='a100')
    assert made['hypervisor_hostname'] == 'compute-1'
    assert made['gpu'] == 'a100'
    assert hosts.list() == [made]
    assert hosts.get(made['id']) == made
    changed = hosts.update(made['id'], {'rack': '7', 'gpu': None})
    assert changed['rack'] == '7'
    assert 'gpu' not in changed
    assert hosts.list_properties(detail=True) == [
        {'property': 'rack', 'private': False, 'property_values': ['7']}
    ]
    hosts.set_property('rack', True)
    assert hosts.list_properties() == []
    assert hosts.list_properties(all=True) == [{'property': 'rack'}]
    hosts.delete(made['id'])
    assert hosts.list() == []


def test_leases_by_the_library(login):
    admin, alice, bob = login('admin'), login('alice:p1'), login('bob:p2')
    host = admin.host.create('compute-1')
    made = alice.lease.create(
        'night-run', '2030-01-01 00:00', '2030-01-01 01:00',
        [HOST_RESERVATION], [],
    )
    assert alice.lease.list() == [made]
    assert alice.lease.get(made['id']) == made
    assert bob.lease.list() == []
    assert admin.lease.list() == [made]

    changed = alice.lease.update(
        made['id'], name='long-run', prolong_for='2d', advance_by='1h'
    )
    assert changed['name'] == 'long-run'
    assert changed['start_date'] == '2029-12-31T23:00:00.000000'
    assert changed['end_date'] == '2030-01-03T01:00:00.000000'
    [allocation] = admin.allocation.list('os-hosts')
    assert allocation == admin.allocation.get('os-hosts', host['id'])
    assert allocation['reservations'][0]['lease_id'] == made['id']
    alice.lease.delete(made['id'])
    assert admin.lease.list() == []


def test_refusals_by_the_library(login):
    alice = login('alice:p1')

    def refused(code, words, method, *args, **kwargs):
        with pytest.raises(
            client_exception.BlazarClientException, match=words
        ) as caught:
            method(*args, **kwargs)
        assert caught.value.kwargs['code'] == code

    refused(403, 'policy', alice.host.list)
    refused(404, 'ERROR: .*x', alice.lease.get, 'x')
    dates = ('2030-01-01 00:00', '2030-01-01 01:00')
    refused(
        409, 'ERROR', alice.lease.create, 'n', *dates, [HOST_RESERVATION], []
    )
    refused(
        400, r'reservations\[0\].min', alice.lease.create, 'n', *dates,
        [{**HOST_RESERVATION, 'min': ''}], [],
    )
    refused(
        400, 'start_date', alice.lease.create, 'n', 'soon', dates[1],
        [HOST_RESERVATION], [],
    )


def test_an_afternoon_with_the_programs(shell):
    made = shell.read('host', 'create', 'compute-1', '--extra', 'gpu=a100')
    assert made['hypervisor_hostname'] == 'compute-1'
    shell.do('host', 'create', 'compute-2')
    assert [
        h['hypervisor_hostname'] for h in shell.read('host', 'list')
    ] == ['compute-1', 'compute-2']
    shell.do('host', 'set', 'compute-1', '--extra', 'rack=7')
    host = shell.read('host', 'show', 'compute-1')
    assert (host['gpu'], host['rack']) == ('a100', '7')

    lease = shell.read(
        'lease', 'create', 'night-run',
        '--start-date', '2030-01-01 00:00', '--end-date', '2030-01-01 01:00',
        '--reservation', HOST_ARGUMENT, '--reservation', INSTANCE_ARGUMENT,
    )
    assert lease['status'] == 'PENDING'
    refused = shell.run(
        'lease', 'create', 'late-run',
        '--start-date', '2030-01-01 00:30', '--end-date', '2030-01-01 02:00',
        '--reservation', HOST_ARGUMENT,
    )
    assert refused.returncode != 0
    assert 'ERROR: ' in refused.stderr
    [listed] = shell.read('lease', 'list')
    assert listed == {
        'id': lease['id'],
        'name': 'night-run',
        'start_date': '2030-01-01T00:00:00.000000',
        'end_date': '2030-01-01T01:00:00.000000',
    }

    held = shell.read('allocation', 'show', 'host', 'compute-1')
    [reservation] = json.loads(f'[{held["reservations"]}]')
    assert reservation['lease_id'] == lease['id']
    shell.do(
        'lease', 'set', 'night-run', '--name', 'day-run',
        '--prolong-for', '8h',
        '--reservation', f'id={reservation["id"]},max=1',
    )
    shown = shell.read('lease', 'show', 'day-run')
    assert shown['end_date'] == '2030-01-01T09:00:00.000000'

    shell.do('lease', 'delete', 'day-run')
    assert shell.read('lease', 'list') == []
    shell.do('host', 'delete', 'compute-1')
    assert [h['id'] for h in shell.read('host', 'list')] == ['2']


def test_bare_arguments_of_lease_create(shell):
    """The programs fill in what is left out: from now on, for a day."""
    shell.do('host', 'create', 'compute-1')
    lease = shell.read(
        'lease', 'create', 'n', '--reservation',
        'resource_type=virtual:instance,vcpus=1,memory_mb=1,disk_gb=0,'
        'amount=1',
    )
    assert lease['name'] == 'n'
