# SPDX-License-Identifier: Apache-2.0
"""The files of a clone, and builds of them."""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
PATIENCE = 600

# A build depends only on the options that a test gives.
_OURS = ('BLAZAR_SCHED_', 'CC', 'CFLAGS', 'PYTHONPATH')
# The compiled index need not be fast here, and optimization is most of the
# time of a build.
_UNOPTIMIZED = '-O0'


def files() -> set[str]:
    """Return the paths of the files that git has, or `git add` would add.

    Files whose names begin with a dot are for git and for CI alone.
    """
    listed = subprocess.run(
        ['git', 'ls-files', '-z', '--cached', '--others',
         '--exclude-standard'],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )
    return {
        name for name in listed.stdout.split('\0')
        if name and not name.startswith('.') and (ROOT / name).exists()
    }


def copy(to: pathlib.Path) -> pathlib.Path:
    """Copy the files of a clone, without the history."""
    for name in files():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, to / name)
    return to


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a build, without variables of this process.

    In this environment git finds no repository.
    """
    kept = {
        name: value for name, value in os.environ.items()
        if not name.startswith(_OURS)
    }
    return {**kept, 'GIT_DIR': os.devnull, 'CFLAGS': _UNOPTIMIZED, **more}


def try_build(
    kind: str, source: pathlib.Path, to: pathlib.Path, **switches: str
) -> subprocess.CompletedProcess[str]:
    """Build `kind`, sdist or wheel, in a build environment of its own."""
    return subprocess.run(
        [sys.executable, '-m', 'build', f'--{kind}', '--outdir', to, source],
        env=environment(**switches), capture_output=True, text=True,
        timeout=PATIENCE,
    )


def build(
    kind: str, source: pathlib.Path, to: pathlib.Path, **switches: str
) -> pathlib.Path:
    """Build `kind` and return its one file."""
    done = try_build(kind, source, to, **switches)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = to.iterdir()
    return built
