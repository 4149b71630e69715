# SPDX-License-Identifier: Apache-2.0
"""What leases that are over cost: a million of them beside none.

Processor seconds and memory are those of a process of its own, without the
database. What the database does is in the times of single requests, which are
sent to both ledgers in turn; the shortest time counts.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import json
import pathlib
import subprocess
import sys
import time
from typing import Any

import sqlalchemy as sa

from benchmarks import database
from benchmarks import workload
from benchmarks.measure import Result
from benchmarks.measure import Target
from benchmarks.replica import Meter
from blazar_sched.replica import puller
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger.ledger import Ledger

NONE = 'no lease over'
MILLION = '1,024,000 leases over'

# Each work with its units: the value and what else there is.
START = 'start of a manager, processor time'
MANAGER = 'memory of a manager'
COPY = 'full copy, processor time'
SIZE = 'full copy, length'
WORKER = 'memory of a worker'
PAGE = 'a page of the leases of a project'
OPEN = 'the leases of a project that are not over'
METRICS = 'what a scrape asks the ledger'
DUE = 'the due events'
# The first project has all leases that are to come, and some that are over.
ASKED: dict[str, Callable[[Ledger], object]] = {
    PAGE: lambda ledger: ledger.leases(
        'project-0', limit=100, marker=database.lease_row(99, HOSTS)['id']
    ),
    OPEN: lambda ledger: ledger.open_leases('project-0'),
    METRICS: lambda ledger: ledger.statistics(workload.NOW),
    DUE: lambda ledger: ledger.due_events(workload.NOW, workload.NOW),
}
UNITS = {MANAGER: 'B', SIZE: 'B', WORKER: 'B'}

TARGETS = [
    Target(work, MILLION, against=(work, NONE), ratio=1 / 1.2)
    for work in (START, MANAGER, COPY, SIZE, WORKER, PAGE)
]

# 2,000 leases are to come.
HOSTS = 200
# The number of the first lease that is over, and how many are made one by one;
# they are doubled by setting a digit of their ids.
FIRST = 2**40
MADE = 1000
DIGITS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 11)
RUNS = 15


def run(
    hosts: int, seed: int, budget: float, say: Callable[[str], None]
) -> Iterator[Result]:
    """Measure a ledger without past, and one with a long past, in turn."""
    with contextlib.ExitStack() as stack:
        urls = {
            subject: stack.enter_context(database.database())
            for subject in (NONE, MILLION)
        }
        for url in urls.values():
            database.fill(url, HOSTS)
        say('past: writing leases that are over')
        fill(urls[MILLION])
        for name in WORKS:
            say(f'past: {name}')
            for subject, url in urls.items():
                for work, value in _child(name, url).items():
                    yield Result(
                        work, subject, value, UNITS.get(work, 's'), RUNS
                    )
        say('past: requests')
        yield from requests(
            {subject: Ledger(url) for subject, url in urls.items()}
        )


def requests(ledgers: dict[str, Ledger]) -> Iterator[Result]:
    """Yield how long the requests take, each sent to the ledgers in turn."""
    for work, ask in ASKED.items():
        seconds: dict[str, list[float]] = {name: [] for name in ledgers}
        for _ in range(RUNS):
            for name, ledger in ledgers.items():
                began = time.perf_counter()
                ask(ledger)
                seconds[name].append(time.perf_counter() - began)
        for name, spent in seconds.items():
            yield Result(work, name, min(spent), runs=RUNS)
    for ledger in ledgers.values():
        ledger.close()


def fill(url: str) -> None:
    """Write leases that are over, a day long each, of 200 projects."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for n in range(FIRST, FIRST + MADE):
            connection.execute(sa.insert(models.Lease), {
                **database.lease_row(n, 1),
                'project_id': f'project-{n % 200}',
                'status': 'TERMINATED',
                'start': database.FIRST_START - 3 * database.DAY,
                'end': database.FIRST_START - 2 * database.DAY,
            })
            connection.execute(
                sa.insert(models.Reservation),
                {**database.reservation_row(n, 1), 'status': 'deleted'},
            )
            connection.execute(sa.insert(models.Event), [
                {**database.event_row(n, 1, place, type_), 'status': 'DONE'}
                for place, type_ in enumerate(('start_lease', 'end_lease'))
            ])
    for digit in DIGITS:
        for name in ('lease', 'reservation', 'event'):
            _double(engine, models.Base.metadata.tables[name], digit)
    if engine.dialect.name == 'mysql':
        # The server itself looks at a table again some seconds later.
        with engine.connect() as connection:
            connection.exec_driver_sql(
                'ANALYZE TABLE lease, reservation, event'
            )
    engine.dispose()


def _double(engine: sa.Engine, table: sa.Table, digit: int) -> None:
    """Copy the rows of the leases that are over, with one digit set."""

    def copied(column: Any) -> Any:
        if column.name not in ('id', 'lease_id'):
            return column
        return (
            sa.func.substr(column, 1, digit - 1) + 'f'
            + sa.func.substr(column, digit + 1)
        )

    past = table.c.status.in_(('TERMINATED', 'deleted', 'DONE'))
    with engine.begin() as connection:
        connection.execute(sa.insert(table).from_select(
            list(table.c), sa.select(*map(copied, table.c)).where(past)
        ))


def _child(name: str, url: str) -> dict[str, float]:
    told = subprocess.run(
        [sys.executable, '-m', 'benchmarks.past', name, url],
        cwd=pathlib.Path(__file__).parents[1], check=True, text=True,
        stdout=subprocess.PIPE,
    )
    return dict(json.loads(told.stdout))


# In the process of its own


def _cpu(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(RUNS):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return min(seconds)


def manager(ledger: Ledger) -> dict[str, float]:
    def start() -> None:
        ledger.replica = None
        ledger.warm()

    meter = Meter()
    start()
    _, peak = meter.read()
    return {MANAGER: peak, START: _cpu(start)}


def worker(ledger: Ledger) -> dict[str, float]:
    lengths: list[int] = []

    def call(method: str, **kwargs: Any) -> Any:
        page = getattr(ledger, method)(**kwargs)
        lengths.append(len(json.dumps(page)))
        return page

    def pull() -> puller.Puller:
        lengths.clear()
        pulled = puller.Puller(call, time.monotonic, lambda: 120)
        pulled.pull(workload.NOW)
        return pulled

    meter = Meter()
    kept = pull()
    _, peak = meter.read()
    assert kept.copy is not None
    return {WORKER: peak, SIZE: sum(lengths), COPY: _cpu(pull)}


WORKS = {'manager': manager, 'worker': worker}


if __name__ == '__main__':
    opened = Ledger(sys.argv[2])
    # The connection is there then.
    _ = opened.id
    print(json.dumps(WORKS[sys.argv[1]](opened)))
