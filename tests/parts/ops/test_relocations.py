# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched relocations`: the list of servers that must move."""

import json

import pytest

from blazar_sched.cmd import main
from blazar_sched.domain import duration
from blazar_sched.parts.ops import relocations
from tests import serving
from tests.functional.manager.test_relocation_shown import LEAD


@pytest.fixture
def ask(site, tmp_path, port, monkeypatch, capsys):
    """Run the command; return its output."""
    config = serving.write_config(tmp_path, port)
    monkeypatch.setattr(relocations.time, 'time', site.clock)

    def ask(*args):
        command = ['relocations', '--config-file', str(config), *args]
        assert main.main(command) == 0
        return capsys.readouterr().out

    return ask


@pytest.fixture
def asked(ask):
    """Return the list of the command as JSON."""
    return lambda: json.loads(ask('--json'))


def test_an_instance_with_a_path_is_listed_until_it_has_moved(site, asked):
    assert asked() == []
    server = site.boot('a')
    lease = site.reserve('a')

    [told] = asked()

    [then] = told.pop('next')
    assert told == {
        'instance': server.uuid, 'project_id': 'other', 'host': 'a',
        'until': lease.start, 'state': 'planned',
    }
    assert (then['start'], then['end']) == (lease.start - LEAD, None)
    assert then['host'] in 'bcd'

    site.clock.now = lease.start - LEAD
    [told] = asked()
    assert told['state'] == 'due'

    site.look()
    site.look()
    assert asked() == []


def test_an_instance_with_nowhere_to_go_is_listed(site, asked):
    server = site.boot('a')
    lease = site.reserve('a')
    for name in 'bcd':
        site.hosts.update(site.host(name).id, {'disabled': True})
    site.look()
    [told] = asked()
    assert (told['instance'], told['state']) == (server.uuid, 'unplanned')
    assert told['until'] == lease.start


def test_the_table_names_hosts_and_times(site, ask, monkeypatch):
    monkeypatch.setenv('COLUMNS', '200')
    server = site.boot('a')
    lease = site.reserve('a')
    shown = ask()
    assert server.uuid in shown
    assert duration.format_time(lease.start) in shown
    assert f'from {duration.format_time(lease.start - LEAD)}' in shown
    assert 'planned' in shown
