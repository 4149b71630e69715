# SPDX-License-Identifier: Apache-2.0
"""After a failed COMMIT the ledger checks whether the commit was made."""

import functools
import sqlite3
import time

import pytest
import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.service.ledger import engine
from blazar_sched.service.ledger import ledger
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import writer
from tests.functional.ledger.conftest import on
from tests.functional.ledger.conftest import on_every_engine
from tests.functional.ledger.conftest import on_servers
from tests.services import proxy
from tests.waiting import at_once


# The errors of COMMIT by engine. A driver is installed where its server is.
def sqlite_errors():
    return [lambda: sqlite3.OperationalError('database is locked')]


def mysql_errors():
    import pymysql
    return [
        # Galera: a certification failure, and a node that has left its
        # cluster before or at COMMIT.
        lambda: pymysql.OperationalError(1213, 'Deadlock found'),
        lambda: pymysql.OperationalError(1047, 'WSREP has not yet prepared'),
        lambda: pymysql.OperationalError(1180, 'Not connected to Primary'),
        lambda: pymysql.OperationalError(2013, 'Lost connection'),
    ]


def postgresql_errors():
    import psycopg2

    class Refused(psycopg2.OperationalError):
        """An error with a code, as only the server can make one."""

        def __init__(self, pgcode):
            super().__init__('refused')
            self._pgcode = pgcode

        pgcode = property(lambda self: self._pgcode)

    return [
        lambda: Refused('40001'),
        lambda: Refused('40P01'),
        lambda: Refused('57P01'),
        # The server has become a standby.
        lambda: Refused('25006'),
        lambda: Refused(None),
    ]


ERRORS = {
    'sqlite': sqlite_errors, 'mysql': mysql_errors,
    'postgresql': postgresql_errors,
}


@pytest.fixture
def errors(url):
    return ERRORS[sa.make_url(url).get_backend_name()]()


@pytest.fixture
def fail(store, monkeypatch):
    """Makes the next COMMITs fail with an error, before or after the commit.
    """
    dialect = store._to_write.dialect
    commit = dialect.do_commit

    def arm(error, when, times=1):
        left = [error] * times

        def fail(connection):
            if when == 'after' or not left:
                commit(connection)
            if left:
                raise left.pop()()

        monkeypatch.setattr(dialect, 'do_commit', fail)

    return arm


class Work:
    """Work that makes another lease each time that it runs."""

    def __init__(self, nouns):
        self._nouns = nouns
        self.made = []

    def __call__(self, tx):
        lease = self._nouns.lease()
        self.made.append(lease)
        tx.put_lease(lease)
        return lease


@pytest.fixture
def work(nouns):
    return Work(nouns)


@on_every_engine
@pytest.mark.parametrize(('when', 'runs'), [('before', 2), ('after', 1)])
def test_commit_with_an_unknown_outcome_is_made_once(
    store, work, fail, errors, when, runs
):
    """This holds from the first commit on, before which its writer has no row.
    """
    told = []
    for error in errors:
        work.made.clear()
        fail(error, when)
        told.append(store.commit(work))
        assert len(work.made) == runs
        # The same holds for later commits.
        told.append(store.commit(work))
    assert store.leases() == told
    assert store.changes(0)['newest'] == len(told)
    assert store.check() == []


@on_every_engine
def test_control_without_the_check_the_commit_is_made_twice(
    store, work, fail, errors, monkeypatch
):
    """The control: without the check the commit is made twice."""
    monkeypatch.setattr(store, '_was_committed', lambda revision: False)
    for number, error in enumerate(errors, start=1):
        fail(error, 'after')
        store.commit(work)
        assert len(store.leases()) == 2 * number


@on_every_engine
@pytest.mark.parametrize('when', ['before', 'after'])
def test_check_of_a_commit_is_repeated_if_it_fails(
    store, work, fail, errors, when
):
    for number, error in enumerate(errors, start=1):
        fail(error, when, times=4)
        store.commit(work)
        assert len(store.leases()) == number


def test_a_database_that_does_not_say(store, work, fail, errors):
    for number, error in enumerate(errors, start=1):
        fail(error, 'after', times=100)
        with pytest.raises(exception.Unavailable, match='check whether'):
            store.commit(work)
        assert len(work.made) == number


def test_write_without_placing_is_checked_as_well(store, fail, errors):
    runs = []

    def work(tx):
        runs.append(1)
        tx.put_property('gpu', True)

    fail(errors[0], 'after')
    store.write(work)
    assert len(runs) == 1


def test_a_writer_whose_row_is_gone(
    store, open_ledger, work, fail, errors, monkeypatch
):
    """The writer was suspended until its row was pruned: it cannot tell."""
    other = open_ledger()
    monkeypatch.setattr(writer, 'REVISIONS_KEPT', 3)
    was_committed = store._was_committed

    def stand_still(revision):
        for _ in range(5):
            other.commit(work)
        other.prune(0)
        return was_committed(revision)

    monkeypatch.setattr(store, '_was_committed', stand_still)
    fail(errors[0], 'after')
    with pytest.raises(exception.Unavailable, match='check whether'):
        store.commit(work)
    assert len(store.leases()) == 6


def test_writers_that_are_silent_are_forgotten(
    store, open_ledger, nouns, database, monkeypatch
):
    monkeypatch.setattr(writer, 'REVISIONS_KEPT', 3)

    def commit(ledger):
        ledger.commit(lambda tx: tx.put_lease(nouns.lease()))

    def count():
        with database.connect() as connection:
            return len(connection.execute(sa.select(models.Writer)).all())

    silent, alive = open_ledger(), open_ledger()
    for each in (store, silent, alive):
        commit(each)
    for _ in range(3):
        commit(alive)
    store.prune(0)
    # Its own row, too, would be old enough to be pruned.
    assert count() == 2
    commit(silent)
    assert count() == 3


# Seconds of delay of a late COMMIT, or of a late end of its connection.
LATE = 0.3


def lose_late(client, server, commit):
    """The server gets no COMMIT, and does not notice the end at once."""
    proxy.close(client)
    time.sleep(LATE)
    return True


def swallow(client, server, commit):
    """All later packets are dropped, as when a network is partitioned."""
    time.sleep(10 * LATE)
    return True


def lose_answer(client, server, commit):
    """The server commits, and the client gets no response."""
    proxy.close(client)
    server.sendall(commit)
    time.sleep(LATE)
    return True


def deliver_late(client, server, commit):
    """The server commits long after the client has given up."""
    proxy.close(client)
    time.sleep(LATE)
    return lose_answer(client, server, commit)


@pytest.fixture
def behind(url):
    """A ledger, and arm(way): then its next COMMIT goes this way."""
    with proxy.before(url) as (between, through):

        def arm(way):
            armed = iter([way])

            def judge(data):
                # PostgreSQL's COMMIT ends with a NUL; READ COMMITTED is
                # another text.
                is_commit = data.rstrip(b'\0').endswith(b'COMMIT')
                return next(armed, proxy.forward) if is_commit else (
                    proxy.forward
                )

            between.from_client = judge

        behind = ledger.Ledger(through, sleep=lambda seconds: None)
        yield behind, arm
        behind.close()


@on_servers
@pytest.mark.parametrize(('way', 'runs'), [
    (proxy.cut, 2),
    (lose_late, 2),
    (lose_answer, 1),
    (deliver_late, 1),
])
def test_a_connection_cut_at_commit(store, work, behind, way, runs):
    """A proxy cuts the connection; late is after the query that reads back."""
    behind, arm = behind
    behind.commit(work)
    arm(way)
    told = behind.commit(work)
    assert len(work.made) == 1 + runs
    assert store.leases() == [work.made[0], told]
    assert store.check() == []


@on('mysql')
def test_a_node_outside_of_its_cluster_is_left(store, caplog, monkeypatch):
    """Galera's node refuses each statement, and ROLLBACK too."""
    dialect = store._to_write.dialect
    outside, rollback = [], dialect.do_rollback

    def refuse(connection):
        if connection.dbapi_connection in outside:
            raise mysql_errors()[1]()
        rollback(connection)

    def work(tx):
        if not outside:
            outside.append(tx._connection.connection.dbapi_connection)
            tx._connection.exec_driver_sql(
                "SIGNAL SQLSTATE '08S01' SET MYSQL_ERRNO = 1047"
            )
        tx.put_property('gpu', True)

    monkeypatch.setattr(dialect, 'do_rollback', refuse)
    store.commit(work)
    assert store.properties() == {'gpu': True}
    assert 'Exception' not in caplog.text


@on_servers
def test_a_connection_lost_after_commit_is_no_error(store, caplog):
    with store._to_write.connect() as connection:
        connection.exec_driver_sql('SELECT 1')
        connection.commit()
        lost = connection.connection.dbapi_connection
        # PyMySQL's close() is not what a lost connection does.
        getattr(lost, '_force_close', lost.close)()
    assert caplog.messages == []
    assert store.leases() == []


def now_refused(code):
    """Return a statement of MySQL that the server answers with an error."""
    return f"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {code}"


REFUSALS = {
    'postgresql': ['SET TRANSACTION READ ONLY'],
    'mysql': [
        # Of --read-only, of a read-only transaction, and of read-only mode.
        now_refused(1290), now_refused(1792), now_refused(1836),
        # Of a server that was stopped, and that is full.
        now_refused(1927), now_refused(1114),
    ],
}


@on_servers
def test_a_server_that_has_become_a_standby_is_left(store):
    """A standby keeps its connections, and refuses to write."""
    name = store._to_write.dialect.name
    for statement in REFUSALS[name]:
        used = []

        def work(tx, used=used, statement=statement):
            used.append(tx._connection.connection.dbapi_connection)
            if len(used) == 1:
                tx._connection.exec_driver_sql(statement)
            tx.put_property(statement, True)

        store.commit(work)
        assert statement in store.properties()
        assert used[0].closed if name == 'postgresql' else not used[0].open
        assert used[1] is not used[0]


@pytest.fixture
def short_read_timeout(monkeypatch):
    monkeypatch.setitem(engine._CONNECT_ARGS['mysql'], 'read_timeout', 1)


@on('mysql')
def test_a_server_that_answers_no_more(
    store, work, short_read_timeout, behind
):
    """PostgreSQL leaves it to TCP to find out."""
    behind, arm = behind
    behind.commit(work)
    arm(swallow)
    told = behind.commit(work)
    assert store.leases() == [work.made[0], told]


@on_servers
def test_a_connection_cut_while_others_commit(store, nouns, behind):
    """Each of many commits is written once, whatever its connection does."""
    behind, arm = behind
    works = [Work(nouns) for _ in range(6)]

    def client(number):
        if number % 2:
            arm(deliver_late)
        (behind if number % 2 else store).commit(works[number])

    at_once(*(functools.partial(client, number) for number in range(6)))
    assert {lease.id for lease in store.leases()} == {
        each.made[-1].id for each in works
    }
