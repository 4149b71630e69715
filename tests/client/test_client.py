# SPDX-License-Identifier: Apache-2.0
"""Typical uses of Blazar's own client: the library and two programs."""

import argparse
import json
import pathlib
import re
from unittest import mock

from blazarclient import exception as client_exception
from blazarclient import shell as blazar_shell
from cliff import lister
from cliff import show
import pytest

from tests import programs
from tests.client import conftest
from tests.standins.neutron import NETWORK
from tests.standins.neutron import SUBNET

HOST_RESERVATION = {
    'resource_type': 'physical:host', 'min': 1, 'max': 1,
    'hypervisor_properties': '', 'resource_properties': '',
}
HOST_ARGUMENT = (
    'resource_type=physical:host,min=1,max=1,'
    'hypervisor_properties=,resource_properties=["==", "$gpu", "a100"]'
)
INSTANCE_ARGUMENT = (
    'resource_type=virtual:instance,vcpus=2,memory_mb=512,disk_gb=0,'
    'amount=3,affinity=True,resource_properties='
)
FLAVOR_ARGUMENT = (
    'resource_type=flavor:instance,flavor_id=m1.small,amount=1,affinity=None'
)
FLOATING_IP_ARGUMENT = (
    f'resource_type=virtual:floatingip,network_id={NETWORK},amount=2,'
    'required_floatingips=["203.0.113.7"]'
)


@pytest.mark.row('F88')
def test_every_command_is_tried_here():
    tried = re.findall(
        r"shell\.(?:do|read|run)\(\s*'([a-z ]+)',\s*'([a-z]+)'",
        pathlib.Path(__file__).read_text(),
    )
    names = conftest.PROGRAMS['blazar']['names']
    commands = [' '.join(command) for command in tried]
    assert {
        names.get(command, command).replace(' ', '-') for command in commands
    } == set(blazar_shell.COMMANDS_V1)


def options(command):
    """Return the options in a command's help."""
    parser = command(mock.Mock(), None).get_parser('')
    return {
        option
        for action in parser._actions
        if action.help != argparse.SUPPRESS
        for option in action.option_strings
        if option.startswith('--')
    }


@pytest.mark.row('F88')
def test_every_option_is_tried_here():
    text = pathlib.Path(__file__).read_text()
    cliffs = set()
    for base in (lister.Lister, show.ShowOne):
        plain = type('Plain', (base,), {'take_action': None})
        cliffs |= options(plain)
    assert {
        (name, option)
        for name, command in blazar_shell.COMMANDS_V1.items()
        for option in options(command) - cliffs
        if f"'{option}'" not in text
    } == set()


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


@pytest.mark.row('C1', 'F88')
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
        400, 'ERROR', alice.lease.create, 'n', *dates, [HOST_RESERVATION], []
    )
    refused(
        400, r'reservations\[0\].min', alice.lease.create, 'n', *dates,
        [{**HOST_RESERVATION, 'min': ''}], [],
    )
    refused(
        400, 'start_date', alice.lease.create, 'n', 'soon', dates[1],
        [HOST_RESERVATION], [],
    )


@pytest.mark.row('C3', 'F88')
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
        'lease', 'create', 'night-run', '--start-date', '2030-01-01 00:00',
        '--end-date', '2030-01-01 01:00', '--reservation', HOST_ARGUMENT,
        '--reservation', INSTANCE_ARGUMENT,
    )
    assert lease['status'] == 'PENDING'
    refused = shell.run(
        'lease', 'create', 'late-run', '--start-date', '2030-01-01 00:30',
        '--end-date', '2030-01-01 02:00', '--reservation', HOST_ARGUMENT,
    )
    assert refused.returncode != 0
    assert 'ERROR: ' in refused.stderr
    [listed] = shell.read('lease', 'list')
    assert listed == {
        'id': lease['id'], 'name': 'night-run',
        'start_date': '2030-01-01T00:00:00.000000',
        'end_date': '2030-01-01T01:00:00.000000',
    }

    held = shell.read('allocation', 'show', 'host', 'compute-1')
    [reservation] = json.loads(f'[{held["reservations"]}]')
    assert reservation['lease_id'] == lease['id']
    shell.do(
        'lease', 'set', 'night-run', '--name', 'day-run', '--prolong-for',
        '8h', '--reservation', f'id={reservation["id"]},max=1',
    )
    shown = shell.read('lease', 'show', 'day-run')
    assert shown['end_date'] == '2030-01-01T09:00:00.000000'

    shell.do('lease', 'delete', 'day-run')
    assert shell.read('lease', 'list') == []
    shell.do('host', 'delete', 'compute-1')
    assert [h['id'] for h in shell.read('host', 'list')] == ['2']


def test_host_properties_with_the_programs(shell):
    shell.do('host', 'create', 'compute-1', '--extra', 'gpu=a100')
    shell.do('host', 'set', 'compute-1', '--extra', 'rack=7')
    shown = shell.read('host property', 'show', 'rack')
    assert shown['property'] == 'rack'
    assert '7' in shown['property_values']
    shell.do('host property', 'set', 'rack', '--private')
    assert shell.read('host property', 'list') == [{'property': 'gpu'}]
    assert {
        p['property']: p['private']
        for p in shell.read('host property', 'list', '--detail', '--all')
    } == {'gpu': False, 'rack': True}
    shell.do('host property', 'set', 'rack', '--public')
    assert {
        p['property'] for p in shell.read('host property', 'list')
    } == {'gpu', 'rack'}
    unset = shell.run('host', 'unset', 'compute-1', '--extra', 'rack')
    if shell.program == 'openstack':
        # The entry point of the command names a class that does not exist.
        assert 'UnsetAttributeHost' in unset.stderr
    else:
        assert unset.returncode == 0, unset.stderr
        assert 'rack' not in shell.read('host', 'show', 'compute-1')


def test_allocations_with_the_programs(shell):
    shell.do('host', 'create', 'compute-1', '--extra', 'gpu=a100')
    leases = [
        shell.read(
            'lease', 'create', f'run-{day}', '--start-date',
            f'2030-01-0{day} 00:00', '--end-date', f'2030-01-0{day} 12:00',
            '--before-end-date', f'2030-01-0{day} 11:00', '--reservation',
            HOST_ARGUMENT,
        )
        for day in (1, 2)
    ]
    listed = shell.do('allocation', 'list', 'host', '-f', 'json')
    assert all(lease['id'] in listed for lease in leases)
    [reservation] = json.loads(f'[{leases[1]["reservations"]}]')
    for words in (('list', 'host'), ('show', 'host', 'compute-1')):
        for option, id_ in (
            ('--lease-id', leases[1]['id']),
            ('--reservation-id', reservation['id']),
        ):
            held = shell.do('allocation', *words, option, id_, '-f', 'json')
            assert leases[0]['id'] not in held
            assert leases[1]['id'] in held
    assert [
        lease['name'] for lease in shell.read('lease', 'list', '--sort-by',
                                              'start_date')
    ] == ['run-1', 'run-2']


def test_lists_are_sorted_with_the_programs(shell):
    for n in (2, 1):
        shell.do('host', 'create', f'compute-{n}', '--extra', f'rack-{n}=7')
        shell.do('floatingip', 'create', NETWORK, f'203.0.113.{n + 6}')
    for words, column, values in [
        (('host', 'list'), 'hypervisor_hostname', ['compute-1', 'compute-2']),
        (('host property', 'list'), 'property', ['rack-1', 'rack-2']),
        (('allocation', 'list', 'host'), 'resource_id', ['1', '2']),
        (
            ('floatingip', 'list'), 'floating_ip_address',
            ['203.0.113.7', '203.0.113.8'],
        ),
    ]:
        listed = shell.read(*words, '--sort-by', column)
        assert [item[column] for item in listed] == values


def test_a_flavor_is_reserved_with_the_programs(shell):
    shell.do('host', 'create', 'compute-1')
    lease = shell.read(
        'lease', 'create', 'run', '--reservation', FLAVOR_ARGUMENT,
        '--start-date', '2030-01-01 00:00', '--end-date', '2030-01-01 01:00',
    )
    [reservation] = json.loads(f'[{lease["reservations"]}]')
    assert (reservation['vcpus'], reservation['affinity']) == (2, None)
    shell.do(
        'lease', 'set', 'run', '--reservation',
        f'id={reservation["id"]},amount=3',
    )
    shown = shell.read('lease', 'show', 'run')
    [reservation] = json.loads(f'[{shown["reservations"]}]')
    assert reservation['amount'] == 3


def test_events_of_ones_own_are_refused(shell):
    shell.do('host', 'create', 'compute-1')
    refused = shell.run(
        'lease', 'create', 'run', '--start-date', '2030-01-01 00:00',
        '--end-date', '2030-01-01 01:00', '--reservation', FLAVOR_ARGUMENT,
        '--event', 'event_type=notification,event_date=2030-01-01 00:30',
    )
    assert refused.returncode != 0
    assert 'ERROR: events: ' in refused.stderr
    assert shell.read('lease', 'list') == []


@pytest.mark.row('C2')
def test_blazar_runs_where_openstack_is_not_installed(endpoint, tmp_path):
    (tmp_path / 'openstackclient.py').write_text(
        "raise ImportError('it is not installed')\n"
    )
    blazar, openstack = (
        conftest.Shell(
            program, endpoint, tmp_path, programs.run_alone,
            PYTHONPATH=str(tmp_path),
        )
        for program in ('blazar', 'openstack')
    )
    assert blazar.read('host', 'list') == []
    assert 'not installed' in openstack.run('host', 'list').stderr


def test_physical_reservation_option_of_the_blazar_command(endpoint, tmp_path):
    shell = conftest.Shell('blazar', endpoint, tmp_path)
    shell.do('host', 'create', 'compute-1')
    lease = shell.read(
        'lease', 'create', 'run', '--start-date', '2030-01-01 00:00',
        '--end-date', '2030-01-01 01:00', '--physical-reservation',
        'min=1,max=2,before_end=snapshot',
    )
    [reservation] = json.loads(f'[{lease["reservations"]}]')
    assert reservation['resource_type'] == 'physical:host'
    assert (reservation['min'], reservation['max']) == (1, 2)
    assert reservation['before_end'] == 'snapshot'


@pytest.mark.row('F64')
def test_a_lease_is_moved_with_the_programs(shell):
    shell.do('host', 'create', 'compute-1', '--extra', 'gpu=a100')
    shell.do(
        'lease', 'create', 'run', '--start-date', '2030-01-02 00:00',
        '--end-date', '2030-01-03 00:00', '--reservation', HOST_ARGUMENT,
    )
    for options, start, end in [
        (('--prolong-for', '1d', '--advance-by', '2h'),
         '2030-01-01T22:00', '2030-01-04T00:00'),
        (('--reduce-by', '30m', '--defer-by', '1h'),
         '2030-01-01T23:00', '2030-01-03T23:30'),
        (('--start-date', '2030-02-01 00:00',
          '--end-date', '2030-02-02 00:00'),
         '2030-02-01T00:00', '2030-02-02T00:00'),
    ]:
        shell.do('lease', 'set', 'run', *options)
        shown = shell.read('lease', 'show', 'run')
        assert shown['start_date'] == f'{start}:00.000000'
        assert shown['end_date'] == f'{end}:00.000000'


def test_bare_arguments_of_lease_create(shell):
    """The programs fill in missing dates: from now on, for a day."""
    shell.do('host', 'create', 'compute-1')
    lease = shell.read(
        'lease', 'create', 'n', '--reservation',
        'resource_type=virtual:instance,vcpus=1,memory_mb=1,disk_gb=0,amount=1'
    )
    assert lease['name'] == 'n'


@pytest.mark.row('F4')
def test_floating_ips_by_the_library(login):
    admin, alice = login('admin'), login('alice:p1')
    made = [admin.floatingip.create(NETWORK, f'203.0.113.{n}') for n in (7, 8)]
    assert made[0]['floating_ip_address'] == '203.0.113.7'
    assert made[0]['subnet_id'] == SUBNET
    assert alice.floatingip.list() == made
    assert alice.floatingip.get(made[0]['id']) == made[0]
    lease = alice.lease.create(
        'addresses', '2030-01-01 00:00', '2030-01-01 01:00',
        [{
            'resource_type': 'virtual:floatingip', 'network_id': NETWORK,
            'amount': 1, 'required_floatingips': ['203.0.113.8'],
        }],
        []
    )
    with pytest.raises(
        client_exception.BlazarClientException, match='allocated'
    ):
        admin.floatingip.delete(made[1]['id'])
    alice.lease.update(lease['id'], reservations=[{
        'id': lease['reservations'][0]['id'], 'amount': 2,
        'required_floatingips': [],
    }])
    [changed] = alice.lease.get(lease['id'])['reservations']
    assert (changed['amount'], changed['required_floatingips']) == (2, [])
    alice.lease.delete(lease['id'])
    for each in made:
        admin.floatingip.delete(each['id'])
    assert admin.floatingip.list() == []


def test_floating_ips_by_the_programs(shell):
    made = [
        shell.read('floatingip', 'create', NETWORK, f'203.0.113.{n}')
        for n in (7, 8)
    ]
    refused = shell.run('floatingip', 'create', NETWORK, '203.0.113.1')
    assert refused.returncode != 0
    assert 'gateway' in refused.stderr
    assert sorted(
        f['floating_ip_address'] for f in shell.read('floatingip', 'list')
    ) == ['203.0.113.7', '203.0.113.8']
    shown = shell.read('floatingip', 'show', made[0]['id'])
    assert shown['floating_network_id'] == NETWORK

    lease = shell.read(
        'lease', 'create', 'addresses', '--start-date', '2030-01-01 00:00',
        '--end-date', '2030-01-01 01:00', '--reservation', FLOATING_IP_ARGUMENT
    )
    [reservation] = json.loads(f'[{lease["reservations"]}]')
    assert reservation['amount'] == 2
    assert reservation['required_floatingips'] == ['203.0.113.7']
    shell.do(
        'lease', 'set', 'addresses', '--reservation',
        f'id={reservation["id"]},amount=1,required_floatingips=[]',
    )
    shell.do('floatingip', 'delete', made[1]['id'])
    assert shell.run('floatingip', 'delete', made[0]['id']).returncode != 0
    shell.do('lease', 'delete', 'addresses')
    shell.do('floatingip', 'delete', made[0]['id'])
    assert shell.read('floatingip', 'list') == []
