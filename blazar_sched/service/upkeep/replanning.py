# SPDX-License-Identifier: Apache-2.0
"""Replanning: leases and the hosts that can no longer hold all of them.

A host holds too much if it shrinks, or if an instance is on it that no filter
let in. A host does not suit a lease any more if it no longer meets the
requirement of a reservation, or if its devices become unlike. Leases that have
not started leave such hosts, as far as other hosts have room. A lease that has
started stays, because its instances are there: it is degraded while the host
has less than its leases hold, and reported to be at risk while the host does
not suit it, or will be closed before its end. Each lease is changed in a
commit of its own, in which everything is read again.
"""

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import functools

from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import Host
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.window import Window
from blazar_sched.placing import overload
from blazar_sched.service import loop
from blazar_sched.service import slices
from blazar_sched.service.bus import notifier
from blazar_sched.service.bus.notifier import LEASE_AT_RISK
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.metrics import Metrics
from blazar_sched.service.upkeep import healing

LOG = log.getLogger(__name__)

_NOT_STARTED = (states.LEASE_CREATING, states.LEASE_PENDING)

# The number of hosts whose leases are read at once, and the number of hosts
# that were never compared with their leases before and are compared in one
# pass: after the start of a manager, all hosts are such hosts.
_HOSTS_AT_ONCE = 100
MAX_NEW_HOSTS = 500


class Replanner:
    """The replanner, which moves leases off hosts that hold too much.

    :param healer: moves a lease
    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self, ledger: Ledger, healer: healing.Healer,
        clock: Callable[[], float], metrics: Metrics,
    ) -> None:
        self._ledger = ledger
        self._healer = healer
        self._clock = clock
        self._objects = loop.Objects[str]('replanning', metrics)
        # The ids of the leases that were reported to be at risk.
        self._at_risk: set[str] = set()
        # The hosts that were compared with their leases, by uuid, None for a
        # host that did not suit all its leases.
        self._compared: dict[str, Host | None] = {}

    def replan(self) -> None:
        """Move leases that have not started off the hosts that hold too much.

        Leases also leave the hosts that do not suit them any more. A lease
        that finds no room elsewhere stays, as does a lease that has started,
        and is notified of once. Leases that have started on a host that is
        short of them are flagged.
        """
        now = int(self._clock())
        overloaded = self._ledger.read_replica(
            lambda replica: overload.overloaded_hosts(replica, now)
        )
        unsuited = self._unsuited_allocations(now)
        at_risk = {
            lease.id: lease for allocation, lease in unsuited
            if allocation.start <= now
        }
        leaving: dict[str, set[str]] = defaultdict(set)
        for allocation, lease in unsuited:
            if allocation.start > now:
                leaving[allocation.host].add(lease.id)

        def relieve(host: str) -> None:
            at_risk.update(self._relieve(host, now, leaving.get(host, ())))
            at_risk.update(self._outlasting(host, now))
            self._flag_short(host, now)

        self._objects.each(
            (
                (host, host)
                for host in dict.fromkeys([*overloaded, *sorted(leaving)])
            ),
            relieve, now,
        )
        # The owner of a held offer is notified once the offer is a lease.
        leases = [each for each in at_risk.values() if not each.is_offer]
        for lease in leases:
            if lease.id not in self._at_risk:
                LOG.warning(
                    'Lease %s is at risk: its hosts lack capacity or do not '
                    'suit it any more', lease.id,
                )
                self._ledger.write(functools.partial(
                    notifier.lease, event_type=LEASE_AT_RISK, lease=lease
                ))
        self._at_risk = {lease.id for lease in leases}

    def _unsuited_allocations(
        self, now: int
    ) -> list[tuple[Allocation, Lease]]:
        """Return the allocations on hosts that do not suit them any more.

        A lease gets only hosts that suit it, so only the hosts that have
        changed are compared with their leases, and MAX_NEW_HOSTS hosts that
        were never compared.
        """
        hosts = self._ledger.read_replica(lambda replica: dict(replica.hosts))
        known = {
            uuid: self._compared[uuid]
            for uuid in self._compared.keys() & hosts.keys()
        }
        changed = sorted(
            uuid for uuid, host in known.items() if host != hosts[uuid]
        )
        changed += sorted(hosts.keys() - known.keys())[:MAX_NEW_HOSTS]
        found = [
            (allocation, lease)
            for lease in self._leases_on(changed, now)
            # Commits wait for a query of the replica: one for each lease.
            for allocation in self._ledger.read_replica(functools.partial(
                overload.unsuited_allocations, lease=lease
            ))
        ]
        unsuited = {allocation.host for allocation, _ in found}
        self._compared = known | {
            uuid: None if uuid in unsuited else hosts[uuid]
            for uuid in changed
        }
        return found

    def _leases_on(self, hosts: Sequence[str], now: int) -> Iterator[Lease]:
        """Yield the leases that have allocations on hosts, each lease once.

        :param hosts: uuids
        """
        known: set[str] = set()
        for some in slices.of(hosts, _HOSTS_AT_ONCE):
            for lease in self._ledger.leases_on(some, now):
                if lease.id not in known:
                    known.add(lease.id)
                    yield lease

    def _relieve(
        self, host: str, now: int, unsuited: Collection[str]
    ) -> dict[str, Lease]:
        """Move allocations off a host, as far as other hosts have room.

        :param host: the uuid of the host
        :param unsuited: the ids of the leases that the host may not suit
        :returns: the leases, by id, that have an allocation for which no room
            was found
        """
        at_risk = {}
        tried: set[str] = set()
        for lease in self._leases_on([host], now):
            self._healer.match(lease)
        while tried_now := self._ledger.commit(
            lambda tx: self._take_off(tx, host, now, unsuited, tried)
        ):
            reservation_id, old, new = tried_now
            tried.add(reservation_id)
            # A lease at risk stays at risk while an event keeps it from
            # moving.
            if new is old and (
                is_movable(old, now) or old.id in self._at_risk
            ):
                at_risk[old.id] = old
            self._healer.wake(old, new)
        return at_risk

    def _take_off(
        self, tx: PlacingTx, host: str, now: int, unsuited: Collection[str],
        tried: Collection[str],
    ) -> tuple[str, Lease, Lease] | None:
        """Try to move one of the allocations that have to leave a host.

        :param unsuited: as for `_relieve`
        :param tried: the ids of the reservations that are not tried again
        :returns: the id of the allocation's reservation, and the lease before
            and after the move
        """
        held = tx.allocations(host=host, after=now)
        # The other leases suit the host, and are not read.
        leaving = (
            (allocation, lease_id)
            for lease_id in sorted({id_ for _, id_ in held} & set(unsuited))
            for allocation in overload.unsuited_allocations(
                tx.replica, tx.lease(lease_id)
            )
            if allocation.host == host and allocation.start > now
            and allocation.reservation_id not in tried
        )
        # What leaves in any case may be enough for the host to hold the rest.
        first = next(leaving, None)
        if first is None:
            going = overload.allocations_to_move(
                tx.replica,
                host,
                # Not all instances of the replica: others wait for this
                # commit.
                tx.instances([host]),
                held,
                now,
                tried,
            )
            if not going:
                return None
            first = going[0]
        allocation, lease_id = first
        old = new = tx.lease(lease_id)
        if is_movable(old, now):
            new = self._moved(tx, old, allocation, now)
            healing.notify(tx, old, new)
        return allocation.reservation_id, old, new

    def _moved(
        self, tx: PlacingTx, old: Lease, allocation: Allocation, now: int
    ) -> Lease:
        """Move an allocation off its host, or only the slots in excess.

        :returns: the lease as written, or the same lease if neither finds room
        """
        only = {allocation.reservation_id}
        with contextlib.suppress(exception.NotEnoughHostsAvailable):
            return self._healer.move(tx, old, {allocation.host}, now, only)
        [reservation] = (r for r in old.reservations if r.id in only)
        less = overload.without_excess(
            tx.replica, reservation, allocation, now
        )
        if less is not None:
            with contextlib.suppress(exception.NotEnoughHostsAvailable):
                return self._healer.move(
                    tx, old, (), now, only, reduced=[less]
                )
        return old

    def _outlasting(self, host: str, now: int) -> dict[str, Lease]:
        """Return the leases that have started and end after a host is closed.

        A lease that is degraded has been notified of, as with a maintenance.

        :param host: the uuid of the host
        :returns: the leases by id
        """
        known = self._ledger.read_replica(lambda replica: replica.hosts[host])
        if not known.closed_in(Window(now)):
            return {}
        ids = {
            lease_id for allocation, lease_id in self._ledger.allocations(
                host=host, after=now
            )
            if allocation.start <= now
            and known.closed_in(Window(now, allocation.end))
        }
        found = {}
        for id_ in sorted(ids):
            with contextlib.suppress(exception.LeaseNotFound):
                lease = self._ledger.lease(id_)
                if not lease.degraded:
                    found[id_] = lease
        return found

    def _flag_short(self, host: str, now: int) -> None:
        """Flag the leases that have started on a host that is short of them.

        :param host: the uuid of the host
        """
        held = self._ledger.allocations(host=host, after=now)
        allocations = [allocation for allocation, _ in held]
        short = self._ledger.read_replica(
            lambda replica: overload.short_classes(replica, allocations, now)
        )
        if not short:
            return
        affected = {
            lease_id for allocation, lease_id in held
            if allocation.start <= now and overload.is_short(allocation, short)
        }
        # The healer sees to a lease that is flagged in each of its passes.
        for lease_id in sorted(affected.difference(self._ledger.lacking())):
            with contextlib.suppress(exception.LeaseNotFound):
                self._healer.heal_lease(lease_id, now, now)


def is_movable(lease: Lease, now: int) -> bool:
    """Tell whether a lease can still be moved to other hosts."""
    return lease.status in _NOT_STARTED and healing.is_healable(lease, now)
