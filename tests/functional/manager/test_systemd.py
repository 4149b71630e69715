# SPDX-License-Identifier: Apache-2.0
"""What the service tells systemd, by the socket of Type=notify."""

import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from blazar_sched.cmd import service
from blazar_sched.service import loop
from tests import serving

SCRIPT = pathlib.Path(sys.executable).with_name('blazar-sched')
PATIENCE = 120


@pytest.fixture(params=['in a folder', 'abstract'])
def systemd(request, tmp_path, monkeypatch):
    """The socket that systemd would listen at."""
    name = str(tmp_path / 'notify')
    abstract = request.param == 'abstract'
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(f'\0{name}' if abstract else name)
        listener.settimeout(PATIENCE)
        monkeypatch.setenv('NOTIFY_SOCKET', f'@{name}' if abstract else name)
        yield listener


def test_systemd_is_told_until_the_process_stands_still(
    systemd, tmp_path, port
):
    config = serving.write_config(tmp_path, port)
    with subprocess.Popen(
        [SCRIPT, 'serve', '--config-file', config], stderr=subprocess.DEVNULL
    ) as process:
        try:
            told = [systemd.recv(100) for _ in range(3)]
            process.send_signal(signal.SIGSTOP)
            systemd.settimeout(3 * service.WAKE_UP)
            with pytest.raises(TimeoutError):
                while True:
                    systemd.recv(100)
            process.send_signal(signal.SIGCONT)
            process.terminate()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
    assert told == [b'READY=1', b'WATCHDOG=1', b'WATCHDOG=1']


def test_a_manager_with_a_loop_that_hangs_misses_the_watchdog(systemd, world):
    entered, leave = threading.Event(), threading.Event()

    def step():
        entered.set()
        leave.wait(PATIENCE)

    stuck = loop.Loop('stuck', step, hangs_after=.1)
    world.manager._loops += (stuck,)
    systemd.setblocking(False)
    service._watchdog(world.manager)
    assert systemd.recv(100) == b'WATCHDOG=1'

    stuck.start()
    assert entered.wait(PATIENCE)
    time.sleep(.2)
    service._watchdog(world.manager)
    with pytest.raises(BlockingIOError):
        systemd.recv(100)

    leave.set()
    assert stuck.await_step(PATIENCE)
    service._watchdog(world.manager)
    assert systemd.recv(100) == b'WATCHDOG=1'
    stuck.stop()


def test_nothing_listens_where_systemd_did_not_start_it(monkeypatch, tmp_path):
    monkeypatch.delenv('NOTIFY_SOCKET', raising=False)
    service.tell_systemd('READY=1')
    monkeypatch.setenv('NOTIFY_SOCKET', str(tmp_path / 'gone'))
    service.tell_systemd('READY=1')
