# SPDX-License-Identifier: Apache-2.0
"""Healing: replacement of the hosts that leases have lost or will lose.

Leases lose hosts that fail. Each lease is healed in a commit of its own, in
which everything is read again, so several managers may heal at once.
Allocations on other hosts stay as they are, and no other lease is moved to
make room. Hosts that can no longer hold all of their leases: see replanning.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
import contextlib
import dataclasses

from oslo_config import cfg
from oslo_log import log

from blazar_sched.domain import event
from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain import window
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.placing import lease_placing
from blazar_sched.placing import overload
from blazar_sched.placing import reallocation
from blazar_sched.replica import state
from blazar_sched.service import loop
from blazar_sched.service.booking import placing_options
from blazar_sched.service.bus import notifier
from blazar_sched.service.bus.notifier import LEASE_DEGRADED
from blazar_sched.service.bus.notifier import LEASE_HEALED
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.ledger.tx import Tx
from blazar_sched.service.metrics import Metrics

LOG = log.getLogger(__name__)

# The statuses in which a lease can be healed: the lease holds hosts, and is
# not ending.
_HELD = (
    states.LEASE_CREATING, states.LEASE_PENDING, states.LEASE_STARTING,
    states.LEASE_ACTIVE,
)


class Healer:
    """The healer, which moves reservations off hosts.

    :param wake_runner: has the events that are due executed
    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self, conf: cfg.ConfigOpts, ledger: Ledger,
        wake_runner: Callable[[], object], clock: Callable[[], float],
        metrics: Metrics,
    ) -> None:
        self._conf = conf.manager
        self._ledger = ledger
        self._wake_runner = wake_runner
        self._clock = clock
        self._objects = loop.Objects[str]('healing', metrics)

    def heal(self) -> None:
        """Replace lost hosts where possible; flag the others as missing.

        This covers all leases that are active, or start within
        `healing_interval`. Leases with an event in progress are left to the
        next call.
        """
        now = int(self._clock())
        until = self.horizon(now)

        def heal(lease_id: str) -> None:
            # The lease may be deleted in the meantime.
            with contextlib.suppress(exception.LeaseNotFound):
                self.heal_lease(lease_id, now, until)

        self._objects.each(
            ((id_, id_) for id_ in self._ailing(now, until)), heal, now
        )

    def reallocate(
        self, host_id: str, lease_id: str | None = None,
        reservation_id: str | None = None,
    ) -> None:
        """Move the reservations of a lease, or one reservation, off a host.

        :raises HostNotFound: if there is no such host
        :raises NotFound: if the reservations have no allocation on the host
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
                'the lease or reservation has no allocation on host '
                f'{host.hypervisor_hostname}',
                field='reservation_id' if reservation_id else 'lease_id',
            )

        self.match(self._ledger.lease(held[0][1]))

        def work(tx: PlacingTx) -> tuple[Lease, Lease]:
            old = tx.lease(held[0][1])
            if not is_healable(old, now):
                raise exception.InvalidStatus(
                    f'the lease is {old.status}, or an event of it is in '
                    'progress',
                    field='status',
                )
            ids = {a.reservation_id for a, _ in held}
            new = self.move(tx, old, {host.uuid}, now, ids)
            notify(tx, old, new)
            return old, new

        self.wake(*self._ledger.commit(work))

    def _ailing(self, now: int, until: int) -> list[str]:
        """Return the ids of the leases that have lost allocations."""
        failed = [h for h in self._ledger.hosts() if not h.reservable]
        starts = {
            lease_id: allocation.start
            for host in failed
            for allocation, lease_id in self._ledger.allocations(
                host=host.uuid, after=now
            )
            if allocation.start <= until
        }
        # The lease that starts first is healed first, then the lease that has
        # lacked something longest.
        return [
            *sorted(starts, key=lambda id_: (starts[id_], id_)),
            *(id_ for id_ in self._ledger.lacking() if id_ not in starts),
        ]

    def heal_lease(self, lease_id: str, now: int, until: int) -> None:
        """Replace the lost hosts of a lease, and bring its flags up to date.

        :param until: the latest start of a lease that is healed
        :raises LeaseNotFound: if there is no such lease
        """
        self.match(self._ledger.lease(lease_id))

        def work(tx: PlacingTx) -> tuple[Lease, Lease]:
            old = tx.lease(lease_id)
            if old.start > until or not is_healable(old, now):
                return old, old
            new = self.move(tx, old, _failed(tx, old), now, spares=True)
            notify(tx, old, new)
            return old, new

        self.wake(*self._ledger.commit(work))

    def match(self, lease: Lease) -> None:
        """Match the requirements of a lease ahead of a commit that moves it.
        """
        lease_placing.match(
            self._ledger.replica, lease, placing_options.read(self._conf)
        )

    def plan(
        self, replica: state.Replica, old: Lease, hosts: Collection[str],
        now: int, only: Collection[str] | None = None, spares: bool = False,
        reduced: Collection[Allocation] = (),
    ) -> lease_placing.Allocations:
        """Return the allocations of a lease off hosts, as `move` writes them.

        :raises NotEnoughHostsAvailable: as for `move`
        """
        replica.advance(now)
        placed = reallocation.reallocate(
            replica, old, old.left(now), hosts, only,
            placing_options.read(self._conf), spares, reduced,
        )
        if only is not None:
            held = lease_placing.allocations_of(replica, old)
            if any(
                reallocation.loses(held[id_], many)
                for id_, many in placed.items()
            ):
                raise exception.NotEnoughHostsAvailable(
                    'no other host has enough capacity', field='reservations'
                )
        return placed

    def move(
        self, tx: PlacingTx, old: Lease, hosts: Collection[str], now: int,
        only: Collection[str] | None = None, spares: bool = False,
        reduced: Collection[Allocation] = (),
    ) -> Lease:
        """Move a lease off hosts, write the lease and return it.

        :param hosts: the uuids of the hosts
        :param only: the ids of the reservations that leave the hosts and must
            lose nothing; if None, all reservations leave, and lose the
            allocations that find no room
        :param spares: whether spare hosts may be used where there is not
            enough room otherwise
        :param reduced: the allocations that keep only a part of their slots,
            as they are to be
        :raises NotEnoughHostsAvailable: if the reservations in `only` would
            lose something; then nothing is written
        """
        held = lease_placing.allocations_of(tx.replica, old)
        placed = self.plan(tx.replica, old, hosts, now, only, spares, reduced)
        tx.put_all_allocations(placed, now)
        short = _short_classes(tx, old, placed, now)
        reservations = [
            _marked(old, each, held[each.id], placed[each.id], short, now)
            if each.id in placed else each
            for each in old.reservations
        ]
        new = dataclasses.replace(
            old, reservations=tuple(reservations),
            degraded=is_degraded(
                old,
                lacks_resources(old.reservations)
                or _will_close(tx, old, held, now),
                lacks_resources(reservations)
                or _will_close(tx, old, {**held, **placed}, now),
            ),
        )
        if new == old and all(held[id_] == placed[id_] for id_ in placed):
            return old
        # What an event does for hosts has to be done for the new hosts.
        again = (
            event.start_again
            if old.status == states.LEASE_ACTIVE
            else event.vacate_again
        )
        new = dataclasses.replace(
            new, events=again(old.events), updated_at=now
        )
        tx.put_lease(new, old)
        return new

    def horizon(self, now: int) -> int:
        """Return the latest start of a lease that is to be healed by now."""
        minutes: int = self._conf.healing_interval
        return now + 60 * minutes if minutes else window.FOREVER

    def wake(self, old: Lease, new: Lease) -> None:
        """Have done what is due since a commit has changed a lease."""
        if new == old:
            return
        if _degrades(old, new) and not new.is_offer:
            LOG.warning('Lease %s is degraded: capacity was lost', new.id)
        self._wake_runner()


def notify(tx: Tx, old: Lease, new: Lease) -> None:
    """Notify of what a commit changes in a lease, if anything."""
    if new != old:
        notifier.lease(
            tx, LEASE_DEGRADED if _degrades(old, new) else LEASE_HEALED, new
        )


def _degrades(old: Lease, new: Lease) -> bool:
    """Tell whether a change degrades a lease, or degrades it further."""
    return new.degraded and not (
        old.degraded and _lacking(new) <= _lacking(old)
    )


def is_healable(lease: Lease, now: int) -> bool:
    """Tell whether the hosts of a lease can be changed now.

    The hosts cannot be changed while an event works with the hosts that the
    lease had when the event began.
    """
    return (
        lease.status in _HELD
        and lease.end > now
        and not lease.in_progress
    )


def flagged(
    reservation: Reservation, missing: bool, changed: bool, now: int
) -> Reservation:
    """Return a reservation with its flags brought up to date.

    :param missing: whether the reservation has less than was promised
    :param changed: whether the reservation has other resources than when it
        was opened
    """
    new = dataclasses.replace(
        reservation, missing_resources=missing,
        resources_changed=reservation.resources_changed or changed,
    )
    if new == reservation:
        return reservation
    return dataclasses.replace(new, updated_at=now)


def is_degraded(lease: Lease, was_short: bool, is_short: bool) -> bool:
    """Tell whether a lease is degraded now.

    A lease that was degraded because resources are missing, or because its
    hosts will be closed, is no longer degraded once that is over; if there is
    another reason, the start finds that reason again.
    """
    return is_short or (lease.degraded and not was_short)


def _will_close(
    tx: PlacingTx, lease: Lease, held: lease_placing.Allocations, now: int
) -> bool:
    """Tell whether a host of a lease will be closed before the lease ends."""
    return any(
        tx.replica.hosts[a.host].closed_in(lease.left(now))
        for many in held.values()
        for a in many
    )


def _lacking(lease: Lease) -> set[str]:
    """Return the ids of the reservations that lack resources."""
    return {r.id for r in lease.reservations if r.missing_resources}


def lacks_resources(reservations: Iterable[Reservation]) -> bool:
    return any(r.missing_resources for r in reservations)


def _failed(tx: PlacingTx, lease: Lease) -> set[str]:
    """Return the uuids of the failed hosts on which a lease is placed."""
    held = lease_placing.allocations_of(tx.replica, lease)
    used = {a.host for many in held.values() for a in many}
    return {host for host in used if not tx.replica.hosts[host].reservable}


def _short_classes(
    tx: PlacingTx, lease: Lease, placed: lease_placing.Allocations, now: int
) -> set[tuple[str, str]]:
    """Return what the hosts of a lease that has started are short of."""
    if lease.start > now:
        return set()
    hosts = {each.host for many in placed.values() for each in many}
    return overload.short_classes(
        tx.replica,
        [
            allocation
            for host in sorted(hosts)
            for allocation, _ in tx.allocations(host=host, after=now)
        ],
        now,
    )


def _marked(
    lease: Lease, reservation: Reservation, before: Collection[Allocation],
    after: Collection[Allocation], short: Collection[tuple[str, str]],
    now: int,
) -> Reservation:
    """Return a reservation with the flags that match its allocations.

    :param short: as `overload.short_classes` returns
    """
    opened = lease.status != states.LEASE_PENDING
    return flagged(
        reservation,
        reservation.demand.count(after) < reservation.demand.least
        or any(overload.is_short(each, short) for each in after),
        opened
        and lease_placing.amounts_by_host(before)
        != lease_placing.amounts_by_host(after),
        now,
    )
