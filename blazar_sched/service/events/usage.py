# SPDX-License-Identifier: Apache-2.0
"""The usage of leases in a window, also of those that are being deleted."""

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterable
import dataclasses

from blazar_sched.domain import usage
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.usage import Usage
from blazar_sched.domain.window import Window
from blazar_sched.service.ledger.tx import Tx


def of_leases(
    tx: Tx,
    leases: Iterable[Lease],
    allocations: Iterable[Allocation],
    servers: Callable[[Lease, Reservation], Iterable[Instance]],
    measured: Window,
) -> list[Usage]:
    """Return the usage of leases within a window, by reservation and day.

    :param allocations: those of the leases, also those that are over
    :param servers: returns the servers that were in a reservation
    """
    held = defaultdict(list)
    for each in allocations:
        held[each.reservation_id].append(each)
    whole = {a.host for many in held.values() for a in many if a.whole}
    capacities = {
        host.uuid: {c: host.capacity(c) for c in host.inventory}
        for host in tx.hosts(whole)
    }
    return [
        part
        for lease in leases
        for r in lease.reservations
        for part in usage.measure(
            lease, r, held[r.id], servers(lease, r), capacities, measured
        )
    ]


def measure_deleted(tx: Tx, lease: Lease, now: int, interval: float) -> None:
    """Add the usage of a lease that the commit is about to delete.

    No later measurement finds the lease. The servers that have left since the
    last measurement do not count.

    :param interval: the seconds that count if nothing was measured before
    """
    since = tx.usage_measured_until()
    if since is None:
        since = now - int(interval)
    if max(since, lease.start) >= now:
        return
    held = [a for a, _ in tx.allocations(lease_id=lease.id, past=True)]
    # All other leases are still to be measured from `since` on.
    tx.add_usage([
        dataclasses.replace(each, until=since) for each in of_leases(
            tx, [lease], held, lambda lease, r: (), Window(since, now)
        )
    ])
