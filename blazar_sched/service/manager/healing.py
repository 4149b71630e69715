# SPDX-License-Identifier: Apache-2.0
"""Healing: what leases have lost with failed hosts is replaced.

Each lease in a commit of its own, in which everything is looked at again: so
several managers may heal at once. What is on other hosts stays as it is.
"""

from collections import Counter
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
import dataclasses
from typing import Any

from oslo_config import cfg
from oslo_log import log

from blazar_sched.domain import allocation as allocation_
from blazar_sched.domain import event as event_
from blazar_sched.domain import exception
from blazar_sched.domain import lease as lease_
from blazar_sched.domain import placing as placing_
from blazar_sched.domain import reservation as reservation_
from blazar_sched.domain import states
from blazar_sched.domain import window as window_
from blazar_sched.service.ledger import ledger as ledger_
from blazar_sched.service.manager import notifier as notifier_
from blazar_sched.service.manager import placing

LOG = log.getLogger(__name__)

# Where a lease can be healed: it holds hosts, and is not on its way out.
_HELD = (states.LEASE_PENDING, states.LEASE_STARTING, states.LEASE_ACTIVE)


class Healer:
    """Moves reservations off hosts.

    :param poke: has events that are due done
    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        ledger: ledger_.Ledger,
        notifier: notifier_.Notifier,
        poke: Callable[[], object],
        clock: Callable[[], float],
    ) -> None:
        self._conf = conf.manager
        self._ledger = ledger
        self._notifier = notifier
        self._poke = poke
        self._clock = clock

    def heal(self) -> None:
        """Replace what can be; say of the rest that it is missing.

        All leases that are active, or start within `healing_interval`. Those
        in the midst of an event are left to the next time.
        """
        now = int(self._clock())
        minutes = self._conf.healing_interval
        until = now + 60 * minutes if minutes else window_.FOREVER
        for lease_id in self._ailing(now, until):
            try:
                self._heal(lease_id, now, until)
            except exception.LeaseNotFound:
                # Deleted since.
                continue
            except Exception:
                LOG.exception('Lease %s is not healed', lease_id)

    def reallocate(
        self,
        host_id: str,
        lease_id: str | None = None,
        reservation_id: str | None = None,
    ) -> None:
        """Move a lease's reservations, or the one, off a host.

        :raises HostNotFound: if there is no such host
        :raises NotFound: if they have nothing there
        :raises InvalidStatus: if the lease is changing, or over
        :raises NotEnoughHostsAvailable: if no other host has room
        """
        now = int(self._clock())
        host = self._ledger.host(host_id)
        held = self._ledger.allocations(
            reservation_id, lease_id, host.uuid, after=now
        )
        if not held:
            raise exception.NotFound(
                f'they have nothing on host {host.id}',
                field='reservation_id' if reservation_id else 'lease_id',
            )

        def work(tx: Any) -> tuple[lease_.Lease, lease_.Lease]:
            old = tx.lease(held[0][1])
            if not _is_healable(old, now):
                raise exception.InvalidStatus(
                    f'the lease is {old.status}, or an event of it is in '
                    'progress',
                    field='status',
                )
            ids = {a.reservation_id for a, _ in held}
            return old, self._move(tx, old, {host.uuid}, now, ids)

        self._tell(*self._ledger.commit(work))

    def _ailing(self, now: int, until: int) -> list[str]:
        """Return the ids of the leases that have lost something."""
        failed = [h for h in self._ledger.hosts() if not h.reservable]
        starts = {
            lease_id: allocation.start
            for host in failed
            for allocation, lease_id in self._ledger.allocations(
                host=host.uuid, after=now
            )
            if allocation.start <= until
        }
        # Who starts first is healed first, and who lacks something longest.
        return [
            *sorted(starts, key=lambda id_: (starts[id_], id_)),
            *(id_ for id_ in self._ledger.lacking() if id_ not in starts),
        ]

    def _heal(self, lease_id: str, now: int, until: int) -> None:
        def work(tx: Any) -> tuple[lease_.Lease, lease_.Lease]:
            old = tx.lease(lease_id)
            if old.start > until or not _is_healable(old, now):
                return old, old
            return old, self._move(tx, old, _failed(tx, old), now)

        self._tell(*self._ledger.commit(work))

    def _move(
        self,
        tx: Any,
        old: lease_.Lease,
        hosts: Collection[str],
        now: int,
        only: Collection[str] | None = None,
    ) -> lease_.Lease:
        """Write a lease that has left hosts, and return it.

        :param hosts: uuids
        :param only: ids of the reservations that leave and must lose nothing;
            if None all do, and lose what finds no room
        :raises NotEnoughHostsAvailable: if they would lose something
        """
        tx.replica.advance(now)
        held = placing.held(tx.replica, old)
        placed = placing.leave(
            tx.replica, old, old.left(now), hosts, only,
            60 * self._conf.cleaning_time,
        )
        reservations = []
        for reservation in old.reservations:
            if reservation.id in placed:
                before, after = held[reservation.id], placed[reservation.id]
                if only is not None and _lost(before, after):
                    raise exception.NotEnoughHostsAvailable(
                        'no other host has room', field='reservations'
                    )
                tx.put_allocations(reservation.id, after)
                reservation = _marked(old, reservation, before, after, now)
            reservations.append(reservation)
        new = dataclasses.replace(
            old,
            reservations=tuple(reservations),
            degraded=_is_degraded(old, reservations),
        )
        if new == old and all(held[id_] == placed[id_] for id_ in placed):
            return old
        events = old.events
        if old.status == states.LEASE_ACTIVE:
            # What a start does is to be done for the hosts that it has now.
            events = event_.start_again(events)
        new = dataclasses.replace(new, events=events, updated_at=now)
        tx.put_lease(new)
        return new

    def _tell(self, old: lease_.Lease, new: lease_.Lease) -> None:
        if new == old:
            return
        if new.degraded and not old.degraded:
            LOG.warning('Lease %s has less than was promised', new.id)
            self._notifier.lease(notifier_.LEASE_DEGRADED, new)
        else:
            LOG.info('Lease %s is on other hosts', new.id)
            self._notifier.lease(notifier_.LEASE_HEALED, new)
        self._poke()


def _is_healable(lease: lease_.Lease, now: int) -> bool:
    """Tell whether a lease's hosts can be changed now.

    Not while an event goes by those that it had when it was begun.
    """
    return (
        lease.status in _HELD
        and lease.end > now
        and all(e.status != states.EVENT_IN_PROGRESS for e in lease.events)
    )


def _failed(tx: Any, lease: lease_.Lease) -> set[str]:
    """Return the uuids of the failed hosts that a lease is on."""
    held = placing.held(tx.replica, lease)
    used = {a.host for many in held.values() for a in many}
    return {host for host in used if not tx.replica.hosts[host].reservable}


def _marked(
    lease: lease_.Lease,
    reservation: reservation_.Reservation,
    before: Collection[allocation_.Allocation],
    after: Collection[allocation_.Allocation],
    now: int,
) -> reservation_.Reservation:
    """Return a reservation with the flags that its allocations call for."""
    opened = lease.status != states.LEASE_PENDING
    new = dataclasses.replace(
        reservation,
        missing_resources=_count(reservation, after) < _least(reservation),
        resources_changed=reservation.resources_changed
        or (opened and _sizes(before) != _sizes(after)),
    )
    if new == reservation:
        return reservation
    return dataclasses.replace(new, updated_at=now)


def _is_degraded(
    lease: lease_.Lease, reservations: Iterable[reservation_.Reservation]
) -> bool:
    """Tell whether a lease is degraded now.

    One that was so for what was missing is not, once nothing is; if there is
    another reason, its start finds it again.
    """
    if any(r.missing_resources for r in reservations):
        return True
    was_missing = any(r.missing_resources for r in lease.reservations)
    return lease.degraded and not was_missing


def _least(reservation: reservation_.Reservation) -> int:
    """Return how many hosts or slots were promised."""
    whole = reservation.resource_type == reservation_.PHYSICAL_HOST
    least: int = reservation.parameters['min' if whole else 'amount']
    return least


def _count(
    reservation: reservation_.Reservation,
    allocations: Collection[allocation_.Allocation],
) -> int:
    """Return how many hosts or slots there are."""
    if reservation.resource_type == reservation_.PHYSICAL_HOST:
        return len(allocations)
    slot = reservation.slot()
    return sum(placing_.count_slots(a.amounts, slot) for a in allocations)


def _sizes(allocations: Iterable[allocation_.Allocation]) -> set[Any]:
    return {(a.host, *sorted(a.amounts.items())) for a in allocations}


def _lost(
    before: Iterable[allocation_.Allocation],
    after: Iterable[allocation_.Allocation],
) -> bool:
    """Tell whether there is less than before."""

    def total(many: Iterable[allocation_.Allocation]) -> Counter[str]:
        sums: Counter[str] = Counter()
        for allocation in many:
            sums['hosts'] += allocation.whole
            sums.update(allocation.amounts)
        return sums

    return not total(before) <= total(after)
