# SPDX-License-Identifier: Apache-2.0
"""The search for the longest windows, and for those with the most room."""

from collections.abc import Callable
import heapq
from typing import Any

from blazar_sched.domain.window import FOREVER
from blazar_sched.parts.offer.best_limits import Limits
from blazar_sched.placing.window_search import Found
from blazar_sched.placing.window_search import Search


class BestSearch(Search):
    """A search for the windows that are the best in another order than time.

    :param limits: returns the limits of all windows; called when the search
        needs them
    """

    def __init__(
        self, *args: Any, limits: Callable[[], Limits] = Limits, **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self._limits = limits

    def longest(self, limit: int, distance: int) -> list[Found]:
        """Return windows in the order of their lengths, the longest first."""
        bounds = self._bounds
        starts = list(self._starts(bounds.first))
        queue = []
        for start, end in zip(
            starts, self._limits().last_ends(starts), strict=True
        ):
            if end - start < bounds.least:
                continue
            end = min(end, bounds.last_end(start))
            if end - start >= bounds.least:
                queue.append((
                    -FOREVER if end == FOREVER else start - end, start
                ))
        return self._greatest(
            queue, self._longest_at, lambda found: found.window.duration,
            limit, distance,
        )

    def most(self, limit: int, distance: int) -> list[Found]:
        """Return windows of the least length, the most allocations first."""
        bounds, least = self._bounds, self._bounds.least
        starts = [
            start for start in self._starts(bounds.first)
            if start + least <= bounds.last_end(start)
        ]
        counts = self._limits().counts(starts, least)
        return self._greatest(
            [
                (-count, start)
                for start, count in zip(starts, counts, strict=True) if count
            ],
            lambda start: self._fitting(start, start + least),
            lambda found: found.count, limit, distance,
        )

    def _greatest(
        self, queue: list[tuple[int, int]],
        attempt: Callable[[int], Found | None], value: Callable[[Found], int],
        limit: int, distance: int,
    ) -> list[Found]:
        """Return windows in the order of a value, the greatest first.

        The start with the greatest limit is tried first, and a window is
        returned as soon as no other start has a greater limit.

        :param queue: a limit of the value, negated, and the start, for each
            start to try
        :param attempt: returns the window at a start
        """
        heapq.heapify(queue)
        tried: dict[int, Found] = {}
        kept: list[Found] = []
        while queue and len(kept) < limit:
            _, start = heapq.heappop(queue)
            if any(
                abs(start - other.window.start) < distance for other in kept
            ):
                continue
            if start in tried:
                kept.append(tried[start])
            elif self._may_attempt(start):
                found = attempt(start)
                if found is not None:
                    tried[start] = found
                    heapq.heappush(queue, (-value(found), start))
        return kept
