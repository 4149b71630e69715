# SPDX-License-Identifier: Apache-2.0
"""The console script, as a user runs it: in processes of its own."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pytest
import requests

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
def port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


@pytest.fixture
def config(tmp_path, port):
    path = tmp_path / 'blazar-sched.conf'
    path.write_text(
        f"""
[DEFAULT]
transport_url = fake://
[database]
connection = sqlite:///{tmp_path}/ledger.sqlite
[api]
port = {port}
"""
    )
    return path


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


def test_noauth_is_not_served_to_other_machines(config):
    with config.open('a') as file:
        file.write('host = 0.0.0.0\n')
    refused = run('serve', '--config-file', config)
    assert refused.returncode == 1
    assert 'noauth' in refused.stderr
    assert 'Traceback' not in refused.stderr
