# SPDX-License-Identifier: Apache-2.0
"""The migrations create the tables of the models once, in any process."""

import subprocess
import sys

from alembic import autogenerate
from alembic import command
from alembic import migration
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects.mysql.reserved_words import (
    RESERVED_WORDS_MARIADB as MARIADB,
)
from sqlalchemy.dialects.postgresql.base import RESERVED_WORDS as POSTGRESQL

from blazar_sched.domain import exception
from blazar_sched.service.ledger import ledger
from blazar_sched.service.ledger import migrations
from blazar_sched.service.ledger import models
from tests.functional.ledger.conftest import on_every_engine
from tests.functional.ledger.conftest import on_servers
from tests.waiting import at_once

UPGRADE = (
    'import sys\n'
    'from blazar_sched.service.ledger import ledger\n'
    'store = ledger.Ledger(sys.argv[1])\n'
    'print("ready", flush=True)\n'
    'input()\n'
    'store.upgrade()\n'
    'print(store.id)\n'
)


@pytest.fixture
def url(bare_url):
    return bare_url


@pytest.fixture
def store(store):
    store.upgrade()
    return store


@on_every_engine
def test_the_migrations_make_the_models(store, database):
    with database.connect() as connection:
        context = migration.MigrationContext.configure(
            connection, opts={'compare_type': True}
        )
        assert (
            autogenerate.compare_metadata(context, models.Base.metadata) == []
        )


@on_every_engine
def test_keys_and_constraints_have_our_names(store, database):
    """Named keys can be changed by a later migration on every database."""
    inspector = sa.inspect(database)
    for table in models.Base.metadata.sorted_tables:
        # MariaDB has no name of a primary key.
        key = inspector.get_pk_constraint(table.name)['name']
        assert key in (None, table.primary_key.name)
        for kind, found in (
            (sa.ForeignKeyConstraint, inspector.get_foreign_keys),
            (sa.UniqueConstraint, inspector.get_unique_constraints),
        ):
            ours = {c.name for c in table.constraints if isinstance(c, kind)}
            # MariaDB lists unique indexes as constraints too.
            indexes = {index.name for index in table.indexes}
            assert {c['name'] for c in found(table.name)} - indexes == ours
            assert None not in ours


RESERVED = MARIADB | POSTGRESQL
# Columns that the last release has, too. MySQL and MariaDB take all but `key`
# without quotes, PostgreSQL all but `end`.
KNOWN = {'body', 'end', 'key', 'position'}


def test_names_need_no_quotes():
    tables = models.Base.metadata.tables
    assert not RESERVED & tables.keys()
    columns = {
        name for table in tables.values() for name in list(table.c.keys())
    }
    assert columns & RESERVED <= KNOWN


@on_every_engine
def test_the_rows_of_the_first_tables_are_kept(
    bare_url, database, open_ledger, nouns
):
    """What nothing uses is dropped."""
    settings = migrations._settings()
    quote = database.dialect.identifier_preparer.quote_identifier
    tables = {'lifetime_history', 'threshold'}
    views = {'change', 'usage'}
    with database.connect() as connection:
        settings.attributes['connection'] = connection
        command.upgrade(settings, '0011_0005_deleted_series')
        for name in tables:
            connection.exec_driver_sql(f'CREATE TABLE {name} (id INT)')
        for name in views:
            connection.exec_driver_sql(
                f'CREATE VIEW {quote(name)} AS SELECT id FROM ledger'
            )
        connection.commit()
        connection.exec_driver_sql(
            'INSERT INTO ledger (id, uuid, revision, commits) '
            "VALUES (2, 'kept', 7, 7)"
        )
        connection.commit()
    store = open_ledger()
    assert store.upgrade()[0] == '0011_0005_deleted_series'
    with database.connect() as connection:
        kept = 'SELECT uuid FROM ledger WHERE id = 2'
        assert connection.exec_driver_sql(kept).scalar() == 'kept'
    found = sa.inspect(database)
    assert not {*tables, *views} & {
        *found.get_table_names(), *found.get_view_names()
    }


@on_every_engine
def test_keys_are_kept(store, database, nouns, host):
    """The database itself refuses an orphan, also from the ledger."""
    lease = nouns.lease()
    allocation = nouns.allocation(lease, nouns.host())

    def work(tx):
        tx.put_lease(lease)
        tx.put_allocations(allocation.reservation_id, [allocation])

    with pytest.raises(sa.exc.IntegrityError):
        store.commit(work)


def test_second_upgrade_keeps_the_rows(store, open_ledger, nouns):
    lease = nouns.lease()
    store.commit(lambda tx: tx.put_lease(lease))
    again = open_ledger()
    again.upgrade()
    assert again.id == store.id
    assert again.leases() == [lease]


@on_every_engine
def test_an_occurrence_has_one_lease(store, database, nouns):
    of = {'series_id': 'series', 'occurrence': '2030-01-07T09:00'}
    leases = [nouns.lease(start, **of) for start in (101, 100)]

    def add():
        store.commit(lambda tx: tx.add_leases(leases, ()))

    with pytest.raises(sa.exc.IntegrityError):
        add()
    with database.begin() as connection:
        connection.exec_driver_sql(
            'DROP INDEX ix_lease_series_id_occurrence'
            + (' ON lease' if database.dialect.name == 'mysql' else '')
        )
    add()
    [fault] = store.check()
    assert fault == (
        'series series: 2 leases of the occurrence 2030-01-07T09:00'
    )


@on_every_engine
def test_two_processes_upgrade_at_once(url):
    processes = [
        subprocess.Popen(
            [sys.executable, '-c', UPGRADE, url], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout.readline() == 'ready\n'
    for process in processes:
        process.stdin.write('\n')
        process.stdin.flush()
    said = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert said[0] == said[1] != ''


def test_two_threads_upgrade_at_once(tmp_path):
    """Two databases are upgraded at once: alembic must not mix them up."""
    stores = [
        ledger.Ledger(f'sqlite:///{tmp_path}/{number}') for number in range(4)
    ]
    at_once(*(store.upgrade for store in stores))
    assert len({store.id for store in stores}) == 4
    for store in stores:
        store.close()


def test_sqlite_waits_its_turn(store, database):
    with database.connect() as connection:
        mode = connection.exec_driver_sql('PRAGMA journal_mode').scalar()
    assert mode == 'wal'


@on_every_engine
def test_missing_tables_are_refused(open_ledger):
    with pytest.raises(exception.NotUpgraded, match='db upgrade'):
        open_ledger().require_current()


@on_every_engine
def test_tables_of_another_version_are_refused(store, database):
    """Also the tables of an unreleased version, whose migrations are gone."""
    store.require_current()
    for found in (
        'later', '0001', '0021', '7a41c95be2d0', '0010_0005_usage_day',
    ):
        with database.begin() as connection:
            connection.exec_driver_sql(
                f"UPDATE alembic_version SET version_num = '{found}'"
            )
        for refused in (store.require_current, store.upgrade):
            with pytest.raises(
                exception.NotUpgraded,
                match=rf'at migration {found}, .*make a new database',
            ):
                refused()


@on_servers
def test_upgrade_waits_for_a_concurrent_upgrade(
    server, open_ledger, database, made_once
):
    """The lock of another database on the server is another lock."""
    waited = []
    store = open_ledger(sleep=waited.append)
    lock, unlock = migrations._LOCK[database.dialect.name]
    with database.connect() as connection:
        assert connection.exec_driver_sql(lock).scalar()
        with pytest.raises(exception.Unavailable, match='another upgrade'):
            store.upgrade()
        assert waited == [1] * migrations.LOCK_WAIT
        elsewhere = ledger.Ledger(made_once(server))
        elsewhere.upgrade()
        elsewhere.close()
        connection.exec_driver_sql(unlock)
    store.upgrade()


def test_other_users_cannot_read_a_sqlite_file(tmp_path):
    store = ledger.Ledger(f'sqlite:///{tmp_path}/ledger.sqlite')
    store.upgrade()
    store.commit(lambda tx: tx.put_property('gpu', True))
    modes = {each.stat().st_mode & 0o777 for each in tmp_path.iterdir()}
    store.close()
    assert modes <= {0o600, 0o640}
