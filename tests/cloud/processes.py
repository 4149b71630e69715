# SPDX-License-Identifier: Apache-2.0
"""The processes of a cloud, each with a log and a pid file."""

from collections.abc import Callable
from collections.abc import Mapping
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import requests

# Seconds after which a request is sent again.
TIMEOUT = 60
# Seconds after which a process that was terminated is killed.
GRACE = 10


def answers(url: str) -> bool:
    """Tell whether a service answers a request, also one without a token."""
    try:
        return requests.get(url, timeout=TIMEOUT).status_code < 500
    except requests.RequestException:
        return False


class Failed(Exception):
    """A process that failed to start; its log says why."""


class Processes:
    """All processes of one cloud.

    :param folder: the folder of logs and pid files
    :param programs: the folder of the programs
    :param environment: variables of all processes, beside the usual ones
    """

    def __init__(
        self, folder: pathlib.Path, programs: pathlib.Path,
        environment: Mapping[str, str],
    ) -> None:
        self._folder = folder
        self._programs = programs
        self._environment = {**os.environ, **environment}
        self._commands: dict[str, list[str]] = {}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def run(self, name: str, program: str, *arguments: object) -> None:
        """Run a program until it exits.

        :raises Failed: if the exit status is not 0
        """
        process = self._popen(name, self._command(program, *arguments))
        if process.wait():
            raise self._failure(name)

    def start(self, name: str, program: str, *arguments: object) -> None:
        self._commands[name] = self._command(program, *arguments)
        self._start(name)

    def wait(self, name: str, ready: Callable[[], bool]) -> None:
        """Wait until a started process is ready, however busy the machine is.

        :raises Failed: if the process exits first
        """
        while not ready():
            if self._running[name].poll() is not None:
                raise self._failure(name)
            time.sleep(0.1)

    def revive(self) -> None:
        """Restart processes that have exited, as a service manager would."""
        for name, process in self._running.items():
            if process.poll() is not None:
                # A process that exits without being killed is a defect.
                print(
                    f'{name} ended with {process.returncode}: started again',
                    file=sys.stderr,
                )
                self._start(name)

    def end(self, *names: str) -> None:
        """Terminate processes, all by default, and their children."""
        ending = [self._running.pop(n) for n in names or [*self._running]]
        for process in ending:
            _signal(process, signal.SIGTERM)
        deadline = time.monotonic() + GRACE
        for process in ending:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            _signal(process, signal.SIGKILL)
            process.wait()

    def _command(self, program: str, *arguments: object) -> list[str]:
        return [str(self._programs / program), *map(str, arguments)]

    def _start(self, name: str) -> None:
        process = self._popen(name, self._commands[name])
        self._running[name] = process
        (self._folder / f'{name}.pid').write_text(str(process.pid))

    def _popen(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        with self._log(name).open('ab') as log:
            return subprocess.Popen(
                command,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Each process has a group of its own, because nova-scheduler
                # forks.
                start_new_session=True,
            )

    def _log(self, name: str) -> pathlib.Path:
        return self._folder / f'{name}.log'

    def _failure(self, name: str) -> Failed:
        log = self._log(name)
        end = log.read_text(errors='replace')[-3000:]
        return Failed(f'{name} does not work, see {log}:\n{end}')


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
