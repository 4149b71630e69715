# SPDX-License-Identifier: Apache-2.0
"""Accounting of instances on a host's timeline, for each user of the index.

Both users of the index count allocations the same way. They differ in what is
known about the present: nova-scheduler has the use of this moment from
HostState and asks how demand *changes*; the service has no such figure and
adds up the amounts of the instances.

Resource classes of which HostState has no figure are added up by both users:
see replica.extra.
"""

from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.replica import packing

# A step on the timeline: (start, end, amounts by RESOURCE_CLASSES).
Step = tuple[int, int, tuple[int, ...]]


class SchedulerAccounting:
    """Accounting relative to the use that HostState reports now.

    For each instance the figure of HostState is subtracted, and the amount
    that the ledger counts is added in its place. Where both are equal, a
    bounded instance is given back from its end on. A bound instance, which is
    part of HostState's use and of its reservation, is given back for ever. A
    preemptible instance is given back for ever too, because it yields to any
    instance that needs its room: what is free at this moment is for Placement
    to decide. An unbounded instance is not given back, nor is an overdue
    instance: the time at which it leaves is not known.
    """

    @staticmethod
    def capacity(host: Host, reserved: bool = True) -> tuple[int, ...]:
        """Return the capacities by RESOURCE_CLASSES.

        A class that the host has no inventory of comes from another resource
        provider, if at all: no instance is kept off the host for lack of it.
        """
        return tuple(
            amount if name in host.inventory else inventory.MAX_AMOUNT
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
    """Accounting of occupancy against inventory, for placing leases."""

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


def occupancy(instance: Instance, overdue: bool) -> tuple[int, int] | None:
    """Return the time during which an instance counts for itself, if ever.

    A bound instance is counted by its reservation until the reservation is
    over; a preemptible instance yields. The time ends with the instance's
    present stay on its host: later stays have relocation allocations.

    :param overdue: whether the instance is past the end of its present stay
    :returns: (start, end); None if the instance never counts for itself
    """
    if instance.preemptible:
        return None
    is_bound = instance.reservation_id is not None
    if overdue:
        return instance.leaves_at if is_bound else 0, window.FOREVER
    return None if is_bound else (0, instance.leaves_at)


def _without_zeros(steps: list[Step]) -> list[Step]:
    return [
        (start, end, amounts) for start, end, amounts in steps
        if start < end and any(amounts)
    ]
