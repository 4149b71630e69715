# SPDX-License-Identifier: Apache-2.0
"""The Pythons that the project is for, as far as this machine has them."""

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
    """Return the path of that Python, if it is there and makes venvs.

    What is on PATH may be a shim for what is not installed.
    """
    path = shutil.which(f'python{version}')
    if path is None:
        return None
    asked = subprocess.run([path, '-c', _ASK], capture_output=True, text=True)
    return path if asked.stdout.strip() == version else None
