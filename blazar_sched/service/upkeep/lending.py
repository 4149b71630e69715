# SPDX-License-Identifier: Apache-2.0
"""The loop that lends what open reservations do not use.

What is lent, and what the owner keeps, is in the ledger: nova-scheduler places
preemptible instances by it. Several managers may do the same: what is written
is decided in a commit. See domain.lending.
"""

from collections import Counter
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import functools
from typing import NamedTuple

from oslo_config import cfg
from oslo_log import log

from blazar_sched.conf import manager as manager_conf
from blazar_sched.domain import exception
from blazar_sched.domain import lending
from blazar_sched.domain import states
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.lending import Lending
from blazar_sched.domain.reservation import Reservation
from blazar_sched.placing import relocation
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.service import loop
from blazar_sched.service.bus import notifier
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.metrics import Metrics
from blazar_sched.service.resources import vacating

LOG = log.getLogger(__name__)

# Seconds until the next look at a reservation of which there is nothing new.
RECHECK = 60


class _Glance(NamedTuple):
    """What the replica has of a reservation.

    :ivar record: the reservation
    :ivar bound: the uuids of the instances that are bound to it
    :ivar overfull: the hosts on which preemptible instances seem to use what
        the reservation does not lend
    """

    record: record.Reservation
    bound: frozenset[str]
    overfull: tuple[str, ...]


class Lendings(loop.Looped):
    """The lending of all open reservations.

    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        ledger: Ledger,
        vacater: vacating.Vacater,
        clock: Callable[[], float],
        metrics: Metrics,
    ) -> None:
        self._conf = conf.manager
        self._ledger = ledger
        self._vacater = vacater
        self._clock = clock
        # What the replica had of each reservation at its last look, and the
        # time of the next look if that stays so, by id.
        self._seen: dict[str, tuple[_Glance, int]] = {}
        self._objects = loop.Objects[str]('lending', metrics)
        self._loop = loop.Loop(
            'lending', self.step, lambda: self._conf.lend_interval
        )

    def wake(self) -> None:
        """Look at all reservations soon."""
        self._loop.wake()

    def step(self) -> None:
        """Look at every open reservation that lends, or may lend.

        A reservation of which the replica has nothing new is looked at only
        every RECHECK seconds.

        :raises Unavailable: if Nova does not answer
        """
        now = int(self._clock())
        glances = self._ledger.read_replica(lambda replica: {
            id_: _glance(replica, replica.reservations[id_], now)
            for id_ in replica.lending
            if replica.reservations[id_].start <= now
        })
        self._seen = {
            id_: seen for id_, seen in self._seen.items() if id_ in glances
        }
        self._objects.each(
            ((id_, id_) for id_, glance in glances.items()
             if self._is_due(id_, glance, now)),
            lambda id_: self._look(glances[id_], now), now,
        )

    def _is_due(self, id_: str, glance: _Glance, now: int) -> bool:
        known, until = self._seen.get(id_, (None, 0))
        return known != glance or until <= now or bool(
            glance.record.recalled or glance.overfull
        )

    def _look(self, glance: _Glance, now: int) -> None:
        """Lend and recall what is due, and clear what is recalled."""
        known = glance.record
        found = _open(self._ledger, known)
        if found is None:
            return
        lease, reservation = found
        next_ = functools.partial(
            self._next, costs=self._costs(reservation), now=now, strays={
                host.uuid for host in self._ledger.hosts(glance.overfull)
                if self._vacater.borrowers(lease, reservation, host, now)
            },
        )
        old = new = Lending.decode(reservation.made)
        if next_(self._ledger, lease, reservation) != old:
            old, new = self._ledger.commit(
                functools.partial(_write, known, next_)
            )
        for host in self._ledger.hosts([*new.recalled_at]):
            self._clear(lease, reservation, host, new, now)
        begins = known.start + self._conf.lend_after
        again = now + RECHECK if begins <= now else min(now + RECHECK, begins)
        self._seen[known.id] = glance, again

    def _next(
        self,
        source: Reader,
        lease: Lease,
        reservation: Reservation,
        costs: Mapping[str, int],
        now: int,
        strays: Collection[str],
    ) -> Lending:
        """Return what a reservation lends from now on.

        A host on which nothing can be booted now has no units.

        :param strays: see `next_lending`
        """
        units = lending.units_in(reservation, (
            each for each, _ in source.allocations(
                reservation_id=reservation.id
            )
        ))
        usable = {
            host.uuid for host in source.hosts([*units])
            if host.reservable and not host.is_closed(now)
        }
        return lending.next_lending(
            Lending.decode(reservation.made),
            {host: n for host, n in units.items() if host in usable},
            _used(reservation, source.claiming([reservation.id])), now,
            reservation.lend and self._conf.lend != manager_conf.NEVER
            and lease.start + self._conf.lend_after <= now,
            lambda host: costs.get(host, 0), strays,
        )

    def _costs(self, reservation: Reservation) -> dict[str, int]:
        """Return what a recall costs others, by host: the memory in use."""
        return self._ledger.read_replica(lambda replica: {
            host: replica.preemptible_mb[host]
            for host in replica.indexes.allocations(reservation.id)
        })

    def _clear(
        self,
        lease: Lease,
        reservation: Reservation,
        host: Host,
        known: Lending,
        now: int,
    ) -> None:
        """Have the preemptible servers leave the recalled units of a host.

        :raises Unavailable: if Nova does not answer
        """
        cause = vacating.for_recall(
            lease, reservation, host, known.recalled_at[host.uuid],
            self._conf.lend_notice,
        )
        going = self._vacater.borrowers(lease, reservation, host, now)
        if not self._vacater.vacate(cause, going, now):
            return

        def write(tx: PlacingTx) -> None:
            found = _open(tx, reservation)
            if found is None:
                return
            _, current = found
            new = Lending.decode(current.made)
            # Another manager may have recalled more on the host meanwhile.
            if new.recalled.get(host.uuid) == known.recalled.get(host.uuid):
                _put(tx, current, new.cleared(host.uuid))

        self._ledger.commit(write)
        LOG.info(
            'Lease %s has got back what it lent on host %s', lease.id,
            host.hypervisor_hostname,
        )


def _glance(
    replica: state.Replica, known: record.Reservation, now: int
) -> _Glance:
    held = replica.indexes.allocations(known.id).keys()
    return _Glance(
        known, frozenset(replica.bound.get(known.id, ())), tuple(sorted(
            host for host in held & replica.preemptible.keys()
            if host not in known.recalled and (
                host not in known.lent if known.slot is None
                else _is_overfull(replica, host, now)
            )
        )),
    )


def _is_overfull(replica: state.Replica, host: str, now: int) -> bool:
    """Tell whether instances use what open reservations do not lend."""
    taken = relocation.taken_now(replica, host, now)
    return any(
        amount > replica.hosts[host].capacity(c) for c, amount in taken.items()
    )


def _write(
    known: record.Reservation,
    next_: Callable[[Reader, Lease, Reservation], Lending],
    tx: PlacingTx,
) -> tuple[Lending, Lending]:
    """Write what a reservation lends from now on.

    Nothing is written of a reservation that is no longer open.

    :returns: what the reservation lent before, and what it lends
    """
    found = _open(tx, known)
    if found is None:
        return Lending(), Lending()
    lease, reservation = found
    old, new = Lending.decode(reservation.made), next_(tx, *found)
    _put(tx, reservation, new)
    if new.told != old.told:
        notifier.lending(tx, lease, reservation.id, new.told)
    return old, new


def _open(
    source: Reader, known: record.Reservation | Reservation
) -> tuple[Lease, Reservation] | None:
    """Return a reservation as it is now, with its lease, if it may lend units.

    None if the lease is gone or is changing, or if the reservation is not
    open.
    """
    try:
        lease = source.lease(known.lease_id)
    except exception.LeaseNotFound:
        return None
    if lease.status != states.LEASE_ACTIVE or not lease.is_idle:
        return None
    return next(
        (
            (lease, each) for each in lease.reservations
            if each.id == known.id
            and each.demand.is_on_hosts(active=True)
            and each.status == states.RESERVATION_ACTIVE
            and (each.lend or lending.LENDING in each.made)
        ),
        None,
    )


def _put(tx: PlacingTx, reservation: Reservation, new: Lending) -> None:
    tx.set_reservation_made(
        reservation.id, {**reservation.made, **new.encode()}
    )


def _used(
    reservation: Reservation, claiming: Iterable[Instance]
) -> dict[str, int]:
    """Return how many units the servers of a reservation use, by host."""
    amounts: dict[str, Counter[str]] = defaultdict(Counter)
    for each in claiming:
        amounts[each.host].update(each.amounts)
    return {
        host: reservation.demand.filled(used)
        for host, used in amounts.items()
    }
