# SPDX-License-Identifier: Apache-2.0
"""The configuration of a service that a test runs in a process of its own."""

import contextlib
import pathlib
import random
import socket

# An administrator, for an API that has noauth.
ADMIN = {'X-Auth-Token': 'admin'}

# These ports are below those of outgoing connections, of which thousands are
# opened between the check of a port and its use.
_PORTS = range(20000, 32000)


def free_port() -> int:
    """Return a port on which no process listens."""
    (port,) = free_ports(1)
    return port


def free_ports(count: int) -> list[int]:
    """Return different ports on which no process listens."""
    with contextlib.ExitStack() as stack:
        return [
            _bind(stack.enter_context(socket.socket())) for _ in range(count)
        ]


def _bind(probe: socket.socket) -> int:
    for port in random.sample(_PORTS, 100):
        with contextlib.suppress(OSError):
            probe.bind(('127.0.0.1', port))
            return port
    raise OSError('no port is free')


def write_config(
    folder: pathlib.Path, port: int, more: str = ''
) -> pathlib.Path:
    """Write a configuration for one node: everything in one process.

    :param more: further lines of the configuration, first those of `[api]`
    """
    path = folder / 'blazar-sched.conf'
    path.write_text(
        '[DEFAULT]\ntransport_url = fake://\n'
        f'[database]\nconnection = sqlite:///{folder}/ledger.sqlite\n'
        '[enforcement]\nenabled_filters =\n'
        f'[api]\nauth_strategy = noauth\nport = {port}\n{more}'
    )
    return path
