# SPDX-License-Identifier: Apache-2.0
"""Instances of Azure, 2017, for ``blazar-sched simulate --instances``.

``python -m benchmarks.azure_trace resources azure.csv --share 0.02`` reads the
folder ``resources`` of https://github.com/huaweicloud/trace_generation_rnn:
the virtual machines of AzurePublicDatasetV1 (CC BY 4.0) in the order of their
arrival, by batches, with bins of their lifetimes.

Three things are not in these files and are drawn. The first 20 days have no
lifetimes: a machine gets the lifetime of one of the other ten days that has
its size. A machine that still ran at the age a when the record ended lives for
a / u seconds, with u uniform in (0, 1], and for LONGEST at most. Half of the
machines declare an end, overstated as in Alibaba's trace.
"""

import argparse
import collections
from collections.abc import Iterator
import pathlib
import random

from blazar_sched.domain import inventory
from blazar_sched.parts.simulate import lease
from blazar_sched.parts.simulate import trace

LONGEST = 90 * lease.DAY
# The files of arrivals, each with the file of lifetimes where there is one.
FILES = (
    ('v1.train.txt', None), ('v1.dev.txt', 'v1.dev.c2100000.txt'),
    ('v1.test.txt', 'v1.test.c2591400.txt'),
)

Batch = tuple[int, list[str]]


def _batches(path: pathlib.Path) -> Iterator[Batch]:
    """Return the words of each batch of a file, with its time in seconds."""
    for line in path.read_text().splitlines():
        time, _, words = line.partition(' ')
        for batch in words.split('|'):
            yield int(time), [word for word in batch.split(',') if word]


def _table(path: pathlib.Path) -> list[list[str]]:
    return [line.split() for line in path.read_text().splitlines()]


class _Lifetimes:
    """Draws lifetimes in seconds from the bins of a record."""

    def __init__(self, intervals: pathlib.Path, rng: random.Random) -> None:
        starts: dict[int, int] = {}
        for start, number in _table(intervals):
            starts.setdefault(int(number), int(start))
        self._starts = starts
        self._rng = rng
        self._recorded: dict[str, list[str]] = collections.defaultdict(list)

    def record(self, size: str, word: str) -> None:
        self._recorded[size].append(word)

    def of(self, size: str) -> int:
        """Return the lifetime of a machine of `size` without a record."""
        return self.lifetime(self._rng.choice(self._recorded[size]))

    def lifetime(self, word: str) -> int:
        """Return the lifetime of a machine by its bin, ``U7`` or ``C7``."""
        number = int(word[1:])
        start = self._starts[number]
        if word[0] == 'C':
            return min(LONGEST, int(start / (1 - self._rng.random())) + 1)
        end = self._starts.get(number + 1, 2 * start)
        return self._rng.randrange(start, end) + 1


def instances(
    folder: pathlib.Path, share: float, rng: random.Random
) -> Iterator[trace.Instance]:
    """Return the machines of `share` of the batches, in random order."""
    sizes = {
        name: size.split(',')
        for size, name in _table(folder / 'maps/flav_map.txt')
    }
    lifetimes = _Lifetimes(folder / 'maps/v1.interval_map.txt', rng)
    for arrivals, ends in reversed(FILES):
        of_arrivals = _batches(folder / 'traces' / arrivals)
        of_ends = _batches(folder / 'traces' / ends) if ends else None
        for time, names in of_arrivals:
            words = next(of_ends)[1] if of_ends else [''] * len(names)
            for name, word in zip(names, words, strict=True):
                if word:
                    lifetimes.record(name, word)
            if rng.random() >= share:
                continue
            for name, word in zip(names, words, strict=True):
                vcpus, memory = sizes[name]
                lifetime = (
                    lifetimes.lifetime(word) if word else lifetimes.of(name)
                )
                factor = 1 + (trace.OVERSTATED - 1) * rng.random()
                declared = (
                    int(lifetime * factor) + 1
                    if rng.random() < trace.DECLARING_SHARE else None
                )
                yield trace.Instance(
                    time, lifetime, int(vcpus),
                    int(float(memory) * inventory.MIB_PER_GIB),
                    trace.BOUNDED if declared else trace.UNBOUNDED, declared,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('output')
    parser.add_argument(
        '--share', type=float, default=0.02, help='share of the batches'
    )
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    found = instances(args.folder, args.share, random.Random(args.seed))
    trace.write_instances(args.output, found)


if __name__ == '__main__':
    main()
