# SPDX-License-Identifier: Apache-2.0
"""The index and its peers, on one workload, in one process."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import functools
import importlib.util
from typing import Any

from benchmarks import brute
from benchmarks import index
from benchmarks import peers
from benchmarks import targets
from benchmarks import workload
from benchmarks.judge import ADDITIONS
from benchmarks.judge import Judge
from benchmarks.measure import give_back
from benchmarks.measure import resident
from benchmarks.measure import Result
from benchmarks.measure import timed

SUBJECTS: dict[str, Any] = {
    'index': index.Index,
    'rows': index.RowsOnly,
    'csr': peers.NumpySteps,
    'numpy': brute.NumpyFlat,
    'ncls': peers.Ncls,
    'bisect': peers.BisectLists,
    'sortedcontainers': peers.SortedDicts,
    'intervaltree': peers.IntervalTrees,
    'twin': index.PlainTwin,
}

# Queries with a flavor each, more of them than a budget buys.
UNSEEN = 10000
BATCH = 1000
BATCHES = 8
LOADS = 3


def missing(name: str) -> str | None:
    """Return the module that a subject needs and that is not there."""
    needs = getattr(SUBJECTS[name], 'needs', None)
    return needs if needs and not importlib.util.find_spec(needs) else None


def run(
    names: Sequence[str], hosts: int, allocations: int, seed: int,
    budget: float, say: Callable[[str], None],
) -> Iterator[Result]:
    """Let the subjects of these names do all that they know.

    :param budget: seconds for each work of each subject.
    :param say: is told what goes on.
    :raises WrongAnswer: before anything of that subject is timed.
    """
    say('workload')
    plan = workload.make(hosts, allocations, seed)
    say('brute force')
    judge = Judge(plan, seed)
    # Not those of the check: a flavor is new once.
    unseen = {
        targets.FROM_NOW_COLD:
            workload.from_now(seed + 1, UNSEEN, unseen=True),
        targets.ANY_WINDOW_UNSEEN:
            workload.any_window(seed + 1, UNSEEN, unseen=True),
    }
    for name in names:
        turn = Turn(SUBJECTS[name], judge, budget)
        say(f'{turn.subject.name}: build')
        yield from turn.build()
        say(f'{turn.subject.name}: check')
        turn.check()
        say(f'{turn.subject.name}: load')
        yield from turn.load()
        say(f'{turn.subject.name}: fits')
        yield from turn.fits(unseen)
        say(f'{turn.subject.name}: earliest')
        yield from turn.earliest()
        say(f'{turn.subject.name}: changes')
        yield from turn.changes()
        yield from turn.memory()


class Turn:
    """One subject's turn, with the hosts that it takes."""

    def __init__(self, kind: Any, judge: Judge, budget: float) -> None:
        hosts = len(judge.plan.hosts)
        most = getattr(kind, 'most_hosts', hosts)
        self.subject = kind()
        self.judge = judge
        self.budget = budget
        self.plan = judge.plan.first(most)
        self.scale = hosts / len(self.plan.hosts)
        self.additions = workload.additions(
            self.plan.hosts, judge.seed, ADDITIONS
        )

    def build(self) -> Iterator[Result]:
        """Take the workload in; nobody is timed yet."""
        give_back()
        before = resident()
        self.subject.build(self.plan)
        # Python keeps what it frees, so another's growth would not show.
        if self._tells_memory():
            yield self._bytes(targets.RESIDENT, resident() - before)

    def check(self) -> None:
        """Raise WrongAnswer unless every answer is right."""
        self.judge.check_fits(self.subject, self.plan)
        if hasattr(self.subject, 'add'):
            self.judge.check_changes(self.subject, self.plan, self.additions)
        if self._knows_earliest():
            self.judge.check_earliest(self.subject)

    def _knows_earliest(self) -> bool:
        # The answer of some hosts says nothing about that of all.
        return hasattr(self.subject, 'earliest') and self.scale == 1

    def load(self) -> Iterator[Result]:
        call = functools.partial(_built, type(self.subject), self.plan)
        yield self._timed(targets.LOAD, [call] * LOADS, scale=self.scale)

    def fits(
        self, unseen: dict[str, list[workload.Query]]
    ) -> Iterator[Result]:
        for work in (targets.FROM_NOW, targets.ANY_WINDOW):
            calls = self._calls(self.judge.queries[work])
            # Whatever came between: no flavor is new here.
            for call in calls:
                call()
            yield self._timed(work, calls, scale=self.scale)
        for work, queries in unseen.items():
            calls = self._calls(queries)
            yield self._timed(work, calls, scale=self.scale, again=False)

    def _calls(
        self, queries: Sequence[workload.Query]
    ) -> list[Callable[[], object]]:
        return [
            functools.partial(self.subject.fits, *query) for query in queries
        ]

    def earliest(self) -> Iterator[Result]:
        if self._knows_earliest():
            for work, asked in self.judge.gatherings.items():
                yield self._timed(work, [
                    functools.partial(self.subject.earliest, *own)
                    for own in asked
                ])

    def changes(self) -> Iterator[Result]:
        if hasattr(self.subject, 'add'):
            calls = peers.pairs(self.subject, self.additions)
            yield self._timed(targets.PAIR, calls)
        if hasattr(self.subject, 'add_all'):
            batches = [
                workload.additions(self.plan.hosts, self.judge.seed + i, BATCH)
                for i in range(BATCHES)
            ]
            calls = peers.pairs_in_batch(self.subject, batches)
            yield self._timed(targets.PAIR_IN_BATCH, calls, scale=1 / BATCH)

    def memory(self) -> Iterator[Result]:
        """Weigh the index as it is now, after all that was asked of it."""
        if self._tells_memory():
            held = self.subject.memory()
            yield self._bytes(targets.ROWS_MEMORY, held['rows'])
            yield self._bytes(targets.MEMORY, sum(held.values()))

    def _tells_memory(self) -> bool:
        return hasattr(self.subject, 'memory') and self.scale == 1

    def _timed(
        self, work: str, calls: Sequence[Callable[[], object]],
        scale: float = 1, again: bool = True,
    ) -> Result:
        timing = timed(calls, self.budget, again) * scale
        note = f'{len(self.plan.hosts)} hosts, scaled' if scale > 1 else ''
        return Result(
            work, self.subject.name, timing.median, 's', timing.runs, note
        )

    def _bytes(self, work: str, held: float) -> Result:
        """Return how much of the memory held falls on each allocation."""
        return Result(work, self.subject.name, held / len(self.plan), 'B')


def _built(kind: Any, plan: workload.Workload) -> Any:
    """Return a subject with the workload, to be thrown away."""
    subject = kind()
    subject.build(plan)
    return subject
