# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.ha COMMAND…``: run a command in a network of machines.

The command and all that it starts are in namespaces of their own, of network,
mounts and processes: nothing remains afterwards.
"""

import os
import shutil
import subprocess
import sys

from tests.services import private

# The programs, and the package of Debian that has each.
PROGRAMS = {
    'mariadbd': 'mariadb-server',
    'postgres': 'postgresql',
    'rabbitmq-server': 'rabbitmq-server',
    'haproxy': 'haproxy',
    'wsrep_sst_rsync': 'mariadb-server',
    'rsync': 'rsync',
    'lsof': 'lsof',
    'ip': 'iproute2',
    'nsenter': 'util-linux',
}
GALERA = '/usr/lib/galera/libgalera_smm.so'
UNSHARE = [
    'unshare', '--net', '--mount', '--pid', '--fork', '--kill-child',
    '--mount-proc',
]


def main(command: list[str]) -> int:
    path = os.pathsep.join(private.PLACES)
    missing = {
        package for program, package in PROGRAMS.items()
        if shutil.which(program, path=path) is None
    }
    if not os.path.exists(GALERA):
        missing.add('galera-4')
    if missing:
        print(
            'Not installed: apt-get install --no-install-recommends '
            + ' '.join(sorted(missing)),
            file=sys.stderr,
        )
        return 1
    tried = subprocess.run(
        [*UNSHARE, 'ip', 'link', 'add', 'probe', 'type', 'veth'],
        capture_output=True, text=True, check=False,
    )
    if os.geteuid() or tried.returncode:
        print(
            'These tests need root, and a kernel with network namespaces: '
            + tried.stderr.strip(),
            file=sys.stderr,
        )
        return 1
    network = [sys.executable, '-m', 'tests.ha.network', *command]
    os.execvp('unshare', [*UNSHARE, *network])


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
