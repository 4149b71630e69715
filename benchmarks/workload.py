# SPDX-License-Identifier: Apache-2.0
"""What everybody is loaded with and asked: a cloud's year, from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import itertools
from typing import Any
from typing import NamedTuple

import numpy as np

RESOURCE_CLASSES = ('VCPU', 'MEMORY_MB', 'DISK_GB', 'PGPU')

MINUTE, HOUR, DAY = 60, 3600, 86400
WEEK, YEAR = 7 * DAY, 365 * DAY

# The clock stands here in every run.
NOW = 1_800_000_000
# The longest allocation: after that long a calendar is as full as it gets.
MAX_DURATION = 30 * DAY

DURATIONS = np.array([HOUR, 4 * HOUR, DAY, 3 * DAY, WEEK, MAX_DURATION])
DURATION_SHARES = (0.2, 0.2, 0.25, 0.2, 0.1, 0.05)
WHOLE_SHARE = 0.2
# So many allocations of these durations leave a host about half idle.
USUAL_ALLOCATIONS = 100

# How far ahead a query looks.
HORIZONS = (HOUR, 4 * HOUR, DAY, 3 * DAY, WEEK, 30 * DAY, 90 * DAY)
# A cloud has a few dozen flavors, and asks for them again and again.
FLAVORS = [
    *((n, n * mb, n * 20, 0) for n in (1, 2, 4, 8, 16) for mb in (2048, 4096)),
    *((n, n * 8192, n * 10, 0) for n in (1, 2, 4, 8)),
    (8, 32768, 160, 1), (16, 65536, 320, 2), (32, 65536, 640, 4),
]


class Query(NamedTuple):
    """On which hosts do these amounts fit throughout this window?"""

    start: int
    end: int
    amounts: tuple[int, ...]


class Addition(NamedTuple):
    """An allocation that is not in the workload."""

    id: str
    owner: str
    row: int
    host: str
    start: int
    end: int
    amounts: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Workload:
    """Hosts and their allocations, as columns of numpy's.

    ``capacity`` and ``amounts`` have a row for each host and allocation, and
    a column for each resource class.
    """

    hosts: list[str]
    capacity: np.ndarray
    ids: list[str]
    owners: list[str]
    rows: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    amounts: np.ndarray
    whole: np.ndarray

    def __len__(self) -> int:
        """Return the number of allocations."""
        return len(self.ids)

    @property
    def taken(self) -> np.ndarray:
        """What each allocation takes of its host, a whole one all there is.

        That shuts the host to every request for something, so the peers need
        no notion of a whole host.
        """
        return np.where(
            self.whole[:, None], self.capacity[self.rows], self.amounts
        )

    def columns(self) -> tuple[Any, ...]:
        """Return the arguments of the index's ``load``."""
        return (
            self.hosts, self.capacity.ravel(), self.ids, self.owners,
            self.rows, self.starts, self.ends, self.amounts.ravel(),
            self.whole.tobytes(),
        )

    def first(self, count: int) -> Workload:
        """Return the workload of the first ``count`` hosts alone."""
        if count >= len(self.hosts):
            return self
        kept = np.flatnonzero(self.rows < count)
        return Workload(
            self.hosts[:count], self.capacity[:count],
            [self.ids[i] for i in kept], [self.owners[i] for i in kept],
            self.rows[kept], self.starts[kept], self.ends[kept],
            self.amounts[kept], self.whole[kept],
        )

    def plus(self, additions: Sequence[Addition]) -> Workload:
        """Return the workload with these allocations as well."""
        _, _, rows, _, starts, ends, amounts = zip(*additions, strict=True)
        return Workload(
            self.hosts, self.capacity, self.ids + [a.id for a in additions],
            self.owners + [a.owner for a in additions],
            np.append(self.rows, rows), np.append(self.starts, starts),
            np.append(self.ends, ends), np.vstack([self.amounts, amounts]),
            np.append(self.whole, np.zeros(len(rows), bool)),
        )


def make(hosts: int, allocations: int, seed: int) -> Workload:
    """Return a year of that many allocations on each of the hosts.

    Starts are spread evenly over the year around NOW, in no order. On hosts
    with many allocations these are shorter, else nothing would be free.
    """
    random = np.random.default_rng(seed)
    count = hosts * allocations
    vcpus = random.choice([32, 64, 128], hosts)
    gpus = random.choice([0, 4, 8], hosts, p=[0.7, 0.2, 0.1])
    capacity = np.stack([vcpus, vcpus * 4096, vcpus * 20, gpus], 1)
    rows = random.permutation(np.repeat(np.arange(hosts), allocations))
    first = NOW - MAX_DURATION
    starts = _minutes(random, first, first + YEAR, count)
    durations = random.choice(DURATIONS, count, p=DURATION_SHARES)
    if allocations > USUAL_ALLOCATIONS:
        minutes = durations * USUAL_ALLOCATIONS // allocations // MINUTE
        durations = np.maximum(minutes, 1) * MINUTE
    size = random.choice([1, 2, 4, 8, 16], count)
    gpu = np.where(gpus[rows] > 0, random.integers(0, 3, count), 0)
    whole = random.random(count) < WHOLE_SHARE
    amounts = np.stack([size, size * 4096, size * 20, gpu], 1)
    amounts[whole] = 0
    ids = uuids(random, count)
    # A reservation has allocations on four hosts.
    owners = uuids(random, count // 4 + 1)
    return Workload(
        [f'compute-{row:06d}' for row in range(hosts)], capacity, ids,
        [owner for owner in owners for _ in range(4)][:count], rows, starts,
        starts + durations, amounts, whole,
    )


def uuids(random: np.random.Generator, count: int) -> list[str]:
    """Return random ids in the form of a UUID."""
    digits = random.bytes(16 * count).hex()
    return [
        f'{d[:8]}-{d[8:12]}-{d[12:16]}-{d[16:20]}-{d[20:]}'
        for d in (digits[i:i + 32] for i in range(0, len(digits), 32))
    ]


def _minutes(
    random: np.random.Generator, start: int, end: int, count: int
) -> np.ndarray:
    return start + random.integers(0, (end - start) // MINUTE, count) * MINUTE


def from_now(seed: int, count: int, unseen: bool = False) -> list[Query]:
    """Return what a scheduler asks: does it fit from now on, for how long."""
    random = np.random.default_rng([seed, 1])
    starts = np.full(count, NOW)
    return _queries(random, starts, unseen)


def any_window(seed: int, count: int, unseen: bool = False) -> list[Query]:
    """Return what a planner asks: does it fit at some time of the year."""
    random = np.random.default_rng([seed, 2])
    starts = _minutes(random, NOW + MINUTE, NOW + 300 * DAY, count)
    return _queries(random, starts, unseen)


def _queries(
    random: np.random.Generator, starts: np.ndarray, unseen: bool
) -> list[Query]:
    """Give each start a horizon and a flavor, no two of them the same.

    :param unseen: amounts of which no two queries have the same, instead of
        the flavors'.
    """
    amounts = _unseen(random) if unseen else _flavors(random)
    spans = itertools.cycle(HORIZONS)
    return [
        Query(start, start + span, own)
        for start, span, own in zip(
            starts.tolist(), spans, amounts, strict=False
        )
    ]


def _flavors(random: np.random.Generator) -> Iterator[tuple[int, ...]]:
    # The numbers of flavors and horizons have no divisor in common, so that
    # many queries pass before a flavor meets a horizon again.
    order = random.permutation(len(FLAVORS)).tolist()
    return (FLAVORS[i] for i in itertools.cycle(order))


def _unseen(random: np.random.Generator) -> Iterator[tuple[int, ...]]:
    seen = set()
    while True:
        vcpus, memory, disk = random.integers(1, (17, 65537, 321)).tolist()
        amounts = (vcpus, memory, disk, 0)
        if amounts not in seen:
            seen.add(amounts)
            yield amounts


def additions(
    hosts: Sequence[str], seed: int, count: int,
    spans: Sequence[int] = (HOUR, DAY, WEEK),
) -> list[Addition]:
    """Return allocations to add to any of the hosts, at any time ahead."""
    random = np.random.default_rng([seed, 3])
    rows = random.integers(0, len(hosts), count).tolist()
    # They end where calendars are still as full as before.
    latest = NOW + 300 * DAY - max(spans)
    starts = _minutes(random, NOW, latest, count).tolist()
    flavors = random.integers(0, len(FLAVORS), count).tolist()
    return [
        Addition(
            new, new, row, hosts[row], start, start + span, FLAVORS[flavor]
        )
        for new, row, start, span, flavor in zip(
            uuids(random, count), rows, starts,
            random.choice(spans, count).tolist(), flavors, strict=True,
        )
    ]
