# SPDX-License-Identifier: Apache-2.0
"""Series: many leases in one commit, and what waits for the commit.

The ledger is that of benchmarks.offers. The first occurrences are among the
leases of the hosts, the last ones after all leases.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
import itertools
import json
import sys
import threading
import time
from typing import Any

from benchmarks import database
from benchmarks import ledger
from benchmarks import offers
from benchmarks import workload
from benchmarks.measure import Result
from benchmarks.measure import Target

HOUR, DAY = workload.HOUR, workload.DAY
OCCURRENCES = 200
# The first occurrences have the last of the leases beside them.
START = workload.NOW + 40 * DAY
HORIZON = 20 * workload.YEAR

SERIES = f'create a series of {OCCURRENCES} leases, 10 hosts x 1 h'
MEANWHILE = f'create a lease, meanwhile series of {OCCURRENCES} leases'

TARGETS = [
    Target(SERIES, offers.REST, at_most=1),
    Target(offers.LATE.format(MEANWHILE), offers.REST, at_most=0.05),
]


def run(
    hosts: int, seed: int, budget: float, say: Callable[[str], None]
) -> Iterator[Result]:
    """Measure each work for about `budget` seconds, with 100 hosts or more."""
    hosts = max(hosts, 100)
    with database.database() as url:
        say(f'series: {hosts} hosts, {hosts * database.LEASES_A_HOST} leases')
        offers.fill(url, hosts, seed)
        service = ledger.serve(url, series_horizon=HORIZON)
        base = ledger.address(service)
        try:
            for name, work in ((SERIES, 'series'), (MEANWHILE, 'meanwhile')):
                yield from offers.told(name, json.loads(ledger.elsewhere(
                    'benchmarks.series', work, base, str(budget)
                )))
        finally:
            service.stop()


# In the process of a client


def _creating(base: str, first: int) -> Callable[[], object]:
    """Return what creates series, each an hour later than the one before.

    :param first: how many hours the first one is after the first of all
    """
    numbers = itertools.count(first)

    def create() -> None:
        body: dict[str, Any] = {
            'name': 'measured',
            'rrule': f'FREQ=DAILY;COUNT={OCCURRENCES}',
            'time_zone': 'Europe/Berlin',
            'start': time.strftime(
                '%Y-%m-%dT%H:%M', time.gmtime(START + next(numbers) * HOUR)
            ),
            'duration': HOUR // 2,
            'reservations': [{
                'resource_type': 'physical:host', **database.request(),
                'min': 10, 'max': 10,
            }],
        }
        ledger.post(f'{base}/series', body, '1.1')

    return create


def series(base: str, budget: str) -> list[float]:
    work = _creating(base, 0)
    # The first one loads the replica.
    work()
    return offers.every(work, time.perf_counter() + float(budget))


def meanwhile(base: str, budget: str) -> list[float]:
    """Return the seconds of creates while another client creates series."""
    until = time.perf_counter() + float(budget)
    other = threading.Thread(
        target=offers.every, args=(_creating(base, 10_000), until)
    )
    other.start()
    try:
        return offers.every(offers.creating(base), until)
    finally:
        other.join()


_WORKS: dict[str, Callable[..., list[float]]] = {
    'series': series, 'meanwhile': meanwhile,
}

if __name__ == '__main__':
    print(json.dumps(_WORKS[sys.argv[1]](*sys.argv[2:])))
