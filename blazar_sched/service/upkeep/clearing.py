# SPDX-License-Identifier: Apache-2.0
"""The loop that clears open reservations of preemptible servers of others.

A preemptible server may be where an open reservation has a host or its room:
it was on its way when the reservation opened, or its removal has failed. The
ledger has the hosts that are waited for, so that the owner is told. Several
managers may do the same: what is written is decided in a commit.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import functools
from typing import NamedTuple

from oslo_config import cfg
from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.demand import ON_HOSTS
from blazar_sched.domain.host import Host
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.reservation import WAITED_FOR
from blazar_sched.placing.clearing import overfull
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.service import loop
from blazar_sched.service import slices
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.metrics import Metrics
from blazar_sched.service.resources import vacating

LOG = log.getLogger(__name__)

# Seconds between two looks at all active leases.
INTERVAL = 5.0
# Seconds until the next look at a reservation of which there is nothing new.
RECHECK = 60
# The most hosts, or reservations, of one query of the replica.
SLICE = 500


class _Glance(NamedTuple):
    """What the replica has of a reservation.

    :ivar record: the reservation
    :ivar overfull: the hosts on which preemptible instances seem to use what
        is reserved; whether one is still on its way
    """

    record: record.Reservation
    overfull: Mapping[str, bool]


class Clearing(loop.Looped):
    """The clearing of all open reservations.

    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self, conf: cfg.ConfigOpts, ledger: Ledger, vacater: vacating.Vacater,
        clock: Callable[[], float], metrics: Metrics,
    ) -> None:
        self._conf = conf.manager
        self._ledger = ledger
        self._vacater = vacater
        self._clock = clock
        # What the replica had of each reservation at its last look, and the
        # time of the next look if that stays so, by id.
        self._seen: dict[str, tuple[_Glance, int]] = {}
        self._objects = loop.Objects[str]('clearing', metrics)
        self._loop = loop.Loop('clearing', self.step, lambda: INTERVAL)

    def step(self) -> None:
        """Look at every open reservation that is used by others.

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
        used, ids = read(
            lambda replica: (list(replica.preemptible), set(replica.waiting))
        )
        crowded: dict[str, bool] = {}
        for hosts in slices.of(used, SLICE):
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
        """Write which hosts are waited for, and clear these."""
        known = glance.record
        found = _open(self._ledger, known)
        if found is None:
            return
        lease, reservation = found
        waited_for = reservation.made.get(WAITED_FOR, {})
        crowded = {
            host.uuid
            for host in self._ledger.hosts({*glance.overfull, *waited_for})
            if glance.overfull.get(host.uuid)
            or self._vacater.to_clear(lease, reservation, host, now)
        }
        if _next(self._ledger, reservation, crowded, now) != waited_for:
            waited_for = self._ledger.commit(
                functools.partial(_write, known, crowded, now)
            )
        for host in self._ledger.hosts([*waited_for]):
            self._clear(lease, reservation, host, waited_for[host.uuid], now)
        self._seen[known.id] = glance, now if waited_for else now + RECHECK

    def _clear(
        self, lease: Lease, reservation: Reservation, host: Host, since: int,
        now: int,
    ) -> None:
        """Have the preemptible servers leave what is reserved of a host.

        :raises Unavailable: if Nova does not answer
        """
        cause = vacating.for_clearing(
            lease, reservation, host, since, self._conf.clear_notice
        )
        going = self._vacater.to_clear(lease, reservation, host, now)
        if not self._vacater.vacate(cause, going, now) or (
            self._ledger.read_replica(
                lambda replica: overfull(replica, [host.uuid], now)
            ).get(host.uuid)
        ):
            # Another server may still be on its way to the host.
            return

        def write(tx: PlacingTx) -> None:
            found = _open(tx, reservation)
            if found is not None:
                _, current = found
                waited_for = dict(current.made.get(WAITED_FOR, {}))
                waited_for.pop(host.uuid, None)
                _put(tx, current, waited_for)

        self._ledger.commit(write)
        LOG.info(
            'No preemptible server uses what lease %s holds on host %s any '
            'more', lease.id, host.hypervisor_hostname,
        )


def _glances(
    replica: state.Replica, ids: Iterable[str], crowded: Mapping[str, bool],
    now: int,
) -> dict[str, _Glance]:
    return {
        id_: _glance(replica, known, crowded) for id_ in ids
        if (known := replica.reservations.get(id_)) is not None
        and known.start <= now and known.resource_type in ON_HOSTS
    }


def _glance(
    replica: state.Replica, known: record.Reservation,
    crowded: Mapping[str, bool],
) -> _Glance:
    held = replica.indexes.allocations(known.id).keys()
    return _Glance(known, {
        host: crowded[host] for host in held & crowded.keys()
        if not replica.preemptible.get(host, set()) <= {*known.in_the_way}
    })


def _next(
    source: Reader, reservation: Reservation, crowded: Collection[str],
    now: int,
) -> dict[str, int]:
    """Return since when each host is waited for, in epoch seconds.

    :param crowded: the hosts that preemptible servers have to leave
    """
    known = reservation.made.get(WAITED_FOR, {})
    return {
        each.host: known.get(each.host, now)
        for each, _ in source.allocations(reservation_id=reservation.id)
        if each.host in crowded
    }


def _write(
    known: record.Reservation, crowded: Collection[str], now: int,
    tx: PlacingTx,
) -> dict[str, int]:
    """Write which hosts a reservation waits for, and return these.

    Nothing is written of a reservation that is no longer open.
    """
    found = _open(tx, known)
    if found is None:
        return {}
    _, reservation = found
    waited_for = _next(tx, reservation, crowded, now)
    _put(tx, reservation, waited_for)
    return waited_for


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


def _put(
    tx: PlacingTx, reservation: Reservation, waited_for: Mapping[str, int]
) -> None:
    made = {**reservation.made, WAITED_FOR: waited_for}
    if not waited_for:
        del made[WAITED_FOR]
    tx.set_reservations_made({reservation.id: made})
