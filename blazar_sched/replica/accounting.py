# SPDX-License-Identifier: Apache-2.0
"""What counts on a host's timeline, for either user of the index.

Both count allocations the same way. They differ in what is known about the
present: nova-scheduler has HostState's use of this moment and asks how demand
*changes*, the service has no such figure and adds up what is there.

So do both for the resource classes that HostState has no figure of: see
replica.extra.
"""

from blazar_sched.domain import host
from blazar_sched.domain import instance
from blazar_sched.domain import window

# A step on the timeline: (start, end, sign of the instance's amounts).
Step = tuple[int, int, int]


class SchedulerAccounting:
    """Steps relative to what HostState says is used now.

    A bound instance is inside that use and inside its reservation: it is
    given back for ever. So is a preemptible one, which yields to whoever
    needs its room: what is free at this moment is Placement's to say. A
    bounded one is given back from its end on. One that is overdue is not:
    nobody knows when it goes.
    """

    @staticmethod
    def capacity(noun: host.Host) -> tuple[int, ...]:
        return noun.amounts(reserved=True)

    @staticmethod
    def step(noun: instance.Instance, overdue: bool) -> Step | None:
        if noun.preemptible:
            return 0, window.FOREVER, -1
        if overdue:
            return None
        if noun.reservation_id is not None:
            return 0, window.FOREVER, -1
        if noun.end == window.FOREVER:
            return None
        return noun.end, window.FOREVER, -1


class LedgerAccounting:
    """Occupancy against inventory, for placing leases.

    A bound instance is counted by its reservation, until that is over; a
    preemptible one yields.
    """

    @staticmethod
    def capacity(noun: host.Host) -> tuple[int, ...]:
        return noun.amounts()

    @staticmethod
    def step(noun: instance.Instance, overdue: bool) -> Step | None:
        if noun.preemptible:
            return None
        if overdue:
            return 0, window.FOREVER, 1
        if noun.reservation_id is not None:
            return None
        return 0, noun.end, 1


Accounting = type[SchedulerAccounting] | type[LedgerAccounting]
