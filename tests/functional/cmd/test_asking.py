# SPDX-License-Identifier: Apache-2.0
"""Who asks the schedulers over a bus that is away is told so."""

import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(sys.executable).with_name('blazar-sched')
PATIENCE = 240


@pytest.mark.parametrize('command', [('replicas',), ('why', 'any-server')])
@pytest.mark.parametrize('option, message', [
    # Nobody listens on this port, nor may without being root.
    (
        'transport_url = rabbit://guest:guest@127.0.0.1:1/',
        'the message bus is unreachable',
    ),
    ('', '[DEFAULT] transport_url is not set'),
])
def test_a_bus_that_is_away(tmp_path, command, option, message):
    path = tmp_path / 'blazar-sched.conf'
    path.write_text(f'[DEFAULT]\n{option}\n')
    name, *server = command

    asked = subprocess.run(
        [SCRIPT, name, '--config-file', path, '--wait', '1', *server],
        capture_output=True, text=True, timeout=PATIENCE,
    )

    assert asked.returncode == 1
    assert f'blazar-sched: {message}' in asked.stderr
    assert 'Traceback' not in asked.stderr
