# SPDX-License-Identifier: Apache-2.0
"""Processes, each with a log.

The processes are forked from a process that has imported everything, so that
they start at once. A process of the service runs what the console script runs.
"""

from collections.abc import Callable
import itertools
import multiprocessing
from multiprocessing import connection
import os
import pathlib
import signal
import subprocess
import sys
import threading
from typing import Any

PATIENCE = 240
ROOT = pathlib.Path(__file__).parents[2]

_context = multiprocessing.get_context('forkserver')
# Starting a process polls all others, and an exit status can be read only
# once: of two threads that poll at once, one takes the process for lost, with
# status 255.
_asking = threading.Lock()
_context.set_forkserver_preload(
    [
        'blazar_sched.cmd.service', 'blazar_sched.conf.service',
        'blazar_sched.service.assembly', 'blazar_sched.service.resources.host',
        'blazar_sched.service.resources.instance', 'keystoneauth1.noauth',
        'oslo_messaging._drivers.impl_fake',
        'oslo_messaging._drivers.impl_rabbit', 'psycopg2', 'pymysql',
        'tests.fault.processes',
    ]
)


def _run(
    target: Callable[..., Any], args: tuple[Any, ...], log: str,
    environment: dict[str, str],
) -> None:
    os.environ.update(environment)
    # oslo.messaging reads when the leader of the group has started, which may
    # be gone.
    os.setpgid(0, 0)
    with open(log, 'ab') as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.exit(target(*args))


def _serve(argv: list[str]) -> int:
    from blazar_sched.cmd import main

    return main.main(argv)


class Process:
    """A started process; `log` is its output."""

    def __init__(self, log: pathlib.Path) -> None:
        self.log = log
        self.pid = 0

    @property
    def is_alive(self) -> bool:
        return self._poll(0) is None

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self) -> int:
        """Wait until the process has ended; return the exit status."""
        status = self._poll(PATIENCE)
        assert status is not None, f'{self.log.name} does not end'
        return status

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> int:
        self.signal(signal.SIGKILL)
        return self.wait()

    def _poll(self, seconds: float) -> int | None:
        """Poll the process; return the exit status, None while it runs."""
        raise NotImplementedError


class _Forked(Process):
    """A fork that runs ``target(*args)``."""

    def __init__(
        self, log: pathlib.Path, environment: dict[str, str],
        target: Callable[..., Any], *args: Any,
    ) -> None:
        super().__init__(log)
        self._process = _context.Process(
            target=_run, args=(target, args, str(log), environment)
        )
        self._process.daemon = True
        with _asking:
            self._process.start()
        self.pid = self._process.pid or 0

    def _poll(self, seconds: float) -> int | None:
        connection.wait([self._process.sentinel], seconds)
        with _asking:
            return self._process.exitcode


class _Spawned(Process):
    """A new process of ``python -m module *args``, which shares nothing.

    :param root: the directory of another version of the package
    """

    def __init__(
        self, log: pathlib.Path, root: pathlib.Path | None, module: str,
        *args: str,
    ) -> None:
        super().__init__(log)
        path = [str(root), str(ROOT)] if root else [str(ROOT)]
        with log.open('ab') as file:
            self._process = subprocess.Popen(
                [sys.executable, '-m', module, *args],
                stdout=file,
                stderr=file,
                # The directory in which Python starts comes before the path.
                cwd=log.parent,
                env={
                    **os.environ, 'PYTHONPATH': os.pathsep.join(path),
                    'BLAZAR_SCHED_REQUIRE_EXTENSION': '',
                },
            )
        self.pid = self._process.pid

    def _poll(self, seconds: float) -> int | None:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


def barrier(parties: int) -> Any:
    """Return a barrier for threads of several processes."""
    return _context.Barrier(parties)


def pipe() -> tuple[Any, Any]:
    """Return the ends of a pipe to a process."""
    return _context.Pipe()


class Processes:
    """All processes of a test."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._started: list[Process] = []
        self._numbers = itertools.count()

    def start(self, *argv: object, **environment: str) -> Process:
        """Start ``blazar-sched`` with `argv`."""
        texts = list(map(str, argv))
        log = self._log(texts[0])
        return self._keep(_Forked(log, environment, _serve, texts))

    def fork(
        self, target: Callable[..., Any], *args: Any, **environment: str
    ) -> Process:
        return self._keep(
            _Forked(self._log(target.__name__), environment, target, *args)
        )

    def spawn(
        self, module: str, *args: object, root: pathlib.Path | None = None
    ) -> Process:
        """Start a module, of the version of the package in `root`."""
        return self._keep(
            _Spawned(self._log(module), root, module, *map(str, args))
        )

    def _log(self, name: str) -> pathlib.Path:
        return self._folder / f'{next(self._numbers)}-{name}.log'

    def _keep(self, process: Process) -> Process:
        self._started.append(process)
        return process

    def end(self) -> None:
        """Kill the running processes, and print the end of every log."""
        for process in self._started:
            if process.is_alive:
                process.kill()
        for process in self._started:
            if process.log.exists():
                text = process.log.read_text(errors='replace')
                print(f'----- {process.log.name}\n{text[-5000:]}')
