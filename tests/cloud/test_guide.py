# SPDX-License-Identifier: Apache-2.0
"""The commands of the user's guide, typed in an empty environment.

The environment has what the guide installs, and nothing else.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest
import yaml

from tests.cloud import polling
from tests.cloud import seed
from tests.cloud import site
from tests.packaging import source

USER = pathlib.Path(__file__).parents[2] / 'doc/source/user'
COMMAND = re.compile(r'^ +\$ (openstack (?:.*\\\n)*.*)$', re.MULTILINE)
PROGRAM = re.compile(r'^   import openstack\n(?:   .*\n|\n)+', re.MULTILINE)
# The last command of the page that is typed here. Further commands book hosts
# of other sizes.
LAST = 'openstack reservation lease change --end-date now day-run'
# Commands for hosts that the cloud lacks, with 16 vCPUs or huge pages, and the
# one that the page calls an administrator's.
LEFT_OUT = ('gpu-run', 'big-pages', 'burn-in')


@pytest.fixture(scope='module')
def installed(tmp_path_factory):
    """Return the programs of a venv with what the guide installs."""
    folder = tmp_path_factory.mktemp('guide')
    subprocess.run([sys.executable, '-m', 'venv', folder / 'venv'], check=True)
    [install] = re.findall(
        r'^   \$ pip (install .*)$', (USER / 'client.rst').read_text(), re.M
    )
    tree = source.copy(folder / 'blazar-sched')
    subprocess.run(
        [folder / 'venv/bin/pip', '-q', *(
            word.replace('blazar-sched-client', f'{tree}/client')
            for word in shlex.split(install)
        )],
        check=True, env=source.environment(BLAZAR_SCHED_NO_EXTENSION='1'),
    )
    return folder / 'venv/bin'


@pytest.fixture
def type_in(installed, demo, description, tmp_path):
    """Run a program of the environment; return what the program prints."""
    clouds = tmp_path / '.config/openstack/clouds.yaml'
    clouds.parent.mkdir(parents=True)
    clouds.write_text(yaml.safe_dump({'clouds': {'example': {
        'auth': {
            'auth_url': description['auth_url'], 'username': 'demo',
            'password': site.PASSWORD, 'project_name': 'demo',
            'user_domain_name': 'Default', 'project_domain_name': 'Default',
        },
        'region_name': site.REGION,
    }}}))

    def type_in(program, *words):
        done = subprocess.run(
            [installed / program, *words], capture_output=True, text=True,
            env={
                'HOME': str(tmp_path), 'OS_CLOUD': 'example',
                'PATH': os.environ['PATH'], 'LANG': 'C.UTF-8',
            },
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    return type_in


def replaced(line, own, demo, admin):
    """Return a command with what a reader replaces by names of the cloud."""
    reservations = {
        each['name']: each['reservations'][0]
        for each in demo.get('leases')['leases']
    }
    mine = reservations.get(own) or {}
    words = {
        '--network private': '--nic none',
        '--image debian-12': f'--image {seed.IMAGE}',
        'm1.large': 'm1.small',
        '<reservation id>': mine.get('id', ''),
        '<server group id>': mine.get('server_group_id') or '',
        '<flavor id>': demo.sdk.compute.find_flavor('m1.tiny').id,
        '<network id>': admin.sdk.network.find_network(seed.NETWORK).id,
    }
    for name, value in words.items():
        line = line.replace(name, value)
    return line


def statuses(who):
    return sorted(each.status for each in who.sdk.compute.servers())


def test_the_commands_of_the_guide_book_and_boot(
    type_in, register, demo, admin, description
):
    for name in description['hosts']:
        register(name)
    network = admin.sdk.network.find_network(seed.NETWORK).id
    for number in 100, 101:
        admin.create(
            'floatingips', floating_network_id=network,
            floating_ip_address=f'203.0.113.{number}',
        )
    own, typed = '', []
    for line in COMMAND.findall((USER / 'leases.rst').read_text()):
        line = re.sub(r'\\\n +', '', line)
        if line.endswith(LEFT_OUT):
            continue
        if 'lease create' in line or 'lease set' in line:
            own = line.split()[-1]
        _, *words = shlex.split(replaced(line, own, demo, admin))
        type_in('openstack', *words)
        typed.append(line)
        if '--start-date now' in line:
            [lease] = (
                each for each in demo.get('leases')['leases']
                if each['name'] == own
            )
            demo.wait_for(lease, 'ACTIVE')
        if words[:2] == ['server', 'create']:
            polling.until(lambda: 'BUILD' not in statuses(demo))
        if line == LAST:
            break

    assert len(typed) >= 15 and typed[-1] == LAST
    # The window of night-run has not begun; day-run has ended.
    polling.until(lambda: statuses(demo) == ['ACTIVE', 'ERROR'])


def test_the_program_of_the_guide_books(type_in, register, demo):
    register('compute-1')
    [program] = PROGRAM.findall((USER / 'client.rst').read_text())
    code = re.sub('^   ', '', program, flags=re.MULTILINE)
    printed = type_in('python', '-c', code)
    [lease] = demo.get('leases')['leases']
    assert lease['status'] == 'ACTIVE'
    assert printed.startswith('night-run ')
