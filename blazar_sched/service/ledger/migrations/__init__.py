# SPDX-License-Identifier: Apache-2.0
"""Migrations of the tables by alembic, which needs no configuration file here.

A change of models.py needs a new migration in versions/. A test compares the
tables that all migrations create with the models.

The revision of a migration is ``NUMBER_OLDEST_NAME``: the number of the
migration in the chain, and the oldest number such that a program whose own
newest migration has this number can use the tables. A migration that only adds
what such programs leave alone keeps the `OLDEST` of the migration before. The
first migration makes the tables that all migrations before it had made.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import re
import threading

from alembic import command
from alembic import config
from alembic import migration
from alembic import script
import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.service import parts
from blazar_sched.service.ledger import models

_PLACE = __name__.rpartition('.')[::2]
# The seconds that an upgrade waits for another upgrade.
LOCK_WAIT = 60
# Two processes may upgrade at the same time. For SQLite the transaction is a
# sufficient lock. An advisory lock of PostgreSQL is of the database; a lock of
# MySQL is of the server, and its name has at most 64 characters.
_MYSQL_NAME = "concat('blazar-sched-upgrade ', md5(database()))"
_LOCK = {
    'postgresql': (
        "SELECT pg_try_advisory_lock(hashtext('blazar-sched-upgrade'))",
        "SELECT pg_advisory_unlock(hashtext('blazar-sched-upgrade'))",
    ),
    'mysql': (
        f'SELECT GET_LOCK({_MYSQL_NAME}, 0)',
        f'SELECT RELEASE_LOCK({_MYSQL_NAME})',
    ),
}
_LOCK['mariadb'] = _LOCK['mysql']
_NUMBERS = re.compile(r'(\d{4})_(\d{4})_\w+')
# Alembic keeps the state of an upgrade in a module, for one thread at a time.
_alembic = threading.Lock()


def _settings() -> config.Config:
    settings = config.Config()
    settings.set_main_option('script_location', ':'.join(_PLACE))
    return settings


def is_current(
    connection: sa.Connection, running: Sequence[str] | None = None
) -> bool:
    """Tell whether this version can use the tables.

    :param running: the names of the parts that run, by default all that are
        installed
    :raises NotUpgraded: if the tables are of an unreleased version, or of a
        newer version that has removed what this version uses
    """
    there = sa.inspect(connection).get_table_names()
    return can_use(_revision(connection)) and all(
        each.name in there for each in _tables(running)
    )


def can_use(revision: str | None) -> bool:
    """Tell whether this version can use the tables at a migration."""
    known = _known()
    return revision == known[0] or _is_newer(revision, known)


def _is_newer(revision: str | None, known: Sequence[str]) -> bool:
    """Tell whether a migration is newer, and keeps what this version uses.

    :param known: the migrations of this version
    """
    numbers = _NUMBERS.fullmatch(revision or '')
    return (
        numbers is not None and revision not in known
        and int(numbers[2]) <= number(known[0]) < int(numbers[1])
    )


def number(revision: str) -> int:
    """Return the number of a migration in the chain."""
    return int(revision.partition('_')[0])


def upgrade(
    engine: sa.Engine, sleep: Callable[[float], object],
    running: Sequence[str] | None = None,
) -> tuple[str | None, str | None]:
    """Run the migrations that the database lacks, and create parts' tables.

    Newer tables that this version can use are left as they are.

    :param sleep: called with the seconds to wait for another upgrade
    :param running: the names of the parts that run, by default all that are
        installed
    :returns: the migration that the tables were at, None without tables, and
        the migration that the tables are at now
    :raises NotUpgraded: as `is_current` does
    :raises Unavailable: if another upgrade goes on for too long
    """
    settings = _settings()
    lock, unlock = _LOCK.get(engine.dialect.name, (None, None))
    with _alembic, engine.connect() as connection:
        settings.attributes['connection'] = connection
        if lock:
            _lock(connection, lock, sleep)
        try:
            before = _revision(connection)
            if not _is_newer(before, _known()):
                command.upgrade(settings, 'head')
            models.Base.metadata.create_all(connection, list(_tables(running)))
            after = _revision(connection)
            connection.commit()
        finally:
            if unlock:
                connection.rollback()
                connection.exec_driver_sql(unlock)
    return before, after


def _lock(
    connection: sa.Connection, lock: str, sleep: Callable[[float], object]
) -> None:
    for _ in range(LOCK_WAIT):
        if connection.exec_driver_sql(lock).scalar():
            return
        sleep(1)
    raise exception.Unavailable(
        'another upgrade of the same database goes on: try again once it has '
        'ended'
    )


def _tables(running: Sequence[str] | None) -> Iterator[sa.Table]:
    """Yield the tables of the parts that run."""
    for each in parts.each('models', 'TABLES', running):
        yield from (model.__table__ for model in each)


def _known() -> list[str]:
    """Return the migrations of this version, the newest first."""
    scripts = script.ScriptDirectory.from_config(_settings())
    return [each.revision for each in scripts.walk_revisions()]


def _revision(connection: sa.Connection) -> str | None:
    """Return the migration that the tables are at, None without tables.

    :raises NotUpgraded: if this version does not have the migration, and
        cannot use the tables
    """
    context = migration.MigrationContext.configure(connection)
    found = context.get_current_revision()
    known = _known()
    if found is not None and found not in known and not _is_newer(
        found, known
    ):
        raise exception.NotUpgraded(
            f'the tables are at migration {found}, which this program '
            f'({known[0]}) does not have: a newer version '
            'or an unreleased version made them. Install the newer version, '
            'restore the backup, or make a new database'
        )
    return found
