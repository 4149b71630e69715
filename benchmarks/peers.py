# SPDX-License-Identifier: Apache-2.0
"""The same questions answered by what a Python developer would reach for.

A peer is asked ``build`` once, then ``fits``; some also know ``add`` and
``remove``. A class may also say

- ``needs``: the module without which there is no such peer;
- ``most_hosts``: of how many hosts it takes the workload, where all of them
  would take too long; its times are scaled then.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import functools
import itertools
from typing import Any

import numpy as np

from benchmarks import brute
from benchmarks import workload

Sums = list[int]


class NumpySteps:
    """Every host's steps in one sorted array, after CSR matrices.

    The fastest that plain numpy gets, and static: a change is a rebuild.
    """

    name = 'numpy CSR'

    def build(self, plan: workload.Workload) -> None:
        hosts, classes = plan.capacity.shape
        taken = plan.taken
        # Each host begins with a step at 0, before all that is asked.
        self.span = int(plan.ends.max(initial=0)) + workload.YEAR
        self.bases = np.arange(hosts) * self.span
        shift = self.bases[plan.rows]
        keys = np.concatenate(
            [self.bases, shift + plan.starts, shift + plan.ends]
        )
        deltas = np.concatenate(
            [np.zeros((hosts, classes), np.int64), taken, -taken]
        )
        order = np.argsort(keys)
        keys, sums = keys[order], np.cumsum(deltas[order], axis=0)
        settled = np.diff(keys, append=-1) != 0
        self.keys = keys[settled]
        self.used = np.ascontiguousarray(sums[settled].T)
        self.capacity = np.ascontiguousarray(plan.capacity.T)
        self.hosts = plan.hosts
        # Every allocation takes a part of the first class.
        idle = np.flatnonzero(self.used[0] == 0)
        self.idle_rows, self.idle_from = np.divmod(self.keys[idle], self.span)
        # A host's last step lasts until the next host's first: far enough.
        behind = np.append(self.keys, len(plan.hosts) * self.span)[idle + 1]
        self.idle_until = behind - self.idle_rows * self.span

    def fits(self, start: int, end: int, amounts: Sequence[int]) -> np.ndarray:
        first = np.searchsorted(self.keys, self.bases + start, 'right') - 1
        behind = np.searchsorted(self.keys, self.bases + end, 'left')
        counts = behind - first
        heads = np.cumsum(counts) - counts
        steps = np.arange(counts.sum()) + np.repeat(first - heads, counts)
        fitting = np.ones(len(self.bases), bool)
        for own, amount in enumerate(amounts):
            if amount:
                peaks = np.maximum.reduceat(self.used[own][steps], heads)
                fitting &= peaks + amount <= self.capacity[own]
        return fitting

    def earliest(
        self, count: int, duration: int, after: int
    ) -> tuple[int, list[str]]:
        begins = np.maximum(self.idle_from, after)
        enough = np.flatnonzero(self.idle_until - begins >= duration)
        begins, lasts = begins[enough], self.idle_until[enough] - duration
        times, free = brute.counted(after, begins, lasts + 1)
        at = int(times[np.argmax(free >= count)])
        found = enough[(begins <= at) & (at <= lasts)][:count]
        return at, [self.hosts[row] for row in self.idle_rows[found]]


class Ncls(brute.Columns):
    """One nested containment list finds what overlaps; numpy sweeps it."""

    name = 'ncls + numpy'
    needs = 'ncls'

    def build(self, plan: workload.Workload) -> None:
        import ncls

        super().build(plan)
        self.list = ncls.NCLS(plan.starts, plan.ends, np.arange(len(plan)))

    def fits(self, start: int, end: int, amounts: Sequence[int]) -> np.ndarray:
        window = np.array([start]), np.array([end]), np.array([0])
        _, overlapping = self.list.all_overlaps_both(*window)
        return self.fits_beside(overlapping, amounts)


class _Steps:
    """What the peers with a sorted container for each host have in common."""

    def build(self, plan: workload.Workload) -> None:
        self.capacity = plan.capacity.tolist()
        self.hosts = [self.timeline(own) for own in _steps_by_host(plan)]

    def timeline(self, steps: list[tuple[int, Sums]]) -> Any:
        """Return a host's container for these steps, in order of time."""
        raise NotImplementedError

    def over(self, timeline: Any, start: int, end: int) -> Iterable[Sums]:
        """Return what is taken at each step of a window."""
        raise NotImplementedError

    def raise_by(
        self, timeline: Any, start: int, end: int, deltas: Sequence[int]
    ) -> None:
        """Take so much more over a window."""
        raise NotImplementedError

    def fits(self, start: int, end: int, amounts: Sequence[int]) -> list[bool]:
        asked = [(i, amount) for i, amount in enumerate(amounts) if amount]
        answers = []
        for timeline, capacity in zip(self.hosts, self.capacity, strict=True):
            limits = [(i, capacity[i] - amount) for i, amount in asked]
            answers.append(self._within(timeline, start, end, limits))
        return answers

    def _within(
        self, timeline: Any, start: int, end: int,
        limits: list[tuple[int, int]],
    ) -> bool:
        for _, limit in limits:
            if limit < 0:
                return False
        for sums in self.over(timeline, start, end):
            for i, limit in limits:
                if sums[i] > limit:
                    return False
        return True

    def add(self, new: workload.Addition) -> workload.Addition:
        self.raise_by(self.hosts[new.row], new.start, new.end, new.amounts)
        return new

    def remove(self, old: workload.Addition) -> None:
        self.raise_by(
            self.hosts[old.row], old.start, old.end, [-n for n in old.amounts]
        )


def _steps_by_host(
    plan: workload.Workload
) -> Iterator[list[tuple[int, Sums]]]:
    """Yield each host's steps: from when on how much is taken."""
    rows = np.concatenate([plan.rows, plan.rows])
    times = np.concatenate([plan.starts, plan.ends])
    taken = plan.taken
    order = np.lexsort((times, rows))
    sums = np.cumsum(np.concatenate([taken, -taken])[order], axis=0).tolist()
    ends = np.searchsorted(rows[order], np.arange(1, len(plan.hosts) + 1))
    times = times[order].tolist()
    for begin, end in itertools.pairwise([0, *ends.tolist()]):
        # A later sum at the same time takes the place of an earlier one.
        steps = dict(zip(times[begin:end], sums[begin:end], strict=True))
        yield [(0, [0] * plan.capacity.shape[1]), *steps.items()]


class BisectLists(_Steps):
    """A sorted list of times and one of sums for each host."""

    name = 'bisect lists'

    def timeline(
        self, steps: list[tuple[int, Sums]]
    ) -> tuple[list[int], list[Sums]]:
        return [at for at, _ in steps], [sums for _, sums in steps]

    def over(
        self, timeline: tuple[list[int], list[Sums]], start: int, end: int
    ) -> list[Sums]:
        times, sums = timeline
        first = bisect.bisect_right(times, start) - 1
        return sums[first:bisect.bisect_left(times, end, first)]

    def raise_by(
        self, timeline: tuple[list[int], list[Sums]], start: int, end: int,
        deltas: Sequence[int],
    ) -> None:
        times, sums = timeline
        first, behind = (self._cut(times, sums, at) for at in (start, end))
        for step in range(first, behind):
            sums[step] = [
                a + b for a, b in zip(sums[step], deltas, strict=True)
            ]

    @staticmethod
    def _cut(times: list[int], sums: list[Sums], at: int) -> int:
        """Make a step begin at a time; return its position."""
        step = bisect.bisect_left(times, at)
        if step == len(times) or times[step] != at:
            times.insert(step, at)
            sums.insert(step, sums[step - 1])
        return step


class SortedDicts(_Steps):
    """A SortedDict from times to sums for each host."""

    name = 'sortedcontainers'
    needs = 'sortedcontainers'
    most_hosts = 1000

    def build(self, plan: workload.Workload) -> None:
        import sortedcontainers

        self.make = sortedcontainers.SortedDict
        super().build(plan)

    def timeline(self, steps: list[tuple[int, Sums]]) -> Any:
        return self.make(steps)

    def over(self, timeline: Any, start: int, end: int) -> Iterator[Sums]:
        first = timeline.bisect_right(start) - 1
        times = timeline.islice(first, timeline.bisect_left(end))
        return (timeline[at] for at in times)

    def raise_by(
        self, timeline: Any, start: int, end: int, deltas: Sequence[int]
    ) -> None:
        for at in (start, end):
            if at not in timeline:
                before = timeline.bisect_right(at) - 1
                timeline[at] = timeline.peekitem(before)[1]
        for at in timeline.irange(start, end, inclusive=(True, False)):
            timeline[at] = [
                a + b for a, b in zip(timeline[at], deltas, strict=True)
            ]


class IntervalTrees:
    """A tree of allocations for each host; what overlaps is swept."""

    name = 'intervaltree'
    needs = 'intervaltree'
    most_hosts = 1000

    def build(self, plan: workload.Workload) -> None:
        import intervaltree

        self.interval = intervaltree.Interval
        self.capacity = plan.capacity.tolist()
        allocations: list[list[Any]] = [[] for _ in plan.hosts]
        # Intervals that are equal in everything would be one: so the id.
        for row, start, end, own, taken in zip(
            plan.rows.tolist(), plan.starts.tolist(), plan.ends.tolist(),
            plan.ids, plan.taken.tolist(), strict=True,
        ):
            allocations[row].append(self.interval(start, end, (own, taken)))
        self.trees = [intervaltree.IntervalTree(own) for own in allocations]

    def fits(self, start: int, end: int, amounts: Sequence[int]) -> list[bool]:
        asked = [(i, amount) for i, amount in enumerate(amounts) if amount]
        answers = []
        for tree, capacity in zip(self.trees, self.capacity, strict=True):
            limits = [(i, capacity[i] - amount) for i, amount in asked]
            overlapping = tree.overlap(start, end)
            answers.append(all(
                self._stays_within(overlapping, i, limit)
                for i, limit in limits
            ))
        return answers

    @staticmethod
    def _stays_within(overlapping: set[Any], i: int, limit: int) -> bool:
        """Say whether the sum of one class never exceeds a limit."""
        if limit < 0:
            return False
        steps = [(own.begin, own.data[1][i]) for own in overlapping]
        steps += [(own.end, -own.data[1][i]) for own in overlapping]
        # At equal times what gives back comes first.
        steps.sort()
        sums = itertools.accumulate(delta for _, delta in steps)
        return max(sums, default=0) <= limit

    def add(self, new: workload.Addition) -> tuple[int, Any]:
        own = self.interval(new.start, new.end, (new.id, new.amounts))
        self.trees[new.row].add(own)
        return new.row, own

    def remove(self, handle: tuple[int, Any]) -> None:
        row, own = handle
        self.trees[row].remove(own)


def pairs(
    subject: Any, additions: Iterable[workload.Addition]
) -> list[Callable[[], None]]:
    """Return calls that add an allocation each and remove it."""
    def pair(new: workload.Addition) -> None:
        subject.remove(subject.add(new))

    return [functools.partial(pair, new) for new in additions]


def pairs_in_batch(
    subject: Any, batches: Iterable[Sequence[workload.Addition]]
) -> list[Callable[[], None]]:
    """Return calls that add a batch of allocations each and remove it."""
    def pair(batch: Sequence[workload.Addition]) -> None:
        subject.remove_all(subject.add_all(batch))

    return [functools.partial(pair, batch) for batch in batches]
