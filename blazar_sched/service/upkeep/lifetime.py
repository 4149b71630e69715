# SPDX-License-Identifier: Apache-2.0
"""Lifetime leases: the leases of servers that declare their own times.

Each synchronization with Nova's servers creates these leases, in the commit
that writes the instance records: the newest replica says in that commit
whether the lease exists, so that several managers that query Nova at the same
time create only one lease. Data that may have changed in Nova in the meantime
is queried again before anything is done to a server.
"""

from collections.abc import Collection
from collections.abc import Iterable
import contextlib
import dataclasses
import functools
import uuid

from oslo_log import log

from blazar_sched.domain import event
from blazar_sched.domain import exception
from blazar_sched.domain import flavor
from blazar_sched.domain import pci_alias
from blazar_sched.domain import states
from blazar_sched.domain.demand import INSTANCE_LIFETIME
from blazar_sched.domain.demand import Lifetime
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.pci_alias import Aliases
from blazar_sched.domain.reservation import lifetime_id
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window
from blazar_sched.replica import record
from blazar_sched.replica import server_reservation
from blazar_sched.replica import state
from blazar_sched.service.booking import draft
from blazar_sched.service.booking.booking import Bookings
from blazar_sched.service.booking.booking import Removed
from blazar_sched.service.bus import notifier
from blazar_sched.service.bus.notifier import LEASE_CREATE
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.clients.nova import SOFT_DELETED
from blazar_sched.service.ledger.tx import PlacingTx

LOG = log.getLogger(__name__)

# The most leases made in one commit, for which all other commits wait.
MAX_LEASES = 500
# The statuses of a lease whose end is in progress or done.
_ENDING = (
    states.LEASE_TERMINATING, states.LEASE_TERMINATED, states.LEASE_DELETING
)


@dataclasses.dataclass(frozen=True, slots=True)
class Written:
    """The changes that a commit made to servers' leases.

    See `Lifetimes.follow`.

    :param made: the new leases
    :param gone: the leases that were deleted, each with what remains to do
    :param refused: the leases that were not made, each with the reason: the
        lease found no room, or exceeds a limit of the project
    :param early: the servers that are on a host ahead of their start: (start,
        server)
    :param over: the uuids of the servers that have outlived their leases
    """

    made: list[Lease] = dataclasses.field(default_factory=list)
    gone: list[tuple[Lease, Removed]] = dataclasses.field(default_factory=list)
    refused: list[tuple[Lease, str]] = dataclasses.field(default_factory=list)
    early: list[tuple[int, Server]] = dataclasses.field(default_factory=list)
    over: set[str] = dataclasses.field(default_factory=set)


class Lifetimes:
    """The leases of servers' lifetimes.

    :param aliases: the PCI aliases that flavors may name
    """

    def __init__(
        self, bookings: Bookings, nova: Nova, aliases: Aliases
    ) -> None:
        self._conf = bookings.conf.manager
        self._bookings = bookings
        self._ledger = bookings.ledger
        self._nova = nova
        self._aliases = aliases

    def write(
        self, tx: PlacingTx, servers: Iterable[Server], now: int
    ) -> Written:
        """Make the leases of servers, or bring the leases up to date.

        This is done before the instance records of the servers are written:
        from then on the instance records count, in place of allocations.

        :param servers: the servers that exist
        """
        written = Written()
        tx.replica.advance(now)
        for server in servers:
            id_ = lifetime_id(server.uuid)
            known = tx.replica.reservations.get(id_)
            if known is not None:
                _bring_up_to_date(tx, server, known, now, written)
            elif _needs_lease(tx.replica, server, now):
                named = server.reservation_id
                past = tx.reservation_records([id_, named], over=True)
                if id_ in past:
                    written.over.add(server.uuid)
                elif len(written.made) < MAX_LEASES and (
                    named is None or named in past
                ):
                    lease = self._new(server, now)
                    self._make(tx, server, lease, now, written)
        return written

    def forget(self, tx: PlacingTx, uuids: Collection[str]) -> Written:
        """Delete the leases of servers that are gone.

        The leases are deleted without an end: nothing is left to be ended. A
        lease that is being ended is left to its end event, and a lease that is
        over is kept as a record.
        """
        written = Written()
        for instance_uuid in set(uuids):
            id_ = lifetime_id(instance_uuid)
            known = tx.replica.reservations.get(id_)
            if known is None:
                continue
            lease = tx.lease(known.lease_id)
            if lease.status not in _ENDING and not lease.in_progress:
                written.gone.append((lease, self._bookings.remove(tx, lease)))
        return written

    def missing(self, listed: Iterable[str], now: int) -> list[str]:
        """Return the uuids of servers with a lease that are not listed.

        The servers may be gone: a shelved server has no other record in the
        ledger.
        """
        replica = self._ledger.replica
        if replica is None:
            return []
        seen = set(map(lifetime_id, listed))
        unseen = [
            reservation
            for id_, reservation in tuple(replica.reservations.items())
            if reservation.resource_type == INSTANCE_LIFETIME
            and reservation.end > now and id_ not in seen
        ]
        uuids = []
        for reservation in unseen:
            with contextlib.suppress(exception.LeaseNotFound):
                lease = self._ledger.lease(reservation.lease_id)
                uuids.append(_instance_id(lease))
        return uuids

    def follow(self, written: Written) -> None:
        """Notify of the written changes, and act on them in Nova.

        This is done after the commit. The next look at the servers repeats an
        action that fails.

        :raises Unavailable: if Nova refuses some actions now; the other
            actions are done first
        """
        for lease in written.made:
            LOG.info(
                'Created lease %s of server %s', lease.id, _instance_id(lease)
            )
        if written.made:
            self._bookings.runner.wake()
        for lease, removed in written.gone:
            LOG.info(
                'Deleted lease %s of server %s', lease.id, _instance_id(lease)
            )
            removed()
        steps = [
            *(functools.partial(self._shelve, *e) for e in written.early),
            *(
                functools.partial(self._delete_refused, *r)
                for r in written.refused
            ),
        ]
        failures = []
        for step in steps:
            try:
                step()
            except exception.Unavailable as e:
                # A server that Nova refuses each time must not keep the others
                # waiting.
                failures.append(e)
            except Exception:
                LOG.exception('Could not act on the lifetime of a server')
        if failures:
            raise failures[0]

    def _shelve(self, start: int, server: Server) -> None:
        """Shelve a server ahead of its start, unless the start has come."""
        if self._bookings.clock() < start:
            self._nova.shelve_servers([server])

    def _delete_refused(self, lease: Lease, reason: str) -> None:
        """Delete a server if its lease is still refused."""
        server = self._nova.server(_instance_id(lease))
        if server is None:
            return
        again = self._ledger.commit(
            lambda tx: self.write(tx, [server], self._bookings.now())
        )
        if not again.refused:
            return self.follow(again)
        LOG.warning(
            'Deleting server %s of project %s: its lease from %d to %d was '
            'refused: %s',
            server.uuid, server.project_id, lease.start, lease.end, reason,
        )
        self._ledger.write(lambda tx: notifier.lease(
            tx, f'{LEASE_CREATE}{notifier.ERROR}', lease
        ))
        self._nova.delete_servers([server])

    def _new(self, server: Server, now: int) -> Lease:
        """Return the lease of a server, as it is if the lease finds room."""
        start = min(server.created, now) if server.start is None else (
            server.start
        )
        window = Window(start, server.end)
        started = start <= now
        id_ = str(uuid.uuid4())
        events = draft.plan(self._conf, id_, window, draft.DEFAULT, now)
        return Lease(
            id=id_, name=server.lease_name or f'lease-{server.uuid[:6]}',
            project_id=server.project_id, user_id=server.user_id,
            start=window.start, end=window.end,
            status=states.LEASE_ACTIVE if started else states.LEASE_PENDING,
            reservations=(self._reservation(id_, server, started, now),),
            events=event.started(events) if started else events,
            created_at=now,
        )

    def _reservation(
        self, lease_id: str, server: Server, started: bool, now: int
    ) -> Reservation:
        return Reservation(
            id=lifetime_id(server.uuid), lease_id=lease_id,
            status=(
                states.RESERVATION_ACTIVE
                if started
                else states.RESERVATION_PENDING
            ),
            demand=self._demand(server, started), created_at=now,
        )

    def _demand(self, server: Server, started: bool) -> Lifetime:
        demand = Lifetime(
            server.amounts, instance_id=server.uuid,
            on_end=server.on_end or self._conf.lifetime_on_end,
        )
        return demand if started else self._with_conditions(demand, server)

    def _with_conditions(self, demand: Lifetime, server: Server) -> Lifetime:
        """Return the demand with what the flavor requires of a host."""
        extra_specs = server.features.extra_specs if server.features else {}
        groups = flavor.own_groups(
            server.amounts, pci_alias.expanded(extra_specs, self._aliases)
        )
        if groups is not None:
            return dataclasses.replace(demand, groups=groups)
        # A requirement that is too large to be read keeps no server out.
        with contextlib.suppress(exception.InvalidInput):
            required = flavor.requirement(extra_specs)
            return dataclasses.replace(demand, resource_properties=required)
        return demand

    def _make(
        self, tx: PlacingTx, server: Server, lease: Lease, now: int,
        written: Written,
    ) -> None:
        """Write a new lease, placed if the lease starts later."""
        if lease.status == states.LEASE_PENDING:
            try:
                self._bookings.add(tx, lease, now)
            except exception.BlazarSchedError as e:
                if isinstance(e, exception.Unavailable):
                    raise
                written.refused.append((lease, str(e)))
                return
            written.early.append((lease.start, server))
        else:
            self._bookings.writer.add_started(tx, lease)
        written.made.append(lease)


def _needs_lease(replica: state.Replica, server: Server, now: int) -> bool:
    """Tell whether a server without a lease may need a lease.

    The server is on a host, its end has not come, and the server draws on no
    reservation. The reservation that the server names, if any, must be over. A
    server that is shelved had a lease, which was deleted.
    """
    if server.node is None or server.status == SOFT_DELETED:
        return False
    if server.reservation_id is not None and (
        server_reservation.claim(replica, server, None, now) is not None
    ):
        return False
    is_later = server.start is not None and server.start > now
    return now < server.end and (is_later or server.end != FOREVER)


def _bring_up_to_date(
    tx: PlacingTx, server: Server, known: record.Reservation, now: int,
    written: Written,
) -> None:
    if server.node is None:
        return
    if now < known.start:
        written.early.append((known.start, server))
    elif tx.replica.indexes.allocations(known.id) and (
        tx.lease(known.lease_id).status == states.LEASE_ACTIVE
    ):
        # The server is back, and counts by its own instance record from its
        # start on.
        tx.put_allocations(known.id, (), known.start)


def _instance_id(lease: Lease) -> str:
    [reservation] = lease.reservations
    return reservation.demand.of_kind(Lifetime).instance_id
