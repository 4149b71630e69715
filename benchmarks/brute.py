# SPDX-License-Identifier: Apache-2.0
"""Numpy over flat columns: the oracle of every answer, and a peer itself.

Nothing is prepared: each question sorts what it is about, and sweeps it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks import workload


class Columns:
    """The allocations as a database has them, one column an attribute."""

    def build(self, plan: workload.Workload) -> None:
        self.hosts = plan.hosts
        self.capacity = plan.capacity
        self.rows = plan.rows
        self.starts = plan.starts
        self.ends = plan.ends
        self.taken = plan.taken

    def fits_beside(
        self, overlapping: np.ndarray, amounts: Sequence[int]
    ) -> np.ndarray:
        """Say which hosts take the amounts beside what overlaps a window."""
        asked = np.flatnonzero(amounts)
        wanted = np.asarray(amounts)[asked]
        peaks = self._peaks(overlapping, asked)
        return (peaks + wanted <= self.capacity[:, asked]).all(1)

    def _peaks(
        self, overlapping: np.ndarray, classes: np.ndarray
    ) -> np.ndarray:
        """Return the most of each class that is taken of each host at once.

        Nothing is cut to the window: all that began before it lasts into it,
        and nothing begins after it, so no sum outside exceeds those inside.
        """
        rows = self.rows[overlapping]
        taken = self.taken[np.ix_(overlapping, classes)]
        peaks = np.zeros((len(self.hosts), len(classes)), np.int64)
        if not len(rows):
            return peaks
        host = np.concatenate([rows, rows])
        at = np.concatenate([self.starts[overlapping], self.ends[overlapping]])
        begins = np.repeat([True, False], len(rows))
        # What ends makes room for what begins at the same second.
        order = np.lexsort((begins, at, host))
        host = host[order]
        # A host's steps add up to nothing, so each host begins at zero.
        sums = np.cumsum(np.concatenate([taken, -taken])[order], axis=0)
        heads = np.flatnonzero(np.diff(host, prepend=-1))
        peaks[host[heads]] = np.maximum.reduceat(sums, heads, axis=0)
        return peaks


class NumpyFlat(Columns):
    """Nothing but the columns."""

    name = 'numpy flat'

    def fits(self, start: int, end: int, amounts: Sequence[int]) -> np.ndarray:
        overlapping = (self.starts < end) & (self.ends > start)
        return self.fits_beside(np.flatnonzero(overlapping), amounts)

    def earliest(
        self, count: int, duration: int, after: int
    ) -> tuple[int, list[str]]:
        """Return when so many hosts are free at once, and the first such."""
        times, free = self.startable(duration, after)
        at = int(times[np.argmax(free >= count)])
        taken = (self.starts < at + duration) & (self.ends > at)
        idle = np.ones(len(self.hosts), bool)
        idle[self.rows[taken]] = False
        return at, [self.hosts[row] for row in np.flatnonzero(idle)[:count]]

    def startable(
        self, duration: int, after: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return on how many hosts one could start, from each time on.

        That is to have a host alone for the duration. From the last time on
        every host is free.
        """
        left = np.flatnonzero(self.ends > after)
        left = left[np.lexsort((self.starts[left], self.rows[left]))]
        rows, starts = self.rows[left], self.starts[left]
        ends = self.ends[left]
        # Until when each host is taken by its allocations up to this one.
        shift = rows * (ends.max(initial=0) + 1)
        busy = np.maximum.accumulate(ends + shift) - shift
        heads = np.diff(rows, prepend=-1) != 0
        tails = np.diff(rows, append=-1) != 0
        free_from = np.maximum(np.where(heads, after, np.roll(busy, 1)), after)
        enough = starts - free_from >= duration
        idle = np.full(len(self.hosts) - heads.sum(), after)
        rises = np.concatenate([free_from[enough], busy[tails], idle])
        falls = starts[enough] - duration + 1
        return counted(after, rises, falls)


def counted(
    after: int, rises: np.ndarray, falls: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return how many more rises than falls there were, from each time on.

    The count holds until the next time; the first one is ``after``.
    """
    times = np.concatenate([rises, falls, [after]])
    steps = np.repeat([1, -1, 0], [len(rises), len(falls), 1])
    order = np.argsort(times)
    times, counts = times[order], np.cumsum(steps[order])
    settled = np.diff(times, append=-1) != 0
    return times[settled], counts[settled]
