# SPDX-License-Identifier: Apache-2.0
"""Run a command against a new cloud, or keep a cloud running.

``python -m tests.cloud COMMAND`` gives the command the ``OS_*`` variables of
an administrator and the description of the cloud; ``python -m tests.cloud
--keep`` prints these variables. The logs of the cloud are kept if the command,
or the cloud, fails.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from tests.cloud import person
from tests.cloud import processes
from tests.cloud.cloud import Cloud
from tests.services import private

# The description of the cloud, as JSON.
VARIABLE = 'BLAZAR_SCHED_TEST_CLOUD'
# Seconds between two checks of the processes.
PAUSE = 0.2


def main() -> int:
    args = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    folder = pathlib.Path(tempfile.mkdtemp(prefix='bs-cloud-'))
    status = 1
    try:
        with contextlib.ExitStack() as stack:
            cloud = Cloud(folder, stack, args.computes, args.hold)
            status = _keep(cloud) if args.keep else _run(cloud, args.command)
    except (private.Missing, processes.Failed) as e:
        print(f'No cloud: {e}', file=sys.stderr)
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    finally:
        if status:
            print(f'Logs are kept in {folder}', file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return status


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='python -m tests.cloud', description=__doc__
    )
    parser.add_argument(
        '--computes', type=int, default=3, help='how many compute hosts'
    )
    parser.add_argument(
        '--hold', default='shared',
        help='how they are held: shared or dedicated',
    )
    parser.add_argument(
        '--keep', action='store_true', help='keep it up until Ctrl-C'
    )
    parser.add_argument('command', nargs=argparse.REMAINDER)
    args = parser.parse_args()
    if args.keep == bool(args.command):
        parser.error('either --keep or a command')
    return args


def _run(cloud: Cloud, command: list[str]) -> int:
    """Run the command, and restart processes of the cloud that end meanwhile.
    """
    process = subprocess.Popen(
        command, env={**os.environ, **_variables(cloud)}
    )
    while (status := process.poll()) is None:
        cloud.processes.revive()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PAUSE)
    return status


def _keep(cloud: Cloud) -> int:
    print('It is up until Ctrl-C. In another shell:\n')
    for name, value in _variables(cloud).items():
        print(f'export {name}={shlex.quote(value)}')
    print('openstack reservation host create compute-1')
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            time.sleep(PAUSE)
            cloud.processes.revive()
    return 0


def _variables(cloud: Cloud) -> dict[str, str]:
    description = cloud.describe()
    return {
        **person.variables(description['auth_url'], 'admin', 'admin'),
        VARIABLE: json.dumps(description),
    }


if __name__ == '__main__':
    sys.exit(main())
