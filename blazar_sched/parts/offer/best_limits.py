# SPDX-License-Identifier: Apache-2.0
"""Limits of the length, and of the allocations, of all windows of a search.

The limits are too high at most: see placing.window_limits.
"""

import bisect
from collections.abc import Sequence
import dataclasses
import functools
import heapq
import operator

from blazar_sched.domain.lease import Lease
from blazar_sched.domain.window import FOREVER
from blazar_sched.placing.options import Options
from blazar_sched.placing.window_limits import before_cleaning
from blazar_sched.placing.window_limits import demands
from blazar_sched.placing.window_limits import LeastDemand
from blazar_sched.placing.window_limits import Part
from blazar_sched.replica import state

Times = Sequence[int]


@dataclasses.dataclass(frozen=True)
class _Runs:
    """When each of some hosts has room.

    :param least: the number of hosts that are needed at once
    :param parts: the begins and the ends of free runs, in order of the begins
    """

    least: int
    parts: Sequence[tuple[Times, Times]]

    @functools.cached_property
    def _all(self) -> tuple[Times, Times]:
        if len(self.parts) == 1:
            return self.parts[0]
        both = sorted(
            run for part in self.parts for run in zip(*part, strict=True)
        )
        return [begin for begin, _ in both], [end for _, end in both]

    def last_ends(self, starts: Times) -> list[int]:
        """Return the last end with room from each start, 0 for none.

        :param starts: in order
        """
        begins, ends = self._all
        # The last ends of as many runs as are needed. A run that is over has
        # an earlier end than every run that is not.
        last: list[int] = []
        found, n = [], 0
        for start in starts:
            while n < len(begins) and begins[n] <= start:
                if len(last) < self.least:
                    heapq.heappush(last, ends[n])
                elif ends[n] > last[0]:
                    heapq.heapreplace(last, ends[n])
                n += 1
            enough = len(last) == self.least and last[0] > start
            found.append(last[0] if enough else 0)
        return found

    def counts(self, starts: Times, length: int) -> list[int]:
        """Return the number of hosts with room for a length from each start.
        """
        runs = [
            (begin, end) for begin, end in zip(*self._all, strict=True)
            if end - begin >= length
        ]
        begins = [begin for begin, _ in runs]
        ends = sorted(end for _, end in runs)
        return [
            bisect.bisect_right(begins, start)
            - bisect.bisect_left(ends, start + length)
            for start in starts
        ]


class Limits:
    """The limits of all windows of a search.

    :param runs: the runs of each reservation, once for each index, and the
        most hosts that the reservation takes
    """

    def __init__(
        self, runs: Sequence[tuple[int, Sequence[_Runs]]] = ()
    ) -> None:
        self._runs = runs

    def last_ends(self, starts: Times) -> list[int]:
        """Return for each start an end after which there is no room.

        FOREVER if there is no such end, 0 if there is no room at all.

        O(runs + starts · log hosts).

        :param starts: in order
        """
        found = [FOREVER] * len(starts)
        for _, indexes in self._runs:
            for each in indexes:
                found = list(map(min, found, each.last_ends(starts)))
        return found

    def counts(self, starts: Times, length: int) -> list[int]:
        """Return for each start the most allocations, 0 for no room at all.

        O((runs + starts) · log runs).
        """
        if not self._runs:
            return [FOREVER] * len(starts)
        found = [0] * len(starts)
        room = [True] * len(starts)
        for most, indexes in self._runs:
            counts = [most] * len(starts)
            for each in indexes:
                hosts = each.counts(starts, length)
                counts = list(map(min, counts, hosts))
                room = [
                    fits and count >= each.least
                    for fits, count in zip(room, hosts, strict=True)
                ]
            found = list(map(operator.add, found, counts))
        return list(map(operator.mul, found, room))


def read(
    replica: state.Replica, lease: Lease, first: int, last: int, length: int,
    options: Options,
) -> Limits:
    """Return the limits of the windows that begin in a range of starts.

    O(hosts + entries).

    :param length: the least length of a window
    """
    return Limits([
        (
            demand.most,
            [
                _Runs(demand.least, [
                    _free_runs(demand, part, first, last, length)
                    for part in parts
                ])
                for parts in demand.indexes
            ],
        )
        for demand in demands(replica, lease, options)
    ])


def _free_runs(
    demand: LeastDemand, part: Part, first: int, last: int, length: int
) -> tuple[Times, Times]:
    """Return the runs of windows from `first` on, cleaning time left out."""
    seconds = part.seconds
    after = max(0, first - seconds)
    begins, ends = part.index.runs(
        length, after, demand.amounts, part.rows, max(after, last - seconds),
        demand.amounts is None,
    )
    if not seconds:
        return begins, ends
    return (
        [first if begin == after else begin + seconds for begin in begins],
        [before_cleaning(end, seconds) for end in ends],
    )
