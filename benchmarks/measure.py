# SPDX-License-Identifier: Apache-2.0
"""How everything here is timed, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import ctypes
import dataclasses
import gc
import itertools
import math
import pathlib
import resource
import statistics
import time


class WrongAnswer(Exception):
    """Somebody's answer is not that of the brute force."""


@dataclasses.dataclass(frozen=True)
class Timing:
    """The seconds that one call takes."""

    median: float
    best: float
    runs: int

    def __mul__(self, factor: float) -> Timing:
        """Return the timing of that many times the work."""
        return Timing(self.median * factor, self.best * factor, self.runs)


@dataclasses.dataclass(frozen=True)
class Result:
    """One figure: what a subject needs for a work."""

    work: str
    subject: str
    value: float
    unit: str = 's'
    runs: int = 1
    note: str = ''


@dataclasses.dataclass(frozen=True)
class Target:
    """What a subject's value has to be, beside another or in itself.

    The value times ``ratio`` is at most that of ``against``, a work and a
    subject; a ratio below one thus allows the subject to be slower. Or the
    value is no more than ``at_most``.
    """

    work: str
    subject: str
    against: tuple[str, str] | None = None
    ratio: float | None = None
    at_most: float | None = None


def machine_time() -> float:
    """Return the seconds that 20 million additions take on this machine.

    A target in seconds has to be read beside this time, which differs by
    machine, and on one machine from minute to minute.
    """
    began = time.perf_counter()
    total = 0
    for n in range(20_000_000):
        total += n
    return time.perf_counter() - began


def timed(
    calls: Sequence[Callable[[], object]], budget: float, again: bool = True
) -> Timing:
    """Time the calls one by one, in turn, until the budget is used.

    Each call has its turn once at least, unless one alone takes longer than
    the budget.

    :param budget: seconds.
    :param again: without it no call is made twice, and the budget may end
        before the calls do.
    """
    least = len(calls) if again else 1
    seconds: list[float] = []
    clock = time.perf_counter
    with _no_collection():
        deadline = clock() + budget
        for call in itertools.cycle(calls) if again else calls:
            begin = clock()
            answer = call()
            end = clock()
            # Else the next call's time would hold the freeing of this answer.
            del answer
            seconds.append(end - begin)
            enough = end > deadline and len(seconds) >= least
            if enough or seconds[-1] > budget:
                break
    return Timing(statistics.median(seconds), min(seconds), len(seconds))


def percentile(seconds: Sequence[float], share: float) -> float:
    """Return the time that a share of the calls does not exceed."""
    return sorted(seconds)[max(math.ceil(share * len(seconds)), 1) - 1]


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the garbage collector out of a measurement."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def give_back() -> None:
    """Give the memory that is free in this process back to the system.

    What is taken next then shows as growth, where malloc can do this.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), 'malloc_trim', None)
    if trim:
        trim(0)


def resident() -> int:
    """Return the bytes of memory that this process holds."""
    gc.collect()
    pages = pathlib.Path('/proc/self/statm').read_text().split()[1]
    return int(pages) * resource.getpagesize()
