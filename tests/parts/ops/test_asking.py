# SPDX-License-Identifier: Apache-2.0
"""Who asks the schedulers over a bus that is away or wrong is told so."""

import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(sys.executable).with_name('blazar-sched')
PATIENCE = 240
COMMANDS = pytest.mark.parametrize(
    'command', [('replicas',), ('why', 'any-server')]
)


def ask(*args):
    return subprocess.run(
        [SCRIPT, *args], capture_output=True, text=True, timeout=PATIENCE
    )


@COMMANDS
@pytest.mark.parametrize('option, message', [
    # Nobody listens on this port, nor may without being root.
    (
        'transport_url = rabbit://guest:guest@127.0.0.1:1/',
        'the message bus is unreachable',
    ),
    ('', '[DEFAULT] transport_url is not set'),
    # The error is without the URL, which has a password.
    ('transport_url = nonsense', '[DEFAULT] transport_url '),
])
def test_a_bus_that_is_away(tmp_path, command, option, message):
    path = tmp_path / 'blazar-sched.conf'
    path.write_text(f'[DEFAULT]\n{option}\n')
    name, *server = command
    asked = ask(name, '--config-file', path, '--wait', '1', *server)
    assert asked.returncode == 1
    assert asked.stderr.splitlines()[-1].startswith(f'blazar-sched: {message}')
    assert 'Traceback' not in asked.stderr


@COMMANDS
def test_a_configuration_that_is_not_there_is_named(tmp_path, command):
    name, *server = command
    asked = ask(name, '--config-file', tmp_path / 'none.conf', *server)
    assert asked.returncode == 1
    assert 'Traceback' not in asked.stderr
    assert 'none.conf' in asked.stderr
