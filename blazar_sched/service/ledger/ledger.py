# SPDX-License-Identifier: Apache-2.0
"""The ledger: the authoritative state in SQL, and its only write path.

A commit is one transaction. The transaction locks the ledger's row first, so
every writer waits for the writer before it, in this process or in another.
The commit then brings the local replica to the newest revision, does its
work, and writes the records of its changes under the next revision. The lock
on the ledger's row is what prevents double booking.

The allocations of a commit are checked against the replica before they are
written, because no replica could follow a ledger that holds an allocation
beyond what an index can count. The work of a commit finds its own writes in
the replica. They are taken back before COMMIT, and the replica is brought to
the new revision after COMMIT, so `read_replica` finds no change that may still
be rolled back.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import functools
import gc
import math
import time
from typing import Concatenate
from typing import ParamSpec
from typing import TypeVar
import uuid

from oslo_log import log
import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.domain.group_limit import GroupLimit
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.notification import Notification
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.service import cause
from blazar_sched.service import faults
from blazar_sched.service import metrics as service_metrics
from blazar_sched.service import parts
from blazar_sched.service import sending
from blazar_sched.service import turns
from blazar_sched.service.ledger import change
from blazar_sched.service.ledger import engine
from blazar_sched.service.ledger import idempotency
from blazar_sched.service.ledger import off_hosts
from blazar_sched.service.ledger import reader
from blazar_sched.service.ledger import retention
from blazar_sched.service.ledger import retry
from blazar_sched.service.ledger import snapshot
from blazar_sched.service.ledger import tx
from blazar_sched.service.ledger import writer
from blazar_sched.service.ledger.tx import CommitFirst
from blazar_sched.service.metrics import COMMIT_SECONDS
from blazar_sched.service.metrics import CONFLICTS
from blazar_sched.service.metrics import HELD_SECONDS
from blazar_sched.service.metrics import Metrics

LOG = log.getLogger(__name__)

P = ParamSpec('P')
T = TypeVar('T')

# The number of revisions whose changes are deleted in one transaction.
SLICE = 2000

# The seconds for which a write shows that the database writes.
WRITTEN_FOR = 5.0

# Read in each transaction, as other tables may come while a manager runs.
_TABLES = sa.text('SELECT version_num FROM alembic_version')

# The reservations whose leases are deleted in one commit, for which other
# commits wait; and the rows of another table.
PURGE_SLICE = 50


class Ledger(reader.Reader):
    """A ledger that threads can share, but not processes after a fork.

    :param url: an SQLAlchemy URL of SQLite (a file), MySQL, MariaDB or
        PostgreSQL
    :param max_retries: how often a transaction is run again after a conflict
    :param sleep: called with the seconds to wait before a retry
    :param on_change: called with each revision that this ledger has
        committed, soon after the commit; an exception that the callback
        raises is logged
    :param notify: called with each notification of a commit, likewise
    :param metrics: the metrics that count commits and conflicts
    :param overcommit: whether reservations may overcommit hosts
    :param relocating: whether instances may be relocated
    :param group_limits: the limits on what is reserved on groups of hosts
    :param pool: arguments of SQLAlchemy's pool of connections
    :param running: the names of the parts that run, by default all that are
        installed
    :ivar is_writable: whether the database made the last write
    """

    def __init__(
        self, url: str, max_retries: int = 10,
        sleep: Callable[[float], object] = time.sleep,
        on_change: Callable[[int], object] | None = None,
        notify: Callable[[Notification], object] | None = None,
        metrics: Metrics | None = None, overcommit: bool = True,
        relocating: bool = False, group_limits: Sequence[GroupLimit] = (),
        pool: Mapping[str, int] | None = None,
        running: Sequence[str] | None = None,
    ) -> None:
        self.replica: state.Replica | None = None
        self._url = url
        self._to_read, self._to_write = (
            each.execution_options(**{off_hosts.RUNNING: running})
            for each in engine.create(url, pool=pool)
        )
        self._max_retries = max_retries
        self._sleep = sleep
        self._on_change = on_change
        self._notify = notify
        self._new_replica = functools.partial(
            state.Replica, accounting.LedgerAccounting, overcommit=overcommit,
            relocating=relocating, group_limits=group_limits,
        )
        self._metrics = metrics or service_metrics.new()
        self._running = running
        self._in_commit = tuple(parts.each('models', 'in_commit', running))
        #: Called in each commit that deletes leases, ahead of the deletion,
        #: with the time; not for what was never a lease, or is long over.
        self.on_deletion: list[
            Callable[[tx.Tx, Sequence[Lease], int], object]
        ] = []
        self._writer = str(uuid.uuid4())
        self._commits = 0
        # The migration that the tables were at when they were checked.
        self._tables: str | None = None
        # Whether the last write was made, and its monotonic time.
        self.is_writable = True
        self._written_at = -math.inf
        # Limits the replica and the writer's row to one commit at a time. Work
        # in many commits, one after another, keeps no other thread waiting
        # for more than one of them.
        self._lock = turns.FairLock()

    @functools.cached_property
    def id(self) -> str:
        """Return the UUID that distinguishes this ledger from all others."""
        return self.run(change.newest)[0]

    @property
    def name(self) -> str:
        """Return the URL of the database without the secrets in the URL."""
        url = sa.make_url(self._url).set(query={})
        return url.render_as_string(hide_password=True)

    def upgrade(self) -> tuple[str | None, str | None]:
        """Upgrade the tables to this version, or create the tables.

        :returns: the migration that the tables were at, None if there were
            no tables, and the migration that the tables are at now
        """
        # Alembic is a tenth of all imported code, so its import is deferred.
        from blazar_sched.service.ledger import migrations

        _, patient = engine.create(self._url, patient=True)
        try:
            return self._retry(
                lambda: migrations.upgrade(patient, self._sleep, self._running)
            )
        finally:
            patient.dispose()

    def require_current(self) -> None:
        """Refuse to work on missing tables or on tables of another version.

        :raises NotUpgraded: saying what to do
        """
        from blazar_sched.service.ledger import migrations

        if not self.run(migrations.is_current, self._running):
            raise exception.NotUpgraded(
                f'the tables in the database {self.name} are not of this '
                'version: run `blazar-sched db upgrade`'
            )
        self._tables = self.run(_tables)

    def require_unchanged(self) -> None:
        """Refuse to work on tables that an upgrade has made unusable.

        :raises NotUpgraded: saying what to do
        """
        self.run(self._check_tables)

    def require_writable(self) -> None:
        """Refuse a database that does not write.

        The last write of this ledger tells. A ledger that has written nothing
        for a while writes a row and deletes it again, for which no commit
        waits.

        :raises Unavailable: at the first failure
        """
        idle = time.monotonic() - self._written_at
        if idle > WRITTEN_FOR or not self.is_writable:
            retry.call(self._probe, 0)

    def _probe(self) -> None:
        with self._writing() as connection:
            writer.probe(connection)
            retry.commit(connection)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """Yield a connection for a write, and note whether it was made."""
        try:
            with self._to_write.connect() as connection:
                yield connection
        except Exception as e:
            if retry.is_fault(e):
                self.is_writable = False
            raise
        self.is_writable = True
        self._written_at = time.monotonic()

    def _check_tables(self, connection: sa.Connection) -> None:
        if self._tables is None:
            return
        found = _tables(connection)
        if found == self._tables:
            return
        from blazar_sched.service.ledger import migrations

        if not migrations.can_use(found):
            raise exception.NotUpgraded(
                f'the tables are at migration {found}, and this program knows '
                f'{self._tables}: upgrade blazar-sched on this node'
            )
        self._tables = found

    @contextlib.contextmanager
    def _holding(self, connection: sa.Connection, step: int) -> Iterator[int]:
        """Hold the lock on the ledger's row in a block, and measure it.

        No garbage is collected in the block: a collection may take 40 ms, for
        which all other commits would wait.

        :param step: see change.take
        :returns: yields the revision
        :raises NotUpgraded: as `require_unchanged` does
        :raises Unavailable: if the current call was sent again since
        """
        revision = change.take(connection, step)
        began = time.monotonic()
        gc.disable()
        try:
            self._check_tables(connection)
            self._check_sending(connection)
            yield revision
        finally:
            gc.enable()
            self._metrics.of(HELD_SECONDS, cause.current()).observe(
                time.monotonic() - began
            )

    @staticmethod
    def _check_sending(connection: sa.Connection) -> None:
        sent = sending.current()
        if sent is not None and sent.number < idempotency.last_sending(
            connection, sent.call_id
        ):
            raise exception.Unavailable(
                'the call was sent again, and its caller has an answer'
            )

    def overtake(self, sent: sending.Sending) -> None:
        """Note a sending of a call: no earlier one commits from now on."""
        self.write(lambda tx: tx.put_sending(
            sent.call_id, sent.number, int(time.time())
        ))

    def warm(self) -> None:
        """Load the replica now, so that the first commit need not wait."""
        with self._lock:
            self._retry(self._load)

    def commit(
        self, work: Callable[[tx.PlacingTx], T], dry_run: bool = False
    ) -> T:
        """Return `work(tx)` with all of its writes committed, or with none.

        After a conflict the work is run again from its start, so the work
        must have no effect other than through its `tx`, and must not commit
        by itself.

        The work may raise CommitFirst, and is run again after the other
        commit: see there.

        :param dry_run: answer as `dry_run`, and commit nothing
        :raises Uncountable: if the replicas could not hold the allocations
        :raises Unavailable: if conflicts do not end
        """
        if dry_run:
            return self.dry_run(work)
        first: list[CommitFirst] = []
        while True:
            try:
                return self._commit_whole(work, first)
            except CommitFirst as e:
                self.commit(e.work)
                first.append(e)

    def _commit_whole(
        self, work: Callable[[tx.PlacingTx], T], first: Sequence[CommitFirst]
    ) -> T:
        with self._measured():
            result, revision, told = self._retry(
                lambda: self._commit(work, first)
            )
        if revision is not None:
            _call(self._on_change, revision)
        for each in told:
            _call(self._notify, each)
        return result

    def write(self, work: Callable[[tx.Tx], T]) -> T:
        """Return `work(tx)` as `commit` does, without the replica.

        The write makes no revision, so the work must not change anything
        that replicas hold.

        :raises Unavailable: if conflicts do not end
        """
        with self._measured():
            result, told = self._retry(lambda: self._write(work))
        for each in told:
            _call(self._notify, each)
        return result

    def dry_run(
        self, work: Callable[[tx.PlacingTx], T],
        within: tx.PlacingTx | None = None,
    ) -> T:
        """Return `work(tx)` as a commit would now, and write nothing.

        Other commits wait for a dry run as for a commit, and like a commit
        the work is run again after a conflict.

        :param within: the transaction of a commit or of a dry run, to do this
            dry run in; the transaction goes on as if nothing had been done
        :raises Uncountable: if the replicas could not hold the allocations
        :raises Unavailable: if conflicts do not end
        """
        if within is None:
            return self._retry(lambda: self._dry_run(work))
        with within.undone() as attempt:
            return _try(work, attempt)

    def read_replica(self, query: Callable[[state.Replica], T]) -> T:
        """Return `query(replica)` at the newest revision, without a change.

        The query undoes every trial change that it makes in the replica. The
        commits of this process wait for the query, so the query should take
        only milliseconds.
        """
        return self._retry(lambda: self._read_replica(query))

    def prune(self, keep: int) -> int:
        """Delete the changes of all but the newest `keep` revisions.

        The changes are deleted slice by slice and without a lock on the
        ledger's row, so no commit waits. A replica that is more than `keep`
        revisions behind is loaded anew.

        :returns: the number of deleted revisions
        """
        newest = self.run(change.newest)[1]
        silent = newest - max(keep, writer.REVISIONS_KEPT)
        self._retry(lambda: self._drop_writers(silent))
        gone = 0
        while count := self._retry(lambda: self._prune(newest - keep)):
            gone += count
        return gone

    def count_over(self, before: int) -> dict[str, int]:
        """Return the number of rows of each table that a purge would delete.
        """
        return self.run(retention.count, before, self._running)

    def purge(self, before: int) -> Iterator[int]:
        """Delete what has been over since before a given time.

        The leases are deleted in slices, so that other commits wait for one
        slice at most; what has ended besides is deleted after the leases, in
        slices, too.

        :param before: epoch seconds
        :returns: yields the number of deleted leases after each slice
        :raises Unavailable: if conflicts do not end; leases that were deleted
            by then stay deleted
        """
        def delete(tx_: tx.Tx) -> int:
            old = tx_.ended_leases(before, PURGE_SLICE)
            tx_.delete_leases(old)
            return len(old)

        while gone := self.commit(delete):
            yield gone
        while self.write(lambda tx: tx.run(
            retention.delete_others, before, PURGE_SLICE, self._running
        )):
            pass

    def close(self) -> None:
        """Close all connections; the ledger can be used again afterwards."""
        self._to_read.dispose()

    def _retry(self, attempt: Callable[[], T]) -> T:
        return retry.call(attempt, self._max_retries, self._pause)

    def _pause(self, seconds: float) -> None:
        self._metrics.of(CONFLICTS).inc()
        self._sleep(seconds)

    def run(
        self, query: Callable[Concatenate[sa.Connection, P], T], *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        def attempt() -> T:
            with self._to_read.connect() as connection:
                return query(connection, *args, **kwargs)

        return self._retry(attempt)

    def _commit(
        self, work: Callable[[tx.PlacingTx], T], first: Sequence[CommitFirst]
    ) -> tuple[T, int | None, list[Notification]]:
        """Return the result of the work, the revision if there is one, and
        the notifications.
        """
        with self._lock:
            replica = self._load()
            with (
                self._writing() as connection,
                self._holding(connection, 1) as revision,
            ):
                self._catch_up(connection, replica, revision - 1)
                with tx.attempt(connection, replica, first) as attempt:
                    result = _try(work, attempt)
                change.write(connection, revision, attempt.records)
                self._finish(connection, revision, attempt.notifications)
            if not attempt.records:
                return result, None, attempt.notifications
            self._apply(revision, attempt.records)
        return result, revision, attempt.notifications

    def _write(
        self, work: Callable[[tx.Tx], T]
    ) -> tuple[T, list[Notification]]:
        """Return the result of the work, and the notifications."""
        with (
            self._lock,
            self._writing() as connection,
            self._holding(connection, 0) as revision,
        ):
            attempt = tx.Tx(connection)
            result = work(attempt)
            self._finish(connection, revision, attempt.notifications)
        return result, attempt.notifications

    @contextlib.contextmanager
    def _measured(self) -> Iterator[None]:
        began = time.monotonic()
        yield
        self._metrics.of(COMMIT_SECONDS).observe(time.monotonic() - began)

    def _dry_run(self, work: Callable[[tx.PlacingTx], T]) -> T:
        with self._lock:
            replica = self._load()
            # A connection that is returned uncommitted is rolled back.
            with (
                self._to_write.connect() as connection,
                self._holding(connection, 0) as revision,
            ):
                self._catch_up(connection, replica, revision)
                with tx.attempt(connection, replica, None) as attempt:
                    return _try(work, attempt)

    def _read_replica(self, query: Callable[[state.Replica], T]) -> T:
        with self._lock:
            replica = self._load()
            with self._to_read.connect() as connection:
                newest = change.newest(connection)[1]
                # A Galera node may not have all commits of this process yet.
                if newest > replica.revision:
                    self._catch_up(connection, replica, newest)
            return query(replica)

    def _finish(
        self, connection: sa.Connection, revision: int,
        notifications: Sequence[Notification],
    ) -> None:
        """Commit, and if COMMIT fails, check whether the commit was made."""
        for in_commit in self._in_commit:
            in_commit(connection, notifications, time.time())
        self._commits += 1
        writer.note(connection, self._writer, self._commits, revision)
        faults.point('commit:before')
        try:
            retry.commit(connection)
        except retry.UnknownCommit:
            if not self._was_committed(revision):
                raise
        faults.point('commit:after')

    def _was_committed(self, revision: int) -> bool:
        """Read back whether the last commit of this writer was made.

        :param revision: the ledger's revision as the last commit saw it
        :raises Unavailable: if the database gives no answer
        """
        try:
            return self._retry(lambda: self._read_back(revision))
        except exception.Unavailable as e:
            raise exception.Unavailable(
                'the database connection was lost during the commit; check '
                'whether the change was made before you retry'
            ) from e

    def _read_back(self, revision: int) -> bool:
        with self._writing() as connection:
            # Holding the lock on the row proves that the lost transaction
            # is over. Other Galera nodes do not lock the row. Both
            # transactions write the row, so on Galera this commit is refused
            # if the lost transaction came first, and the lost transaction is
            # refused if it did not.
            now = change.take(connection, 0)
            commits = writer.count(connection, self._writer)
            retry.commit(connection)
        if commits is None and now - revision > writer.REVISIONS_KEPT:
            raise exception.Unavailable('the writer was inactive for too long')
        return commits == self._commits

    def _load(self) -> state.Replica:
        """Return the replica, loaded before a commit as loading is slow."""
        if self.replica is None:
            self.replica = snapshot.load(self, self._new_replica)
        return self.replica

    def _catch_up(
        self, connection: sa.Connection, replica: state.Replica, revision: int
    ) -> None:
        """Bring `replica` to `revision`, using only committed changes."""
        if replica.revision == revision:
            return
        records = change.between(connection, replica.revision, revision)
        if records is None:
            self.replica = None
            raise retry.Conflict('the changes for the replica are pruned')
        replica.apply(revision, records, leave_out=True)

    def _apply(self, revision: int, records: list[record.Record]) -> None:
        """Apply the records of this ledger's last commit to the replica.

        The next commit would apply the records too, but other commits would
        wait for it.
        """
        try:
            if self.replica is not None:
                self.replica.apply(revision, records, leave_out=True)
        except Exception:
            LOG.exception('Could not update the replica, dropping the replica')
            self.replica = None

    def _prune(self, last: int) -> int:
        """Delete a slice of the revisions up to `last`; return its size."""
        with self._writing() as connection:
            gone = change.prune(connection, last, SLICE)
            retry.commit(connection)
        return gone

    def _drop_writers(self, before: int) -> None:
        with self._writing() as connection:
            writer.drop(connection, before, self._writer)
            retry.commit(connection)


def _call(announce: Callable[[T], object] | None, what: T) -> None:
    """Announce what was committed; an error does not undo the commit."""
    try:
        if announce is not None:
            announce(what)
    except Exception:
        LOG.exception('Could not announce %s', what)


def _tables(connection: sa.Connection) -> str | None:
    """Return the migration that the tables are at."""
    found: str | None = connection.scalar(_TABLES)
    return found


def _try(work: Callable[[tx.PlacingTx], T], attempt: tx.PlacingTx) -> T:
    """Return `work(attempt)`, if replicas could hold what it has written."""
    result = work(attempt)
    attempt.require_countable()
    return result
