# SPDX-License-Identifier: Apache-2.0
"""A virtual host for the tests on a message broker."""

from collections.abc import Iterator
import contextlib
import fcntl
import os
import pathlib
import subprocess
import uuid

import amqp
import sqlalchemy as sa

# A virtual host for these tests alone, as a transport_url.
VARIABLE = 'BLAZAR_SCHED_TEST_BROKER'


def named() -> str | None:
    """Return the URL in the environment."""
    return os.environ.get(VARIABLE)


@contextlib.contextmanager
def turn(folder: pathlib.Path) -> Iterator[str | None]:
    """Lock the broker of the environment for one user; yield its URL.

    There is one broker, so its users take turns, also those of other
    processes.

    :param folder: the same folder for all users
    """
    with (folder / 'bus').open('w') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield named()


def enter(url: str) -> None:
    """Log in as a client would, or raise."""
    parts = sa.make_url(url)
    connection = amqp.Connection(
        host=f'{parts.host}:{parts.port or 5672}',
        userid=parts.username or 'guest', password=parts.password or 'guest',
        virtual_host=parts.database or '/', connect_timeout=5,
    )
    connection.connect()
    connection.close()


@contextlib.contextmanager
def made(url: str) -> Iterator[str]:
    """Create a virtual host on the local broker at `url`; yield its URL.

    :raises OSError: if this user may not
    :raises subprocess.SubprocessError: if this user may not
    """
    name = f'blazar_sched_test_{uuid.uuid4().hex}'
    user = sa.make_url(url).username or 'guest'
    _control('add_vhost', name)
    try:
        _control('set_permissions', '-p', name, user, '.*', '.*', '.*')
        yield f'{url.rstrip("/")}/{name}'
    finally:
        _control('delete_vhost', name)


def _control(*arguments: str) -> None:
    subprocess.run(
        ['rabbitmqctl', '--quiet', *arguments], check=True,
        capture_output=True, timeout=60,
    )
