# SPDX-License-Identifier: Apache-2.0
"""The console script, run by a user as a process of its own."""

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys

import pytest
import requests

from tests import programs
from tests import serving
from tests import tables
from tests.waiting import PATIENCE
from tests.waiting import response
from tests.waiting import until

pytestmark = pytest.mark.more

SCRIPT = pathlib.Path(sys.executable).with_name('blazar-sched')


def run(*args, runs=programs.run, **environment):
    return runs(
        ['blazar-sched', *map(str, args)], {**os.environ, **environment}
    )


def run_alone(*args, **environment):
    """Run the script in a process that has not imported anything yet.

    For what depends on the imports, or on the directory.
    """
    return run(*args, runs=programs.run_alone, **environment)


@pytest.fixture
def config(tmp_path, port):
    return serving.write_config(tmp_path, port)


@contextlib.contextmanager
def running(*args):
    process = subprocess.Popen(
        [SCRIPT, *map(str, args)], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_status_says_which_index_runs():
    plain = run_alone('status', BLAZAR_SCHED_PURE_PYTHON='1')
    assert plain.returncode == 0
    assert 'plain Python' in plain.stdout


@pytest.mark.skipif(
    bool(os.environ.get('BLAZAR_SCHED_NO_EXTENSION')),
    reason='a build without the extension is under test',
)
def test_status_finds_the_compiled_index():
    compiled = run_alone('status', BLAZAR_SCHED_PURE_PYTHON='')
    assert 'compiled' in compiled.stdout


def test_db_upgrade_can_be_repeated_and_check_finds_nothing(config):
    for _ in range(2):
        upgraded = run('db', '--config-file', config, 'upgrade')
        assert upgraded.returncode == 0, upgraded.stderr
    checked = run('db', '--config-file', config, 'check')
    assert checked.returncode == 0, checked.stderr
    assert '0 inconsistencies found' in checked.stdout


def test_db_upgrade_says_which_database_and_from_where_to_where(
    config, tmp_path
):
    first, again = (
        run('db', 'upgrade', '--config-file', config).stdout.splitlines()
        for _ in range(2)
    )
    place = f'sqlite:///{tmp_path}/ledger.sqlite'
    assert first[0] == f'Database {place}, configured in: {config}'
    assert re.fullmatch(r'Created the tables, at migration \w+', first[1])
    assert again[0] == first[0]
    assert re.fullmatch(r'The tables are already at migration \w+', again[1])


def test_db_upgrade_without_a_configuration_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run_alone('db', 'upgrade', HOME=tmp_path, XDG_CONFIG_DIRS=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == (
        'Database sqlite:///blazar-sched.sqlite, configured in: no '
        'configuration file'
    )


@pytest.mark.parametrize('action', ['upgrade', 'check'])
def test_a_database_that_is_away_is_said_with_its_reason(config, action):
    pytest.importorskip('pymysql')
    url = 'mysql+pymysql://blazar:hush@127.0.0.1:9/x'
    text = re.sub('sqlite.*', f'{url}\nmax_retries = 0', config.read_text())
    config.write_text(text)
    refused = run('db', action, '--config-file', config)
    assert refused.returncode == 1
    assert 'blazar:***@127.0.0.1:9/x' in refused.stdout
    [line] = refused.stderr.splitlines()
    assert 'Connection refused' in line
    assert 'hush' not in refused.stdout + refused.stderr


@pytest.mark.parametrize('command', [('db', 'upgrade'), ('manager',)])
def test_a_database_that_lets_nobody_in_is_not_tried_again(config, command):
    """The folder of the database is missing; retries would never end."""
    config.write_text(
        re.sub('sqlite.*', 'sqlite:////nowhere/at.all', config.read_text())
    )
    refused = run(*command, '--config-file', config)
    assert refused.returncode == 1
    [line] = refused.stderr.splitlines()
    assert 'denied access' in line
    assert 'unable to open database file' in line


@pytest.mark.parametrize('before', [True, False])
def test_options_of_the_configuration_may_stand_anywhere(
    tmp_path, before, port
):
    folder = tmp_path / 'folder'
    folder.mkdir()
    (folder / '50.conf').write_text(
        f'[database]\nconnection = sqlite:///{tmp_path}/other.sqlite\n'
    )
    config = serving.write_config(tmp_path, port)
    options = ['--config-file', config, '--config-dir', folder]
    command = ['db', 'upgrade']
    done = run(*(options + command if before else command + options))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / 'other.sqlite').exists()
    assert not (tmp_path / 'ledger.sqlite').exists()
    assert f'{config}, {folder}' in done.stdout


@pytest.mark.parametrize('group', ['api', 'metrics'])
def test_an_address_that_is_taken_is_named(config, port, group):
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        other = taken.getsockname()[1]
        text = config.read_text()
        if group == 'api':
            text = text.replace(f'port = {port}', f'port = {other}')
        else:
            text += f'[metrics]\nport = {other}\n'
        config.write_text(text)
        refused = run('serve', '--config-file', config)
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].endswith(
        f'Address already in use: [{group}] host 127.0.0.1, port {other}'
    )


@pytest.mark.parametrize('day, said', [
    ('yesterday', "'yesterday' is not a day, YYYY-MM-DD"),
    ('2026-13-01', "'2026-13-01' is not a day, YYYY-MM-DD"),
    ('', "'' is not a day, YYYY-MM-DD"),
    ('9000-01-01', '9000-01-01 is in the future'),
])
def test_db_purge_wants_a_day_of_the_past(config, day, said):
    refused = run('db', 'purge', '--before', day, '--config-file', config)
    assert refused.returncode == 2
    assert refused.stderr.endswith(f'argument --before: {said}\n')


@pytest.mark.parametrize(
    'options, said',
    [
        ((), 'Deleted 0 leases\n'),
        (('--dry-run',), ''.join(
            f'Would delete from the table {each}: 0\n' for each in sorted(
                {'lease', 'past_allocation', *tables.names('PURGED')}
            )
        )),
    ],
)
def test_db_purge_says_how_many_leases_went(config, options, said):
    assert run('db', 'upgrade', '--config-file', config).returncode == 0
    done = run(
        'db', 'purge', '--before', '2026-01-01', *options, '--config-file',
        config,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f'\n{said}')


def test_the_version_is_told():
    done = run_alone('--version')
    assert done.returncode == 0
    assert re.fullmatch(r'blazar-sched \d+\.\d+\.\d+\S*\n', done.stdout)


def test_a_command_writes_neither_colours_nor_the_log_of_a_service(config):
    """The configuration of DevStack turns colours and logs on."""
    config.write_text(
        '[DEFAULT]\ndebug = true\nlogging_default_format_string = '
        '\x1b[01;35m%(message)s\n' + config.read_text().partition('\n')[2]
    )
    done = run_alone('db', 'upgrade', '--config-file', config)
    assert done.returncode == 0
    assert done.stderr == ''
    assert '\x1b' not in done.stdout


@pytest.mark.parametrize(
    'command', [('db', 'check'), ('manager',)], ids=lambda c: c[0]
)
def test_without_tables_it_is_said_what_to_do(command, config):
    name, *action = command
    refused = run(name, '--config-file', config, *action)
    assert refused.returncode == 1
    assert 'Traceback' not in refused.stderr
    assert 'db upgrade' in refused.stderr
    # Whoever forgot a configuration file sees that another database is meant.
    assert f'sqlite:///{config.parent}' in refused.stderr


def test_serve_answers_and_ends_at_sigterm(config, port):
    with running('serve', '--config-file', config) as process:
        url = f'http://127.0.0.1:{port}'
        assert response(process, f'{url}/').status_code == 300
        answer = response(process, f'{url}/v1/leases')
        assert answer.json() == {'leases': []}
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize(
    'text', ['[api]\nport = many\n', 'nonsense\n'], ids=['value', 'form']
)
def test_a_bad_configuration_is_refused_by_name(text, config):
    config.write_text(text)
    refused = run('serve', '--config-file', config)
    assert refused.returncode == 1
    assert 'Traceback' not in refused.stderr
    assert 'port' in refused.stderr or config.name in refused.stderr


@pytest.mark.parametrize(
    'command', [('serve',), ('db', 'check')], ids=lambda c: c[0]
)
def test_a_configuration_that_is_not_there_is_named(command, tmp_path):
    name, *arguments = command
    refused = run(name, '--config-file', tmp_path / 'none.conf', *arguments)
    assert refused.returncode == 1
    assert 'Traceback' not in refused.stderr
    assert 'none.conf' in refused.stderr


BUS = '[DEFAULT] transport_url', 'fake://', 'nonsense'
DATABASE = (
    '[database] connection', 'sqlite://', 'postgres://me:secret@127.0.0.1'
)


@pytest.mark.parametrize('command, wrong', [
    (('api',), BUS),
    (('manager',), BUS),
    (('serve',), DATABASE),
    (('manager',), DATABASE),
    (('db', 'check'), DATABASE),
], ids=lambda each: each[0])
def test_a_url_that_names_nothing_is_said_to_be_wrong(command, wrong, config):
    """The error is one line without the URL, which has a password."""
    option, right, url = wrong
    config.write_text(config.read_text().replace(right, url))
    name, *arguments = command
    refused = run(name, '--config-file', config, *arguments)
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].startswith(
        f'blazar-sched: {option} '
    )
    assert 'Traceback' not in refused.stderr
    assert 'secret' not in refused.stderr


def test_noauth_is_not_served_to_other_machines(config):
    with config.open('a') as file:
        file.write('host = 0.0.0.0\n')
    refused = run('serve', '--config-file', config)
    assert refused.returncode == 1
    assert 'noauth' in refused.stderr
    assert 'Traceback' not in refused.stderr


# No server listens there.
AWAY = '127.0.0.1:9'


def said(log, *words):
    """Wait until a process has written a line with all the words."""
    until(
        lambda: any(
            all(word in line for word in words)
            for line in log.read_text().splitlines()
        ),
        log.read_text,
    )


@contextlib.contextmanager
def logging_to(log, *args):
    with log.open('w') as file:
        process = subprocess.Popen(
            [SCRIPT, *map(str, args)], stdout=file, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def end(process, number=signal.SIGTERM):
    process.send_signal(number)
    return process.wait(PATIENCE)


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_a_manager_without_a_broker_waits_for_it(config, tmp_path, number):
    """The manager runs due events meanwhile, and stops on SIGTERM."""
    config.write_text(
        config.read_text().replace('fake://', f'rabbit://{AWAY}/')
    )
    assert run('db', '--config-file', config, 'upgrade').returncode == 0
    log = tmp_path / 'log'
    with logging_to(log, 'manager', '--config-file', config) as process:
        said(log, 'broker has not responded yet')
        assert end(process, number) == 0


@pytest.mark.row('C5')
def test_an_api_without_a_manager_says_so(config, port, tmp_path):
    config.write_text(
        config.read_text().replace('fake://', f'rabbit://{AWAY}/')
    )
    log = tmp_path / 'log'
    with logging_to(log, 'api', '--config-file', config) as process:
        said(log, 'listens on')
        answer = requests.get(
            f'http://127.0.0.1:{port}/v1/leases', headers=serving.ADMIN,
            timeout=PATIENCE,
        )
        assert answer.status_code == 503
        assert answer.json()['error_name'] == 'Unavailable'
        assert end(process) == 0


def test_a_manager_without_a_database_waits_for_it(config, tmp_path):
    pytest.importorskip('pymysql')
    url = re.sub('sqlite.*', f'mysql+pymysql://{AWAY}/x', config.read_text())
    config.write_text(url)
    log = tmp_path / 'log'
    with logging_to(log, 'manager', '--config-file', config) as process:
        said(log, 'WARNING', 'could not be started')
        assert end(process) == 0


def test_sighup_takes_over_what_may_change(config, tmp_path):
    log = tmp_path / 'log'
    with logging_to(log, 'serve', '--config-file', config) as process:
        said(log, 'listens on')
        good = config.read_text()
        for wrong in (
            'nonsense\n', '[manager]\nsync_interval = abc\n',
            '[DEFAULT]\ndebug = perhaps\n',
        ):
            config.write_text(f'{good}{wrong}')
            process.send_signal(signal.SIGHUP)
            said(log, 'ERROR', 'was not reloaded', wrong.split()[-1])
        assert 'changed' not in log.read_text()
        config.write_text(
            good.replace('[DEFAULT]', '[DEFAULT]\ndebug = true')
            + '[manager]\nsync_interval = 0.1\nevent_max_workers = 7\n'
        )
        process.send_signal(signal.SIGHUP)
        said(log, 'was reloaded')
        for name in ('DEFAULT.debug', 'manager.sync_interval'):
            said(log, f'Option {name} changed')
        said(log, 'immutable', 'manager.event_max_workers')
        assert end(process) == 0


def test_a_second_sigterm_ends_it_at_once(config, tmp_path):
    """This holds also while the service stops, or hangs before its start."""
    site = tmp_path / 'sitecustomize.py'
    site.write_text(
        'import threading\n'
        'from blazar_sched.service.manager import manager\n'
        'def stop(self):\n'
        '    print("hanging", flush=True)\n'
        '    threading.Event().wait()\n'
        'manager.Manager.stop = stop\n'
    )
    log = tmp_path / 'log'
    with log.open('w') as file:
        process = subprocess.Popen(
            [SCRIPT, 'serve', '--config-file', config], stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, 'PYTHONPATH': str(tmp_path)},
        )
    try:
        said(log, 'listens on')
        process.send_signal(signal.SIGTERM)
        said(log, 'hanging')
        assert process.poll() is None
        assert end(process) == -signal.SIGTERM
    finally:
        process.kill()
        process.wait()
