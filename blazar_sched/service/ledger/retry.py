# SPDX-License-Identifier: Apache-2.0
"""Detection of conflicts for each database engine, and retries after them.

A conflict is an outcome that the same transaction may avoid when it is run
again from its first statement: a deadlock, a serialization failure, a lock
wait timeout, a failed Galera certification, a lost connection.
"""

from collections.abc import Callable
import random
import re
import time
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy import exc

from blazar_sched.domain import exception

T = TypeVar('T')

# Seconds. The delay doubles with each retry; the wait is a random part of it.
FIRST_DELAY = 0.02
MAX_DELAY = 1.0

MYSQL_CONFLICTS = {
    1020,  # a row changed since the snapshot (MariaDB, snapshot isolation)
    1047,  # Galera: this node has not joined the cluster yet
    1180,  # error during COMMIT, such as Galera's if the node left the cluster
    1205,  # lock wait timeout
    1213,  # deadlock, and Galera's failed certification at COMMIT
    1305,  # a deadlock has undone the savepoint that is to be gone back to
}
MYSQL_LOST = {
    1040,  # too many connections
    1053,  # server shutdown in progress
    2002,  # no server at the socket
    2003,  # no server at the address
    2006,  # server has gone away
    2013,  # connection lost during a query
    4031,  # disconnected for being idle
}
POSTGRESQL_CONFLICTS = {
    '40001',  # serialization failure
    '40P01',  # deadlock
    '55P03',  # lock wait timeout
}
MYSQL_DENIED = {
    1044,  # no access to the database
    1045,  # wrong user or password
    1049,  # no such database
    1698,  # the user cannot log in by a password
}
# libpq and SQLite give no error code when a connection cannot be opened.
DENIED = re.compile(
    r'password authentication failed|no password supplied|no pg_hba\.conf'
    r'|(role|database) ".*" does not exist|unable to open database file'
)
_MISSING = re.compile('Unknown database|database ".*" does not exist')
# Connection exceptions, too few resources, shutdown or start of the server, a
# standby, which refuses to write.
POSTGRESQL_LOST = ('08', '53300', '57P0', '25P03', '25006')


class Conflict(Exception):
    """A conflict after which the whole transaction must be run again."""


class UnknownCommit(Conflict):
    """A failed COMMIT of which only the database knows the outcome.

    To run the work again could do the work twice, which is safe only if the
    work is idempotent.
    """


def is_lost(error: exc.DBAPIError) -> bool:
    """Return whether `error` means that the connection is lost."""
    if error.connection_invalidated or _number(error.orig) in MYSQL_LOST:
        return True
    code: str | None = getattr(error.orig, 'pgcode', '')
    if code is None:
        # Errors of libpq itself, such as failed connects, have no code.
        return isinstance(error, exc.OperationalError)
    return code.startswith(POSTGRESQL_LOST)


def is_denied(error: Exception) -> bool:
    """Return whether the database denies access to the user of the URL.

    A retry would not help, and could lock the account.
    """
    return isinstance(error, exc.OperationalError) and (
        _number(error.orig) in MYSQL_DENIED
        or DENIED.search(str(error.orig)) is not None
    )


def is_conflict(error: Exception) -> bool:
    """Return whether the transaction that `error` ended may be retried."""
    if isinstance(error, Conflict | exc.TimeoutError):
        return True
    if not isinstance(error, exc.DBAPIError):
        return False
    return (
        is_lost(error)
        or _number(error.orig) in MYSQL_CONFLICTS
        or getattr(error.orig, 'pgcode', None) in POSTGRESQL_CONFLICTS
        # SQLite's messages: database, database table or schema is locked.
        or ' is locked' in str(error.orig)
    )


def _number(orig: BaseException | None) -> object:
    return orig.args[0] if orig is not None and orig.args else None


def commit(connection: sa.Connection) -> None:
    """Commit the transaction.

    :raises UnknownCommit: if the connection was lost during COMMIT, or if the
        database reported a conflict: Galera detects conflicts only at COMMIT,
        and may lose its cluster at COMMIT as well
    """
    try:
        connection.commit()
    except BaseException as e:
        # SQLAlchemy does not roll back after a failed COMMIT: the connection
        # would return to the pool with the transaction still open.
        connection.invalidate()
        if isinstance(e, Exception) and is_conflict(e):
            raise UnknownCommit from e
        raise


def call(
    attempt: Callable[[], T],
    max_retries: int,
    sleep: Callable[[float], object] = time.sleep,
) -> T:
    """Return `attempt()`, run again after a conflict.

    :param max_retries: the maximum number of runs after the first run
    :param sleep: called with the seconds to wait before each retry
    :raises Unavailable: if the last run met a conflict too
    :raises DatabaseAccessDenied: at the first run, if the database denies
        access
    """
    longest = FIRST_DELAY
    for retries_left in range(max_retries, -1, -1):
        try:
            return attempt()
        except Exception as e:
            if is_denied(e):
                raise exception.DatabaseAccessDenied(
                    'the database denied access, or has to be created first'
                    if _MISSING.search(str(e)) else
                    'the database denied access'
                ) from e
            if not is_conflict(e):
                raise
            if not retries_left:
                raise exception.Unavailable(
                    f'the database refused {max_retries + 1} attempts'
                ) from e
        sleep(random.uniform(0, longest))
        longest = min(2 * longest, MAX_DELAY)
    raise AssertionError('unreachable')
