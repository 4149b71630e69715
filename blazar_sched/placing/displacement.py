# SPDX-License-Identifier: Apache-2.0
"""Displacement: a new lease takes hosts that relocated instances can leave.

A host can be cleared over a window if everything in the way there belongs to
instances that get relocation paths around the window. The instances are moved
on the timeline only: no instance moves before its path says so.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import functools
import itertools
from types import MappingProxyType

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
from blazar_sched.replica.indexes import peaks_of
from blazar_sched.replica.indexes import WHOLE

# The reservation of the allocations that keep cleared hosts free.
_CLEARED = 'cleared'
# The numbers of hosts that cannot be cleared, after which a lease is refused:
# no other commit waits for a search among all hosts of a large cloud. A search
# for a path looks at every host, so that fewer are made in a larger cloud.
MIN_FAILED, MAX_FAILED, MAX_LOOKED = 20, 60, 200_000
# The number of hosts whose costs are determined together, and at most.
WEIGHED, MAX_WEIGHED = 100, 1000
# The number of new paths of instances after which one commit has enough.
ENOUGH = 4
# The most new paths of one trial, and the number of hosts that the search for
# these paths may look at.
MAX_ON_TRIAL, MAX_LOOKED_ON_TRIAL = 40, 40_000


class TooManyDisplaced(exception.NotEnoughHostsAvailable):
    """A lease needs more instances displaced than should be at once.

    :ivar hosts: the hosts that were cleared, the last ones on trial, and the
        windows
    """

    hosts: Mapping[str, Window] = MappingProxyType({})


def place(
    replica: state.Replica, lease: Lease, window: Window, now: int,
    rules: Rules | None, attempt: Callable[[], Allocations],
    options: Options = DEFAULT_OPTIONS,
    cleared: Mapping[str, Window] | None = None, enough: int | None = None,
) -> tuple[Allocations, list[Instance]]:
    """Place a lease; clear hosts for the lease if there is no room otherwise.

    Hosts are cleared one by one, those with the least in the way first, until
    the lease finds room. The replica is restored afterwards.

    :param replica: by LedgerAccounting
    :param rules: the rules of relocation; None if no instance is relocated
    :param attempt: places the lease on the replica as it is at the time
    :param cleared: the hosts that earlier commits have cleared for the lease,
        which other instances do not enter
    :param enough: the number of new paths after which no more hosts are
        cleared at once, None for any number
    :returns: the allocations, and the instances that have another path now
    :raises NotEnoughHostsAvailable: if there is no room after all; no instance
        has another path then
    :raises TooManyDisplaced: if there is no room with `enough` new paths
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
        clearing.keep_free(cleared or {})
        lacking = _lacking(lease, refusal)
        more = True
        while more:
            more = clearing.clear_next(placers, _refused(lease, refusal))
            lacking -= 1
            if lacking <= 0 or (not more and clearing.count):
                try:
                    with clearing.open():
                        return attempt(), clearing.displaced
                except exception.NotEnoughHostsAvailable as e:
                    refusal = e
                    lacking = _lacking(lease, refusal)
            if more and enough is not None and clearing.count >= enough:
                refused = TooManyDisplaced(
                    'more servers would have to be moved than are moved on '
                    'trial; the lease itself may find room',
                    'reservations', name='NotEnoughHostsAvailable',
                )
                refused.hosts = clearing.cleared
                raise refused
        raise refusal


def most_on_trial(replica: state.Replica) -> int:
    """Return the number of new paths that a trial may have.

    Commits wait for a trial as a whole.
    """
    affordable = MAX_LOOKED_ON_TRIAL // (len(replica.hosts) or 1)
    return max(ENOUGH, min(MAX_ON_TRIAL, affordable))


def clear(
    replica: state.Replica, hosts: Mapping[str, Window], now: int, rules: Rules
) -> list[Instance]:
    """Return the instances with new paths that clear hosts over windows.

    A host that cannot be cleared is passed over. The replica is restored
    afterwards.

    :param hosts: the windows over which to clear hosts, by host
    """
    with replica.changing() as put, contextlib.ExitStack() as undo:
        clearing = _Clearing(replica, now, rules, put, undo)
        for host, window in hosts.items():
            if host in replica.hosts:
                clearing.clear(host, window)
        return clearing.displaced


def _lacking(lease: Lease, refusal: exception.NotEnoughHostsAvailable) -> int:
    """Return after how many more hosts to try again to place a lease."""
    demand = _refused(lease, refusal).demand
    if not demand.whole:
        return 1
    return demand.least - int((refusal.offer or {}).get('available', 0))


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
        # The number of new paths; an instance may get one after another.
        self.count = 0
        # The instances with new paths, as they were before.
        self._before: dict[str, Instance] = {}
        # The allocations that keep cleared hosts free, by host.
        self._kept_free: dict[str, Allocation] = {}
        self._failed: set[str] = set()
        affordable = MAX_LOOKED // (len(replica.hosts) or 1)
        self._most_failed = max(MIN_FAILED, min(MAX_FAILED, affordable))
        # The costs of hosts by the number of the placer, the window and the id
        # of the reservation.
        self._costs: dict[tuple[int, Window, str], _Costs] = {}

    @property
    def displaced(self) -> list[Instance]:
        """The instances that have another path than before."""
        return [
            now for uuid, before in self._before.items()
            if (now := self._replica.instances[uuid]) != before
        ]

    @property
    def cleared(self) -> dict[str, Window]:
        """The windows over which hosts are kept free, by host."""
        return {
            host: Window(kept.start, kept.end)
            for host, kept in self._kept_free.items()
        }

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Let the cleared hosts be taken in a block."""
        with self._replica.indexes.removed(self._kept_free.values()):
            yield

    def keep_free(self, hosts: Mapping[str, Window]) -> None:
        """Keep hosts free over windows, like the hosts that are cleared."""
        kept = {
            host: _kept_free(host, window) for host, window in hosts.items()
            if host in self._replica.hosts
        }
        self._kept_free |= kept
        self._undo.enter_context(self._replica.indexes.added(kept.values()))

    def clear_next(
        self, placers: Iterable[Placer], reservation: Reservation
    ) -> bool:
        """Clear another host for a reservation; return whether there is one.

        :param placers: the placers to go by, one after the other
        """
        for number, placer in enumerate(placers):
            candidates = placer.candidates(reservation)
            in_window = placer.room(reservation)
            for room, part in in_window.parts(
                candidates, reservation.demand.slot
            ):
                hosts = functools.partial(
                    group_limit.open_hosts, in_window, part, reservation.demand
                )
                for host in self._by_cost(
                    number, hosts, room.window, reservation
                ):
                    if len(self._failed) >= self._most_failed:
                        return False
                    if self.clear(host, room.window):
                        return True
                    self._failed.add(host)
        return False

    def _by_cost(
        self, number: int, hosts: Callable[[], Iterable[str]], window: Window,
        reservation: Reservation,
    ) -> list[str]:
        """Return hosts that could be cleared, the cheapest first.

        The cost of a host is the size of the instances in the way. Whether
        these instances find paths is not known yet. The costs are determined
        of WEIGHED hosts at a time, those first of which the least is taken.

        :param number: of the placer whose candidates the hosts are
        """
        key = number, window, reservation.id
        if key not in self._costs:
            self._costs[key] = _Costs(self._by_use([*hosts()], window))
        costs = self._costs[key]
        costs.known |= self._weigh(costs.take_again(), window, reservation)
        while True:
            found = {
                host: cost for host, cost in costs.known.items()
                if cost is not None
                and host not in self._kept_free and host not in self._failed
            }
            some = [] if found else costs.take()
            if not some:
                return sorted(found, key=found.__getitem__)
            costs.known |= self._weigh(some, window, reservation)

    def _by_use(self, hosts: Sequence[str], window: Window) -> list[str]:
        """Return hosts, those first of whose VCPUs the least is taken.

        The hosts that are reserved whole are last.
        """
        main = self._replica.indexes.main
        taken = peaks_of(main, main.rows(hosts), window)
        use = zip(taken[WHOLE], taken[inventory.VCPU], hosts, strict=True)
        return [host for *_, host in sorted(use)]

    def _weigh(
        self, hosts: Sequence[str], window: Window, reservation: Reservation
    ) -> dict[str, int | None]:
        """Return the costs of hosts, None for those that cannot be cleared."""
        movers = {host: self._movers(host, window) for host in hosts}
        demand = reservation.demand
        main = self._replica.indexes.main
        # What the reservation has there already, in an earlier form of its
        # lease, is ignored.
        is_rest_free = main.fits(
            main.rows(hosts), window.start, window.end,
            None if demand.whole else packing.amounts_of(demand.slot),
            whole=demand.whole,
            ignore=(reservation.id, *(
                each.uuid for many in movers.values() for each in many
            )),
        )
        return {
            host: sum(map(_size, movers[host]))
            if free and movers[host] else None
            for host, free in zip(hosts, is_rest_free, strict=True)
        }

    def clear(self, host: str, window: Window) -> bool:
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
        kept_free = _kept_free(host, window)
        with contextlib.ExitStack() as undo:
            undo.enter_context(self._replica.indexes.added([kept_free]))
            # Most hosts fail by an instance that finds no path even alone.
            if None in map(self._path, movers):
                return False
            for each in movers:
                path = self._path(each)
                if path is None:
                    self._put(map(record.encode, changed))
                    return False
                changed.append(each)
                new = dataclasses.replace(each, path=path)
                self._put([record.encode(new)])
            self._undo.push(undo.pop_all())
        self._kept_free[host] = kept_free
        self.count += len(changed)
        for each in changed:
            self._before.setdefault(each.uuid, each)
        self._forget_costs(host, changed)
        return True

    def _path(self, instance: Instance) -> relocation.Path | None:
        return relocation.plan(self._replica, instance, self._now, self._rules)

    def _forget_costs(self, host: str, changed: Iterable[Instance]) -> None:
        """Forget the costs of hosts with an entry that has changed.

        :param changed: the instances with new paths, as they were before
        """
        touched = {host}
        for before in changed:
            now = self._replica.instances[before.uuid]
            touched.update(stay.host for stay in (*before.path, *now.path))
            touched.add(before.host)
        for costs in self._costs.values():
            costs.forget(touched)

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


class _Costs:
    """The costs of hosts: known or still to be determined.

    :param hosts: the hosts, in the order in which to determine costs
    :ivar known: by host; None for a host that cannot be cleared
    """

    def __init__(self, hosts: Sequence[str]) -> None:
        self.known: dict[str, int | None] = {}
        self._unknown = iter(hosts[:MAX_WEIGHED])
        self._again: set[str] = set()

    def take(self) -> list[str]:
        """Return the next hosts of which to determine the costs."""
        return list(itertools.islice(self._unknown, WEIGHED))

    def take_again(self) -> list[str]:
        """Return the hosts of which to determine the costs again."""
        again, self._again = sorted(self._again), set()
        return again

    def forget(self, hosts: Iterable[str]) -> None:
        """Have the costs of hosts determined again, where they were."""
        for host in self.known.keys() & hosts:
            del self.known[host]
            self._again.add(host)


def _kept_free(host: str, window: Window) -> Allocation:
    return Allocation(
        f'{_CLEARED} {host}', _CLEARED, host, window.start, window.end,
        whole=True,
    )


def _size(instance: Instance) -> int:
    """Return the VCPUs and the GiB of an instance together."""
    amounts = instance.countable()
    vcpus: int = amounts.get(inventory.VCPU, 0)
    memory_mb: int = amounts.get(inventory.MEMORY_MB, 0)
    return vcpus + memory_mb // inventory.MIB_PER_GIB
