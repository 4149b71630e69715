# SPDX-License-Identifier: Apache-2.0
"""The ledger: the truth in SQL, and the one way to change it.

A commit is one transaction. It takes the ledger's row first, so every writer
waits for the one before it, in this process or in another; then it brings the
local replica to the newest revision, works, and writes the records of what it
changed under the next revision. That row is why nothing is booked twice.
"""

from collections.abc import Callable
import functools
import threading
import time
from typing import Concatenate
from typing import ParamSpec
from typing import TypeVar

import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.replica import state
from blazar_sched.service.ledger import change
from blazar_sched.service.ledger import check
from blazar_sched.service.ledger import engine
from blazar_sched.service.ledger import migrations
from blazar_sched.service.ledger import reader
from blazar_sched.service.ledger import retry
from blazar_sched.service.ledger import snapshot
from blazar_sched.service.ledger import tx

P = ParamSpec('P')
T = TypeVar('T')


class Ledger(reader.Reader):
    """A ledger; safe to share between threads, not across a fork.

    :param url: an SQLAlchemy URL of SQLite (a file), MySQL, MariaDB or
        PostgreSQL
    :param max_retries: how often a transaction that met a conflict is run
        again
    :param sleep: called with the seconds to wait before that
    """

    def __init__(
        self,
        url: str,
        max_retries: int = 10,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.replica: state.Replica | None = None
        self._to_read, self._to_write = engine.create(url)
        self._max_retries = max_retries
        self._sleep = sleep
        # Keeps the replica to one commit at a time.
        self._lock = threading.Lock()

    @functools.cached_property
    def id(self) -> str:
        """The uuid that tells this ledger from every other one."""
        return self._read(change.newest)[0]

    def upgrade(self) -> None:
        """Bring the tables to this version, or make them."""
        self._retry(lambda: migrations.upgrade(self._to_write))

    def require_current(self) -> None:
        """Refuse to work on another version's tables, or on none.

        :raises Unavailable: saying what to do
        """
        if not self._read(migrations.is_current):
            raise exception.Unavailable(
                "the database's tables are not those of this version: run "
                '`blazar-sched db upgrade`'
            )

    def check(self) -> list[str]:
        """Look at every row for what must never be; return one line each."""
        return self._read(check.check)

    def commit(self, work: Callable[[tx.Tx], T], placing: bool = True) -> T:
        """Return `work(tx)`, all that it wrote being committed, or nothing.

        After a conflict the work is run again from its start, so it must
        have no other effect than through its `tx`, nor commit by itself.

        :param placing: whether it needs the replica, or changes anything
            that replicas know of
        :raises Unavailable: if conflicts do not end
        """
        return self._retry(lambda: self._commit(work, placing))

    def close(self) -> None:
        """Give up all connections; the ledger can be used again."""
        self._to_read.dispose()

    def _retry(self, attempt: Callable[[], T]) -> T:
        return retry.call(attempt, self._max_retries, self._sleep)

    def _read(
        self,
        query: Callable[Concatenate[sa.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        def attempt() -> T:
            with self._to_read.connect() as connection:
                return query(connection, *args, **kwargs)

        return self._retry(attempt)

    def _commit(self, work: Callable[[tx.Tx], T], placing: bool) -> T:
        with self._lock:
            replica = self._load() if placing else None
            with self._to_write.connect() as connection:
                revision = change.take(connection, 0 if replica is None else 1)
                if replica is not None:
                    self._catch_up(connection, replica, revision - 1)
                attempt = tx.Tx(connection, replica)
                result = work(attempt)
                if replica is not None:
                    change.write(connection, revision, attempt.records)
                retry.commit(connection)
                return result

    def _load(self) -> state.Replica:
        """Return the replica; a new one takes a while, so not in a commit."""
        if self.replica is None:
            with self._to_read.connect() as connection:
                self.replica = snapshot.load(connection)
        return self.replica

    def _catch_up(
        self, connection: sa.Connection, replica: state.Replica, revision: int
    ) -> None:
        """Bring `replica` to `revision`, by committed changes alone."""
        records = change.between(connection, replica.revision, revision)
        if records is None:
            self.replica = None
            raise retry.Conflict('changes are gone: the replica starts anew')
        replica.apply(revision, records)
