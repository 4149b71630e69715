# SPDX-License-Identifier: Apache-2.0
"""The virtual environment in which the cloud's services run.

The environment is made once and kept, apart from the state of the clouds.
``python -m tests.cloud.home`` makes it, and the environment of Blazar, ahead
of the tests.
"""

from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import fcntl
import hashlib
import os
import pathlib
import subprocess
import sys

# The folder of the environment.
VARIABLE = 'BLAZAR_SCHED_CLOUD_HOME'

ROOT = pathlib.Path(__file__).parents[2]

REQUIREMENTS = (
    'PyMySQL', 'glance==33.0.0', 'gunicorn', 'keystone==30.0.0',
    'neutron==29.0.0', 'nova==34.0.0', 'openstack-placement==16.0.0',
)
# The last release of Blazar, and drivers for its database.
BLAZAR = ('blazar==18.0.0', 'PyMySQL', 'psycopg2-binary')


def folder() -> pathlib.Path:
    named = os.environ.get(VARIABLE)
    if named:
        return pathlib.Path(named)
    cache = os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache'
    return pathlib.Path(cache) / 'blazar-sched' / 'cloud'


def venv() -> pathlib.Path:
    """Return the folder of the environment, with this tree installed in it.

    :raises subprocess.CalledProcessError: if a package cannot be installed
    """
    home = folder()
    home.mkdir(parents=True, exist_ok=True)
    made = home / 'venv'
    with _alone(home):
        with _once(home / 'requirements', _digest(REQUIREMENTS)) as due:
            if due:
                _run(sys.executable, '-m', 'venv', '--clear', str(made))
                _install(made, *REQUIREMENTS)
        # Python code is used in place; extensions are built from these files.
        with _once(home / 'installed', _digest(_sources())) as due:
            if due:
                _install(made, '--editable', f'{ROOT}[mysql]')
    return made


def blazar() -> pathlib.Path:
    """Return the folder of an environment that has only Blazar.

    :raises subprocess.CalledProcessError: if a package cannot be installed
    """
    home = folder()
    home.mkdir(parents=True, exist_ok=True)
    made = home / 'blazar'
    with (
        _alone(home),
        _once(home / 'blazar-requirements', _digest(BLAZAR)) as due,
    ):
        if due:
            _run(sys.executable, '-m', 'venv', '--clear', str(made))
            _install(made, *BLAZAR)
    return made


def _sources() -> Iterator[str]:
    yield str(ROOT)
    for path in (
        ROOT / 'pyproject.toml',
        ROOT / 'setup.py',
        *sorted((ROOT / 'cython_src').rglob('*.p*')),
    ):
        yield path.read_text()


def _digest(texts: Iterable[str]) -> str:
    whole = '\0'.join((sys.version, *texts))
    return hashlib.sha256(whole.encode()).hexdigest()


@contextlib.contextmanager
def _alone(home: pathlib.Path) -> Iterator[None]:
    with (home / 'lock').open('w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _once(stamp: pathlib.Path, digest: str) -> Iterator[bool]:
    """Tell whether a step is still to be done; record that it was done."""
    due = not stamp.exists() or stamp.read_text() != digest
    yield due
    stamp.write_text(digest)


def _install(made: pathlib.Path, *what: str) -> None:
    _run(str(made / 'bin' / 'pip'), 'install', '--quiet', *what)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


if __name__ == '__main__':
    print(venv())
    print(blazar())
