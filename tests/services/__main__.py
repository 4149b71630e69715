# SPDX-License-Identifier: Apache-2.0
"""Run a command with database servers and a broker for tests.

``python -m tests.services COMMAND``. Environment variables name the servers.
"""

import contextlib
import os
import signal
import subprocess
import sys

from tests.services import broker
from tests.services import database
from tests.services import found
from tests.services import private


def main(command: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with contextlib.ExitStack() as stack:
        try:
            variables = {
                database.VARIABLE: ' '.join(found.databases(stack)),
                broker.VARIABLE: found.broker(stack),
            }
        except private.Missing as e:
            print(f'No server to test on: {e}', file=sys.stderr)
            return 1
        return _run(command, {**os.environ, **variables})


def _run(command: list[str], environment: dict[str, str]) -> int:
    process = subprocess.Popen(command, env=environment)
    # pytest then drops the databases of the tests, as after Ctrl-C.
    signal.signal(
        signal.SIGTERM, lambda *_: process.send_signal(signal.SIGINT)
    )
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            # The command has got the signal too.
            continue


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
