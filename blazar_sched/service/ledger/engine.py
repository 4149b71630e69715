# SPDX-License-Identifier: Apache-2.0
"""Engines: how connections and transactions begin on each database.

A read transaction sees one state throughout. A write transaction first locks
the ledger's row (on SQLite: takes the write lock of the file) and sees all
that was committed before, so writers are serialized alike on every database.
"""

from collections.abc import Mapping
import contextlib
import importlib.util
import os
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy import pool

from blazar_sched.service.ledger import retry

# The seconds that a writer waits for the writer before it.
LOCK_WAIT = 30
# The seconds after which a server closes an idle connection, also inside a
# transaction: a stopped process must not keep the lock on the ledger's row.
IDLE_LIMIT = 30

# The seconds after which a server that does not answer is considered lost:
# more than the time for which a server may let a writer wait.
ANSWER_LIMIT = 60

# The drivers that are looked for if a URL names none: the module of each, and
# its name in a URL. An extra of the package installs the first one.
_DRIVERS = {
    'mysql': {'pymysql': 'pymysql', 'MySQLdb': 'mysqldb'},
    'postgresql': {'psycopg2': 'psycopg2', 'psycopg': 'psycopg'},
}
_DRIVERS['mariadb'] = _DRIVERS['mysql']

_WRITES = 'blazar_sched_writes'

_MYSQL = {
    'connect_timeout': 10,
    'init_command': (
        f'SET SESSION innodb_lock_wait_timeout = {LOCK_WAIT},'
        f' SESSION wait_timeout = {IDLE_LIMIT}'
    ),
    'read_timeout': ANSWER_LIMIT,
    'write_timeout': ANSWER_LIMIT,
}
_POSTGRESQL = {
    'connect_timeout': 10,
    # A busy server answers keepalive probes; only a lost server does not.
    'keepalives_idle': 10,
    'keepalives_interval': 10,
    'keepalives_count': 4,
    'tcp_user_timeout': 1000 * ANSWER_LIMIT,
}
_CONNECT_ARGS: dict[str, dict[str, Any]] = {
    'sqlite': {'timeout': LOCK_WAIT},
    'mysql': _MYSQL,
    'mariadb': _MYSQL,
    'postgresql': _POSTGRESQL,
}
_WRITE_OPTIONS: dict[str, dict[str, Any]] = {
    'sqlite': {_WRITES: True},
    # MySQL takes its snapshot at the first SELECT, thus after the lock on the
    # row. PostgreSQL would take the snapshot before the lock, and would then
    # refuse every writer that had to wait.
    'mysql': {},
    'mariadb': {},
    'postgresql': {_WRITES: True, 'isolation_level': 'READ COMMITTED'},
}


def create(
    url: str, patient: bool = False, pool: Mapping[str, int] | None = None
) -> tuple[sa.Engine, sa.Engine]:
    """Return a read engine and a write engine on a shared pool.

    :param url: an SQLAlchemy URL of SQLite, MySQL, MariaDB or PostgreSQL
    :param patient: whether a statement may run without a time limit
    :param pool: arguments of SQLAlchemy's pool of connections to a server
    :raises ValueError: if `url` is not such a URL, or its driver is missing;
        the message omits the URL, which contains a password
    """
    try:
        return _create(url, patient, pool or {})
    except (ImportError, sa.exc.NoSuchModuleError) as e:
        raise ValueError(_missing(sa.make_url(url), e)) from e
    except KeyError as e:
        known = ', '.join(_CONNECT_ARGS)
        raise ValueError(
            f'database {e} is not supported, only {known}'
        ) from None
    except (ValueError, sa.exc.ArgumentError):
        raise ValueError('the URL is not a valid SQLAlchemy URL') from None


def with_driver(text: str) -> sa.URL:
    """Return a URL, with a driver that is installed if the text names none.

    SQLAlchemy's own choice depends on its version, not on what is installed.

    :raises ImportError: if no driver is installed
    """
    url = sa.make_url(text)
    drivers = _DRIVERS.get(url.drivername)
    if drivers is None:
        return url
    for module, name in drivers.items():
        if importlib.util.find_spec(module) is not None:
            return url.set(drivername=f'{url.drivername}+{name}')
    raise ImportError(f'no module named {" or ".join(drivers)}')


def _missing(url: sa.URL, error: Exception) -> str:
    """Return what is missing, without the URL, and what to do."""
    if 'sqlalchemy.plugins' in str(error):
        plugin = url.query['plugin']
        return (
            f'the plugin {plugin} of the URL, such as the dbcounter of '
            'DevStack, which counts queries, is not installed: remove '
            f'plugin={plugin} from the URL, or install it'
        )
    extra = 'postgresql' if 'postgres' in url.drivername else 'mysql'
    return (
        f"the database driver is not installed: {error}; pip install "
        f"'.[{extra}]' installs one, for which the URL begins with {extra}:// "
        f'or {extra}+{next(iter(_DRIVERS[extra]))}://'
    )


def _create(
    text: str, patient: bool, sizes: Mapping[str, int]
) -> tuple[sa.Engine, sa.Engine]:
    url = with_driver(text)
    name = url.get_backend_name()
    connect_args = dict(_CONNECT_ARGS[name])
    if patient:
        connect_args.pop('read_timeout', None)
    if name == 'sqlite':
        engine = sa.create_engine(
            url, connect_args=connect_args, max_overflow=-1,
            # Parameters may have the secret of a webhook: never log them.
            hide_parameters=True,
        )
        event.listen(engine, 'do_connect', _create_file)
        event.listen(engine, 'connect', _connect_sqlite)
        event.listen(engine, 'begin', _begin_sqlite)
    else:
        engine = sa.create_engine(
            url, connect_args=connect_args, isolation_level='REPEATABLE READ',
            pool_pre_ping=True, pool_reset_on_return=None,
            hide_parameters=True, **{'max_overflow': 50, **sizes},
        )
        event.listen(engine, 'reset', _roll_back)
        if name == 'postgresql':
            event.listen(engine, 'begin', _limit_postgresql)
        event.listen(engine, 'handle_error', _give_up)
    return engine, engine.execution_options(**_WRITE_OPTIONS[name])


def _give_up(context: sa.ExceptionContext) -> None:
    """Close the connections to a server that cannot do what it should.

    A new connection may be to a server that can. A server that has become a
    replica keeps its connections, and a Galera node outside of its cluster
    refuses ROLLBACK as well.
    """
    error = context.sqlalchemy_exception
    if error is not None and retry.is_fault(error):
        context.is_disconnect = True


def _roll_back(
    connection: Any, record: pool.ConnectionPoolEntry | None,
    state: pool.PoolResetState,
) -> None:
    """Roll back before a connection returns to the pool, or close it.

    SQLAlchemy itself would log a connection that is lost as an error.
    """
    if state.transaction_was_reset:
        return
    try:
        connection.rollback()
    except Exception as e:
        if record is None:
            raise
        record.invalidate(e)


def _limit_postgresql(connection: sa.Connection) -> None:
    """Set the limits of a transaction that locks the ledger's row.

    The limits are set in the transaction: PgBouncer refuses those of a
    connection, and gives a connection to others between two transactions.
    """
    if connection.get_execution_options().get(_WRITES, False):
        connection.exec_driver_sql(
            f"SET LOCAL lock_timeout = '{LOCK_WAIT}s'; SET LOCAL "
            f"idle_in_transaction_session_timeout = '{IDLE_LIMIT}s'"
        )


def _create_file(
    _dialect: Any, _record: Any, arguments: list[str], _options: Any
) -> None:
    """Create a file that other users cannot read; SQLite would create one."""
    if os.path.isabs(arguments[0]):
        # SQLite itself reports a file that cannot be created.
        with contextlib.suppress(OSError):
            os.close(os.open(arguments[0], os.O_CREAT | os.O_RDWR, 0o640))


def _connect_sqlite(connection: Any, _record: Any) -> None:
    # sqlite3 itself would begin transactions too late; see _begin_sqlite.
    connection.isolation_level = None
    connection.execute('PRAGMA journal_mode = WAL')
    connection.execute('PRAGMA foreign_keys = ON')


def _begin_sqlite(connection: sa.Connection) -> None:
    # A transaction that reads and then writes is refused at once if another
    # transaction wrote in between; BEGIN IMMEDIATE waits instead.
    if connection.get_execution_options().get(_WRITES, False):
        connection.exec_driver_sql('BEGIN IMMEDIATE')
    else:
        # BEGIN waits for nobody, and SQLAlchemy takes longer than SQLite.
        connection.connection.cursor().execute('BEGIN')
