# SPDX-License-Identifier: Apache-2.0
"""The operations that the work of a commit may do on the ledger."""

import builtins
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib

import sqlalchemy as sa

from blazar_sched import ext
from blazar_sched.domain import exception
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.notification import Notification
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.service.ledger import allocation
from blazar_sched.service.ledger import event
from blazar_sched.service.ledger import flavor
from blazar_sched.service.ledger import host
from blazar_sched.service.ledger import idempotency
from blazar_sched.service.ledger import instance
from blazar_sched.service.ledger import lease
from blazar_sched.service.ledger import off_hosts
from blazar_sched.service.ledger import property
from blazar_sched.service.ledger import reader
from blazar_sched.service.ledger import reservation
from blazar_sched.service.ledger import shelved_server
from blazar_sched.service.ledger import trust

# The kinds of records that say what is allocated.
_PROMISES = (record.RESERVATION, record.ALLOCATION)


class Tx(
    allocation.Writes, event.Writes, flavor.Writes, host.Writes,
    idempotency.Writes, instance.Writes, lease.Writes, off_hosts.Writes,
    property.Writes, reservation.Writes, shelved_server.Writes, trust.Writes,
    reader.Reader,
):
    """An attempt at a commit; reads see the attempt's earlier writes.

    `notifications` holds what is notified of once the attempt is committed.

    :raises RuntimeError: by a write of which replicas need a record
    """

    def __init__(self, connection: sa.Connection) -> None:
        super().__init__(connection)
        self.notifications: list[Notification] = []

    def _note(self, records: list[record.Record]) -> None:
        if records:
            raise RuntimeError(
                'this write changes the index: use Ledger.commit'
            )


class PlacingTx(Tx):
    """An attempt at a commit that places leases, or has records for replicas.

    `records` holds the records of what has really changed.

    :param show: applies records to the replica for this attempt
    """

    def __init__(
        self, connection: sa.Connection, replica: state.Replica,
        show: state.Put,
    ) -> None:
        super().__init__(connection)
        self.records: list[record.Record] = []
        self._replica = replica
        self._show = show
        # The number of records that the replica has.
        self._shown = 0

    @builtins.property
    def replica(self) -> state.Replica:
        """The replica at the newest committed revision, with these writes.

        The replica gets the writes of this attempt when this property is
        read, so that an attempt that only writes does not wait for the
        indexes.

        :raises Uncountable: if the replica could not hold an allocation
        """
        new = self.records[self._shown:]
        if new:
            self._shown = len(self.records)
            with _refused():
                # Facts are shown whatever the replica can count.
                self._show(new, leave_out=not _has_promise(new))
        return self._replica

    def expect(self, entities: Iterable[Allocation | Instance]) -> None:
        """Show the replica what this attempt writes later, in one go.

        :raises Uncountable: if the replica could not hold an allocation
        """
        with _refused():
            self._show(map(record.encode, entities))

    def require_countable(self) -> None:
        """Refuse allocations that the replica could not hold.

        Records of hosts and instances state facts, and are written whatever
        the replica can count: a replica leaves out the hosts and instances
        that it cannot count, and closes the host.

        :raises Uncountable: if the replica refuses the records
        """
        if _has_promise(self.records):
            with _refused():
                self._replica.check(self.records)

    @contextlib.contextmanager
    def undone(self) -> Iterator['PlacingTx']:
        """Yield a transaction within this one, whose writes are undone."""
        with (
            self._connection.begin_nested() as savepoint,
            attempt(self._connection, self.replica) as within,
        ):
            yield within
            savepoint.rollback()

    def _note(self, records: list[record.Record]) -> None:
        self.records += records


@contextlib.contextmanager
def attempt(
    connection: sa.Connection, replica: state.Replica
) -> Iterator[PlacingTx]:
    """Yield an attempt at a commit; the replica lacks its writes afterwards.

    :param replica: a replica at the newest committed revision
    """
    with replica.changing() as show:
        yield PlacingTx(connection, replica, show)


def _has_promise(records: Iterable[record.Record]) -> bool:
    """Tell whether any of the records says what is allocated."""
    return any(
        kind in _PROMISES and data is not None for kind, _, data in records
    )


@contextlib.contextmanager
def _refused() -> Iterator[None]:
    """Refuse allocations that the indexes refuse in a block.

    :raises Uncountable: in place of the error of an index
    """
    try:
        yield
    except ext.TimelineError as e:
        raise exception.Uncountable(
            f'the allocations exceed what the index can count: {e}'
        ) from e
