# SPDX-License-Identifier: Apache-2.0
"""The hosts that leases which have not started can leave.

Such a lease can leave a host to let an instance in that would be in the way.
nova-scheduler cannot place a lease, so these hosts are found ahead, all of
them together: whichever of them get an instance, every lease finds other
hosts.

The leases are moved on trial, and the replica is restored afterwards.
"""

from collections import defaultdict
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
import heapq
import itertools
import operator

from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.inventory import VCPU
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.window import Window
from blazar_sched.placing import lease_placing
from blazar_sched.placing import overload
from blazar_sched.placing import reallocation
from blazar_sched.placing.options import DEFAULT_OPTIONS
from blazar_sched.placing.options import Options
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.replica.indexes import peaks_of

# The reservations, those that start first, whose hosts are looked at; and the
# most hosts that are tried, and that are found.
MAX_RESERVATIONS, MAX_TRIED, MAX_FOUND = 200, 8, 4
# The most reservations that leave a host on trial: commits of this process
# wait meanwhile.
MAX_MOVED = 50

# The uuids of the hosts that a reservation can leave, by its id.
Leavable = dict[str, tuple[str, ...]]


def hosts_to_try(replica: state.Replica, now: int, soon: int) -> list[str]:
    """Return the hosts to try, those first that were found before.

    Of the others, the hosts with the most VCPUs free now are first.

    O(reservations), and MAX_RESERVATIONS queries of the indexes.

    :param replica: by LedgerAccounting
    :param soon: the time after which a lease must start in order to leave
    """
    pending = heapq.nsmallest(
        MAX_RESERVATIONS,
        (each for each in replica.reservations.values() if each.start > soon),
        key=operator.attrgetter('start'),
    )
    reserved = {
        host for reservation in pending
        for host in replica.indexes.allocations(reservation.id)
    }
    hosts = [
        host for host in reserved
        if replica.hosts[host].takes_relocated
        and not overload.is_overloaded(replica, host, now)
    ]
    main = replica.indexes.main
    taken = peaks_of(main, main.rows(hosts), Window(now, now + 1))[VCPU]
    free = {
        host: replica.hosts[host].capacity(VCPU) - peak
        for host, peak in zip(hosts, taken, strict=True)
    }
    return sorted(
        hosts, key=lambda h: (h not in replica.leavable, -free[h], h)
    )[:MAX_TRIED]


def find(
    replica: state.Replica, hosts: Sequence[str], leases: Iterable[Lease],
    options: Options = DEFAULT_OPTIONS,
) -> Leavable:
    """Return the hosts that leases can leave, all of these hosts together.

    A reallocation of each lease on each of the hosts.

    :param replica: by LedgerAccounting
    :param hosts: uuids of the hosts, in the order in which they are tried
    :param leases: the leases that may leave hosts
    """
    search = Search(replica, leases, options)
    for host in hosts:
        search.try_host(replica, host)
    return search.found()


class Search:
    """The search for hosts that leases can leave, host by host.

    The leases leave one host after the other. A host that was left is not
    taken again, and a host that was taken is not left.

    :param replica: by LedgerAccounting
    :param leases: the leases that may leave hosts
    """

    def __init__(
        self, replica: state.Replica, leases: Iterable[Lease],
        options: Options = DEFAULT_OPTIONS,
    ) -> None:
        self._options = options
        self._on_host: defaultdict[str, list[Lease]] = defaultdict(list)
        for lease in leases:
            held = lease_placing.allocations_of(replica, lease)
            for host in {a.host for many in held.values() for a in many}:
                self._on_host[host].append(lease)
        self._found: defaultdict[str, list[str]] = defaultdict(list)
        self._left: set[str] = set()
        self._taken: set[str] = set()
        # The moves to other hosts so far.
        self._moves: list[record.Record] = []

    def try_host(self, replica: state.Replica, host: str) -> None:
        """Have the leases on a host leave the host on trial.

        A reallocation of each of the leases. A host is passed over if they
        have more than MAX_MOVED reservations, or if MAX_FOUND hosts are found.
        """
        leases = self._on_host[host]
        count = sum(len(lease.reservations) for lease in leases)
        if (
            host in self._taken or count > MAX_MOVED
            or len(self._left) == MAX_FOUND
        ):
            return
        with replica.changing() as put:
            put(self._moves)
            moved = _leave(
                replica, put, leases, {*self._left, host}, self._options
            )
        if not moved:
            return
        self._left.add(host)
        for id_, (before, after) in moved.items():
            self._found[id_].append(host)
            self._taken.update(a.host for a in after if a not in before)
            self._moves += map(record.removal, before)
            self._moves += map(record.encode, after)

    def found(self) -> Leavable:
        return {id_: tuple(sorted(each)) for id_, each in self._found.items()}


def known(replica: state.Replica) -> Leavable:
    """Return the hosts that reservations can leave, as found last."""
    return {
        id_: replica.reservations[id_].leavable
        for id_ in {*itertools.chain.from_iterable(replica.leavable.values())}
    }


def in_both(one: Leavable, other: Leavable) -> Leavable:
    """Return the hosts that reservations can leave by both findings."""
    both = {
        id_: tuple(sorted({*hosts} & {*other.get(id_, ())}))
        for id_, hosts in one.items()
    }
    return {id_: hosts for id_, hosts in both.items() if hosts}


def _leave(
    replica: state.Replica, put: state.Put, leases: Iterable[Lease],
    hosts: Collection[str], options: Options,
) -> dict[str, tuple[list[Allocation], list[Allocation]]] | None:
    """Have leases leave hosts on trial.

    :returns: the allocations of the reservations that leave, before and after,
        by the id of the reservation; None if one finds too little room
    """
    moved = {}
    for lease in leases:
        held = lease_placing.allocations_of(replica, lease)
        placed = reallocation.reallocate(
            replica, lease, lease.window, hosts, options=options
        )
        for id_, after in placed.items():
            if reallocation.loses(held[id_], after):
                return None
            if {a.host for a in held[id_]} & {*hosts}:
                moved[id_] = held[id_], after
                put([
                    *map(record.removal, held[id_]),
                    *map(record.encode, after),
                ])
    return moved
