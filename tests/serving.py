# SPDX-License-Identifier: Apache-2.0
"""The configuration of a service that a test runs in a process of its own."""

import pathlib
import socket

# An administrator, for an API that has noauth.
ADMIN = {'X-Auth-Token': 'admin'}


def free_port() -> int:
    """Return a port on which no process listens."""
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


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
