# SPDX-License-Identifier: Apache-2.0
"""What the work of a commit may do to the ledger."""

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
from blazar_sched.service.ledger import property
from blazar_sched.service.ledger import reader
from blazar_sched.service.ledger import reservation
from blazar_sched.service.ledger import shelved_server
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
    property.Writes,
    reservation.Writes,
    shelved_server.Writes,
    trust.Writes,
    reader.Reader,
):
    """One try of a commit; reads see what was written before.

    :raises RuntimeError: by a write that replicas must learn of
    """

    def _note(self, records: list[record.Record]) -> None:
        if records:
            raise RuntimeError(
                'replicas must learn of this: use Ledger.commit'
            )


class PlacingTx(Tx):
    """One try of a commit that places, or that replicas have to learn of.

    `records` are of what was really changed. `replica` is at the newest
    committed revision, so it lacks what this transaction wrote; work that
    tries something out on its indexes undoes it, also when it fails.
    """

    def __init__(
        self, connection: sa.Connection, replica: state.Replica
    ) -> None:
        super().__init__(connection)
        self.replica = replica
        self.records: list[record.Record] = []

    def _note(self, records: list[record.Record]) -> None:
        self.records += records
