# SPDX-License-Identifier: Apache-2.0
"""An installed blazar-sched, used from outside the source tree."""

import contextlib
import pathlib
import subprocess
from typing import Any

from tests.packaging import source

_PACKAGES = """
import importlib.metadata
for each in importlib.metadata.distributions():
    print(each.name.lower())
"""


class Installation:
    """A venv with only a wheel and its dependencies."""

    def __init__(self, folder: pathlib.Path, python: str) -> None:
        self.folder = folder
        self.bin = folder / 'venv' / 'bin'
        self._run(python, '-m', 'venv', folder / 'venv')

    def _run(self, *command: Any, check: bool = True) -> Any:
        done = subprocess.run(
            command, cwd=self.folder, env=source.environment(),
            capture_output=True, text=True, timeout=source.PATIENCE,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def _pip(self, *args: Any) -> None:
        self._run(
            self.bin / 'python', '-m', 'pip', '--no-input',
            '--disable-pip-version-check', *args,
        )

    def build(self, sdist: pathlib.Path) -> pathlib.Path:
        """Build a wheel by this Python; return its path."""
        wheels = self.folder / 'wheels'
        self._pip('wheel', '--no-deps', '--wheel-dir', wheels, sdist)
        (built,) = wheels.iterdir()
        return built

    def install(self, wheel: pathlib.Path) -> None:
        """Install a wheel in place of another, with its dependencies."""
        self._pip('install', wheel)
        self._pip('install', '--no-deps', '--force-reinstall', wheel)

    def packages(self) -> set[str]:
        """Return the names of the installed packages."""
        return set(self.python(_PACKAGES).split())

    def python(self, code: str) -> str:
        """Run code in isolated mode; return the output."""
        return self._run(self.bin / 'python', '-I', '-c', code).stdout

    def blazar_sched(self, *args: Any, check: bool = True) -> Any:
        """Run the console script until it exits."""
        return self._run(self.bin / 'blazar-sched', *args, check=check)

    @contextlib.contextmanager
    def running(self, *args: Any) -> Any:
        """Run the console script in the background."""
        process = subprocess.Popen(
            [self.bin / 'blazar-sched', *args], cwd=self.folder,
            env=source.environment(), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()
