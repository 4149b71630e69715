# SPDX-License-Identifier: Apache-2.0
"""Healing of floating IPs: what leases have lost is replaced.

What Neutron says of an address may change once it is registered: its
allocation pools grow, somebody else gets it, a project deletes what a lease
has made for it.
"""

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses

from oslo_log import log

from blazar_sched.domain import event
from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.floating_ip import can_be_reserved
from blazar_sched.domain.floating_ip import FloatingIP
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import FLOATING_IP
from blazar_sched.domain.reservation import Reservation
from blazar_sched.service.clients import neutron as neutron_client
from blazar_sched.service.clients.neutron import Neutron
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import Tx
from blazar_sched.service.manager import healing
from blazar_sched.service.resources import floating_ip as driver

LOG = log.getLogger(__name__)


class Healer:
    """Keeps `reservable` true to Neutron, and replaces what leases have lost.

    Each lease in a commit of its own, as `healing.Healer` does. Several
    managers may do the same: only what differs is written.

    :param healer: the hosts'
    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self,
        ledger: Ledger,
        neutron: Neutron,
        healer: healing.Healer,
        clock: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._neutron = neutron
        self._healer = healer
        self._clock = clock

    def heal(self) -> None:
        """Look at what Neutron has; replace what is lost, or say so.

        All leases that are active, or start within `healing_interval`. While
        Neutron is away all stays as it is.
        """
        registered = self._ledger.floating_ips()
        if not registered or not self._neutron.is_configured:
            return
        # First: what is opened after that is left to the next time.
        leases = self._ledger.leases_with(FLOATING_IP)
        try:
            view = _View(self._neutron, {f.network_id for f in registered})
        except exception.Unavailable as e:
            LOG.warning('It is not known which floating IPs are right: %s', e)
            return
        now = int(self._clock())
        self._mark(registered, leases, view, now)
        until = self._healer.horizon(now)
        for lease in leases:
            try:
                if lease.start <= until and self._is_healable(lease, now):
                    self._heal(lease, view, now)
            except exception.Unavailable as e:
                LOG.warning('Lease %s is not healed: %s', lease.id, e)
            except Exception:
                LOG.exception('Lease %s is not healed', lease.id)

    def _mark(
        self,
        registered: list[FloatingIP],
        leases: list[Lease],
        view: '_View',
        now: int,
    ) -> None:
        """Write what is reservable no more, or again, in one commit."""
        if not view.changed(registered, leases):
            return

        def work(tx: Tx) -> list[FloatingIP]:
            # Who has opened one since is no stranger.
            known = leases + tx.leases_with(FLOATING_IP)
            changed = [
                dataclasses.replace(f, updated_at=now)
                for f in view.changed(tx.floating_ips(), known)
            ]
            for floating_ip in changed:
                tx.update_floating_ip(floating_ip)
            return changed

        for floating_ip in self._ledger.write(work):
            if floating_ip.reservable:
                LOG.info('%s can be reserved again', floating_ip.address)
            else:
                LOG.warning('%s cannot be reserved', floating_ip.address)

    def _is_healable(self, lease: Lease, now: int) -> bool:
        """Tell whether anything can be done for a lease now.

        One that is starting replaces by itself what it finds to be lost.
        """
        if (
            not healing.is_healable(lease, now)
            or lease.status == states.LEASE_STARTING
        ):
            return False
        # Else its start would be done again and again, for nothing.
        refused = lease.status == states.LEASE_ACTIVE and any(
            r.missing_resources for r in _reservations(lease)
        )
        return not refused or self._neutron.has_quota(lease.project_id)

    def _heal(self, old: Lease, view: '_View', now: int) -> None:
        """Write a lease with what it is to have, if it has anything else.

        :param old: as it was before Neutron was asked
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
                tx.put_floating_ip_allocations(
                    reservation_id, ids, old.left(now)
                )
            return new

        self._healer.tell(old, self._ledger.write(work))


class _View:
    """What Neutron says of external networks.

    :raises Unavailable: if it does not answer
    """

    def __init__(
        self, neutron: Neutron, network_ids: Collection[str]
    ) -> None:
        self._subnets = {id_: neutron.subnets(id_) for id_ in network_ids}
        self._ports = {
            id_: neutron.port_addresses(id_) for id_ in network_ids
        }
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
        """Return what is there of what was made for a reservation."""
        return [
            floating_ip
            for floating_ip in self._by_project[lease.project_id]
            if driver.is_made_for(reservation, floating_ip)
        ]

    def changed(
        self,
        floating_ips: Iterable[FloatingIP],
        leases: Iterable[Lease],
    ) -> list[FloatingIP]:
        """Return those that are no longer as they were, as they are.

        :param leases: who has floating IPs that are not somebody else's
        """
        ours = {
            floating_ip.id
            for lease in leases
            for reservation in _reservations(lease)
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
    """What a reservation has, and what it can have.

    `opened` are the addresses that its project has in Neutron.
    """

    held: list[FloatingIP]
    chosen: list[FloatingIP]
    opened: set[str]

    @property
    def ids(self) -> list[str]:
        """What is allocated: until it is replaced, also what is lost.

        So a reservation that finds nothing else has it again once it is right.
        """
        both = {f.id: None for f in (*self.chosen, *self.held)}
        count = max(len(self.held), len(self.chosen))
        return list(both)[:count]


def _healed(
    source: Reader, old: Lease, view: _View, now: int
) -> tuple[Lease, dict[str, list[str]]]:
    """Return a lease with what it is to have now.

    :param source: the ledger, or a commit
    :returns: it and, by reservation, the ids of the floating IPs of those
        that are to have others
    """
    parts: dict[str, _Part] = {}
    for reservation in _reservations(old):
        # Nothing is written yet: no other one can be given the same.
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
    source: Reader,
    lease: Lease,
    reservation: Reservation,
    view: _View,
    given: Collection[str],
    now: int,
) -> _Part:
    """Return what a reservation has and can have.

    What is in use is right, wherever it is: nobody else is given it.

    :param given: the ids of what it cannot have
    """
    opened = {f.address for f in view.made_for(lease, reservation)}
    held = source.floating_ips(reservation.id)
    free = source.free_floating_ips(
        reservation.parameters['network_id'], lease.left(now), reservation.id
    )
    chosen = driver.choose(
        lease,
        reservation,
        [f for f in held if f.reservable or f.address in opened],
        [f for f in free if f.reservable and f.id not in given],
    )
    return _Part(held, chosen, opened)


def _flagged(
    reservation: Reservation, part: _Part, moved: bool, now: int
) -> Reservation:
    """Return a reservation with the flags that its addresses call for."""
    opened = reservation.status != states.RESERVATION_PENDING
    missing = len(part.chosen) < reservation.parameters['amount']
    return healing.flagged(reservation, missing, opened and moved, now)


def _is_short(
    lease: Lease,
    held: Mapping[str, Iterable[FloatingIP]],
) -> bool:
    """Tell whether a lease lacks anything of what was promised."""
    return any(
        r.missing_resources
        or (r.id in held and driver.lacks_required(r, held[r.id]))
        for r in lease.reservations
    )


def _reservations(
    lease: Lease,
) -> list[Reservation]:
    """Return those of a lease's reservations that are of floating IPs."""
    return [
        r
        for r in lease.reservations
        if r.resource_type == FLOATING_IP
    ]
