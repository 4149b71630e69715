# SPDX-License-Identifier: Apache-2.0
"""Whether memory comes back after as many changes as there were entries.

In a process of its own, `python -m benchmarks.churn`: what others asked for
and gave back would be counted as well.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
import itertools
import json
import pathlib
import random
import subprocess
import sys

from benchmarks import index
from benchmarks import targets
from benchmarks import workload
from benchmarks.measure import resident
from benchmarks.measure import Result
from benchmarks.measure import WrongAnswer

BATCH = 1000
# The part of all additions that is alive at one time.
ALIVE = 5
# Of each kind: to compare, and to ask now and then.
QUERIES, QUERIES_BETWEEN = 16, 1


def run(
    hosts: int, allocations: int, seed: int, say: Callable[[str], None]
) -> Iterator[Result]:
    """Load, note the memory held, add and remove, note it again.

    :raises WrongAnswer: the index answers otherwise than before.
    """
    say('index: churn')
    done = subprocess.run(
        [sys.executable, '-m', 'benchmarks.churn', *map(str, (
            hosts, allocations, seed
        ))],
        cwd=pathlib.Path(__file__).parents[1], check=True,
        stdout=subprocess.PIPE,
    )
    report = json.loads(done.stdout)
    if not report['same']:
        raise WrongAnswer('index: after churn')
    note = f'{report["changes"]} changes'
    for work, held in (
        (targets.BEFORE_CHURN, report['before']),
        (targets.AFTER_CHURN, report['after']),
    ):
        yield Result(work, targets.INDEX, held, 'B', note=note)


def churn(hosts: int, allocations: int, seed: int) -> dict[str, int]:
    """Do it in this process; return what was seen."""
    subject = index.Index()
    plan = workload.make(hosts, allocations, seed)
    subject.build(plan)
    names, total = plan.hosts, len(plan)
    del plan
    answers = _answers(subject, seed, QUERIES)
    before = resident()
    changes = _replace(subject, names, total, seed)
    after = resident()
    return {
        'before': before,
        'after': after,
        'changes': changes,
        'same': _answers(subject, seed, QUERIES) == answers,
    }


def _answers(subject: index.Index, seed: int, count: int) -> list[bytes]:
    return [
        subject.fits(*query) for query in itertools.chain(
            workload.from_now(seed, count), workload.any_window(seed, count)
        )
    ]


def _replace(
    subject: index.Index, hosts: list[str], total: int, seed: int
) -> int:
    """Add so many entries and remove them; return the number of changes.

    Once enough are alive, any of them make room for new ones.
    """
    chance = random.Random(seed)
    alive: list[str] = []
    for done in range(0, total, BATCH):
        count = min(BATCH, total - done)
        alive += subject.add_all(workload.additions(hosts, seed + done, count))
        if len(alive) > total // ALIVE:
            subject.remove_all(_draw(chance, alive, count))
        # Or else work might be put off until after the measurement.
        _answers(subject, seed + done, QUERIES_BETWEEN)
    while alive:
        subject.remove_all(_draw(chance, alive, BATCH))
    return 2 * total


def _draw(chance: random.Random, alive: list[str], count: int) -> list[str]:
    """Take some out of those alive."""
    drawn: list[str] = []
    while alive and len(drawn) < count:
        i = chance.randrange(len(alive))
        alive[i], alive[-1] = alive[-1], alive[i]
        drawn.append(alive.pop())
    return drawn


if __name__ == '__main__':
    print(json.dumps(churn(*map(int, sys.argv[1:]))))
