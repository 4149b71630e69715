# SPDX-License-Identifier: Apache-2.0
"""The imports of the project's parts, and their duration.

``python -m tests.packaging.imported`` prints the times of the Python that runs
it: the best of several, by the clock and by CPU time.
"""

import os
import sys
import time

INDEX = 'import blazar_sched.ext'
REPLICA = 'import blazar_sched.worker.process'
API = 'import blazar_sched.cmd.main, blazar_sched.service.api.server'
MANAGER = 'import blazar_sched.cmd.main, blazar_sched.service.manager.manager'
STATUS = "from blazar_sched.cmd import main; main.parse(['status'])"
TRIES = 7

# Imported only on demand.
_BIG = {'matplotlib', 'nova', 'numpy', 'openstack'}
_OF_THE_SERVICE = {
    'alembic', 'blazar_sched.service', 'falcon', 'jsonschema',
    'keystonemiddleware', 'sqlalchemy', 'waitress',
}

# Each part with the packages that it must not import.
PARTS = {
    INDEX: _BIG | _OF_THE_SERVICE | {'oslo_config', 'oslo_utils', 'rich'},
    REPLICA: _BIG | _OF_THE_SERVICE | {'rich'},
    API: _BIG | {'alembic', 'rich', 'sqlalchemy'},
    MANAGER: _BIG | {'falcon', 'rich', 'waitress'},
    STATUS: _BIG | _OF_THE_SERVICE | {'oslo_messaging'},
}


def measure(code: str) -> tuple[float, float]:
    """Return the seconds of an import in a new Python: by clock and by CPU."""
    begin = time.perf_counter()
    command = [sys.executable, '-W', 'ignore', '-c', code]
    pid = os.posix_spawn(sys.executable, command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    taken = time.perf_counter() - begin
    if status:
        raise RuntimeError(f'this fails: {code}')
    return taken, usage.ru_utime + usage.ru_stime


def best(code: str) -> tuple[float, ...]:
    """Return the least of several measurements, each by itself."""
    tries = [measure(code) for _ in range(TRIES)]
    return tuple(min(each) for each in zip(*tries, strict=True))


def main() -> None:
    print(f'{"clock, s":>10}{"CPU, s":>10}')
    for part in ('pass', *PARTS):
        print(''.join(f'{s:10.2f}' for s in best(part)), part)


if __name__ == '__main__':
    main()
