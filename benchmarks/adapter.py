# SPDX-License-Identifier: Apache-2.0
"""The index for peer benchmarks whose subjects are called q1, q2, q4.

There an allocation is numpy integers and has no id, and one of a whole host
takes amounts equal to its capacity.
"""

from __future__ import annotations

import itertools

import numpy as np

from benchmarks import workload
from blazar_sched import ext


class TimelineAdapter:
    """The index with everything on."""

    name = 'timeline index'

    def build(
        self, cap: np.ndarray, host: np.ndarray, start: np.ndarray,
        end: np.ndarray, amount: np.ndarray,
    ) -> None:
        self.numbers = itertools.count()
        self.hosts = [f'compute-{row:06d}' for row in range(len(cap))]
        self.index = ext.TimelineIndex(workload.RESOURCE_CLASSES)
        self.clock = self.asked = -1
        ids = [self._new_id() for _ in range(len(host))]
        self.index.load(
            self.hosts, _flat(cap), ids, ids, _flat(host), _flat(start),
            _flat(end), _flat(amount), bytes(len(ids)),
        )

    def _new_id(self) -> str:
        """Return an id in the form of a UUID, as a ledger's are."""
        return f'00000000-0000-4000-8000-{next(self.numbers):012x}'

    def q1(self, t0: int, t1: int, req: np.ndarray) -> np.ndarray:
        """Say which hosts can take ``req`` throughout the window."""
        self._notice(t0)
        answer = self.index.fits(None, t0, t1, req.tolist())
        return np.frombuffer(answer, bool)

    def _notice(self, start: int) -> None:
        """Guess the clock, of which the caller says nothing.

        A start that is asked for twice in a row is the present.
        """
        if start == self.asked != self.clock:
            self.clock = start
            self.index.advance(start)
        self.asked = start

    def q2(self, t: int, req: np.ndarray) -> np.ndarray:
        """Return for each host the first time at which ``req`` is too much.

        The largest integer stands for never, as FOREVER does.
        """
        seconds = np.frombuffer(
            self.index.horizon(None, t, req.tolist()), np.int64
        )
        return np.where(seconds == ext.FOREVER, ext.FOREVER, t + seconds)

    def q4(self, t: int, duration: int, n: int) -> int:
        """Return when ``n`` hosts are wholly free at once, -1 for never."""
        found = self.index.earliest(n, duration, t, None, whole=True)
        return found[0] if found else -1

    def add(self, host: int, start: int, end: int, amount: np.ndarray) -> str:
        new = self._new_id()
        amounts = amount.tolist()
        self.index.apply(
            [('add', new, new, self.hosts[host], start, end, amounts, False)],
            force=True,
        )
        return new

    def remove(self, handle: str) -> None:
        self.index.apply([('remove', handle)], force=True)


def _flat(column: np.ndarray) -> np.ndarray:
    """Return a column as the index reads it without a copy."""
    return np.ascontiguousarray(column, np.int64).ravel()
