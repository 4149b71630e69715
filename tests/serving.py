# SPDX-License-Identifier: Apache-2.0
"""What a service in a process of its own begins with, in any test."""

import pathlib
import socket

# An administrator, to an API that has noauth.
ADMIN = {'X-Auth-Token': 'admin'}


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def write_config(
    folder: pathlib.Path, port: int, more: str = ''
) -> pathlib.Path:
    """Write a configuration for one node: everything in one process.

    :param more: what follows, in `[api]` at first
    """
    path = folder / 'blazar-sched.conf'
    path.write_text(
        '[DEFAULT]\ntransport_url = fake://\n'
        f'[database]\nconnection = sqlite:///{folder}/ledger.sqlite\n'
        f'[api]\nauth_strategy = noauth\nport = {port}\n{more}'
    )
    return path
