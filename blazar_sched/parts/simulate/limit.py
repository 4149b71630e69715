# SPDX-License-Identifier: Apache-2.0
"""The limit: what a scheduler could reach that knows the future.

All hosts are poured into one, as if moves were free and instant. Every lease
and the true lifetime of every instance are known from the beginning.
"""

from collections.abc import Sequence

from blazar_sched.domain import inventory
from blazar_sched.domain.demand import Hosts
from blazar_sched.ext import TimelineIndex
from blazar_sched.parts.simulate import lease
from blazar_sched.parts.simulate import result
from blazar_sched.parts.simulate import simulation
from blazar_sched.parts.simulate import trace
from blazar_sched.parts.simulate.policy import LIMIT

_CLASSES = inventory.VCPU, inventory.MEMORY_MB, lease.GPU
_ALL = 'all hosts'


def play(
    scenario: simulation.Scenario, tell: simulation.Tell = lambda _: None
) -> result.Result:
    """Return the result of a scenario in the one host.

    An instance needs room now, and room beside the leases and the instances
    that do not yield for all of its lifetime. When a lease starts without
    room, the preemptible instances that came last are evicted.
    """
    found = result.Result(LIMIT.name, leases=len(scenario.bookings))
    poured = _Poured(scenario)
    starts = sorted(each.lease.start for each in scenario.bookings)
    for number, asked in enumerate(scenario.instances):
        while starts and starts[0] <= asked.arrival:
            found.evicted[trace.PREEMPTIBLE] += poured.clear(starts.pop(0))
        found.count(asked)
        if not poured.boot(str(number), asked):
            found.refuse(asked)
        if number % simulation.STEP == 0:
            tell(number)
    poured.sum_up(found, scenario.span)
    return found


class _Poured:
    """All hosts as one; preemptible instances have one owner in the index."""

    def __init__(self, scenario: simulation.Scenario) -> None:
        self._total = [
            sum(each) for each in zip(
                *((h.vcpus, h.memory_mb, h.gpus) for h in scenario.hosts),
                strict=True,
            )
        ]
        self._index = TimelineIndex(_CLASSES)
        self._index.apply([('capacity', _ALL, self._total)])
        # The ids of the preemptible instances, in the order of their arrival.
        self._guests: list[str] = []
        # The start, the end and the size of every stay.
        self._stays: dict[str, tuple[int, int, Sequence[int]]] = {}
        for asked in (each.lease for each in scenario.bookings):
            demand = asked.reservations[0].demand
            size = [
                demand.least * (
                    total // len(scenario.hosts)
                    if isinstance(demand, Hosts) else demand.slot.get(name, 0)
                )
                for name, total in zip(_CLASSES, self._total, strict=True)
            ]
            self._add(asked.id, asked.id, asked.start, asked.end, size)

    def _add(
        self, id_: str, owner: str, start: int, end: int, size: Sequence[int]
    ) -> None:
        self._stays[id_] = start, end, size
        self._index.apply([
            ('add', id_, owner, _ALL, start, end, size, False)
        ], force=True)

    def boot(self, id_: str, asked: trace.Instance) -> bool:
        now, end = asked.arrival, asked.arrival + asked.lifetime
        size = asked.vcpus, asked.memory_mb, asked.gpus
        yields = asked.kind == trace.PREEMPTIBLE
        if self._index.fits(None, now, now + 1, size) == b'\0' or (
            not yields and self._index.fits(
                None, now, end, size, ignore=trace.PREEMPTIBLE
            ) == b'\0'
        ):
            return False
        self._add(id_, trace.PREEMPTIBLE if yields else id_, now, end, size)
        if yields:
            self._guests.append(id_)
        return True

    def clear(self, now: int) -> int:
        """Evict preemptible instances that are in the way; return how many."""
        self._index.forget(now)
        evicted = 0
        while self._guests and any(
            peak > total for peak, total in zip(
                self._index.peak(None, now, now + 1), self._total, strict=False
            )
        ):
            id_ = self._guests.pop()
            if id_ in self._index:
                self._index.apply([('remove', id_)])
                start, _, size = self._stays[id_]
                self._stays[id_] = start, now, size
                evicted += 1
        return evicted

    def sum_up(self, found: result.Result, span: int) -> None:
        """Set the figures of what is used."""
        used, used_gpus = result.Level(), result.Level()
        for at, vcpus, gpus in sorted(
            (min(at, span), sign * size[0], sign * size[2])
            for start, end, size in self._stays.values()
            for at, sign in ((start, 1), (end, -1))
        ):
            used.change(at, vcpus)
            used_gpus.change(at, gpus)
        found.sum_up(used, result.Level(), self._total[0], span)
        found.sum_up_gpus(used_gpus, result.Level(), self._total[2], span)
