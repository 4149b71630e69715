# SPDX-License-Identifier: Apache-2.0
"""Migrations of the tables by alembic, which needs no configuration file here.

A change of models.py needs a new migration in versions/. A test compares the
tables that all migrations create with the models.
"""

import threading

from alembic import command
from alembic import config
from alembic import migration
from alembic import script
import sqlalchemy as sa

_PLACE = __name__.rpartition('.')[::2]
# Two processes may upgrade at the same time. For SQLite the transaction is a
# sufficient lock.
_NAME = 'blazar-sched-upgrade'
_LOCK = {
    'postgresql': (
        f"SELECT pg_advisory_lock(hashtext('{_NAME}'))",
        f"SELECT pg_advisory_unlock(hashtext('{_NAME}'))",
    ),
    'mysql': (
        f"SELECT GET_LOCK('{_NAME}', 60)",
        f"SELECT RELEASE_LOCK('{_NAME}')",
    ),
}
_LOCK['mariadb'] = _LOCK['mysql']
# Alembic keeps the state of an upgrade in a module, for one thread at a time.
_alembic = threading.Lock()


def _settings() -> config.Config:
    settings = config.Config()
    settings.set_main_option('script_location', ':'.join(_PLACE))
    return settings


def is_current(connection: sa.Connection) -> bool:
    """Tell whether the tables are those of this version."""
    context = migration.MigrationContext.configure(connection)
    scripts = script.ScriptDirectory.from_config(_settings())
    return set(context.get_current_heads()) == set(scripts.get_heads())


def upgrade(engine: sa.Engine) -> tuple[str | None, str | None]:
    """Run the migrations that the database lacks.

    :returns: the migration that the tables were at, None without tables, and
        the migration that the tables are at now
    """
    settings = _settings()
    lock, unlock = _LOCK.get(engine.dialect.name, (None, None))
    with _alembic, engine.connect() as connection:
        settings.attributes['connection'] = connection
        if lock:
            connection.exec_driver_sql(lock)
        try:
            before = _revision(connection)
            command.upgrade(settings, 'head')
            after = _revision(connection)
            connection.commit()
        finally:
            if unlock:
                connection.rollback()
                connection.exec_driver_sql(unlock)
    return before, after


def _revision(connection: sa.Connection) -> str | None:
    context = migration.MigrationContext.configure(connection)
    return context.get_current_revision()
