# SPDX-License-Identifier: Apache-2.0
"""Offers: the search for windows, and what waits for the search.

The hosts are in use nearly all the time: most gaps between two leases of a
host are too short for the least lease that is searched for. The ledger is that
of benchmarks.database.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import functools
import itertools
import json
import random
import sys
import threading
import time
from typing import Any

import sqlalchemy as sa

from benchmarks import database
from benchmarks import ledger
from benchmarks import workload
from benchmarks.measure import percentile
from benchmarks.measure import Result
from benchmarks.measure import Target
from benchmarks.measure import timed
from benchmarks.measure import WrongAnswer
from blazar_sched.cmd import service as cmd_service
from blazar_sched.service.ledger import models
from blazar_sched.service.manager.manager import Manager

HOUR, DAY = workload.HOUR, workload.DAY
MONTH = 30 * DAY
START = workload.NOW + workload.MINUTE

MANAGER = 'in the manager'
REST = 'over REST'
LOOK = 'longest look at the replica, processor time'
LATE = '{}, 99th percentile'
ALONE = 'create a lease over REST'
MEANWHILE = 'create a lease over REST, meanwhile {}'

SMALL, LARGE = 'six earliest, 10 hosts x 6 h', 'six earliest, 100 hosts x 7 d'
LONGEST, MOST = 'longest, 10 hosts, 6 h to 30 d', 'most, 10 to 100 hosts x 6 h'
RANGE = 'six earliest, 10 hosts, 6 h to 30 d'
HOLD = f'hold the first of {SMALL}, and accept it'


def _wanted(least: int, most: int, duration: int, **more: Any) -> Any:
    """Return the body of a request for offers."""
    return {
        'reservations': [{
            'resource_type': 'physical:host',
            **database.request(), 'min': least, 'max': most,
        }],
        'start_date': ledger.date(START),
        'duration': duration,
        **more,
    }


SEARCHES = {
    SMALL: _wanted(10, 10, 6 * HOUR),
    LARGE: _wanted(100, 100, 7 * DAY),
    RANGE: _wanted(10, 10, 6 * HOUR, max_duration=MONTH),
    LONGEST: _wanted(10, 10, 6 * HOUR, max_duration=MONTH, best='longest'),
    MOST: _wanted(10, 100, 6 * HOUR, best='most'),
}

TARGETS = [
    target
    for subject in (MANAGER, REST)
    for target in (
        Target(SMALL, subject, at_most=0.02),
        Target(LARGE, subject, at_most=0.1),
    )
] + [Target(name, LOOK, at_most=0.05) for name in SEARCHES] + [
    Target(LATE.format(MEANWHILE.format(name)), REST, at_most=0.05)
    for name in (SMALL, LARGE)
]


def run(
    hosts: int, seed: int, budget: float, say: Callable[[str], None]
) -> Iterator[Result]:
    """Measure each work for about `budget` seconds, with 100 hosts or more."""
    hosts = max(hosts, 100)
    with database.database() as url:
        say(f'offers: {hosts} hosts, {hosts * database.LEASES_A_HOST} leases')
        fill(url, hosts, seed)
        yield from _in_manager(url, budget)
        say('offers: over REST')
        yield from _over_rest(url, budget)


def fill(url: str, hosts: int, seed: int) -> None:
    """Write hosts, each with leases of the whole of it and short gaps."""
    windows = _windows(hosts, seed)

    def rows(row: Callable[[int, int], dict[str, Any]]) -> Iterator[Any]:
        for n, (start, end) in enumerate(windows):
            yield {**row(n, hosts), 'start': start, 'end': end}

    engine = sa.create_engine(url)
    with engine.begin() as connection:
        database.insert(
            connection, models.Host, map(database.host_row, range(hosts))
        )
        database.insert(connection, models.Lease, rows(database.lease_row))
        database.insert(connection, models.Reservation, (
            database.reservation_row(n, hosts) for n in range(len(windows))
        ))
        database.insert(
            connection, models.Allocation, rows(database.allocation_row)
        )
    engine.dispose()


def _windows(hosts: int, seed: int) -> list[tuple[int, int]]:
    """Return the windows of the leases, those of a host one host apart."""
    chance = random.Random(seed)

    def minutes(least: int, most: int) -> int:
        return chance.randrange(least, most, workload.MINUTE)

    columns = []
    for _ in range(hosts):
        at = START + minutes(0, HOUR)
        column = []
        for _ in range(database.LEASES_A_HOST):
            end = at + minutes(DAY // 2, 10 * DAY)
            column.append((at, end))
            # Few gaps take a lease of 6 hours.
            is_long = chance.random() < 0.05
            gap = (6 * HOUR, 12 * HOUR) if is_long else (0, 2 * HOUR)
            at = end + minutes(*gap)
        columns.append(column)
    return list(itertools.chain.from_iterable(zip(*columns, strict=True)))


def _in_manager(url: str, budget: float) -> Iterator[Result]:
    manager = Manager(ledger.conf(url), clock=lambda: workload.NOW)
    looks = time_looks(manager)
    try:
        # A search has less time than the replica takes to load.
        manager.ledger.read_replica(lambda replica: replica.revision)
        for name, body in SEARCHES.items():
            call = functools.partial(_search, manager, body)
            offers = call()['offers']
            if len(offers) != 6:
                raise WrongAnswer(f'{len(offers)} offers: {name}')
            cmd_service.spare_collections()
            looks.clear()
            spent = timed([call], budget)
            yield Result(name, MANAGER, spent.median, runs=spent.runs)
            yield Result(name, LOOK, max(looks), runs=len(looks))
    finally:
        manager.ledger.close()


def _search(manager: Manager, body: Any) -> Any:
    return manager.endpoint.search_offers({}, values={
        'project_id': 'measured',
        'user_id': 'user',
        'alternatives': [body['reservations']],
        'start': START,
        'latest_start': None,
        'latest_end': None,
        'duration': body['duration'],
        'max_duration': body.get('max_duration'),
        'align': None,
        'best': body.get('best', 'earliest'),
        'limit': 6,
        'distance': HOUR,
    })


def time_looks(manager: Manager) -> list[float]:
    """Return a list that gets the processor time of each look."""
    seconds: list[float] = []
    real = manager.ledger.read_replica

    def read_replica(query: Callable[[Any], Any]) -> Any:
        def look(replica: Any) -> Any:
            began = time.thread_time()
            try:
                return query(replica)
            finally:
                seconds.append(time.thread_time() - began)

        return real(look)

    # Only this method reads the replica, and no option measures a look.
    manager.ledger.read_replica = read_replica  # type: ignore[method-assign]
    return seconds


# Over REST


def _over_rest(url: str, budget: float) -> Iterator[Result]:
    service = ledger.serve(url)
    base = ledger.address(service)

    def client(work: str, *arguments: str) -> Any:
        return json.loads(ledger.elsewhere(
            'benchmarks.offers', work, base, *arguments, str(budget)
        ))

    try:
        for name in SEARCHES:
            yield from told(name, client('search', name))
        yield from told(HOLD, client('hold'))
        yield from told(ALONE, client('create'))
        for name in SEARCHES:
            yield from told(MEANWHILE.format(name), client('meanwhile', name))
    finally:
        service.stop()


def told(work: str, seconds: Sequence[float]) -> Iterator[Result]:
    for name, share in ((work, 0.5), (LATE.format(work), 0.99)):
        yield Result(name, REST, percentile(seconds, share), runs=len(seconds))


# In the process of a client


def every(work: Callable[[], object], until: float) -> list[float]:
    """Return the seconds of each call of a work until a time."""
    seconds = []
    while not seconds or time.perf_counter() < until:
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return seconds


def _searching(base: str, name: str) -> Callable[[], object]:
    return functools.partial(
        ledger.post, f'{base}/offers', SEARCHES[name], '1.1'
    )


def creating(base: str) -> Callable[[], object]:
    """Return what creates leases after all others."""
    numbers = itertools.count()

    def create() -> None:
        start = START + 3 * workload.YEAR + next(numbers) * HOUR
        ledger.create_lease(base, start, start + HOUR)

    return create


def search(base: str, name: str, budget: str) -> list[float]:
    work = _searching(base, name)
    # The first one loads the replica.
    work()
    return every(work, time.perf_counter() + float(budget))


def hold(base: str, budget: str) -> list[float]:
    """Return the seconds of each offer that is held and then accepted."""
    def work() -> None:
        wanted = {**SEARCHES[SMALL], 'hold': workload.MINUTE}
        found = ledger.post(f'{base}/offers', wanted, '1.1')
        offer = found['offers'][0]['id']
        ledger.post(
            f'{base}/leases', {'name': 'measured', 'offer': offer}, '1.1'
        )

    return every(work, time.perf_counter() + float(budget))


def create(base: str, budget: str) -> list[float]:
    return every(creating(base), time.perf_counter() + float(budget))


def meanwhile(base: str, name: str, budget: str) -> list[float]:
    """Return the seconds of creates while another client searches."""
    until = time.perf_counter() + float(budget)
    other = threading.Thread(
        target=every, args=(_searching(base, name), until)
    )
    other.start()
    try:
        return every(creating(base), until)
    finally:
        other.join()


_WORKS: dict[str, Callable[..., list[float]]] = {
    'search': search, 'hold': hold, 'create': create, 'meanwhile': meanwhile,
}

if __name__ == '__main__':
    print(json.dumps(_WORKS[sys.argv[1]](*sys.argv[2:])))
