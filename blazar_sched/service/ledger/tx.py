# SPDX-License-Identifier: Apache-2.0
"""The operations that the work of a commit may do on the ledger."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
from typing import Any

import sqlalchemy as sa

from blazar_sched import ext
from blazar_sched.domain import exception
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.notification import Notification
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.service.ledger import access
from blazar_sched.service.ledger import allocation
from blazar_sched.service.ledger import event
from blazar_sched.service.ledger import flavor
from blazar_sched.service.ledger import host
from blazar_sched.service.ledger import idempotency
from blazar_sched.service.ledger import instance
from blazar_sched.service.ledger import lease
from blazar_sched.service.ledger import off_hosts
from blazar_sched.service.ledger import reader
from blazar_sched.service.ledger import reservation
from blazar_sched.service.ledger import trust

# The kinds of records that say what is allocated.
_PROMISES = (record.RESERVATION, record.ALLOCATION)


class CommitFirst(Exception):
    """The work of a commit needs another commit first.

    What takes long is done in several commits in this way, so that no other
    commit waits for the whole. The work finds in `PlacingTx.first` what was
    committed first, and has to come to an end.

    :param work: the work of the other commit
    :param done: tells the work that raises this what the other commit has done
    """

    def __init__(
        self, work: Callable[['PlacingTx'], object], done: Any
    ) -> None:
        super().__init__()
        self.work = work
        self.done = done


class Tx(access.Writes, reader.Reader):
    """An attempt at a commit; reads see the attempt's earlier writes.

    `notifications` holds what is notified of once the attempt is committed.

    :raises RuntimeError: by a write of which replicas need a record
    """

    put_allocations = access.noted(allocation.put)
    put_all_allocations = access.noted(allocation.put_all)
    claim_event = access.write(event.claim)
    renew_claims = access.write(event.renew)
    finish_event = access.write(event.finish)
    put_flavors = access.write(flavor.put)
    add_host = access.noted(host.add)
    delete_host = access.noted(host.delete)
    put_key = access.write(idempotency.put)
    put_sending = access.write(idempotency.put_sending)
    drop_keys = access.write(idempotency.drop)
    put_instances = access.noted(instance.put)
    bind_instances = access.noted(instance.bind_on)
    release_instances = access.noted(instance.release)
    delete_instances = access.noted(instance.delete)
    add_lease = access.noted(lease.add)
    add_leases = access.noted(lease.add_all)
    put_lease = access.noted(lease.put)
    split_lease = access.noted(lease.split)
    cut_allocations = access.noted(lease.cut)
    delete_lease = access.noted(lease.delete)
    delete_leases = access.noted(lease.delete_all)
    set_lease_status = access.write(lease.set_status)
    add_off_hosts = access.write(off_hosts.add)
    put_off_hosts = access.write(off_hosts.put_allocations)
    drop_off_hosts = access.write(off_hosts.drop_allocations)
    put_property = access.write(host.put_property)
    set_leavable_hosts = access.noted(reservation.set_leavable)
    set_reservations_made = access.noted(reservation.set_made)
    set_reservations_status = access.noted(reservation.set_status)
    add_shelved_server = access.write(instance.add_shelved)
    drop_shelved_servers = access.write(instance.drop_shelved)
    discard_trust = access.write(trust.discard)
    forget_trust = access.write(trust.forget)

    def __init__(self, connection: sa.Connection) -> None:
        super().__init__(connection)
        self.notifications: list[Notification] = []

    def put_host(self, new: Host) -> Host:
        """Insert a host without an id, else update it; return the host.

        :returns: the host with its id
        :raises HostExists: if a host to be inserted exists
        :raises HostNotFound: if a host to be updated does not exist
        """
        kept, records = self.run(host.put, new)
        self._note(records)
        return kept

    def _note(self, records: list[record.Record]) -> None:
        if records:
            raise RuntimeError(
                'this write changes the index: use Ledger.commit'
            )


class PlacingTx(Tx):
    """An attempt at a commit that places leases, or has records for replicas.

    `records` holds the records of what has really changed.

    :param show: applies records to the replica for this attempt
    :param first: what was committed before at the request of this work, None
        in a dry run, ahead of which nothing is committed
    """

    def __init__(
        self, connection: sa.Connection, replica: state.Replica,
        show: state.Put, first: Sequence[CommitFirst] | None,
    ) -> None:
        super().__init__(connection)
        self.first = first
        self.records: list[record.Record] = []
        self._replica = replica
        self._show = show
        # The number of records that the replica has.
        self._shown = 0

    @property
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
            self._apply(new)
        return self._replica

    def expect(self, entities: Iterable[Allocation | Instance]) -> None:
        """Show the replica what this attempt writes later, in one statement.

        :raises Uncountable: if the replica could not hold an allocation
        """
        self._apply(list(map(record.encode, entities)))

    def _apply(self, records: Collection[record.Record]) -> None:
        with _refused():
            # Facts are shown whatever the replica can count.
            self._show(records, leave_out=not _has_promise(records))

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
            attempt(self._connection, self.replica, None) as within,
        ):
            yield within
            savepoint.rollback()

    def _note(self, records: list[record.Record]) -> None:
        self.records += records


@contextlib.contextmanager
def attempt(
    connection: sa.Connection, replica: state.Replica,
    first: Sequence[CommitFirst] | None,
) -> Iterator[PlacingTx]:
    """Yield an attempt at a commit; the replica lacks its writes afterwards.

    :param replica: a replica at the newest committed revision
    :param first: as for PlacingTx
    """
    with replica.changing() as show:
        yield PlacingTx(connection, replica, show, first)


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
