# SPDX-License-Identifier: Apache-2.0
"""What a change costs on a host with very many allocations."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator

from benchmarks import index
from benchmarks import peers
from benchmarks import targets
from benchmarks import workload
from benchmarks.judge import ADDITIONS
from benchmarks.judge import Judge
from benchmarks.measure import Result
from benchmarks.measure import timed

# The windows added: what each is called in the table.
SPARSE = {
    workload.HOUR: targets.SHORT_ON_SPARSE,
    180 * workload.DAY: targets.LONG_ON_SPARSE,
}
DENSE = {
    workload.HOUR: targets.SHORT_ON_DENSE,
    180 * workload.DAY: targets.LONG_ON_DENSE,
}


def run(
    allocations: int, seed: int, budget: float, say: Callable[[str], None]
) -> Iterator[Result]:
    """Change a host with 100 allocations, and one with as many as given."""
    for count, works in (
        (workload.USUAL_ALLOCATIONS, SPARSE), (allocations, DENSE),
    ):
        say(f'index: one host, {count} allocations')
        plan = workload.make(1, count, seed)
        judge = Judge(plan, seed)
        subject = index.Index()
        subject.build(plan)
        judge.check_fits(subject, plan)
        for span, name in works.items():
            additions = workload.additions(
                plan.hosts, seed, ADDITIONS, spans=(span,)
            )
            judge.check_changes(subject, plan, additions)
            timing = timed(peers.pairs(subject, additions), budget)
            yield Result(
                name, subject.name, timing.median, 's', timing.runs,
                f'{count} allocations',
            )
