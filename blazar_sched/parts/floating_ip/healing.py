# SPDX-License-Identifier: Apache-2.0
"""Healing of floating IPs: replacement of the addresses leases have lost.

The state of an address in Neutron may change after its registration: the
allocation pools of Neutron grow, another user gets the address, or a project
deletes a floating IP that a lease has made for the project.
"""

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses

from oslo_config import cfg
from oslo_log import log

from blazar_sched.domain import event
from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.parts.floating_ip import demand as demands
from blazar_sched.parts.floating_ip import models
from blazar_sched.parts.floating_ip import neutron as neutron_client
from blazar_sched.parts.floating_ip import placing
from blazar_sched.parts.floating_ip import resources as driver
from blazar_sched.parts.floating_ip.demand import RESOURCE_TYPE
from blazar_sched.parts.floating_ip.floating_ip import can_be_reserved
from blazar_sched.parts.floating_ip.floating_ip import FloatingIP
from blazar_sched.parts.floating_ip.neutron import Neutron
from blazar_sched.replica import limited_log
from blazar_sched.service import loop
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import Tx
from blazar_sched.service.metrics import Metrics
from blazar_sched.service.upkeep import healing

LOG = log.getLogger(__name__)

NAME = 'floating IP healing'


class Healer(loop.Looped):
    """The healer of floating IPs, and its loop.

    The healer keeps `reservable` as Neutron requires, and replaces lost
    addresses.

    Each lease is healed in a commit of its own, as by `healing.Healer`.
    Several managers may heal at once: only differences are written.

    :param healer: the healer of hosts
    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self, conf: cfg.ConfigOpts, ledger: Ledger, neutron: Neutron,
        healer: healing.Healer, clock: Callable[[], float], metrics: Metrics,
    ) -> None:
        self._conf = conf.manager
        self._ledger = ledger
        self._neutron = neutron
        self._healer = healer
        self._clock = clock
        self._objects = loop.Objects[Lease](NAME, metrics)
        self._away = limited_log.LimitedLog(LOG)
        self._loop = loop.Loop(NAME, self.step)

    def step(self) -> float:
        """Look at the floating IPs, unless the operator wants no polling."""
        if self._conf.enable_polling_monitor:
            self.heal()
        interval: float = self._conf.polling_interval
        return interval

    def heal(self) -> None:
        """Compare floating IPs with Neutron; replace or flag lost addresses.

        This covers all leases that are active, or start within
        `healing_interval`. While Neutron is away, everything stays as it is.
        """
        registered = self._ledger.run(models.list_)
        if not registered or not self._neutron.is_configured:
            return
        # The leases are read first: floating IPs opened after that are left to
        # the next call.
        leases = self._ledger.leases_with(RESOURCE_TYPE)
        try:
            view = _View(self._neutron, {f.network_id for f in registered})
        except exception.Unavailable as e:
            self._away.report_away(NAME, e)
            return
        now = int(self._clock())
        self._mark(registered, leases, view, now)
        until = self._healer.horizon(now)

        def heal(lease: Lease) -> None:
            if lease.start <= until and self._is_healable(lease, now):
                self._heal(lease, view, now)

        try:
            self._objects.each(((each.id, each) for each in leases), heal, now)
        except exception.Unavailable as e:
            self._away.report_away(NAME, e)

    def _mark(
        self, registered: list[FloatingIP], leases: list[Lease], view: '_View',
        now: int,
    ) -> None:
        """Write the floating IPs whose `reservable` changed, in one commit."""
        if not view.changed(registered, leases):
            return

        def work(tx: Tx) -> list[FloatingIP]:
            # A floating IP of a lease opened since then is not foreign.
            known = leases + tx.leases_with(RESOURCE_TYPE)
            changed = [
                dataclasses.replace(f, updated_at=now)
                for f in view.changed(tx.run(models.list_), known)
            ]
            for floating_ip in changed:
                tx.run(models.update, floating_ip)
            return changed

        for floating_ip in self._ledger.write(work):
            if floating_ip.reservable:
                LOG.info(
                    'Floating IP %s can be reserved again', floating_ip.address
                )
            else:
                LOG.warning(
                    'Floating IP %s cannot be reserved', floating_ip.address
                )

    def _is_healable(self, lease: Lease, now: int) -> bool:
        """Tell whether a lease can be healed now.

        A lease that is starting replaces by itself the addresses that it finds
        lost.
        """
        if (
            not healing.is_healable(lease, now)
            or lease.status == states.LEASE_STARTING
        ):
            return False
        # Without this check the start would be repeated again and again, in
        # vain.
        refused = lease.status == states.LEASE_ACTIVE and any(
            r.missing_resources for r, _ in demands.of(lease)
        )
        return not refused or self._neutron.has_quota(lease.project_id)

    def _heal(self, old: Lease, view: '_View', now: int) -> None:
        """Write a lease with its healed floating IPs, if they differ.

        :param old: the lease as it was before Neutron was queried
        """
        if _healed(self._ledger, old, view, now) == (old, {}):
            return

        def work(tx: Tx) -> Lease:
            try:
                if tx.lease(old.id) != old:
                    return old
            except exception.LeaseNotFound:
                return old
            new, moved = _healed(tx, old, view, now)
            if not moved and new == old:
                return old
            new = dataclasses.replace(new, updated_at=now)
            tx.put_lease(new)
            for reservation_id, ids in moved.items():
                tx.put_off_hosts(
                    RESOURCE_TYPE, reservation_id, ids, old.left(now)
                )
            healing.notify(tx, old, new)
            return new

        self._healer.wake(old, self._ledger.write(work))


class _View:
    """The state of external networks in Neutron.

    :raises Unavailable: if Neutron does not answer
    """

    def __init__(self, neutron: Neutron, network_ids: Collection[str]) -> None:
        self._subnets = {id_: neutron.subnets(id_) for id_ in network_ids}
        self._ports = {id_: neutron.port_addresses(id_) for id_ in network_ids}
        self._floating_ips = {
            id_: neutron.floating_ips(floating_network_id=id_)
            for id_ in network_ids
        }
        self._by_project = defaultdict(list)
        for many in self._floating_ips.values():
            for floating_ip in many:
                self._by_project[floating_ip.project_id].append(floating_ip)

    def made_for(
        self, lease: Lease, reservation: Reservation
    ) -> list[neutron_client.FloatingIP]:
        """Return the existing floating IPs made for a reservation."""
        return [
            floating_ip
            for floating_ip in self._by_project[lease.project_id]
            if driver.is_made_for(reservation, floating_ip)
        ]

    def changed(
        self, floating_ips: Iterable[FloatingIP], leases: Iterable[Lease]
    ) -> list[FloatingIP]:
        """Return the floating IPs whose `reservable` changed, as changed.

        :param leases: the leases whose floating IPs do not count as foreign
        """
        ours = {
            floating_ip.id
            for lease in leases
            for reservation, _ in demands.of(lease)
            for floating_ip in self.made_for(lease, reservation)
        }
        taken = {
            id_: self._ports[id_]
            | {f.address for f in many if f.id not in ours}
            for id_, many in self._floating_ips.items()
        }

        def is_right(floating_ip: FloatingIP) -> bool:
            address, id_ = floating_ip.address, floating_ip.network_id
            return (
                address not in taken[id_]
                and can_be_reserved(address, self._subnets[id_])
            )

        return [
            dataclasses.replace(f, reservable=not f.reservable)
            for f in floating_ips
            if f.network_id in taken and f.reservable != is_right(f)
        ]


@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
    """The addresses that a reservation has, and those it can have.

    `opened` holds the addresses that the project has in Neutron.
    """

    held: list[FloatingIP]
    chosen: list[FloatingIP]
    opened: set[str]

    @property
    def ids(self) -> list[str]:
        """Return the ids to allocate, including lost addresses not replaced.

        So a reservation that finds no other address has the lost address again
        once that address is valid.
        """
        both = {f.id: None for f in (*self.chosen, *self.held)}
        count = max(len(self.held), len(self.chosen))
        return list(both)[:count]


def _healed(
    source: Reader, old: Lease, view: _View, now: int
) -> tuple[Lease, dict[str, list[str]]]:
    """Return a lease with the floating IPs that it is to have now.

    :param source: the ledger, or a commit
    :returns: the lease and, by reservation, the ids of the floating IPs of the
        reservations that are to have other floating IPs
    """
    parts: dict[str, _Part] = {}
    for reservation, _ in demands.of(old):
        # Nothing is written yet: the same floating IP must not be given twice.
        given = {id_ for part in parts.values() for id_ in part.ids}
        parts[reservation.id] = _part(
            source, old, reservation, view, given, now
        )
    moved = {
        id_: part.ids
        for id_, part in parts.items()
        if set(part.ids) != {f.id for f in part.held}
    }
    new = dataclasses.replace(
        old,
        reservations=tuple(
            _flagged(r, parts[r.id], r.id in moved, now)
            if r.id in parts
            else r
            for r in old.reservations
        ),
    )
    was_short = _is_short(old, {id_: p.held for id_, p in parts.items()})
    is_short = _is_short(new, {id_: p.chosen for id_, p in parts.items()})
    new = dataclasses.replace(
        new, degraded=healing.is_degraded(old, was_short, is_short)
    )
    if old.status == states.LEASE_ACTIVE and any(
        f.address not in part.opened
        for part in parts.values()
        for f in part.chosen
    ):
        new = dataclasses.replace(new, events=event.start_again(new.events))
    return new, moved


def _part(
    source: Reader, lease: Lease, reservation: Reservation, view: _View,
    given: Collection[str], now: int,
) -> _Part:
    """Return the addresses that a reservation has and can have.

    An address in use is valid wherever it is: no other user is given it.

    :param given: the ids of the floating IPs that the reservation cannot have
    """
    opened = {f.address for f in view.made_for(lease, reservation)}
    held = source.run(models.list_, reservation.id)
    free = source.run(
        models.free, demands.read(reservation.demand).network_id,
        lease.left(now), reservation.id,
    )
    chosen = placing.choose(
        lease, reservation,
        [f for f in held if f.reservable or f.address in opened],
        [f for f in free if f.reservable and f.id not in given],
    )
    return _Part(held, chosen, opened)


def _flagged(
    reservation: Reservation, part: _Part, moved: bool, now: int
) -> Reservation:
    """Return a reservation with the flags that match its addresses."""
    opened = reservation.status != states.RESERVATION_PENDING
    missing = len(part.chosen) < reservation.demand.least
    return healing.flagged(reservation, missing, opened and moved, now)


def _is_short(lease: Lease, held: Mapping[str, Iterable[FloatingIP]]) -> bool:
    """Tell whether a lease lacks any of the promised resources."""
    return any(
        r.missing_resources
        or (r.id in held and driver.lacks_required(r, held[r.id]))
        for r in lease.reservations
    )
