# SPDX-License-Identifier: Apache-2.0
"""A commit is atomic, and conflicts are retried for the caller."""

import contextlib
import functools
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from blazar_sched import ext
from blazar_sched.domain import exception
from blazar_sched.domain.event import Claim
from blazar_sched.replica import record
from blazar_sched.service.ledger import engine
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import retry
from tests import waiting
from tests.functional.ledger.conftest import on_every_engine
from tests.functional.ledger.conftest import on_servers
from tests.waiting import at_once


class DriverError(Exception):
    """An error like PyMySQL's: the number is the first argument."""


class PostgresqlError(Exception):
    """An error like psycopg2's: the code is an attribute."""

    def __init__(self, pgcode):
        super().__init__('refused')
        self.pgcode = pgcode


def wrapped(orig, **kwargs):
    return exc.OperationalError('COMMIT', None, orig, **kwargs)


def of_sqlite(statement):
    """Return the error of a statement, with SQLite's name of the error."""
    with pytest.raises(sqlite3.OperationalError) as raised:
        sqlite3.connect(':memory:').execute(statement)
    return raised.value


CONFLICTS = {
    'mysql deadlock, galera certification': wrapped(DriverError(1213, 'd')),
    'mysql lock wait': wrapped(DriverError(1205, 'Lock wait timeout')),
    'mariadb snapshot isolation': wrapped(DriverError(1020, 'changed')),
    'galera node not ready': wrapped(DriverError(1047, 'WSREP')),
    'postgresql serialization': wrapped(PostgresqlError('40001')),
    'postgresql deadlock': wrapped(PostgresqlError('40P01')),
    'postgresql lock wait': wrapped(PostgresqlError('55P03')),
    'sqlite locked': wrapped(sqlite3.OperationalError('database is locked')),
}
CONFLICT = CONFLICTS['mysql deadlock, galera certification']
LOST = {
    'mysql gone away': wrapped(DriverError(2006, 'gone away')),
    'mysql lost': wrapped(DriverError(2013, 'lost')),
    'postgresql shutdown': wrapped(PostgresqlError('57P01')),
    'postgresql standby': wrapped(PostgresqlError('25006')),
    'postgresql no connection': wrapped(PostgresqlError(None)),
    'found out by sqlalchemy': wrapped(
        DriverError(0, '?'), connection_invalidated=True
    ),
}
OTHERS = {
    'mysql duplicate': exc.IntegrityError('', None, DriverError(1062, '')),
    'postgresql duplicate': exc.IntegrityError(
        '', None, PostgresqlError('23505')
    ),
    'postgresql programming': exc.ProgrammingError(
        '', None, PostgresqlError(None)
    ),
    'sqlite no table': wrapped(of_sqlite('SELECT * FROM x')),
    'a bug': KeyError('x'),
}


@pytest.fixture
def at_commit():
    """Raises the given errors at the next COMMITs in turn, None for no error.

    A COMMIT that fails is followed by a transaction that reads back.
    """
    errors = []

    def fail(_connection):
        error = errors.pop(0) if errors else None
        if error is not None:
            raise error

    sa.event.listen(sa.Engine, 'commit', fail)
    yield errors
    sa.event.remove(sa.Engine, 'commit', fail)


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def patient(store, open_ledger, pauses):
    """A ledger that records its pauses instead of pausing."""
    return open_ledger(max_retries=3, sleep=pauses.append)


@pytest.mark.parametrize('name', CONFLICTS)
def test_two_conflicts_then_success(
    patient, nouns, host, at_commit, pauses, name
):
    lease = nouns.lease()
    tries = []

    def work(tx):
        tries.append(tx.leases())
        tx.add_lease(lease, [nouns.allocation(lease, host)])
        return 'done'

    at_commit += [CONFLICTS[name], None] * 2
    assert patient.commit(work) == 'done'
    # Each attempt began with a clean transaction, and one attempt was written.
    assert tries == [[], [], []]
    assert len(pauses) == 2
    assert patient.leases() == [lease]
    assert len(patient.allocations()) == 1
    assert patient.changes(0)['newest'] == 2


@pytest.mark.parametrize('name', [*CONFLICTS, *LOST])
def test_an_error_of_the_work_is_retried_too(patient, nouns, name):
    lease = nouns.lease()
    errors = [{**CONFLICTS, **LOST}[name]] * 2

    def work(tx):
        tx.put_lease(lease)
        if errors:
            raise errors.pop()

    patient.commit(work)
    assert patient.leases() == [lease]
    assert patient.changes(0)['newest'] == 1


def test_conflicts_without_end_are_unavailable(
    patient, nouns, at_commit, pauses
):
    tries = []

    def work(tx):
        tries.append(1)
        tx.put_lease(nouns.lease())

    at_commit += [CONFLICTS['postgresql serialization'], None] * 4
    with pytest.raises(exception.Unavailable):
        patient.commit(work)
    assert len(tries) == 4
    assert len(pauses) == 3
    assert patient.leases() == []
    assert patient.changes(0)['newest'] == 0


@pytest.mark.parametrize('name', OTHERS)
def test_other_errors_are_raised_at_once(patient, nouns, name, pauses):
    def work(tx):
        tx.put_lease(nouns.lease())
        raise OTHERS[name]

    with pytest.raises(type(OTHERS[name])):
        patient.commit(work)
    assert pauses == []
    assert patient.leases() == []


@on_servers
def test_a_server_that_ends_the_connection(patient, database):
    """The server kills the session between the statements of the work."""
    kills = {
        'mysql': ('SELECT connection_id()', 'KILL {}'),
        'postgresql': (
            'SELECT pg_backend_pid()', 'SELECT pg_terminate_backend({})',
        ),
    }
    ask, kill = kills[database.dialect.name]
    killed = []

    def work(tx):
        if not killed:
            # This is no public method of a ledger: only the test needs it.
            killed.append(tx._connection.exec_driver_sql(ask).scalar())
            with database.connect() as other:
                other.exec_driver_sql(kill.format(killed[0]))
        tx.put_property('gpu', True)

    patient.commit(work)
    assert killed
    assert patient.properties() == {'gpu': True}


@pytest.fixture
def hasty(store, open_ledger, database, monkeypatch):
    """Opens ledgers with a short lock timeout."""
    name = database.dialect.name
    monkeypatch.setitem(
        engine._CONNECT_ARGS, name,
        {
            'sqlite': {'timeout': 0.01},
            'mysql': {
                'init_command': 'SET SESSION innodb_lock_wait_timeout = 1'
            },
            'postgresql': {},
        }[name],
    )
    monkeypatch.setattr(engine, 'LOCK_WAIT', 0.02)
    return open_ledger


@on_every_engine
def test_a_row_that_another_holds(store, hasty, database):
    """Another connection locks the ledger's row for two attempts."""
    other = database.connect()
    if database.dialect.name == 'sqlite':
        other.exec_driver_sql('BEGIN IMMEDIATE')
    other.execute(sa.text('UPDATE ledger SET revision = revision'))
    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 2:
            other.rollback()
            other.close()

    hasty(sleep=sleep).commit(lambda tx: tx.put_property('gpu', True))
    assert len(pauses) == 2
    assert store.properties() == {'gpu': True}


@pytest.fixture
def short_idle_limit(monkeypatch):
    """Have a server soon close idle connections that are opened later."""
    monkeypatch.setitem(
        engine._CONNECT_ARGS, 'mysql',
        {'init_command': 'SET SESSION wait_timeout = 1'},
    )
    monkeypatch.setitem(
        engine._CONNECT_ARGS, 'postgresql',
        {'options': '-c idle_in_transaction_session_timeout=500ms'},
    )
    monkeypatch.setattr(engine, 'IDLE_LIMIT', 0.5)


@on_servers
def test_a_manager_that_stands_still_is_cut_off(
    short_idle_limit, store, open_ledger, nouns
):
    """A suspended manager keeps the lock for a limited time, then retries."""
    slow, other = open_ledger(), open_ledger()
    has_row, done = threading.Event(), threading.Event()
    seen = []

    def work(tx):
        seen.append(tx.properties())
        tx.put_property('slow', True)
        has_row.set()
        done.wait(60)
        tx.put_lease(nouns.lease())

    thread = threading.Thread(target=lambda: slow.commit(work))
    thread.start()
    has_row.wait(60)
    other.commit(lambda tx: tx.put_property('other', True))
    assert store.properties() == {'other': True}
    done.set()
    thread.join(60)
    assert seen == [{}, {'other': True}]
    assert store.properties() == {'other': True, 'slow': True}
    assert len(store.leases()) == 1


def test_a_commit_that_waits_is_the_next(store):
    """Whoever has made the last commit is not ahead of who waits."""
    order = []
    other = threading.Thread(
        target=lambda: store.commit(lambda tx: order.append('other'))
    )

    def work(tx):
        other.start()
        waiting.until(lambda: len(store._lock._turns) == 2)
        order.append('first')

    store.commit(work)
    store.commit(lambda tx: order.append('second'))
    other.join(60)
    assert order == ['first', 'other', 'second']


SESSIONS = {
    'mysql': (
        'SELECT count(*) FROM information_schema.processlist'
        ' WHERE db = database() AND id != connection_id()'
    ),
    'postgresql': (
        'SELECT count(*) FROM pg_stat_activity'
        ' WHERE datname = current_database() AND pid != pg_backend_pid()'
        " AND state = 'idle in transaction'"
    ),
}


@on_servers
def test_a_load_is_not_cut_off_however_slow_it_is(
    store, open_ledger, nouns, host, database, short_idle_limit, monkeypatch
):
    """The server closes each connection that the load leaves idle."""
    count = sa.text(SESSIONS[database.dialect.name])
    lease = nouns.lease()
    store.commit(
        lambda tx: tx.add_lease(lease, [nouns.allocation(lease, host)])
    )
    store.close()
    encode, waited = record.encode, []

    def slowly(entity):
        with database.connect() as connection:
            while connection.scalar(count):
                connection.rollback()
                time.sleep(0.05)
        waited.append(entity)
        return encode(entity)

    monkeypatch.setattr(record, 'encode', slowly)
    loaded = open_ledger(max_retries=0).commit(lambda tx: tx.replica)

    assert len(waited) == 2
    assert loaded.indexes.allocations(lease.reservations[0].id)


KILLED = (
    'import sys\n'
    'from blazar_sched.service import faults\n'
    'from blazar_sched.service.ledger import ledger\n'
    'faults.arm_from_environment()\n'
    'store = ledger.Ledger(sys.argv[1])\n'
    'for name in "one", "two":\n'
    '    store.commit(lambda tx: tx.put_property(name, True))\n'
)


@on_every_engine
@pytest.mark.parametrize(('where', 'kept'), [
    ('commit:before#2', ['one']),
    ('commit:after#2', ['one', 'two']),
])
def test_a_manager_killed_in_its_commit(url, store, where, kept):
    killed = subprocess.run(
        [sys.executable, '-c', KILLED, url],
        env={**os.environ, 'BLAZAR_SCHED_CRASH_AT': where}, timeout=60,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert sorted(store.properties()) == kept
    # The refused commit left no lock behind.
    store.commit(lambda tx: tx.put_property('after', True))
    assert sorted(store.properties()) == ['after', *kept]


def test_on_change_gets_each_committed_revision(store, open_ledger, nouns):
    told = []
    telling = open_ledger(on_change=told.append)
    telling.commit(lambda tx: tx.put_lease(nouns.lease()))
    store.commit(lambda tx: tx.put_lease(nouns.lease()))
    telling.commit(lambda tx: tx.put_lease(nouns.lease()))
    # A write without records for replicas, and an empty write.
    telling.commit(lambda tx: tx.put_property('gpu', True))
    with pytest.raises(exception.Conflict):
        telling.commit(give_up)
    assert told == [1, 3]


def give_up(tx):
    raise exception.Conflict('given up')


def test_callback_of_a_commit_neither_fails_nor_delays_commits(
    open_ledger, store, nouns
):
    other = nouns.lease()

    def tell(revision):
        if revision == 1:
            telling.commit(lambda tx: tx.put_lease(other))
        raise OSError('nobody listens')

    telling = open_ledger(on_change=tell)
    lease = nouns.lease()
    telling.commit(lambda tx: tx.put_lease(lease))
    assert store.leases() == [lease, other] or store.leases() == [other, lease]


def test_a_replica_that_cannot_follow_starts_anew(
    store, nouns, host, monkeypatch
):
    """The committed change stays committed."""
    replica = store.commit(lambda tx: tx.replica)

    def fail(*args):
        raise ValueError('no')

    monkeypatch.setattr(replica, 'apply', fail)
    lease = nouns.lease()
    store.commit(lambda tx: tx.put_lease(lease))
    assert store.leases() == [lease]
    anew = store.commit(lambda tx: tx.replica)
    assert list(anew.reservations) == [lease.reservations[0].id]


@on_every_engine
def test_failed_commit_leaves_no_rows(store, nouns, host):
    kept = nouns.lease()
    store.commit(lambda tx: tx.put_lease(kept))
    before = store.changes(0)

    def work(tx):
        lease = nouns.lease(reservations=2)
        tx.put_lease(lease)
        tx.put_allocations(
            lease.reservations[0].id, [nouns.allocation(lease, host)]
        )
        tx.put_instances([nouns.instance(host)])
        tx.put_host(nouns.host())
        tx.put_property('gpu', True)
        tx.delete_lease(kept.id)
        tx.claim_event(lease.events[0].id, Claim('me', 'token', 10), None)
        tx.put_key('project', 'key', lease.id, 'digest', 0)
        raise exception.NotEnoughHostsAvailable('no room')

    with pytest.raises(exception.NotEnoughHostsAvailable):
        store.commit(work)
    assert store.leases() == [kept]
    assert store.hosts() == [host]
    assert store.allocations() == store.instances() == []
    assert store.properties() == {}
    assert store.lease_by_key('project', 'key') is None
    assert store.changes(0) == before
    replica = store.commit(lambda tx: tx.replica)
    assert replica.revision == before['newest']
    assert list(replica.hosts) == [host.uuid]
    assert list(replica.reservations) == [kept.reservations[0].id]
    assert replica.indexes.main.hosts == [host.uuid]
    assert len(replica.indexes.main) == 0


@on_every_engine
def test_write_without_records_has_no_revision(store, nouns):
    lease = nouns.lease()
    store.commit(lambda tx: tx.put_lease(lease))

    def work(tx):
        tx.put_property('gpu', True)
        tx.set_lease_status(lease.id, 'ACTIVE', 1, degraded=True)
        tx.set_reservations_status([lease.reservations[0].id], 'active', 1)
        tx.put_lease(tx.lease(lease.id))

    store.commit(work)
    assert store.changes(0)['newest'] == 1
    assert store.properties() == {'gpu': True}
    now = store.lease(lease.id)
    assert (now.status, now.degraded) == ('ACTIVE', True)
    assert now.reservations[0].status == 'active'


def test_every_commit_writes_the_ledgers_row(store, database):
    """Galera detects conflicts of commits by the rows that they write."""

    def row():
        with database.connect() as connection:
            return connection.execute(sa.text('SELECT * FROM ledger')).one()

    rows = [row()]
    for commit in (store.write, store.commit):
        commit(lambda tx: None)
        rows.append(row())
    assert len(set(rows)) == 3
    assert len({row.revision for row in rows}) == 1


def test_replicas_must_not_miss_a_change(store, nouns):
    with pytest.raises(RuntimeError):
        store.write(lambda tx: tx.put_lease(nouns.lease()))
    assert store.leases() == []


def test_a_write_needs_no_replica(store):
    store.write(lambda tx: tx.put_property('ssd', True))
    assert store.properties() == {'ssd': True}
    assert store.replica is None


@on_every_engine
def test_a_look_sees_what_other_managers_have_committed(
    store, open_ledger, nouns
):
    other = open_ledger()
    assert store.read_replica(lambda replica: list(replica.hosts)) == []
    new = nouns.host()
    other.commit(lambda tx: tx.put_host(new))
    assert store.read_replica(lambda replica: list(replica.hosts)) == [
        new.uuid
    ]


def test_replica_whose_changes_are_pruned_is_loaded_anew(
    store, open_ledger, nouns
):
    store.warm()
    other = open_ledger()
    for _ in range(3):
        other.commit(lambda tx: tx.put_host(nouns.host()))
    other.prune(keep=1)
    assert len(store.read_replica(lambda replica: replica.hosts)) == 3


@pytest.mark.row('F35')
class TestRehearse:
    """A dry run returns what a commit would return, and writes nothing."""

    @pytest.fixture
    def everything(self, database):
        """Returns the rows of all tables, and the content of the replica."""

        def look(ledger):
            with database.connect() as connection:
                tables = {
                    table.name: sorted(
                        map(repr, connection.execute(sa.select(table)))
                    )
                    for table in models.Base.metadata.sorted_tables
                }
            return tables, ledger.read_replica(
                lambda replica: (
                    replica.revision, sorted(map(repr, replica.items())),
                )
            )

        return look

    @pytest.fixture
    def work(self, nouns, host):
        """Writes some objects of each kind, and returns the objects."""
        lease = nouns.lease(reservations=2)

        def work(tx):
            tx.put_lease(lease)
            tx.put_allocations(
                lease.reservations[0].id, [nouns.allocation(lease, host)]
            )
            tx.put_instances([nouns.instance(host)])
            tx.put_host(nouns.host())
            tx.put_property('gpu', True)
            tx.claim_event(lease.events[0].id, Claim('me', 'token', 10), None)
            tx.put_key('project', 'key', lease.id, 'digest', 0)
            return tx.leases(), len(tx.hosts()), tx.replica.revision

        return work

    @on_every_engine
    def test_dry_run_returns_the_result_of_the_commit_and_writes_nothing(
        self, open_ledger, store, work, everything
    ):
        told = []
        telling = open_ledger(on_change=told.append)
        before = everything(telling)
        rehearsed = telling.dry_run(work)
        assert everything(telling) == before
        assert told == []
        assert telling.commit(work) == rehearsed
        # Only committed writes are visible.
        assert everything(telling) != before
        assert told == [2]

    @pytest.fixture
    def refuse(self, work):
        """The work, which is refused in the end."""

        def refuse(tx):
            work(tx)
            raise exception.NotEnoughHostsAvailable('no room')

        return refuse

    def test_a_refusal_leaves_nothing_either(self, store, refuse, everything):
        before = everything(store)
        with pytest.raises(exception.NotEnoughHostsAvailable):
            store.dry_run(refuse)
        assert everything(store) == before

    def test_dry_run_sees_commits_of_other_managers(
        self, store, open_ledger, nouns
    ):
        store.warm()
        new = nouns.host()
        open_ledger().commit(lambda tx: tx.put_host(new))
        hosts = store.dry_run(
            lambda tx: ([h.uuid for h in tx.hosts()], [*tx.replica.hosts])
        )
        assert hosts == ([new.uuid], [new.uuid])

    @pytest.fixture
    def meet(self, work):
        """The work, which meets two conflicts first."""
        errors = [CONFLICT, CONFLICT]

        def meet(tx):
            if errors:
                raise errors.pop()
            return work(tx)

        return meet

    def test_a_conflict_is_retried(self, patient, meet, pauses):
        leases, hosts, _ = patient.dry_run(meet)
        assert (len(leases), hosts, len(pauses)) == (1, 2, 2)
        assert patient.leases() == []

    @on_every_engine
    def test_dry_run_locks_out_other_commits(self, store, hasty, nouns):
        """A dry run locks the ledger's row, so its result is exact."""
        other = hasty(max_retries=0)

        def work(tx):
            with pytest.raises(exception.Unavailable):
                other.commit(lambda tx: tx.put_lease(nouns.lease()))
            return tx.leases()

        assert store.dry_run(work) == []
        other.commit(lambda tx: tx.put_lease(nouns.lease()))
        assert len(store.leases()) == 1

    @on_every_engine
    @pytest.mark.parametrize('outer', ['commit', 'dry_run'])
    def test_within_another_it_is_undone_and_the_other_goes_on(
        self, store, work, everything, nouns, outer
    ):
        before = everything(store)
        lease = nouns.lease()

        def do(tx):
            tx.put_lease(lease)
            noted = list(tx.records)
            first, second = (store.dry_run(work, within=tx) for _ in range(2))
            assert first == second
            assert len(first[0]) == 2
            assert tx.leases() == [lease]
            assert tx.records == noted

        getattr(store, outer)(do)
        assert store.leases() == ([lease] if outer == 'commit' else [])
        assert (everything(store) == before) is (outer == 'dry_run')

    def test_a_refusal_within_another_is_undone_too(
        self, store, refuse, everything
    ):
        before = everything(store)

        def do(tx):
            with pytest.raises(exception.NotEnoughHostsAvailable):
                store.dry_run(refuse, within=tx)
            assert tx.leases() == []
            assert tx.records == []

        store.dry_run(do)
        assert everything(store) == before

    def test_after_a_conflict_within_it_the_commit_is_retried(
        self, patient, meet, pauses
    ):
        patient.commit(lambda tx: patient.dry_run(meet, within=tx))
        assert len(pauses) == 2
        assert patient.leases() == []


class TestReplicaOfACommit:
    """The replica of a commit has the commit's writes, and loses them."""

    @pytest.fixture
    def content(self):
        """Returns all that a replica has."""
        return lambda replica: sorted(map(repr, replica.items()))

    @pytest.fixture
    def known(self, store, nouns, host):
        """A lease with an allocation, and a server that draws on the lease."""
        lease = nouns.lease(reservations=2)
        held = nouns.allocation(lease, host, vcpus=2)
        server = nouns.instance(
            host, claim=held.reservation_id, reservation_id=held.reservation_id
        )

        def work(tx):
            tx.add_lease(lease, [held])
            tx.put_instances([server])

        store.commit(work)
        return lease

    @pytest.fixture
    def writes(self, nouns, host, known):
        """Writes of each kind, with what the replica has after each write."""
        reservation_id = known.reservations[0].id
        other = nouns.host(gpus=4)
        moved = nouns.allocation(known, other, vcpus=3)
        new = nouns.lease()
        added = nouns.allocation(
            new, other, amounts={'VCPU': 1, 'CUSTOM_GPU': 2}
        )
        server = nouns.instance(other)

        def held(replica, owner=reservation_id):
            return list(replica.indexes.allocations(owner).values())

        return [
            (lambda tx: tx.put_host(other),
             lambda replica: replica.hosts.keys() == {host.uuid, other.uuid}),
            (lambda tx: tx.put_allocations(reservation_id, [moved]),
             lambda replica: held(replica) == [moved]),
            (lambda tx: tx.add_lease(new, [added]),
             lambda replica: held(replica, added.reservation_id) == [added]),
            (lambda tx: tx.put_instances([server]),
             lambda replica: server.uuid in replica.instances),
            (lambda tx: tx.delete_lease(known.id),
             lambda replica: held(replica) == []
             and known.reservations[0].id not in replica.reservations),
        ]

    def write_all(self, tx, writes):
        for write, is_shown in writes:
            assert not is_shown(tx.replica)
            write(tx)
            assert is_shown(tx.replica)

    def test_each_write_is_shown_and_stays_after_the_commit(
        self, store, open_ledger, writes, content
    ):
        store.commit(lambda tx: self.write_all(tx, writes))
        assert all(store.read_replica(is_shown) for _, is_shown in writes[2:])
        assert store.read_replica(content) == (
            open_ledger().read_replica(content)
        )

    @pytest.mark.parametrize('outer', ['commit', 'dry_run'])
    def test_no_write_stays_after_a_refusal(
        self, store, writes, content, outer
    ):
        before = store.read_replica(content)

        def work(tx):
            self.write_all(tx, writes)
            raise exception.NotEnoughHostsAvailable('no room')

        with pytest.raises(exception.NotEnoughHostsAvailable):
            getattr(store, outer)(work)
        assert store.read_replica(content) == before

    def test_a_dry_run_within_a_commit_shows_the_writes_of_both(
        self, store, writes
    ):
        first, *others = writes

        def work(tx):
            self.write_all(tx, [first])
            store.dry_run(lambda tx: self.write_all(tx, others), within=tx)
            self.write_all(tx, others)

        store.commit(work)
        assert all(store.read_replica(is_shown) for _, is_shown in writes[2:])

    def test_a_retry_begins_with_the_replica_as_committed(
        self, patient, writes, content, pauses
    ):
        errors = [CONFLICT, CONFLICT]
        begun = []

        def work(tx):
            begun.append(content(tx.replica))
            self.write_all(tx, writes)
            if errors:
                raise errors.pop()

        before = patient.read_replica(content)
        patient.commit(work)
        assert begun == [before] * 3
        assert len(pauses) == 2

    def test_a_retry_after_a_refused_commit_begins_likewise(
        self, patient, writes, content, at_commit
    ):
        begun = []

        def work(tx):
            begun.append(content(tx.replica))
            self.write_all(tx, writes)

        before = patient.read_replica(content)
        at_commit += [CONFLICT]
        patient.commit(work)
        assert begun == [before] * 2

    def test_what_is_expected_is_shown_before_it_is_written(
        self, store, nouns, host, known, content
    ):
        before = store.read_replica(content)
        coming = nouns.allocation(known, host, vcpus=1)
        server = nouns.instance(host)

        def work(tx):
            tx.expect([coming, server])
            assert coming.id in tx.replica.indexes.main
            assert server.uuid in tx.replica.instances

        store.commit(work)
        assert store.read_replica(content) == before

    def test_an_allocation_that_cannot_be_counted_is_refused_when_read(
        self, store, nouns, host, content
    ):
        before = store.read_replica(content)
        leases = [nouns.lease() for _ in range(2)]
        most = ext.AMOUNT_LIMIT - 1

        def work(tx):
            for lease in leases:
                tx.add_lease(lease, [nouns.allocation(lease, host, most)])
            with pytest.raises(exception.Uncountable):
                tx.replica.revision  # noqa: B018
            raise exception.Conflict('given up')

        with pytest.raises(exception.Conflict):
            store.commit(work)
        assert store.read_replica(content) == before


def test_reads_in_a_commit_see_its_writes(store, nouns, host):
    lease = nouns.lease()
    allocation = nouns.allocation(lease, host)
    instance = nouns.instance(host)

    def work(tx):
        tx.put_lease(lease)
        tx.put_allocations(allocation.reservation_id, [allocation])
        tx.put_instances([instance])
        return (
            tx.lease(lease.id), tx.leases(), tx.allocations(),
            tx.instance(instance.uuid), tx.hosts(), tx.host(host.id),
        )

    assert store.commit(work) == (
        lease,
        [lease],
        [(allocation, lease.id)],
        instance,
        [host],
        host,
    )


@on_every_engine
def test_revisions_have_no_gaps(store, open_ledger, nouns):
    """Two managers with three threads each; every other commit fails."""
    ledgers = [store, open_ledger()]

    def client(number):
        for turn in range(8):

            def work(tx, fail=turn % 2):
                tx.put_lease(nouns.lease())
                if fail:
                    raise exception.Conflict('no')

            with contextlib.suppress(exception.Conflict):
                ledgers[number % 2].commit(work)

    at_once(*(functools.partial(client, number) for number in range(6)))
    assert len(store.leases()) == 24
    assert store.changes(0)['newest'] == 24
    since = 0
    for _ in range(24):
        page = store.changes(since, limit=1)
        assert page['revision'] == since + 1
        since = page['revision']


@pytest.mark.parametrize('code, created', [(1045, True), (1049, False)])
def test_a_database_that_is_not_there_has_to_be_created(code, created):
    def attempt():
        text = 'Access denied' if created else "Unknown database 'x'"
        raise exc.OperationalError('SELECT', {}, Exception(code, text))

    with pytest.raises(exception.DatabaseAccessDenied) as refused:
        retry.call(attempt, 0)
    assert ('has to be created' in str(refused.value)) is not created


def test_a_missing_driver_is_named_with_its_installation():
    with pytest.raises(ValueError, match=r"pip install '\.\[mysql\]'"):
        engine.create('mysql+nosuch://localhost/x')


def test_pauses_grow_and_vary_but_not_without_end():
    def pauses():
        made = []

        def attempt():
            raise retry.Conflict

        with pytest.raises(exception.Unavailable):
            retry.call(attempt, 50, made.append)
        return made

    first, second = pauses(), pauses()
    assert first != second
    assert all(0 <= p <= retry.MAX_DELAY for p in first)
    assert max(first[:3]) <= 4 * retry.FIRST_DELAY < max(first)


@on_every_engine
def test_a_database_without_a_ledger(store, database):
    with database.begin() as connection:
        connection.execute(sa.text('DELETE FROM ledger'))
    with pytest.raises(exception.Unavailable, match='table has no row'):
        store.commit(lambda tx: None)
