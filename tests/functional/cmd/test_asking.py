# SPDX-License-Identifier: Apache-2.0
"""Who asks the schedulers over a bus that is away is told so."""

import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(sys.executable).with_name('blazar-sched')
PATIENCE = 60


@pytest.mark.parametrize('command', [('replicas',), ('why', 'any-server')])
def test_a_bus_that_is_away(tmp_path, command):
    path = tmp_path / 'blazar-sched.conf'
    # Nobody listens on this port, nor may without being root.
    path.write_text(
        '[DEFAULT]\ntransport_url = rabbit://guest:guest@127.0.0.1:1/\n'
    )
    name, *server = command

    asked = subprocess.run(
        [SCRIPT, name, '--config-file', path, '--wait', '1', *server],
        capture_output=True, text=True, timeout=PATIENCE,
    )

    assert asked.returncode == 1
    assert 'blazar-sched: the message bus is unreachable' in asked.stderr
    assert 'Traceback' not in asked.stderr
