# SPDX-License-Identifier: Apache-2.0
"""Command line programs, run as a user runs them.

A program takes a second or two to import its modules. So one process imports
the modules once, and each command runs in a fork of this process.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from importlib import metadata
import multiprocessing
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile

# The maximum number of seconds that a command may take.
TIMEOUT = 300
_PRELOADED = ['tests.programs.preloaded']


def run(
    command: Sequence[str], env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a program in an environment; return its exit status and output.

    :raises subprocess.TimeoutExpired: after TIMEOUT seconds
    """
    context = multiprocessing.get_context('forkserver')
    context.set_forkserver_preload(_PRELOADED)
    with tempfile.TemporaryDirectory() as folder:
        output = [pathlib.Path(folder, name) for name in ('stdout', 'stderr')]
        process = context.Process(
            target=_run, args=(list(command), dict(env), output)
        )
        process.start()
        process.join(TIMEOUT)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(list(command), TIMEOUT)
        stdout, stderr = (path.read_text() for path in output)
    return subprocess.CompletedProcess(
        list(command), process.exitcode, stdout, stderr
    )


def run_alone(
    command: Sequence[str], env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a program in a process that has not imported anything yet."""
    scripts = pathlib.Path(sysconfig.get_path('scripts'))
    return subprocess.run(
        [scripts / command[0], *command[1:]], env=env, capture_output=True,
        text=True, timeout=TIMEOUT,
    )


def _run(
    command: list[str], env: dict[str, str], output: list[pathlib.Path]
) -> None:
    for descriptor, path in enumerate(output, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), descriptor)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = command
    [program] = metadata.entry_points(group='console_scripts', name=command[0])
    sys.exit(program.load()())
