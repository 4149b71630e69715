# SPDX-License-Identifier: Apache-2.0
"""The console script, as a user runs it: in processes of its own."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest
import requests

from tests import serving

SCRIPT = pathlib.Path(sys.executable).with_name('blazar-sched')
PATIENCE = 60


def run(*args, **environment):
    return subprocess.run(
        [SCRIPT, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, **environment},
    )


@pytest.fixture
def config(tmp_path, port):
    return serving.write_config(tmp_path, port)


@contextlib.contextmanager
def running(*args):
    process = subprocess.Popen(
        [SCRIPT, *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def get(process, url, **kwargs):
    """GET as soon as somebody answers."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return requests.get(url, timeout=PATIENCE, **kwargs)
        except requests.ConnectionError:
            assert process.poll() is None, process.stdout.read()
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_status_says_which_index_runs():
    plain = run('status', BLAZAR_SCHED_PURE_PYTHON='1')
    assert plain.returncode == 0
    assert 'plain Python' in plain.stdout


@pytest.mark.skipif(
    bool(os.environ.get('BLAZAR_SCHED_NO_EXTENSION')),
    reason='a build without the extension is under test',
)
def test_status_finds_the_compiled_index():
    compiled = run('status', BLAZAR_SCHED_PURE_PYTHON='')
    assert 'compiled' in compiled.stdout


def test_db_upgrade_can_be_repeated_and_check_finds_nothing(config):
    for _ in range(2):
        upgraded = run('db', '--config-file', config, 'upgrade')
        assert upgraded.returncode == 0, upgraded.stderr
    checked = run('db', '--config-file', config, 'check')
    assert checked.returncode == 0, checked.stderr
    assert '0 faults found' in checked.stdout


@pytest.mark.parametrize(
    'command', [('db', 'check'), ('manager',)], ids=lambda c: c[0]
)
def test_without_tables_it_is_said_what_to_do(command, config):
    name, *action = command
    refused = run(name, '--config-file', config, *action)
    assert refused.returncode == 1
    assert 'Traceback' not in refused.stderr
    assert 'db upgrade' in refused.stderr


def test_serve_answers_and_ends_at_sigterm(config, port):
    with running('serve', '--config-file', config) as process:
        url = f'http://127.0.0.1:{port}'
        assert get(process, f'{url}/').status_code == 300
        answer = get(process, f'{url}/v1/leases')
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
    'command',
    [('serve',), ('db', 'check'), ('replicas',), ('why', 'any-server')],
    ids=lambda c: c[0],
)
def test_a_configuration_that_is_not_there_is_named(command, tmp_path):
    name, *arguments = command
    refused = run(
        name, '--config-file', tmp_path / 'none.conf', *arguments
    )
    assert refused.returncode == 1
    assert 'Traceback' not in refused.stderr
    assert 'none.conf' in refused.stderr


BUS = '[DEFAULT] transport_url', 'fake://', 'nonsense'
DATABASE = (
    '[database] connection', 'sqlite://', 'postgres://me:secret@127.0.0.1'
)


@pytest.mark.parametrize(
    'command, wrong',
    [
        (('api',), BUS),
        (('manager',), BUS),
        (('why', 'any-server'), BUS),
        (('serve',), DATABASE),
        (('manager',), DATABASE),
        (('db', 'check'), DATABASE),
    ],
    ids=lambda each: each[0],
)
def test_a_url_that_names_nothing_is_said_to_be_wrong(
    command, wrong, config
):
    """In a line, and without it: it has a password."""
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


# Nobody listens there.
AWAY = '127.0.0.1:9'


def said(log, *words):
    """Wait until a process has written a line with all the words."""
    deadline = time.monotonic() + PATIENCE
    while not any(
        all(word in line for word in words)
        for line in log.read_text().splitlines()
    ):
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


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
    """And does what is due meanwhile; it ends when it is told to."""
    config.write_text(
        config.read_text().replace('fake://', f'rabbit://{AWAY}/')
    )
    assert run('db', '--config-file', config, 'upgrade').returncode == 0
    log = tmp_path / 'log'
    with logging_to(log, 'manager', '--config-file', config) as process:
        said(log, 'broker does not answer')
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
            f'http://127.0.0.1:{port}/v1/leases', timeout=PATIENCE
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
        said(log, 'WARNING', 'Not started yet')
        assert end(process) == 0


def test_sighup_takes_over_what_may_change(config, tmp_path):
    log = tmp_path / 'log'
    with logging_to(log, 'serve', '--config-file', config) as process:
        said(log, 'listens on')
        good = config.read_text()
        config.write_text('nonsense\n')
        process.send_signal(signal.SIGHUP)
        said(log, 'ERROR', 'stays as it was')
        config.write_text(
            good.replace('[DEFAULT]', '[DEFAULT]\ndebug = true')
            + '[manager]\nsync_interval = 0.1\nevent_max_workers = 7\n'
        )
        process.send_signal(signal.SIGHUP)
        said(log, 'read again')
        for name in ('DEFAULT.debug', 'manager.sync_interval'):
            said(log, f'Option {name} changed')
        said(log, 'immutable', 'manager.event_max_workers')
        assert end(process) == 0


def test_a_second_sigterm_ends_it_at_once(config, tmp_path):
    """Also while it stops, or hangs before it is started."""
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
            [SCRIPT, 'serve', '--config-file', config],
            stdout=file,
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
