# SPDX-License-Identifier: Apache-2.0
"""Unused reservations: capacity that a started lease holds without servers.

Some time after its start, the owner of such a lease is notified; after some
more time the unused capacity is given back. A reservation counts as used by
the records of its servers, so nothing on the hosts is needed for this.
"""

from collections.abc import Mapping
from typing import Any

from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.domain import lease as lease_rules
from blazar_sched.domain import states
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.parts.limit import conf
from blazar_sched.service import loop
from blazar_sched.service.booking.booking import Bookings
from blazar_sched.service.booking.lease import Leases
from blazar_sched.service.bus import notifier
from blazar_sched.service.bus.notifier import LEASE_UNUSED
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.metrics import Metrics

LOG = log.getLogger(__name__)

# The seconds between two looks, and for which a lease is looked at.
INTERVAL = 60.0
MAX_WATCH_TIME = 86400
# The entry of `made` with the time at which the owner was notified.
_NOTIFIED_AT = 'unused_told'

# The numbers of hosts or instances in use, by reservation id.
_Used = Mapping[str, int]


class _InUse(Exception):
    """Capacity that was to be given back is used now."""


class Unused(loop.Looped):
    """The loop that gives back what started leases do not use.

    Several managers may do the same: what is written is decided in a commit.
    """

    def __init__(
        self, bookings: Bookings, leases: Leases, metrics: Metrics
    ) -> None:
        self._conf = bookings.conf.manager
        self._bookings = bookings
        self._ledger = bookings.ledger
        self._leases = leases
        self._objects = loop.Objects[Lease]('unused reservations', metrics)
        self._loop = loop.Loop('unused reservations', self.step)

    def step(self) -> float:
        """Look at the leases that have started some time ago."""
        after = self._conf.unused_after
        if after:
            now = self._bookings.now()
            leases = self._ledger.started_leases(
                now - after - MAX_WATCH_TIME, now - after
            )
            self._objects.each(
                ((each.id, each) for each in leases),
                lambda lease: self._look(lease, now), now,
            )
        return INTERVAL

    def _look(self, lease: Lease, now: int) -> None:
        try:
            notified_at = _notified_at(lease)
            if _is_used(self._ledger, lease) != (notified_at is None):
                notified_at = self._ledger.commit(
                    lambda tx: _note_use(tx, lease.id, now)
                )
            due = (
                notified_at is not None
                and notified_at + self._conf.unused_notice <= now
            )
            if due and self._conf.on_unused != conf.NOTIFY:
                self._give_back(lease, now)
        except _InUse:
            LOG.info('Lease %s is used now', lease.id)
        except exception.BlazarSchedError as e:
            LOG.warning(
                'Could not give back what lease %s does not use: %s', lease.id,
                e,
            )

    def _give_back(self, lease: Lease, now: int) -> None:
        """End a lease that is not used at all, or shrink the lease.

        :raises _InUse: if a server has come in the meantime
        """
        used = _used(self._ledger, lease)
        change: dict[str, Any] = {'end': lease_rules.NOW}
        if any(used.values()):
            if self._conf.on_unused == conf.END:
                return
            change = {'reservations': _changes(lease, used)}

        def confirm(tx: PlacingTx) -> dict[str, Any]:
            if _used(tx, lease) != used:
                raise _InUse
            return {}

        self._leases.update(lease.id, None, change, choose=confirm)
        LOG.info('What lease %s did not use was given back', lease.id)


def _note_use(tx: PlacingTx, lease_id: str, now: int) -> int | None:
    """Note that a lease is not used in full, or that it is used.

    :returns: when the owner was notified, `now` if that is done now; None if
        the lease is used in full, or is changing
    """
    lease = tx.lease(lease_id)
    if lease.status != states.LEASE_ACTIVE or not lease.is_idle:
        return None
    note = {}
    if not _is_used(tx, lease):
        note = {_NOTIFIED_AT: _notified_at(lease) or now}
    for r in _watched(lease):
        made = {k: v for k, v in r.made.items() if k != _NOTIFIED_AT}
        tx.set_reservations_made({r.id: {**made, **note}})
    notified_at = note.get(_NOTIFIED_AT)
    if notified_at == now:
        notifier.lease(tx, LEASE_UNUSED, lease)
    return notified_at


def _notified_at(lease: Lease) -> int | None:
    """Return when the owner was notified, None if that is not so."""
    return max(
        (
            r.made[_NOTIFIED_AT] for r in lease.reservations
            if _NOTIFIED_AT in r.made
        ),
        default=None,
    )


def _watched(lease: Lease) -> list[Reservation]:
    """Return the open reservations of hosts and instances."""
    return [
        r for r in lease.reservations
        if r.demand.is_on_hosts(active=True)
        and r.status == states.RESERVATION_ACTIVE
    ]


def _is_used(source: Reader, lease: Lease) -> bool:
    """Tell whether a lease is used in full."""
    used = _used(source, lease)
    return all(used[r.id] >= _size(source, r) for r in _watched(lease))


def _used(source: Reader, lease: Lease) -> _Used:
    """Return how many hosts or instances of each open reservation are used."""
    found: dict[str, int] = {}
    for r in _watched(lease):
        servers = source.claiming([r.id])
        found[r.id] = len(
            {s.host for s in servers} if r.demand.whole else servers
        )
    return found


def _size(source: Reader, reservation: Reservation) -> int:
    """Return how many hosts or instances a reservation has."""
    if reservation.demand.whole:
        return len(source.allocations(reservation_id=reservation.id))
    return reservation.demand.least


def _changes(lease: Lease, used: _Used) -> list[dict[str, Any]]:
    """Return the changes of reservations by which a lease is used in full."""
    changes: list[dict[str, Any]] = []
    for r in lease.reservations:
        count = used.get(r.id)
        if count is None:
            continue
        if not count:
            changes.append({'id': r.id, 'remove': True})
        elif r.demand.whole:
            least = min(r.demand.least, count)
            changes.append({'id': r.id, 'min': least, 'max': count})
        else:
            changes.append({'id': r.id, 'amount': count})
    return changes
