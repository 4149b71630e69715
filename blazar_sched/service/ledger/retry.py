# SPDX-License-Identifier: Apache-2.0
"""What a database does not do now, and retries after it.

The same transaction may pass when it is run again from its first statement.
Either another transaction was in its way, which is a conflict: a deadlock, a
serialization failure, a lock wait timeout, a failed Galera certification. Or
the server is away, read-only, full, overloaded, or has cancelled a statement.
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

# The errors of a server that is well, so that the connection to it is kept.
CONFLICTS = {
    1020,  # a row changed since the snapshot (MariaDB, snapshot isolation)
    1205,  # lock wait timeout
    1213,  # deadlock, and Galera's failed certification at COMMIT
    1305,  # a deadlock has undone the savepoint that is to be gone back to
    '40001',  # serialization failure
    '40P01',  # deadlock
    '55P03',  # lock wait timeout
}
# What psycopg2 does not call an OperationalError: a standby, which refuses to
# write, and the ends of a transaction that is idle, or takes too long.
POSTGRESQL_NOT_NOW = {'25006', '25P03', '25P04'}
DENIED_CODES = {
    1044,  # no access to the database
    1045,  # wrong user or password
    1049,  # no such database
    1142,  # no access to the table
    1143,  # no access to the column
    1227,  # a privilege is missing
    1370,  # no access to the routine
    1698,  # the user cannot log in by a password
    '28000',  # the user cannot log in
    '28P01',  # wrong password
    '42501',  # no access to the table
}
# libpq and SQLite give no error code when a connection cannot be opened.
DENIED = re.compile(
    r'password authentication failed|no password supplied|no pg_hba\.conf'
    r'|(role|database) ".*" does not exist|unable to open database file'
)
_MISSING = re.compile('Unknown database|database ".*" does not exist')
# The name of SQLite's errors of the program, such as a missing table.
_SQLITE_ERROR = 'SQLITE_ERROR'


class Conflict(Exception):
    """A conflict after which the whole transaction must be run again."""


class UnknownCommit(Conflict):
    """A failed COMMIT of which only the database knows the outcome.

    To run the work again could do the work twice, which is safe only if the
    work is idempotent.
    """


def is_denied(error: Exception) -> bool:
    """Return whether the database denies access to the user of the URL.

    A retry would not help, and could lock the account.
    """
    return isinstance(error, exc.DBAPIError) and (
        _code(error) in DENIED_CODES
        or isinstance(error, exc.OperationalError)
        and DENIED.search(str(error.orig)) is not None
    )


def is_conflict(error: Exception) -> bool:
    """Return whether another transaction was in the way of a transaction."""
    return isinstance(error, Conflict) or (
        isinstance(error, exc.DBAPIError) and _code(error) in CONFLICTS
    )


def is_not_now(error: Exception) -> bool:
    """Return whether a transaction may pass later, as it is.

    An error is one of operation unless its driver knows it to be another: of
    the program, of the data, or of what the database does not support.
    """
    if not isinstance(error, exc.DBAPIError):
        return isinstance(error, Conflict | exc.TimeoutError)
    if is_denied(error):
        return False
    code = _code(error)
    return (
        error.connection_invalidated
        or code in POSTGRESQL_NOT_NOW
        or isinstance(error, exc.OperationalError) and code != _SQLITE_ERROR
        # PyMySQL's own, and those of files, which MySQL numbers below 1000.
        or isinstance(error, exc.InternalError) and not isinstance(code, str)
    )


def is_fault(error: Exception) -> bool:
    """Return whether the server itself is what fails a transaction."""
    return is_denied(error) or is_not_now(error) and not is_conflict(error)


def _code(error: exc.DBAPIError) -> int | str | None:
    """Return MySQL's number, PostgreSQL's SQLSTATE, or SQLite's name."""
    orig = error.orig
    if orig is not None and orig.args and isinstance(orig.args[0], int):
        return orig.args[0]
    for name in ('pgcode', 'sqlstate', 'sqlite_errorname'):
        code: str | None = getattr(orig, name, None)
        if code is not None:
            return code
    return None


def commit(connection: sa.Connection) -> None:
    """Commit the transaction.

    :raises UnknownCommit: if the database did not do it now: the connection
        may be lost, and Galera detects conflicts only at COMMIT, and may lose
        its cluster at COMMIT as well
    """
    try:
        connection.commit()
    except BaseException as e:
        # SQLAlchemy does not roll back after a failed COMMIT: the connection
        # would return to the pool with the transaction still open.
        connection.invalidate()
        if isinstance(e, Exception) and is_not_now(e):
            raise UnknownCommit from e
        raise


def call(
    attempt: Callable[[], T], max_retries: int,
    sleep: Callable[[float], object] = time.sleep,
) -> T:
    """Return `attempt()`, run again while the database does not do it now.

    :param max_retries: the maximum number of runs after the first run
    :param sleep: called with the seconds to wait before each retry
    :raises Unavailable: if the database did not do the last run either
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
            if not is_not_now(e):
                raise
            if not retries_left:
                raise exception.Unavailable(
                    f'the database refused {max_retries + 1} attempts'
                ) from e
        sleep(random.uniform(0, longest))
        longest = min(2 * longest, MAX_DELAY)
    raise AssertionError('unreachable')
