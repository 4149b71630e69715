# SPDX-License-Identifier: Apache-2.0
"""The lifetimes of instances that have ended, and what to expect of others.

A history counts the lifetimes of the unbounded instances of one project and
size, in buckets of which two span each doubling of the lifetime. The expected
remaining lifetime of an instance of age a is

    E[T - a | T > a] = sum(c(b) * (t(b) - a)) / sum(c(b)), over t(b) > a,

where c(b) is the count of bucket b, and t(b) its geometric mean. It is
computed anew as the instance ages, so that an instance that outlives a wrong
prediction gets another one. Source: LAVA, "Lifetime-Aware VM Allocation with
Learned Distributions and Adaptation to Mispredictions", MLSys 2025. A history
replaces the model that LAVA learns.
"""

import bisect
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses

from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.domain.instance import Instance

# The lower ends of all buckets but the first, in seconds: from a minute to a
# year.
EDGES = tuple(int(60 * 2 ** (n / 2)) for n in range(39))
_MEANS = tuple(int(60 * 2 ** (n / 2 - 1 / 4)) for n in range(len(EDGES) + 1))
# What one lifetime adds to the count of its bucket. A single long lifetime
# is not lost when counts are halved.
UNIT = 64
# The sum of the counts above which all of them are halved, so that a history
# forgets.
LIMIT = 1000 * UNIT


@dataclasses.dataclass(frozen=True, slots=True)
class LifetimeHistory:
    """The lifetimes of the ended instances of one project and size.

    `counts` are by bucket. `ended_at` is when the last of the instances
    ended, in epoch seconds.
    """

    id: str
    counts: tuple[int, ...] = (0,) * len(_MEANS)
    ended_at: int = 0


def id_of(project_id: str, amounts: Mapping[str, int]) -> str:
    """Return the id of the history of a project's instances of one size.

    :param amounts: by resource class; VCPU and MEMORY_MB are the size
    """
    vcpus = amounts.get(inventory.VCPU, 0)
    memory_mb = amounts.get(inventory.MEMORY_MB, 0)
    return f'{project_id}/{vcpus}/{memory_mb}'


def is_counted(instance: Instance) -> bool:
    """Tell whether the lifetime of an ended instance tells of others.

    An instance with an end, or that yields, says nothing of how long others
    live.
    """
    return (
        instance.created > 0 and instance.end == window.FOREVER
        and instance.claim is None and not instance.preemptible
    )


def add(
    history: LifetimeHistory, lifetimes: Iterable[int], now: int
) -> LifetimeHistory:
    """Return a history with further lifetimes.

    :param lifetimes: in seconds
    :param now: when the last of the instances ended, in epoch seconds
    """
    counts = list(history.counts)
    for lifetime in lifetimes:
        counts[bisect.bisect_right(EDGES, lifetime)] += UNIT
        if sum(counts) > LIMIT:
            counts = [count // 2 for count in counts]
    return LifetimeHistory(history.id, tuple(counts), now)


def remaining(history: LifetimeHistory, age: int) -> int:
    """Return the expected remaining lifetime of an instance, at least 1 s.

    An instance that has outlived all others is expected to live as long
    again. O(number of buckets).

    :param age: in seconds
    """
    first = bisect.bisect_right(_MEANS, age)
    counts = history.counts[first:]
    total = sum(counts)
    if not total:
        return max(1, age)
    mean = sum(map(int.__mul__, counts, _MEANS[first:])) // total
    return max(1, mean - age)
