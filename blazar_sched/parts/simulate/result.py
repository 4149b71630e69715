# SPDX-License-Identifier: Apache-2.0
"""The results of a policy on a trace."""

import bisect
from collections import Counter
from collections import defaultdict
from collections.abc import Sequence
import dataclasses
from typing import Any
from typing import NamedTuple

from blazar_sched.domain import inventory
from blazar_sched.parts.simulate import trace

HOUR, DAY = 3600, 86400
# The upper bounds of the VCPUs, and of the days of life, of each class of
# instances but the last one.
_SIZES, _LENGTHS = (8, 32), (1, 7, 30)
# What the words of a class are about.
NAMES = ('kind', 'VCPUs', 'GPUs', 'days')
# A class with fewer instances says nothing about a policy.
LEAST_ASKED = 10


class Level:
    """An amount that changes, summed over time for each day."""

    def __init__(self, value: float = 0) -> None:
        self.value = value
        # The amount times seconds, by day.
        self.by_day = [0.0]
        self._at = 0

    def change(self, at: int, by: float) -> None:
        self.go_on(at)
        self.value += by

    def go_on(self, at: int) -> None:
        """Sum up to `at`, which must not be before the last time."""
        while self._at < at:
            day, since = divmod(self._at, DAY)
            if day == len(self.by_day):
                self.by_day.append(0.0)
            step = min(at - self._at, DAY - since)
            self.by_day[day] += self.value * step
            self._at += step

    @property
    def total(self) -> float:
        return sum(self.by_day)


class Class(NamedTuple):
    """A class of instances: the kind, the size, and how long they live.

    :ivar size: the position of the number of VCPUs among the bounds
    :ivar length: the position of the lifetime among the bounds
    """

    kind: str
    size: int
    gpus: bool
    length: int

    @classmethod
    def of(cls, asked: trace.Instance) -> 'Class':
        return cls(
            asked.kind, bisect.bisect_left(_SIZES, asked.vcpus),
            asked.gpus > 0, bisect.bisect_left(_LENGTHS, asked.lifetime / DAY),
        )

    def words(self) -> tuple[str, str, str, str]:
        """Return the kind, the VCPUs, the GPUs and the days, as text."""
        return (
            self.kind, _range(_SIZES, self.size), '≥ 1' if self.gpus else '0',
            _range(_LENGTHS, self.length),
        )

    def as_json(self) -> dict[str, str]:
        return dict(zip(map(str.lower, NAMES), self.words(), strict=True))


def _range(bounds: Sequence[int], position: int) -> str:
    if position == len(bounds):
        return f'> {bounds[-1]}'
    return f'≤ {bounds[position]}'


@dataclasses.dataclass(slots=True)
class Demand:
    """The number of instances, and what they ask for over their lifetimes."""

    instances: int = 0
    vcpu_hours: float = 0.0
    gib_hours: float = 0.0
    gpu_hours: float = 0.0

    def add(self, asked: trace.Instance) -> None:
        hours = asked.lifetime / HOUR
        self.instances += 1
        self.vcpu_hours += asked.vcpus * hours
        self.gib_hours += asked.memory_mb / inventory.MIB_PER_GIB * hours
        self.gpu_hours += asked.gpus * hours


@dataclasses.dataclass(slots=True)
class Tally:
    """What is requested of a class, and what of it no host has admitted."""

    asked: Demand = dataclasses.field(default_factory=Demand)
    refused: Demand = dataclasses.field(default_factory=Demand)

    @property
    def share(self) -> float:
        return self.refused.instances / max(1, self.asked.instances)


@dataclasses.dataclass(slots=True)
class Result:
    """The figures of one policy; `Counter`s are by kind of instance.

    Utilisation is of all hosts' vCPUs, with open leases used to the full. Idle
    are the host-hours of the hosts that are kept for leases in which nothing
    ran on these hosts, by vCPUs. Late are the leases of which some part could
    not be used at once when its window opened. Unplanned are the moves for
    which the booked host had no room after all. The figures of GPUs are None
    where no host has GPUs; idle are the GPUs of the hosts that are kept for
    leases.
    """

    policy: str
    utilisation: float = 0.0
    idle_host_hours: float = 0.0
    classes: defaultdict[Class, Tally] = dataclasses.field(
        default_factory=lambda: defaultdict(Tally)
    )
    evicted: Counter[str] = dataclasses.field(default_factory=Counter)
    leases: int = 0
    # The names of the refused leases.
    refused_leases: list[str] = dataclasses.field(default_factory=list)
    late: int = 0
    moves: int = 0
    moved_gib: float = 0.0
    # Live migrations that failed and were tried again.
    failed_moves: int = 0
    # Leases that left a host for an instance.
    reallocated: int = 0
    unplanned: int = 0
    gpu_utilisation: float | None = None
    idle_gpu_hours: float | None = None
    # How far the policy gets from the hours that the pool refuses to the hours
    # that the limit refuses, as shares; None where these are as many.
    vcpu_way: float | None = None
    gpu_way: float | None = None
    # The classes of which the policy refuses a greater share than the pool.
    worse: list[Class] = dataclasses.field(default_factory=list)
    # Utilisation as shares, idle in host-hours.
    utilisation_by_day: list[float] = dataclasses.field(default_factory=list)
    idle_by_day: list[float] = dataclasses.field(default_factory=list)

    @property
    def instances(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for each, tally in self.classes.items():
            found[each.kind] += tally.asked.instances
        return found

    @property
    def refused(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for each, tally in self.classes.items():
            found[each.kind] += tally.refused.instances
        # Without the kinds of which no instance is refused.
        return +found

    @property
    def refused_share(self) -> float:
        return self.refused.total() / max(1, self.instances.total())

    @property
    def refused_vcpu_hours(self) -> float:
        return sum(each.refused.vcpu_hours for each in self.classes.values())

    @property
    def refused_gib_hours(self) -> float:
        return sum(each.refused.gib_hours for each in self.classes.values())

    @property
    def refused_gpu_hours(self) -> float:
        return sum(each.refused.gpu_hours for each in self.classes.values())

    @property
    def refused_gpu_instances(self) -> int:
        return sum(
            tally.refused.instances for each, tally in self.classes.items()
            if each.gpus
        )

    @property
    def evicted_firm(self) -> int:
        """The number of evicted instances that are not preemptible."""
        return self.evicted.total() - self.evicted[trace.PREEMPTIBLE]

    def count(self, asked: trace.Instance) -> None:
        """Count an instance that is requested."""
        self.classes[Class.of(asked)].asked.add(asked)

    def refuse(self, asked: trace.Instance) -> None:
        """Count an instance that no host has admitted."""
        self.classes[Class.of(asked)].refused.add(asked)

    def compare(self, pool: 'Result', limit: 'Result') -> None:
        """Set the figures relative to the pool, and to the limit."""
        self.vcpu_way = _way(
            pool.refused_vcpu_hours, self.refused_vcpu_hours,
            limit.refused_vcpu_hours,
        )
        self.gpu_way = _way(
            pool.refused_gpu_hours, self.refused_gpu_hours,
            limit.refused_gpu_hours,
        )
        self.worse = [
            each for each, tally in sorted(self.classes.items())
            if tally.asked.instances >= LEAST_ASKED
            and tally.share > pool.classes[each].share
        ]

    def count_move(self, moved_mb: int) -> None:
        """Count a live migration; of 0 MB if there was no room."""
        if moved_mb:
            self.moves += 1
            self.moved_gib += moved_mb / inventory.MIB_PER_GIB
        else:
            self.unplanned += 1

    def sum_up(self, used: Level, idle: Level, vcpus: int, span: int) -> None:
        """Set the figures of used vCPUs, and of idle hosts."""
        for level in (used, idle):
            level.go_on(span)
        self.utilisation = used.total / (vcpus * span)
        self.idle_host_hours = idle.total / HOUR
        self.utilisation_by_day = [
            amount / (vcpus * min(DAY, span - day * DAY))
            for day, amount in enumerate(used.by_day)
        ]
        self.idle_by_day = [amount / HOUR for amount in idle.by_day]

    def sum_up_gpus(
        self, used: Level, idle: Level, gpus: int, span: int
    ) -> None:
        """Set the figures of the GPUs of all hosts, if there are any."""
        if not gpus:
            return
        for level in (used, idle):
            level.go_on(span)
        self.gpu_utilisation = used.total / (gpus * span)
        self.idle_gpu_hours = idle.total / HOUR

    def as_json(self) -> dict[str, Any]:
        # dataclasses.asdict() miscopies a Counter before Python 3.12.
        names = [*self.__slots__, *(
            name for name, value in vars(Result).items()
            if isinstance(value, property)
        )]
        return {
            **{name: getattr(self, name) for name in names},
            'worse': [each.as_json() for each in self.worse],
            'classes': [
                {**each.as_json(), **dataclasses.asdict(tally)}
                for each, tally in sorted(self.classes.items())
            ],
        }


def _way(pool: float, ours: float, limit: float) -> float | None:
    return (pool - ours) / (pool - limit) if pool > limit else None


def best(results: Sequence[Result]) -> Result | None:
    """Return the result with the fewest refused hours that keeps every lease.

    A lease is kept if it is neither refused nor late. Of equal results the
    last one is taken.
    """
    keeping = [
        each for each in results if not (each.refused_leases or each.late)
    ]
    return min(
        reversed(keeping), key=lambda each: each.refused_vcpu_hours,
        default=None,
    )
