# SPDX-License-Identifier: Apache-2.0
"""Displacement: a new lease takes hosts that relocated instances can leave.

A host can be cleared over a window if everything in the way there belongs to
instances that get relocation paths around the window. The instances are moved
on the timeline only: no instance moves before its path says so.
"""

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import dataclasses

from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.relocation import Rules
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import Window
from blazar_sched.placing import group_limit
from blazar_sched.placing import relocation
from blazar_sched.placing.lease_placing import Allocations
from blazar_sched.placing.lease_placing import Placer
from blazar_sched.placing.options import DEFAULT_OPTIONS
from blazar_sched.placing.options import Options
from blazar_sched.replica import accounting
from blazar_sched.replica import packing
from blazar_sched.replica import record
from blazar_sched.replica import state

# The reservation of the allocations that keep cleared hosts free.
_CLEARED = 'cleared'
# The number of hosts that cannot be cleared, after which a lease is refused:
# no other commit waits for a search among all hosts of a large cloud.
MAX_FAILED = 100


def place(
    replica: state.Replica, lease: Lease, window: Window, now: int,
    rules: Rules | None, attempt: Callable[[], Allocations],
    options: Options = DEFAULT_OPTIONS,
) -> tuple[Allocations, list[Instance]]:
    """Place a lease; clear hosts for the lease if there is no room otherwise.

    Hosts are cleared one by one, those with the least in the way first, until
    the lease finds room. The replica is restored afterwards.

    :param replica: by LedgerAccounting
    :param rules: the rules of relocation; None if no instance is relocated
    :param attempt: places the lease on the replica as it is at the time
    :returns: the allocations, and the instances that have another path now
    :raises NotEnoughHostsAvailable: if there is no room after all; no instance
        has another path then
    """
    try:
        return attempt(), []
    except exception.NotEnoughHostsAvailable as e:
        if rules is None:
            raise
        refusal = e
    placers = [
        Placer(replica, lease.project_id, window, each)
        for each in options.alternatives()
    ]
    with replica.changing() as put, contextlib.ExitStack() as undo:
        clearing = _Clearing(replica, now, rules, put, undo)
        while clearing.clear_next(placers, _refused(lease, refusal)):
            try:
                with clearing.open():
                    return attempt(), clearing.displaced
            except exception.NotEnoughHostsAvailable as e:
                refusal = e
        raise refusal


def _refused(
    lease: Lease, refusal: exception.NotEnoughHostsAvailable
) -> Reservation:
    """Return the reservation that found no room."""
    position: int = (refusal.offer or {}).get('reservation', 0)
    return lease.reservations[position]


class _Clearing:
    """The clearing of hosts for one lease.

    :param put: puts the records of instances with new paths on trial into the
        replica
    :param undo: receives the removal of the allocations that keep the cleared
        hosts free
    """

    def __init__(
        self, replica: state.Replica, now: int, rules: Rules, put: state.Put,
        undo: contextlib.ExitStack,
    ) -> None:
        self._replica = replica
        self._now = now
        self._rules = rules
        self._put = put
        self._undo = undo
        # The instances with new paths, as they were before.
        self._before: dict[str, Instance] = {}
        # The allocations that keep cleared hosts free, by host.
        self._kept_free: dict[str, Allocation] = {}
        self._failed: set[str] = set()
        # The costs of hosts, None for a host that cannot be cleared, by the
        # window and the id of the reservation.
        self._costs: dict[
            tuple[Window, str], dict[str, int | None]
        ] = defaultdict(dict)

    @property
    def displaced(self) -> list[Instance]:
        """The instances that have another path than before."""
        return [
            now for uuid, before in self._before.items()
            if (now := self._replica.instances[uuid]) != before
        ]

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Let the cleared hosts be taken in a block."""
        with self._replica.indexes.removed(self._kept_free.values()):
            yield

    def clear_next(
        self, placers: Iterable[Placer], reservation: Reservation
    ) -> bool:
        """Clear another host for a reservation; return whether there is one.

        :param placers: the placers to go by, one after the other
        """
        for placer in placers:
            candidates = placer.candidates(reservation)
            in_window = placer.room(reservation)
            for room, part in in_window.parts(
                candidates, reservation.demand.slot
            ):
                for host in self._by_cost(
                    group_limit.open_hosts(
                        in_window, part, reservation.demand
                    ),
                    room.window, reservation,
                ):
                    if len(self._failed) >= MAX_FAILED:
                        return False
                    if self._clear(host, room.window):
                        return True
                    self._failed.add(host)
        return False

    def _by_cost(
        self, hosts: Iterable[str], window: Window, reservation: Reservation
    ) -> list[str]:
        """Return the hosts that could be cleared, the cheapest first.

        The cost of a host is the size of the instances in the way. Whether
        these instances find paths is not known yet.
        """
        known = self._costs[window, reservation.id]
        costs = {}
        for host in hosts:
            if host in self._kept_free or host in self._failed:
                continue
            if host not in known:
                known[host] = self._cost(host, window, reservation)
            cost = known[host]
            if cost is not None:
                costs[host] = cost
        return sorted(costs, key=costs.__getitem__)

    def _cost(
        self, host: str, window: Window, reservation: Reservation
    ) -> int | None:
        movers = self._movers(host, window)
        if movers and self._is_rest_free(host, window, movers, reservation):
            return sum(map(_size, movers))
        return None

    def _clear(self, host: str, window: Window) -> bool:
        """Give the instances in the way on a host paths around a window.

        The largest instance is first, and instances of one size go by their
        uuids: the result does not depend on the order of a set. Nothing is
        changed if an instance has no path.
        """
        movers = sorted(
            self._movers(host, window),
            key=lambda each: (-_size(each), each.uuid),
        )
        changed: list[Instance] = []
        kept_free = Allocation(
            f'{_CLEARED} {host}', _CLEARED, host, window.start, window.end,
            whole=True,
        )
        with contextlib.ExitStack() as undo:
            undo.enter_context(self._replica.indexes.added([kept_free]))
            for each in movers:
                path = relocation.plan(
                    self._replica, each, self._now, self._rules
                )
                if path is None:
                    self._put(map(record.encode, changed))
                    return False
                changed.append(each)
                self._put([
                    record.encode(dataclasses.replace(each, path=path))
                ])
            self._undo.push(undo.pop_all())
        self._kept_free[host] = kept_free
        for each in changed:
            self._before.setdefault(each.uuid, each)
        self._forget_costs(host, changed)
        return True

    def _forget_costs(self, host: str, changed: Iterable[Instance]) -> None:
        """Forget the costs of hosts with an entry that has changed.

        :param changed: the instances with new paths, as they were before
        """
        touched = {host}
        for before in changed:
            now = self._replica.instances[before.uuid]
            touched.update(stay.host for stay in (*before.path, *now.path))
            touched.add(before.host)
        for known in self._costs.values():
            for each in touched:
                known.pop(each, None)

    def _movers(self, host: str, window: Window) -> list[Instance]:
        """Return the movable instances in the way on a host."""
        replica = self._replica
        found = {
            each.uuid: each for each in replica.present.instances_on(host)
            if each.leaves_at > window.start
        }
        for uuid in replica.arriving.get(host, ()):
            each = replica.instances[uuid]
            if any(
                stay.host == host
                and stay.start < window.end and window.start < stay.end
                for stay in each.relocations
            ):
                found[uuid] = each
        return [
            each for each in found.values()
            if each.movable and each.leaves_at > self._now
            and accounting.occupancy(each, overdue=False) is not None
        ]

    def _is_rest_free(
        self, host: str, window: Window, movers: Iterable[Instance],
        reservation: Reservation,
    ) -> bool:
        """Tell whether a host has room if the movers leave the host.

        What the reservation has there already, in an earlier form of its
        lease, is ignored.
        """
        demand = reservation.demand
        main = self._replica.indexes.main
        [fits] = main.fits(
            main.rows([host]), window.start, window.end,
            None if demand.whole else packing.amounts_of(demand.slot),
            whole=demand.whole,
            ignore=(reservation.id, *(each.uuid for each in movers)),
        )
        return bool(fits)


def _size(instance: Instance) -> int:
    """Return the VCPUs and the GiB of an instance together."""
    amounts = instance.countable()
    vcpus: int = amounts.get(inventory.VCPU, 0)
    memory_mb: int = amounts.get(inventory.MEMORY_MB, 0)
    return vcpus + memory_mb // inventory.MIB_PER_GIB
