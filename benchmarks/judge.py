# SPDX-License-Identifier: Apache-2.0
"""Questions, and the brute force that knows the right answers to them."""

from __future__ import annotations

from collections.abc import Sequence
import functools
from typing import Any
from typing import NamedTuple

import numpy as np

from benchmarks import brute
from benchmarks import targets
from benchmarks import workload
from benchmarks.measure import WrongAnswer

# Different ones of each kind, so that no cache or branch predictor of the
# machine learns an answer.
QUERIES = 64
GATHERING_DURATIONS = [hours * workload.HOUR for hours in range(1, 60, 11)]
ADDITIONS = 512
# Queries to ask again when something was changed.
QUERIES_AGAIN = 8


class Gathering(NamedTuple):
    """When are so many hosts wholly free at once, for a duration?"""

    hosts: int
    duration: int
    after: int


Found = tuple[int, list[str]]


class Judge:
    """Knows a workload's answers, and lets no wrong one pass."""

    def __init__(self, plan: workload.Workload, seed: int) -> None:
        self.plan = plan
        self.seed = seed
        self.oracle = brute.NumpyFlat()
        self.oracle.build(plan)
        self.queries = {
            targets.FROM_NOW: workload.from_now(seed, QUERIES),
            targets.ANY_WINDOW: workload.any_window(seed, QUERIES),
            targets.FROM_NOW_COLD:
                workload.from_now(seed, QUERIES, unseen=True),
            targets.ANY_WINDOW_UNSEEN:
                workload.any_window(seed, QUERIES, unseen=True),
        }
        self.answers = {
            work: [self.oracle.fits(*query) for query in queries]
            for work, queries in self.queries.items()
        }

    def check_fits(
        self, subject: Any, plan: workload.Workload, most: int = QUERIES
    ) -> None:
        """Ask a subject the queries, or so many of each kind.

        :param plan: what the subject has of the workload: its first hosts.
        """
        hosts = len(plan.hosts)
        for work, queries in self.queries.items():
            answers = [own[:hosts] for own in self.answers[work]]
            _check_fits(subject, queries[:most], answers)

    def check_changes(
        self, subject: Any, plan: workload.Workload,
        additions: Sequence[workload.Addition],
    ) -> None:
        """Add allocations to a subject, ask, remove them, ask again."""
        oracle = brute.NumpyFlat()
        oracle.build(plan.plus(additions))
        handles = [subject.add(new) for new in additions]
        for queries in self.queries.values():
            again = queries[:QUERIES_AGAIN]
            _check_fits(subject, again, [oracle.fits(*own) for own in again])
        for handle in handles:
            subject.remove(handle)
        self.check_fits(subject, plan, QUERIES_AGAIN)

    def check_earliest(self, subject: Any) -> None:
        for answers in self.gatherings.values():
            for asked, expected in answers.items():
                if subject.earliest(*asked) != expected:
                    raise WrongAnswer(f'{subject.name}: earliest of {asked}')

    @functools.cached_property
    def gatherings(self) -> dict[str, dict[Gathering, Found]]:
        """The gatherings to ask for and their answers, by work.

        Near ones come about within a week, far ones not for 250 days.
        """
        asked = {
            targets.NEAR: [
                self._near(duration, workload.NOW + (7 + 9 * i) * workload.DAY)
                for i, duration in enumerate(GATHERING_DURATIONS)
            ],
            targets.FAR: [
                self._far(duration, workload.NOW + 7 * i * workload.DAY)
                for i, duration in enumerate(GATHERING_DURATIONS)
            ],
        }
        return {
            work: {own: self.oracle.earliest(*own) for own in gatherings}
            for work, gatherings in asked.items()
        }

    def _near(self, duration: int, after: int) -> Gathering:
        """Ask for as many hosts as are free at the best time of the week.

        A week that is best at its very start would be too easy: then the
        next day's week, a few times.
        """
        for _ in range(5):
            times, free = self.oracle.startable(duration, after)
            count = int(free[times < after + workload.WEEK].max())
            if free[0] < count:
                break
            after += workload.DAY
        return Gathering(count, duration, after)

    def _far(self, duration: int, after: int) -> Gathering:
        times, free = self.oracle.startable(duration, after)
        best = int(free[times < after + 250 * workload.DAY].max())
        return Gathering(min(best + 1, len(self.plan.hosts)), duration, after)


def _check_fits(
    subject: Any, queries: Sequence[workload.Query],
    answers: Sequence[np.ndarray],
) -> None:
    for query, expected in zip(queries, answers, strict=False):
        if not np.array_equal(truths(subject.fits(*query)), expected):
            raise WrongAnswer(f'{subject.name}: {query}')


def truths(answer: Any) -> np.ndarray:
    """Return anybody's answer for each host as an array of truth values."""
    if isinstance(answer, bytes):
        return np.frombuffer(answer, bool)
    return np.asarray(answer, bool)
