# SPDX-License-Identifier: Apache-2.0
"""Replanning: leases and the hosts that can no longer hold all of them.

A host holds too much if it shrinks, if a server is on it that no filter let
in, or if its devices become unlike. Leases that have not started leave such a
host, as far as other hosts have room. A lease that has started stays, because
its servers are there: it is degraded while the host has less than its leases
hold, and reported to be at risk while its devices are unlike. Each lease is
changed in a commit of its own, in which everything is read again.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
import contextlib
import functools

from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain import states
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.provider import Providers
from blazar_sched.placing import overload
from blazar_sched.replica import state
from blazar_sched.service.bus.notifier import LEASE_AT_RISK
from blazar_sched.service.bus.notifier import Notifier
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.manager import healing

LOG = log.getLogger(__name__)

_NOT_STARTED = (states.LEASE_CREATING, states.LEASE_PENDING)

# The traits of a host, and its child providers.
_Devices = tuple[tuple[str, ...], tuple[Providers, ...]]


class Replanner:
    """The replanner, which moves leases off hosts that hold too much.

    :param healer: moves a lease
    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self,
        ledger: Ledger,
        healer: healing.Healer,
        notifier: Notifier,
        clock: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._healer = healer
        self._notifier = notifier
        self._clock = clock
        # The ids of the leases that were reported to be at risk.
        self._at_risk: set[str] = set()
        # The hosts that suit all their leases, with what that depends on.
        self._suiting: dict[str, _Devices] = {}

    def replan(self) -> None:
        """Move leases that have not started off the hosts that hold too much.

        Leases also leave the hosts whose devices do not suit them any more. A
        lease that finds no room elsewhere stays, as does a lease that has
        started, and is notified of once. Leases that have started on a host
        that is short of them are flagged.
        """
        now = int(self._clock())
        overloaded = self._ledger.read_replica(
            lambda replica: overload.overloaded_hosts(replica, now)
        )
        unlike = self._unlike_allocations(now)
        at_risk = {
            lease.id: lease for allocation, lease in unlike
            if allocation.start <= now
        }
        unlike_hosts = sorted({
            allocation.host for allocation, _ in unlike
            if allocation.start > now
        })
        for host in dict.fromkeys([*overloaded, *unlike_hosts]):
            try:
                at_risk |= self._relieve(host, now)
                self._flag_short(host, now)
            except Exception:
                LOG.exception(
                    'Could not move leases off overcommitted host %s', host
                )
        # The owner of a held offer is notified once the offer is a lease.
        leases = [each for each in at_risk.values() if not each.is_offer]
        for lease in leases:
            if lease.id not in self._at_risk:
                LOG.warning(
                    'Lease %s is at risk: its hosts lack capacity', lease.id
                )
                self._notifier.lease(LEASE_AT_RISK, lease)
        self._at_risk = {lease.id for lease in leases}

    def _unlike_allocations(self, now: int) -> list[tuple[Allocation, Lease]]:
        """Return the allocations on hosts whose devices do not suit them.

        A lease gets only hosts that suit it, so only the hosts whose devices
        have changed are looked at; at first, all hosts.
        """
        devices = self._ledger.read_replica(lambda replica: {
            uuid: (host.traits, host.providers)
            for uuid, host in replica.hosts.items()
        })
        changed = {
            uuid for uuid, each in devices.items()
            if self._suiting.get(uuid) != each
        }
        found = []
        for id_ in self._leases_with_devices(changed, now) if changed else ():
            with contextlib.suppress(exception.LeaseNotFound):
                lease = self._ledger.lease(id_)
                unlike = self._ledger.read_replica(functools.partial(
                    overload.unlike_allocations, lease=lease
                ))
                found += [(allocation, lease) for allocation in unlike]
        for allocation, _ in found:
            devices.pop(allocation.host, None)
        self._suiting = devices
        return found

    def _leases_with_devices(
        self, hosts: AbstractSet[str], now: int
    ) -> list[str]:
        """Return the ids of the leases that have devices on hosts.

        :param hosts: uuids
        """
        reservations = self._ledger.read_replica(lambda replica: [
            each for each in replica.reservations.values()
            if each.end > now and inventory.others(each.slot or {})
        ])
        # One look at a time: commits wait for a look.
        return sorted({
            each.lease_id for each in reservations
            if not hosts.isdisjoint(self._ledger.read_replica(
                functools.partial(_hosts_of, reservation_id=each.id)
            ))
        })

    def _relieve(self, host: str, now: int) -> dict[str, Lease]:
        """Move excess allocations off a host, as far as other hosts have room.

        :param host: the uuid of the host
        :returns: the leases, by id, that have an allocation for which no room
            was found
        """
        at_risk = {}
        tried: set[str] = set()
        while tried_now := self._ledger.commit(
            lambda tx: self._take_off(tx, host, now, tried)
        ):
            reservation_id, old, new = tried_now
            tried.add(reservation_id)
            # A lease at risk stays at risk while an event keeps it from
            # moving.
            if new is old and (
                _is_movable(old, now) or old.id in self._at_risk
            ):
                at_risk[old.id] = old
            self._healer.notify(old, new)
        return at_risk

    def _take_off(
        self, tx: PlacingTx, host: str, now: int, tried: Collection[str]
    ) -> tuple[str, Lease, Lease] | None:
        """Try to move one of the allocations that have to leave a host.

        :param tried: the ids of the reservations that are not tried again
        :returns: the id of the allocation's reservation, and the lease before
            and after the move
        """
        going = overload.allocations_to_move(
            tx.replica,
            host,
            # Not all instances of the replica: others wait for this commit.
            tx.instances([host]),
            tx.allocations(host=host, after=now),
            now,
            tried,
        )
        going += _unlike(tx, host, now, tried)
        if not going:
            return None
        allocation, lease_id = going[0]
        old = new = tx.lease(lease_id)
        if _is_movable(old, now):
            with contextlib.suppress(exception.NotEnoughHostsAvailable):
                new = self._healer.move(
                    tx, old, {host}, now, {allocation.reservation_id}
                )
        return allocation.reservation_id, old, new

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


def _is_movable(lease: Lease, now: int) -> bool:
    """Tell whether a lease can still be moved to other hosts."""
    return lease.status in _NOT_STARTED and healing.is_healable(lease, now)


def _hosts_of(replica: state.Replica, reservation_id: str) -> set[str]:
    return set(replica.indexes.allocations(reservation_id))


def _unlike(
    tx: PlacingTx, host: str, now: int, tried: Collection[str]
) -> Iterator[tuple[Allocation, str]]:
    """Yield the allocations, with lease ids, that a host does not suit.

    :param tried: the ids of the reservations that are left out
    """
    lease_ids = {
        lease_id
        for allocation, lease_id in tx.allocations(host=host, after=now)
        if allocation.start > now and inventory.others(allocation.amounts)
    }
    for id_ in sorted(lease_ids):
        for each in overload.unlike_allocations(tx.replica, tx.lease(id_)):
            if each.host == host and each.reservation_id not in tried:
                yield each, id_
