# SPDX-License-Identifier: Apache-2.0
"""A ledger tells whether its database writes, by the last write."""

import pytest
import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.service.ledger import ledger
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import retry
from tests.functional.ledger.conftest import on_every_engine
from tests.functional.ledger.conftest import on_servers

# What makes a session read-only, and writable again.
SESSIONS = {
    'sqlite': ('PRAGMA query_only = ON', 'PRAGMA query_only = OFF'),
    'mysql': (
        'SET SESSION TRANSACTION READ ONLY',
        'SET SESSION TRANSACTION READ WRITE',
    ),
    'postgresql': (
        'SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY;'
        ' SET TRANSACTION READ ONLY',
        'SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE;'
        ' SET TRANSACTION READ WRITE',
    ),
}


@pytest.fixture
def read_only(store):
    """read_only(True) makes the database read-only for the ledger."""
    pair = SESSIONS[store._to_read.dialect.name]
    now = [1]

    for each in (store._to_read, store._to_write):
        @sa.event.listens_for(each, 'begin')
        def begin(connection):
            connection.exec_driver_sql(pair[now[0]])

    return lambda is_on: now.__setitem__(0, int(not is_on))


def put(tx):
    tx.put_property('gpu', True)


@on_every_engine
def test_a_failed_write_tells_and_the_next_one_tells_again(store, read_only):
    store.commit(put)
    store.require_writable()
    read_only(True)
    for write in (store.commit, store.write):
        with pytest.raises(exception.Unavailable):
            write(put)
        assert not store.is_writable
        # It is not asked again for the same.
        with pytest.raises(exception.Unavailable):
            store.require_writable()
    assert store.properties() == {'gpu': True}
    read_only(False)
    store.require_writable()
    assert store.is_writable


def test_a_ledger_that_writes_nothing_finds_out(store, read_only, monkeypatch):
    store.commit(put)
    read_only(True)
    # The last write shows for a while that the database writes.
    store.require_writable()
    monkeypatch.setattr(ledger, 'WRITTEN_FOR', 0)
    with pytest.raises(exception.Unavailable):
        store.require_writable()
    assert not store.is_writable


@on_servers
def test_finding_out_waits_for_no_commit_and_changes_nothing(
    store, open_ledger, database
):
    """On SQLite it would wait: a file has one writer."""
    store.commit(put)
    other = open_ledger(max_retries=0)

    def content():
        with database.connect() as connection:
            return [
                connection.execute(sa.select(table)).fetchall()
                for table in (models.Writer, models.Ledger, models.Change)
            ]

    before = content()

    def work(tx):
        put(tx)
        other.require_writable()

    store.dry_run(work)
    assert content() == before


def test_who_has_no_right_to_write_is_told_as_well(store, monkeypatch):
    denied = sa.exc.OperationalError('INSERT', {}, Exception(1142, 'denied'))

    def refuse(connection):
        raise denied

    monkeypatch.setattr(ledger.writer, 'probe', refuse)
    with pytest.raises(exception.DatabaseAccessDenied):
        store.require_writable()
    assert not store.is_writable


def test_another_transaction_in_the_way_tells_nothing(store):
    def work(tx):
        raise retry.Conflict

    store.commit(put)
    with pytest.raises(exception.Unavailable):
        store.commit(work)
    assert store.is_writable
