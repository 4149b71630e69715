# SPDX-License-Identifier: Apache-2.0
"""The clock of the database, independent of the session's time zone."""

from typing import Any

import sqlalchemy as sa

_MICROSECONDS = sa.func.timestampdiff(
    sa.text('MICROSECOND'), sa.text("'1970-01-01'"), sa.func.utc_timestamp(6)
)
_NOW: dict[str, sa.ColumnElement[Any]] = {
    'mysql': _MICROSECONDS / 1e6,
    'mariadb': _MICROSECONDS / 1e6,
    'postgresql': sa.extract('epoch', sa.func.clock_timestamp()),
}


def now(connection: sa.Connection) -> sa.ColumnElement[float | None]:
    """Return an expression for the database's time, in epoch seconds.

    The expression is null for SQLite, whose clock is the process's own clock.
    """
    time: sa.ColumnElement[Any] = _NOW.get(connection.dialect.name, sa.null())
    return time
