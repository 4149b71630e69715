# SPDX-License-Identifier: Apache-2.0
"""The supported Python versions, as far as they are installed."""

import pathlib
import shutil
import subprocess
import tomllib

from tests.packaging import source

_PREFIX = 'Programming Language :: Python :: '
_ASK = 'import ensurepip, sys, venv; print("%d.%d" % sys.version_info[:2])'


def promised() -> list[str]:
    """Return the versions of the classifiers, such as 3.11."""
    text = pathlib.Path(source.ROOT, 'pyproject.toml').read_text()
    classifiers = tomllib.loads(text)['project']['classifiers']
    found = [
        each.removeprefix(_PREFIX) for each in classifiers
        if each.startswith(_PREFIX)
    ]
    return [version for version in found if '.' in version]


def find(version: str) -> str | None:
    """Return the path of a Python version, if it is installed and makes venvs.

    A program on PATH may be a shim of a version that is not installed.
    """
    path = shutil.which(f'python{version}')
    if path is None:
        return None
    asked = subprocess.run([path, '-c', _ASK], capture_output=True, text=True)
    return path if asked.stdout.strip() == version else None
