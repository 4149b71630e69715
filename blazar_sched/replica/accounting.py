# SPDX-License-Identifier: Apache-2.0
"""What counts on a host's timeline, for either user of the index.

Both count allocations the same way. They differ in what is known about the
present: nova-scheduler has HostState's use of this moment and asks how demand
*changes*, the service has no such figure and adds up what is there.

So do both for the resource classes that HostState has no figure of: see
replica.extra.
"""

from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.replica import packing

# A step on the timeline: (start, end, amounts by RESOURCE_CLASSES).
Step = tuple[int, int, tuple[int, ...]]


class SchedulerAccounting:
    """Steps relative to what HostState says is used now.

    For each instance HostState's figure is taken off, and what the ledger
    counts is put in its place. Where both are the same, a bounded instance
    is given back from its end on. A bound instance, which is inside
    HostState's use and inside its reservation, is given back for ever. So is
    a preemptible one, which yields to whoever needs its room: what is free
    at this moment is Placement's to say. An unbounded instance is not given
    back, nor is one that is overdue: nobody knows when it goes.
    """

    @staticmethod
    def capacity(host: Host, reserved: bool = True) -> tuple[int, ...]:
        """Return the capacities by RESOURCE_CLASSES.

        A class that the host has no inventory of comes from another resource
        provider, if at all: nobody is kept off the host for want of it.
        """
        return tuple(
            amount if name in host.inventory else inventory.MOST
            for name, amount in zip(
                inventory.RESOURCE_CLASSES, host.amounts(reserved), strict=True
            )
        )

    @staticmethod
    def steps(instance: Instance, overdue: bool) -> list[Step]:
        off = packing.amounts_of(instance.countable_use(), -1)
        occupied = occupancy(instance, overdue)
        if occupied is None:
            return _without_zeros([(0, window.FOREVER, off)])
        start, end = occupied
        own = packing.amounts_of(instance.countable())
        until_then = tuple(map(int.__add__, own, off))
        return _without_zeros([
            (start, end, until_then), (end, window.FOREVER, off)
        ])


class LedgerAccounting:
    """Occupancy against inventory, for placing leases."""

    @staticmethod
    def capacity(host: Host) -> tuple[int, ...]:
        return host.amounts()

    @staticmethod
    def steps(instance: Instance, overdue: bool) -> list[Step]:
        occupied = occupancy(instance, overdue)
        if occupied is None:
            return []
        return _without_zeros([
            (*occupied, packing.amounts_of(instance.countable()))
        ])


Accounting = type[SchedulerAccounting] | type[LedgerAccounting]


def occupancy(
    instance: Instance, overdue: bool
) -> tuple[int, int] | None:
    """Return from when until when an instance counts for itself, if ever.

    A bound instance is counted by its reservation, until that is over; a
    preemptible one yields.
    """
    if instance.preemptible:
        return None
    if overdue:
        return 0, window.FOREVER
    if instance.reservation_id is not None:
        return None
    return 0, instance.end


def _without_zeros(steps: list[Step]) -> list[Step]:
    return [
        (start, end, amounts) for start, end, amounts in steps
        if start < end and any(amounts)
    ]
