# SPDX-License-Identifier: Apache-2.0
"""Runs a command with database servers and a broker to test on.

``python -m tests.services COMMAND``. They are those that the environment
names, else those on the usual ports of this machine that let us in, else
private ones, which end with the command.
"""

import contextlib
import os
import signal
import subprocess
import sys

import amqp
import sqlalchemy as sa

from tests.services import broker
from tests.services import database
from tests.services import private

DATABASES = {
    'mysql+pymysql://root@127.0.0.1:3306/': private.MariaDB,
    'postgresql+psycopg2://postgres@127.0.0.1:5432/postgres': (
        private.PostgreSQL
    ),
}
BROKER = 'rabbit://guest:guest@127.0.0.1:5672/'


def main(command: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with contextlib.ExitStack() as stack:
        try:
            found = {
                database.VARIABLE: _databases(stack),
                broker.VARIABLE: _broker(stack),
            }
        except private.Missing as e:
            print(f'No server to test on: {e}', file=sys.stderr)
            return 1
        return _run(command, {**os.environ, **found})


def _run(command: list[str], environment: dict[str, str]) -> int:
    process = subprocess.Popen(command, env=environment)
    # pytest then drops what it has made, as after Ctrl-C.
    signal.signal(
        signal.SIGTERM, lambda *_: process.send_signal(signal.SIGINT)
    )
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            # It has got that too.
            continue


def _databases(stack: contextlib.ExitStack) -> str:
    named = os.environ.get(database.VARIABLE)
    if named:
        return _said(named, 'as the environment says')
    return ' '.join(
        _said(url, 'there already')
        if _lets_in(url)
        else _started(stack, server)
        for url, server in DATABASES.items()
    )


def _lets_in(url: str) -> bool:
    """Say whether the server at `url` lets us make databases."""
    try:
        with database.made(url):
            return True
    except sa.exc.SQLAlchemyError:
        return False


def _broker(stack: contextlib.ExitStack) -> str:
    named = broker.named()
    if named:
        return _said(named, 'as the environment says')
    try:
        broker.enter(BROKER)
        return _said(
            stack.enter_context(broker.made(BROKER)), 'there already'
        )
    except (OSError, subprocess.SubprocessError, amqp.AMQPError):
        return _started(stack, private.RabbitMQ)


def _started(
    stack: contextlib.ExitStack, server: type[private.Server]
) -> str:
    return _said(stack.enter_context(server()).url, 'started for these tests')


def _said(urls: str, how: str) -> str:
    for url in urls.split():
        shown = sa.make_url(url).render_as_string(hide_password=True)
        print(f'Testing on {shown}, {how}', flush=True)
    return urls


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
