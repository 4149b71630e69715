# SPDX-License-Identifier: Apache-2.0
"""The loop that lends what open reservations do not use, and clears the rest.

What is lent, and what the owner keeps, is in the ledger: nova-scheduler places
preemptible instances by it. A preemptible instance may nevertheless be where
nothing is lent, whether the reservation lends or not: it was on its way when
the reservation opened or when units were recalled, or its removal has failed.
Several managers may do the same: what is written is decided in a commit. See
domain.lending.
"""

from collections import Counter
from collections import defaultdict
from collections.abc import Callable
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
from blazar_sched.domain.demand import ON_HOSTS
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.lending import Lending
from blazar_sched.domain.reservation import Reservation
from blazar_sched.placing.lending import overfull
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.service import loop
from blazar_sched.service import slices
from blazar_sched.service.bus import notifier
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.metrics import Metrics
from blazar_sched.service.resources import vacating

LOG = log.getLogger(__name__)

# Seconds until the next look at a reservation of which there is nothing new.
RECHECK = 60
# The most hosts, or reservations, of one query of the replica.
SLICE = 500


class _Glance(NamedTuple):
    """What the replica has of a reservation.

    :ivar record: the reservation
    :ivar bound: the uuids of the instances that are bound to it
    :ivar overfull: the hosts on which preemptible instances seem to use what
        the reservation does not lend; whether one is still on its way
    """

    record: record.Reservation
    bound: frozenset[str]
    overfull: Mapping[str, bool]


class Lendings(loop.Looped):
    """The lending, and the clearing, of all open reservations.

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
        """Look at every open reservation that lends, or is used by others.

        A reservation of which the replica has nothing new is looked at only
        every RECHECK seconds.

        :raises Unavailable: if Nova does not answer
        """
        now = int(self._clock())
        glances = self._glances(now)
        self._seen = {
            id_: seen for id_, seen in self._seen.items() if id_ in glances
        }
        self._objects.each(
            ((id_, id_) for id_, glance in glances.items()
             if self._is_due(id_, glance, now)),
            lambda id_: self._look(glances[id_], now), now,
        )

    def _glances(self, now: int) -> dict[str, _Glance]:
        """Return what the replica has of the reservations, by id.

        The replica is held only for some hosts or reservations at a time.
        """
        read = self._ledger.read_replica
        borrowed, ids = read(
            lambda replica: (list(replica.preemptible), set(replica.lending))
        )
        crowded: dict[str, bool] = {}
        for hosts in slices.of(borrowed, SLICE):
            found = read(functools.partial(overfull, hosts=hosts, now=now))
            crowded |= found
            if found:
                ids.update(
                    each.reservation_id for each, _ in
                    self._ledger.allocations(hosts=found, after=now)
                )
        glances: dict[str, _Glance] = {}
        for some in slices.of(ids, SLICE):
            glances |= read(functools.partial(
                _glances, ids=some, crowded=crowded, now=now
            ))
        return glances

    def _is_due(self, id_: str, glance: _Glance, now: int) -> bool:
        known, until = self._seen.get(id_, (None, 0))
        return known != glance or until <= now

    def _look(self, glance: _Glance, now: int) -> None:
        """Lend and recall what is due, and clear what is not lent."""
        known = glance.record
        found = _open(self._ledger, known)
        if found is None:
            return
        lease, reservation = found
        old = new = Lending.decode(reservation.made)
        suspected = {*glance.overfull, *old.recalled_at} - {*old.recalled}
        next_ = functools.partial(
            self._next, costs=self._costs(reservation), now=now, strays={
                host.uuid for host in self._ledger.hosts(suspected)
                if glance.overfull.get(host.uuid)
                or self._vacater.borrowers(lease, reservation, host, now)
            },
        )
        if next_(self._ledger, lease, reservation) != old:
            old, new = self._ledger.commit(
                functools.partial(_write, known, next_)
            )
        for host in self._ledger.hosts([*new.recalled_at]):
            self._clear(lease, reservation, host, new, now)
        begins = known.start + self._conf.lend_after
        again = now + RECHECK if begins <= now else min(now + RECHECK, begins)
        self._seen[known.id] = glance, now if new.recalled_at else again

    def _next(
        self,
        source: Reader,
        lease: Lease,
        reservation: Reservation,
        costs: Mapping[str, int],
        now: int,
        strays: set[str],
    ) -> Lending:
        """Return what a reservation lends from now on.

        A host on which nothing can be booted now has no units.

        :param strays: see `next_lending`
        """
        known = Lending.decode(reservation.made)
        units = lending.units_in(reservation, (
            each for each, _ in source.allocations(
                reservation_id=reservation.id
            )
        ))
        if not reservation.lend and not known.has_lent:
            return known.waiting(strays & units.keys(), now)
        usable = {
            host.uuid for host in source.hosts([*units])
            if host.reservable and not host.is_closed(now)
        }
        return lending.next_lending(
            known, {host: n for host, n in units.items() if host in usable},
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
        """Have the preemptible servers leave what is not lent of a host.

        :raises Unavailable: if Nova does not answer
        """
        cause = vacating.for_recall(
            lease, reservation, host, known.recalled_at[host.uuid],
            self._conf.lend_notice,
        )
        going = self._vacater.borrowers(lease, reservation, host, now)
        if not self._vacater.vacate(cause, going, now) or (
            self._ledger.read_replica(
                lambda replica: overfull(replica, [host.uuid], now)
            ).get(host.uuid)
        ):
            # Another server may still be on its way to the host.
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
            'No preemptible server uses what lease %s does not lend on host '
            '%s any more', lease.id, host.hypervisor_hostname,
        )


def _glances(
    replica: state.Replica,
    ids: Iterable[str],
    crowded: Mapping[str, bool],
    now: int,
) -> dict[str, _Glance]:
    return {
        id_: _glance(replica, known, crowded) for id_ in ids
        if (known := replica.reservations.get(id_)) is not None
        and known.start <= now and known.resource_type in ON_HOSTS
    }


def _glance(
    replica: state.Replica,
    known: record.Reservation,
    crowded: Mapping[str, bool],
) -> _Glance:
    held = replica.indexes.allocations(known.id).keys()
    return _Glance(known, frozenset(replica.bound.get(known.id, ())), {
        host: crowded[host] for host in held & crowded.keys()
        if not replica.preemptible.get(host, set()) <= {*known.in_the_way}
    })


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
    """Return a reservation as it is now, with its lease, if it is open.

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
        ),
        None,
    )


def _put(tx: PlacingTx, reservation: Reservation, new: Lending) -> None:
    made = {**reservation.made, **new.encode()}
    if not reservation.lend and new == Lending():
        del made[lending.LENDING]
    tx.set_reservations_made({reservation.id: made})


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
