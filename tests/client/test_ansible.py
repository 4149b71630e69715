# SPDX-License-Identifier: Apache-2.0
"""The guide's playbook, run by Ansible with the real API."""

import os
import pathlib
import re
import subprocess
import sysconfig

import pytest

from tests.client.test_sdk import NIGHT

pytest.importorskip('ansible', reason='needs Ansible: make test-programs')

PLAYBOOK = pathlib.Path('doc/source/user/lease.yaml')


@pytest.fixture
def play(endpoint, tmp_path):
    """Run the playbook as alice; return its output."""
    clouds = tmp_path / 'clouds.yaml'
    clouds.write_text(
        'clouds:\n  example:\n    auth_type: admin_token\n'
        f'    auth: {{endpoint: "{endpoint}", token: "alice:p1"}}\n'
        '    vendor_hook: blazar_sched_client:load\n'
    )

    def run(*arguments):
        program = pathlib.Path(
            sysconfig.get_path('scripts'), 'ansible-playbook'
        )
        return subprocess.run(
            [program, PLAYBOOK, *arguments], capture_output=True, text=True,
            timeout=300,
            env={
                **os.environ, 'HOME': str(tmp_path),
                'OS_CLIENT_CONFIG_FILE': str(clouds),
            },
        ).stdout

    return run


def changed(output):
    [(changes, failures)] = re.findall(
        r'changed=(\d+) .* failed=(\d+)', output
    )
    assert failures == '0', output
    return int(changes)


@pytest.mark.row('F102')
def test_the_playbook_of_the_guide(connect, play):
    connect().reservation.create_host(name='compute-1')
    alice = connect('alice:p1').reservation
    assert changed(play('--check')) == 1
    assert list(alice.leases()) == []
    shown = play()
    assert changed(shown) == 1
    assert 'night-run' in shown.rpartition('TASK')[2]
    [lease] = alice.leases()
    assert (lease.status, lease.end_date) == ('ACTIVE', '2030-01-02T06:00:00Z')
    assert changed(play()) == 0
    assert changed(play('-e', 'end=2030-01-03T06:00:00Z')) == 1
    [later] = alice.leases()
    assert (later.id, later.end_date) == (lease.id, '2030-01-03T06:00:00Z')
    gone = ('-e', 'state=absent')
    assert changed(play(*gone)) == 1
    assert list(alice.leases()) == []
    assert changed(play(*gone)) == 0


def test_a_playbook_tells_why_it_failed(connect, play):
    connect().reservation.create_host(name='compute-1')
    bob = connect('bob:p2').reservation
    bob.create_lease(**{**NIGHT, 'end_date': None})
    assert '1 host is needed' in play()
    # The lease of the other project, which has the same name, is not found.
    assert changed(play('-e', 'state=absent')) == 0
    assert [each.name for each in bob.leases()] == ['night-run']
    alice = connect('alice:p1').reservation
    for year in (2027, 2028):
        alice.create_lease(**{
            **NIGHT, 'start_date': f'{year}-01-01 00:00',
            'end_date': f'{year}-01-01 01:00',
        })
    assert 'More than one' in play()
