# SPDX-License-Identifier: Apache-2.0
"""The operations that the work of a commit may do on the ledger."""

from collections.abc import Iterator
import contextlib

import sqlalchemy as sa

from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.service.ledger import allocation
from blazar_sched.service.ledger import event
from blazar_sched.service.ledger import flavor
from blazar_sched.service.ledger import floating_ip
from blazar_sched.service.ledger import host
from blazar_sched.service.ledger import idempotency
from blazar_sched.service.ledger import instance
from blazar_sched.service.ledger import lease
from blazar_sched.service.ledger import lease_request
from blazar_sched.service.ledger import maintenance
from blazar_sched.service.ledger import property
from blazar_sched.service.ledger import reader
from blazar_sched.service.ledger import reservation
from blazar_sched.service.ledger import retention
from blazar_sched.service.ledger import series
from blazar_sched.service.ledger import shelved_server
from blazar_sched.service.ledger import threshold
from blazar_sched.service.ledger import trust


class Tx(
    allocation.Writes,
    event.Writes,
    flavor.Writes,
    floating_ip.Writes,
    host.Writes,
    idempotency.Writes,
    instance.Writes,
    lease.Writes,
    lease_request.Writes,
    maintenance.Writes,
    property.Writes,
    reservation.Writes,
    retention.Writes,
    series.Writes,
    shelved_server.Writes,
    threshold.Writes,
    trust.Writes,
    reader.Reader,
):
    """An attempt at a commit; reads see the attempt's earlier writes.

    :raises RuntimeError: by a write of which replicas need a record
    """

    def _note(self, records: list[record.Record]) -> None:
        if records:
            raise RuntimeError(
                'this write changes the index: use Ledger.commit'
            )


class PlacingTx(Tx):
    """An attempt at a commit that places leases, or has records for replicas.

    `records` holds the records of what has really changed. `replica` is at
    the newest committed revision, so the replica lacks the writes of this
    transaction. Work that makes trial changes to the replica's indexes undoes
    them, also when the work fails.
    """

    def __init__(
        self, connection: sa.Connection, replica: state.Replica
    ) -> None:
        super().__init__(connection)
        self.replica = replica
        self.records: list[record.Record] = []

    @contextlib.contextmanager
    def undone(self) -> Iterator['PlacingTx']:
        """Yield a transaction within this one, whose writes are undone."""
        with self._connection.begin_nested() as savepoint:
            yield PlacingTx(self._connection, self.replica)
            savepoint.rollback()

    def _note(self, records: list[record.Record]) -> None:
        self.records += records
