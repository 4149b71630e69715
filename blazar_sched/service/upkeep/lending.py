# SPDX-License-Identifier: Apache-2.0
"""The loop that lends what open reservations do not use.

What is lent, and what the owner keeps, is in the ledger: nova-scheduler places
preemptible instances by it. Several managers may do the same: what is written
is decided in a commit. See domain.lending.
"""

from collections import Counter
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import functools

from oslo_config import cfg
from oslo_log import log

from blazar_sched.conf import manager as manager_conf
from blazar_sched.domain import exception
from blazar_sched.domain import lending
from blazar_sched.domain import states
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lending import Lending
from blazar_sched.domain.reservation import Reservation
from blazar_sched.service import loop
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.metrics import Metrics
from blazar_sched.service.resources import vacating

LOG = log.getLogger(__name__)


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
        self._objects = loop.Objects[str]('lending', metrics)
        self._loop = loop.Loop(
            'lending', self.step, lambda: self._conf.lend_interval
        )

    def wake(self) -> None:
        """Look at all reservations soon."""
        self._loop.wake()

    def step(self) -> None:
        """Look at every open reservation that lends, or may lend.

        :raises Unavailable: if Nova does not answer
        """
        now = int(self._clock())
        ids = self._ledger.read_replica(lambda replica: sorted({
            reservation.lease_id
            for reservation in map(
                replica.reservations.__getitem__, replica.lending
            )
            if reservation.start <= now < reservation.end
        }))
        self._objects.each(
            ((id_, id_) for id_ in ids), lambda id_: self._look(id_, now), now
        )

    def _look(self, lease_id: str, now: int) -> None:
        """Lend and recall what is due, and clear what is recalled."""
        for reservation in _open(self._ledger, lease_id):
            new = Lending.decode(reservation.made)
            costs = self._costs(reservation)
            if self._next(self._ledger, reservation, costs, now) != new:
                new = self._ledger.commit(functools.partial(
                    self._write, lease_id, reservation.id, costs, now
                ))
            for host in self._ledger.hosts([*new.recalled]):
                self._clear(lease_id, reservation, host, new, now)

    def _next(
        self,
        source: Reader,
        reservation: Reservation,
        costs: Mapping[str, int],
        now: int,
    ) -> Lending:
        """Return what a reservation lends from now on."""
        demand = reservation.demand
        allocations = [
            each for each, _ in source.allocations(
                reservation_id=reservation.id
            )
        ]
        start = min((each.start for each in allocations), default=now)
        return lending.next_lending(
            Lending.decode(reservation.made),
            {each.host: demand.slots_in(each.amounts) for each in allocations},
            _used(reservation, source.claiming([reservation.id])), now,
            reservation.lend and self._conf.lend != manager_conf.NEVER
            and start + self._conf.lend_after <= now,
            lambda host: costs.get(host, 0),
        )

    def _costs(self, reservation: Reservation) -> dict[str, int]:
        """Return what a recall costs others, by host: the memory in use."""
        return self._ledger.read_replica(lambda replica: {
            host: replica.preemptible_mb[host]
            for host in replica.indexes.allocations(reservation.id)
        })

    def _write(
        self,
        lease_id: str,
        reservation_id: str,
        costs: Mapping[str, int],
        now: int,
        tx: PlacingTx,
    ) -> Lending:
        """Write what a reservation lends from now on, and return it.

        Nothing is lent of a reservation that is no longer open.
        """
        for each in _open(tx, lease_id):
            if each.id == reservation_id:
                new = self._next(tx, each, costs, now)
                _put(tx, each, new)
                return new
        return Lending()

    def _clear(
        self,
        lease_id: str,
        reservation: Reservation,
        host: Host,
        known: Lending,
        now: int,
    ) -> None:
        """Have the preemptible servers leave the recalled units of a host.

        :raises Unavailable: if Nova does not answer
        """
        lease = self._ledger.lease(lease_id)
        cause = vacating.for_recall(
            lease, reservation, host, known.recalled_at[host.uuid],
            self._conf.lend_notice,
        )
        going = self._vacater.borrowers(lease, reservation, host, now)
        if not self._vacater.vacate(cause, going, now):
            return

        def write(tx: PlacingTx) -> None:
            for each in _open(tx, lease_id):
                new = Lending.decode(each.made).cleared(host.uuid)
                if each.id == reservation.id and (
                    # More may have been recalled meanwhile.
                    new.recalled_at != known.recalled_at
                ):
                    _put(tx, each, new)

        self._ledger.commit(write)
        LOG.info(
            'Lease %s has got back what it lent on host %s', lease_id,
            host.hypervisor_hostname,
        )


def _open(source: Reader, lease_id: str) -> list[Reservation]:
    """Return the open reservations of a lease that may lend units.

    A lease that is gone, or is changing, has none.
    """
    try:
        lease = source.lease(lease_id)
    except exception.LeaseNotFound:
        return []
    if lease.status != states.LEASE_ACTIVE or not lease.is_idle:
        return []
    return [
        each for each in lease.reservations
        if each.demand.is_on_hosts(active=True)
        and each.status == states.RESERVATION_ACTIVE
        and (each.lend or lending.LENDING in each.made)
    ]


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
