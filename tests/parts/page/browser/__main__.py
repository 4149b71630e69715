# SPDX-License-Identifier: Apache-2.0
"""Run a command with what the tests of the web page need.

``python -m tests.parts.page.browser COMMAND``. Environment variables name the
browser, and the checker of accessibility, which comes from npm.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from tests import npm

BROWSER = 'BLAZAR_SCHED_TEST_BROWSER'
AXE = 'BLAZAR_SCHED_TEST_AXE'
CHECKER = 'axe-core@4.10.3'
PROGRAMS = ('chromium', 'chromium-browser', 'google-chrome')


class Missing(Exception):
    """Raised if something is not installed."""


def browser() -> str:
    """Return the path of a Chromium.

    :raises Missing: if there is none
    """
    found = os.environ.get(BROWSER) or next(
        filter(None, map(shutil.which, PROGRAMS)), None
    )
    if found is None:
        raise Missing(
            f'Chromium is not installed: none of {", ".join(PROGRAMS)} is on '
            f'the PATH, and {BROWSER} is not set'
        )
    return found


def axe(folder: str) -> str:
    """Return the path of the checker, unpacked into `folder` if need be.

    :raises Missing: if npm does not get it
    """
    if os.environ.get(AXE):
        return os.environ[AXE]
    program = shutil.which('npm')
    if program is None:
        raise Missing(f'npm is not installed, and {AXE} is not set')
    if not npm.install(program, folder, CHECKER):
        raise Missing(f'npm does not install {CHECKER}')
    path = pathlib.Path(folder) / 'node_modules/axe-core/axe.min.js'
    return os.fspath(path)


def main(command: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix='blazar-sched-') as folder:
        try:
            variables = {BROWSER: browser(), AXE: axe(folder)}
        except Missing as e:
            print(f'The web page cannot be tested: {e}', file=sys.stderr)
            return 1
        return subprocess.call(command, env={**os.environ, **variables})


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
