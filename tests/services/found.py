# SPDX-License-Identifier: Apache-2.0
"""The servers that the tests use.

These are the servers in the environment, else servers on the usual ports of
this machine that accept a login, else private servers, which end with the exit
stack that they are started on.
"""

import contextlib
import subprocess

import amqp
import sqlalchemy as sa

from tests.services import broker as brokers
from tests.services import database as database_tests
from tests.services import private

DATABASES = {
    'mysql': ('mysql+pymysql://root@127.0.0.1:3306/', private.MariaDB),
    'postgresql': (
        'postgresql+psycopg2://postgres@127.0.0.1:5432/postgres',
        private.PostgreSQL,
    ),
}
# Clouds and tests of databases may use one server at the same time.
CONNECTIONS = 1000
BROKER = 'rabbit://guest:guest@127.0.0.1:5672/'


def databases(stack: contextlib.ExitStack) -> list[str]:
    """Return the URLs of all database servers.

    :raises private.Missing: if a server has to be started and is not installed
    """
    engines = database_tests.servers() or DATABASES
    return [database(stack, engine) for engine in engines]


def database(stack: contextlib.ExitStack, engine: str) -> str:
    """Return the URL of one database server.

    :raises private.Missing: if a server has to be started and is not installed
    """
    named = database_tests.servers().get(engine)
    if named:
        return _said(named, 'as the environment says')
    url, server = DATABASES[engine]
    if _lets_in(url):
        _allow_connections(url)
        return _said(url, 'there already')
    return _started(stack, server)


def broker(stack: contextlib.ExitStack) -> str:
    """Return the transport_url of a virtual host for the tests.

    :raises private.Missing: if a broker has to be started and is not installed
    """
    named = brokers.named()
    if named:
        return _said(named, 'as the environment says')
    try:
        brokers.enter(BROKER)
        return _said(
            stack.enter_context(brokers.made(BROKER)), 'there already'
        )
    except (OSError, subprocess.SubprocessError, amqp.AMQPError):
        return _started(stack, private.RabbitMQ)


def _lets_in(url: str) -> bool:
    """Tell whether the server at `url` lets this user create databases."""
    try:
        with database_tests.made(url):
            return True
    except sa.exc.SQLAlchemyError:
        return False


def _allow_connections(url: str) -> None:
    """Let MariaDB have more connections, if this user may change that."""
    if sa.make_url(url).get_backend_name() == 'mysql':
        with contextlib.suppress(sa.exc.SQLAlchemyError):
            engine = sa.create_engine(url)
            with engine.begin() as connection:
                connection.exec_driver_sql(
                    f'SET GLOBAL max_connections = {CONNECTIONS}'
                )
            engine.dispose()


def _started(stack: contextlib.ExitStack, server: type[private.Server]) -> str:
    return _said(stack.enter_context(server()).url, 'started for these tests')


def _said(url: str, how: str) -> str:
    shown = sa.make_url(url).render_as_string(hide_password=True)
    print(f'Testing on {shown}, {how}', flush=True)
    return url
