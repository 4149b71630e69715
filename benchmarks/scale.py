# SPDX-License-Identifier: Apache-2.0
"""The same questions to ten times the hosts."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
import functools

from benchmarks import index
from benchmarks import targets
from benchmarks import workload
from benchmarks.judge import Judge
from benchmarks.measure import Result
from benchmarks.measure import timed

ALLOCATIONS = 10
# Queries on few hosts and on many: what each is called in the table.
FEW = {
    targets.FROM_NOW: targets.FEW_FROM_NOW,
    targets.ANY_WINDOW: targets.FEW_ANY_WINDOW,
}
MANY = {
    targets.FROM_NOW: targets.MANY_FROM_NOW,
    targets.ANY_WINDOW: targets.MANY_ANY_WINDOW,
}


def run(
    hosts: int, seed: int, budget: float, say: Callable[[str], None]
) -> Iterator[Result]:
    """Ask the index about the hosts, then about ten times as many."""
    for count, works in ((hosts, FEW), (10 * hosts, MANY)):
        say(f'index: {count} hosts')
        plan = workload.make(count, ALLOCATIONS, seed)
        judge = Judge(plan, seed)
        subject = index.Index()
        subject.build(plan)
        judge.check_fits(subject, plan)
        for work, name in works.items():
            calls = [
                functools.partial(subject.fits, *query)
                for query in judge.queries[work]
            ]
            timing = timed(calls, budget)
            yield Result(
                name, subject.name, timing.median, 's', timing.runs,
                f'{count} hosts',
            )
