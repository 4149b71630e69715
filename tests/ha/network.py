# SPDX-License-Identifier: Apache-2.0
"""A network of machines: network namespaces on a bridge.

``python -m tests.ha.network COMMAND…`` runs in namespaces of its own, as
``tests.ha`` makes them: it creates the network and runs the command there.
Nothing outside sees the network, and all ends with the command.
"""

import os
import pathlib
import socket
import subprocess
import sys
import tempfile

BRIDGE = 'blazar-ha'
CONTROLLER, VIRTUAL = '192.0.2.1', '192.0.2.10'
# The machines and the addresses of the pages of the guide.
MACHINES = {
    **{f'db-{n}': f'192.0.2.{20 + n}' for n in (1, 2, 3)},
    **{f'mq-{n}': f'192.0.2.{30 + n}' for n in (1, 2, 3)},
}
# A client that uses these addresses can be cut off from one machine alone.
OTHERS = {
    f'{name}-other': f'192.0.2.{100 + int(MACHINES[name].split(".")[-1])}'
    for name in MACHINES if name.startswith('mq')
}


def exists() -> bool:
    """Tell whether this process is in the network."""
    return BRIDGE in (name for _, name in socket.if_nameindex())


def ip(*arguments: str) -> None:
    subprocess.run(['ip', *arguments], check=True)


def make() -> None:
    """Create the network."""
    pathlib.Path('/run/netns').mkdir(exist_ok=True)
    # The names of these namespaces are for this namespace of mounts alone.
    subprocess.run(['mount', '-t', 'tmpfs', 'none', '/run/netns'], check=True)
    ip('link', 'set', 'lo', 'up')
    ip('link', 'add', BRIDGE, 'type', 'bridge')
    for address in (CONTROLLER, VIRTUAL):
        ip('address', 'add', f'{address}/24', 'dev', BRIDGE)
    ip('link', 'set', BRIDGE, 'up')
    for name, address in MACHINES.items():
        ip('netns', 'add', name)
        ip('link', 'add', name, 'type', 'veth', 'peer', 'eth0', 'netns', name)
        ip('link', 'set', name, 'master', BRIDGE, 'up')
        ip('-n', name, 'link', 'set', 'lo', 'up')
        ip('-n', name, 'link', 'set', 'eth0', 'up')
        ip('-n', name, 'address', 'add', f'{address}/24', 'dev', 'eth0')
        if other := OTHERS.get(f'{name}-other'):
            ip('-n', name, 'address', 'add', f'{other}/24', 'dev', 'eth0')
    with tempfile.NamedTemporaryFile('w', prefix='hosts-') as hosts:
        hosts.write('127.0.0.1 localhost\n')
        for name, address in {
            'controller': VIRTUAL, **MACHINES, **OTHERS
        }.items():
            hosts.write(f'{address} {name}\n')
        hosts.flush()
        os.chmod(hosts.name, 0o644)
        subprocess.run(
            ['mount', '--bind', hosts.name, '/etc/hosts'], check=True
        )


def cut(machine: str) -> None:
    """Drop all packets from and to a machine, silently."""
    ip('link', 'set', machine, 'down')


def join(machine: str) -> None:
    ip('link', 'set', machine, 'up')


def cut_other(machine: str, action: str = 'add') -> None:
    """Drop the packets between a machine and who uses its other address.

    :param action: ``add``, or ``del`` for the end of that
    """
    address = OTHERS[f'{machine}-other']
    for rule in (['from', address], ['to', address, 'iif', 'eth0']):
        ip(
            '-n', machine, 'rule', action, *rule, 'blackhole', 'priority',
            '0' if 'iif' in rule else '1',
        )


def join_other(machine: str) -> None:
    cut_other(machine, 'del')


def main(command: list[str]) -> int:
    """Run a command as process 1, which inherits every orphan."""
    make()
    process = subprocess.Popen(command)
    while True:
        pid, status = os.wait()
        if pid == process.pid:
            return os.waitstatus_to_exitcode(status)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
