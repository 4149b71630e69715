# SPDX-License-Identifier: Apache-2.0
"""Lifetime leases: a server that declares its time has a lease of its own.

Whoever looks at Nova's servers makes it, in the commit of what is seen: the
newest replica says there whether the lease is known, so that however many
managers look at once make one. What may have changed in Nova since is asked
for again before anything is done to a server.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
import contextlib
import dataclasses
import functools
import itertools
import uuid

from oslo_config import cfg
from oslo_log import log

from blazar_sched.domain import event
from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import INSTANCE_LIFETIME
from blazar_sched.domain.reservation import lifetime_id
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window
from blazar_sched.placing import lease_placing
from blazar_sched.placing import trial as tentative
from blazar_sched.replica import drawing
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.service.bus import notifier as notifications
from blazar_sched.service.bus.notifier import LEASE_CREATE
from blazar_sched.service.bus.notifier import LEASE_DELETE
from blazar_sched.service.bus.notifier import Notifier
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.clients.nova import SOFT_DELETED
from blazar_sched.service.enforcement import Enforcement
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.manager import draft
from blazar_sched.service.manager import placing_options

LOG = log.getLogger(__name__)

# So many leases are made in one commit, for which all others wait.
MOST = 500
# Its end is being done, or is.
_ENDING = (
    states.LEASE_TERMINATING, states.LEASE_TERMINATED, states.LEASE_DELETING
)


@dataclasses.dataclass(frozen=True, slots=True)
class Written:
    """What a commit has made of servers' leases: see `Lifetimes.follow`.

    :param made: new leases
    :param gone: leases that are no more
    :param refused: leases that are not there, each with the reason: they
        found no room, or are more than the project may have
    :param early: what is on a host ahead of its start: (start, server)
    """

    made: list[Lease] = dataclasses.field(default_factory=list)
    gone: list[Lease] = dataclasses.field(default_factory=list)
    refused: list[tuple[Lease, str]] = dataclasses.field(
        default_factory=list
    )
    early: list[tuple[int, Server]] = dataclasses.field(
        default_factory=list
    )


class Lifetimes:
    """The leases of servers' lifetimes.

    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        ledger: Ledger,
        nova: Nova,
        notifier: Notifier,
        enforcement: Enforcement,
        clock: Callable[[], float],
    ) -> None:
        self._conf = conf.manager
        self._enforcement = enforcement
        self._ledger = ledger
        self._nova = nova
        self._notifier = notifier
        self._clock = clock

    def write(
        self, tx: PlacingTx, servers: Iterable[Server], now: int
    ) -> Written:
        """Make the leases of servers, or bring them up to date.

        Before the servers' instance records are written: from then on these
        count, in the place of allocations.

        :param servers: those that are there
        """
        written = Written()
        tx.replica.advance(now)
        with contextlib.ExitStack() as trial:
            for server in servers:
                id_ = lifetime_id(server.uuid)
                known = tx.replica.reservations.get(id_)
                if known is not None:
                    _bring_up_to_date(tx, server, known, now, written)
                elif len(written.made) < MOST and _needs_lease(
                    tx.replica, server, now
                ):
                    lease = self._new(server, now)
                    self._make(tx, server, lease, now, trial, written)
        return written

    def forget(self, tx: PlacingTx, uuids: Collection[str]) -> Written:
        """Delete the leases of servers that are gone.

        Without an end: there is nothing left to be ended. What is being
        ended is left to that, and what is over stays to be looked at.
        """
        written = Written()
        for instance_uuid in set(uuids):
            id_ = lifetime_id(instance_uuid)
            known = tx.replica.reservations.get(id_)
            if known is None:
                continue
            lease = tx.lease(known.lease_id)
            if lease.status not in _ENDING and not lease.in_progress:
                tx.delete_lease(lease.id)
                written.gone.append(lease)
        return written

    def missing(self, listed: Iterable[str], now: int) -> list[str]:
        """Return the uuids of servers with a lease that are not listed.

        They may be gone: a shelved one has no other trace here.
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
        """Tell of what was written, and do in Nova what it calls for.

        After the commit. What fails is done by the next look.

        :raises Unavailable: if Nova does not do some of it now; the rest is
            done before
        """
        for lease in written.made:
            LOG.info('Lease %s is that of server %s', lease.id,
                     _instance_id(lease))
            self._notifier.lease(LEASE_CREATE, lease)
        for lease in written.gone:
            LOG.info('Lease %s is gone with server %s', lease.id,
                     _instance_id(lease))
            self._notifier.lease(LEASE_DELETE, lease)
        steps = [
            *(functools.partial(self._shelve, *e) for e in written.early),
            *(functools.partial(self._turn_away, *r) for r in written.refused),
        ]
        failures = []
        for step in steps:
            try:
                step()
            except exception.Unavailable as e:
                # One that Nova refuses each time keeps no other from it.
                failures.append(e)
        if failures:
            raise failures[0]

    def _shelve(self, start: int, server: Server) -> None:
        """Shelve a server ahead of its start, if that has not come since."""
        if self._clock() < start:
            self._nova.shelve_servers([server])

    def _turn_away(self, lease: Lease, reason: str) -> None:
        """Delete a server whose lease is refused, if that is still so."""
        server = self._nova.server(_instance_id(lease))
        if server is None:
            return
        again = self._ledger.commit(
            lambda tx: self.write(tx, [server], int(self._clock()))
        )
        if not again.refused:
            return self.follow(again)
        LOG.warning(
            'Server %s of project %s is deleted, its lease from %d to %d is '
            'refused: %s',
            server.uuid, server.project_id, lease.start, lease.end, reason,
        )
        self._notifier.lease(
            f'{LEASE_CREATE}{notifications.ERROR}', lease
        )
        self._nova.delete_servers([server])

    def _new(self, server: Server, now: int) -> Lease:
        """Return a server's lease, as it is if it finds room."""
        start = min(server.created, now) if server.start is None else (
            server.start
        )
        window = Window(start, server.end)
        started = start <= now
        id_ = str(uuid.uuid4())
        events = draft.plan(self._conf, id_, window, draft.DEFAULT, now)
        return Lease(
            id=id_,
            name=server.lease_name or f'lease-{server.uuid[:6]}',
            project_id=server.project_id,
            user_id=server.user_id,
            start=window.start,
            end=window.end,
            status=states.LEASE_ACTIVE if started else states.LEASE_PENDING,
            reservations=(self._reservation(id_, server, started, now),),
            events=event.started(events) if started else events,
            created_at=now,
        )

    def _reservation(
        self, lease_id: str, server: Server, started: bool, now: int
    ) -> Reservation:
        return Reservation(
            id=lifetime_id(server.uuid),
            lease_id=lease_id,
            resource_type=INSTANCE_LIFETIME,
            status=(
                states.RESERVATION_ACTIVE
                if started
                else states.RESERVATION_PENDING
            ),
            parameters={
                'instance_id': server.uuid,
                'resources': dict(server.amounts),
                'amount': 1,
                'affinity': None,
                'resource_properties': '',
                'on_end': server.on_end or self._conf.lifetime_on_end,
            },
            created_at=now,
        )

    def _make(
        self,
        tx: PlacingTx,
        server: Server,
        lease: Lease,
        now: int,
        trial: contextlib.ExitStack,
        written: Written,
    ) -> None:
        """Write a new lease, with a place if it starts later."""
        allocations: list[Allocation] = []
        if lease.status == states.LEASE_PENDING:
            try:
                self._enforcement.check_limits(tx, lease, now)
                placed = lease_placing.place(
                    tx.replica,
                    lease,
                    lease.window,
                    options=placing_options.read(self._conf),
                )
            except exception.BlazarSchedError as e:
                if isinstance(e, exception.Unavailable):
                    raise
                written.refused.append((lease, str(e)))
                return
            allocations = list(itertools.chain(*placed.values()))
            # The next one of this commit has to go elsewhere.
            trial.enter_context(
                tentative.having(tx.replica, allocations, fitting=True)
            )
            written.early.append((lease.start, server))
        tx.add_lease(lease, allocations)
        written.made.append(lease)


def _needs_lease(
    replica: state.Replica, server: Server, now: int
) -> bool:
    """Tell whether a server that has no lease is to have one.

    It is there, its end has not come, and the reservation that it names, if
    any, is known to be over. One that is shelved had a lease, which was
    deleted.
    """
    if server.node is None or server.status == SOFT_DELETED:
        return False
    if server.reservation_id is not None and (
        server.reservation_id not in replica.reservations
        or drawing.claim(replica, server, None, now) is not None
    ):
        return False
    is_later = server.start is not None and server.start > now
    return now < server.end and (is_later or server.end != FOREVER)


def _bring_up_to_date(
    tx: PlacingTx,
    server: Server,
    known: record.Reservation,
    now: int,
    written: Written,
) -> None:
    if server.node is None:
        return
    if now < known.start:
        written.early.append((known.start, server))
    elif tx.replica.held(known.id) and (
        tx.lease(known.lease_id).status == states.LEASE_ACTIVE
    ):
        # It has come, and counts for itself.
        tx.put_allocations(known.id, ())


def _instance_id(lease: Lease) -> str:
    [reservation] = lease.reservations
    instance_id: str = reservation.parameters['instance_id']
    return instance_id
