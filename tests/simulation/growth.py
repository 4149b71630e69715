# SPDX-License-Identifier: Apache-2.0
"""What grows in a year of a cloud: the figures at its begin and at its end.

    python -m tests.simulation.growth
    python -m tests.simulation.growth --database mysql+pymysql://root@host/new

The begin is the day on which every retention has deleted for some days: what
is kept for a time grows until then. The replica of a nova-scheduler worker
follows, in a process of its own. The times of requests are processor times, as
multiples of that of a fixed amount of other work.
"""

import argparse
import collections
import gc
import json
import logging
import multiprocessing
import os
import statistics
import sys
import tempfile
import time

import prometheus_client
import rich.console
import rich.progress
import rich.table
import sqlalchemy as sa

from benchmarks import measure
from blazar_sched.replica import puller
from blazar_sched.replica import snapshot_file
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger.ledger import Ledger
from tests.simulation import looks
from tests.simulation import year

DAY = year.DAY
# What is there at the end is at most this many times what was at the begin,
# or this many more: a few rows more than none are no growth.
RATIO, MORE = 1.2, 60
# The days of each of the two looks; the median counts.
LOOK = 5
# The days after the longest retention until the begin.
MARGIN = 6
# How often a request is measured at each look.
RUNS = 20
# How often the other work is done for the unit of the times.
REFERENCE = 200
_EACH = 'time, list of all, each'


def main():
    parser = argparse.ArgumentParser('python -m tests.simulation.growth')
    parser.add_argument('--days', type=int, default=365)
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument('--leases', type=int, default=140, help='of each day')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument(
        '--database', metavar='URL',
        help='an empty database; a SQLite file by default',
    )
    for name, days in (('keep_leases', 45), ('keep_usage', 60)):
        parser.add_argument(
            f'--{name.replace("_", "-")}', type=int, default=days,
            metavar='DAYS', help='what [manager] has, in days; 0 for ever',
        )
    parser.add_argument(
        '--changes-kept', type=int, default=20_000, metavar='REVISIONS',
        help='so few that the first of them are deleted before the begin',
    )
    args = parser.parse_args()
    logging.disable()
    # In memory if possible: a commit waits for a disk otherwise.
    shared = '/dev/shm' if os.path.isdir('/dev/shm') else None
    with tempfile.TemporaryDirectory(dir=shared) as directory:
        figures = play(args, directory)
    return show(*figures)


def play(args, directory):
    """Return the figures of the begin and those of the end."""
    url = args.database or f'sqlite:///{directory}/ledger'
    ledger = Ledger(url)
    ledger.upgrade()
    ledger.close()
    played = year.Year(
        url, args.hosts, args.leases, args.seed,
        keep_leases=args.keep_leases * DAY, keep_usage=args.keep_usage * DAY,
        changes_kept=args.changes_kept,
    )
    with (
        played.playing(), Worker(url, f'{directory}/snapshot') as worker,
        rich.progress.Progress() as progress,
    ):
        days = progress.add_task('days', total=args.days)

        def until(day):
            while played.time < year.EPOCH + day * DAY:
                played.play(1)
                worker.follow(played.time)
                progress.advance(days)

        def look(first):
            found = []
            for day in range(first, first + LOOK):
                until(day)
                found.append(figures(played, worker))
            progress.print(f'looked at days {first} to {day}')
            return {
                name: statistics.median(each.get(name, 0) for each in found)
                for name in dict.fromkeys(n for each in found for n in each)
            }

        begin = max(args.keep_leases, args.keep_usage) + MARGIN
        return look(begin), look(args.days - LOOK + 1)


def figures(played, worker):
    """Return the figures of a moment, by their names."""
    return {
        **counts(played),
        **worker.figures(),
        'manager, memory, bytes': memory(),
        'manager, objects': len(gc.get_objects()),
        **times(played),
    }


def counts(played):
    """Return the figures of a moment that are the same on any machine."""
    return {
        **rows(played.conf.database.connection),
        'metrics, series': len([
            line
            for each in (played.metrics, played.manager.metrics)
            for line in prometheus_client.generate_latest(
                each.registry
            ).splitlines()
            if not line.startswith(b'#')
        ]),
        **held(),
    }


def rows(url):
    """Return the rows of each table, and the bytes of all tables."""
    engine = sa.create_engine(url, isolation_level='AUTOCOMMIT')
    with engine.connect() as connection:
        found = {
            f'rows, {table.name}': connection.execute(
                sa.select(sa.func.count()).select_from(table)
            ).scalar_one()
            for table in models.Base.metadata.sorted_tables
        }
        name = engine.dialect.name
        if name == 'postgresql':
            # In the time of the simulation, a month takes minutes: deleted
            # rows are not vacuumed as fast.
            connection.exec_driver_sql('VACUUM FULL')
        size = {
            'sqlite': 'SELECT (page_count - freelist_count) * page_size FROM '
            'pragma_page_count, pragma_freelist_count, pragma_page_size',
            'postgresql': 'SELECT pg_database_size(current_database())',
        }.get(
            name,
            'SELECT SUM(data_length + index_length) FROM '
            'information_schema.tables WHERE table_schema = DATABASE()',
        )
        found['database, bytes'] = int(
            connection.exec_driver_sql(size).scalar_one()
        )
    engine.dispose()
    return found


def memory():
    measure.give_back()
    return measure.resident()


def times(played):
    """Return the times of requests, as multiples of that of other work.

    The other work is always the same, and done in turn: a machine that is
    busy is slow with both.
    """
    project = 'project-0'
    start = played.time + 5 * DAY
    body = {
        'name': 'measured', 'start_date': looks.date(start),
        'end_date': looks.date(start + DAY), 'events': [],
        'reservations': [{
            'resource_type': 'physical:host', 'min': 1, 'max': 1,
            'hypervisor_properties': '', 'resource_properties': '',
        }],
    }
    spent = collections.defaultdict(list)

    def timed(name, method, path, *args):
        began = time.process_time()
        answer = played.ask(method, path, *args)
        spent[name].append(time.process_time() - began)
        return answer

    text = json.dumps(body)
    gc.collect()
    for _ in range(RUNS):
        began = time.process_time()
        for _ in range(REFERENCE):
            json.loads(text)
        spent['reference'].append(time.process_time() - began)
        made = timed('time, create', 'POST', '/v1/leases', body, project)
        timed('time, list of 50', 'GET', '/v1/leases?limit=50', None, project)
        if made.status_code == 201:
            played.ask('DELETE', f'/v1/leases/{made.json["lease"]["id"]}')
    for _ in range(RUNS // 5):
        listed = timed(_EACH, 'GET', '/v1/leases', None, project)
        # The number of leases of one project is not the same at both looks.
        spent[_EACH][-1] /= len(listed.json['leases'])
    unit = statistics.median(spent.pop('reference'))
    return {
        name: statistics.median(each) / unit for name, each in spent.items()
    }


def held():
    """Return how much the attributes of this project's objects hold.

    That is of all objects of a class together: what grows in memory is the
    length of some dictionary, list or set.
    """
    # What nothing refers to is not held, whenever it is collected.
    gc.collect()
    found = collections.Counter()
    for each in gc.get_objects():
        kind = type(each)
        if not str(kind.__module__).startswith('blazar_sched.'):
            continue
        module = kind.__module__.removeprefix('blazar_sched.')
        where = f'{module}.{kind.__name__}'
        found[f'held, {where}'] += 1
        for name in _attributes(each):
            value = getattr(each, name, None)
            # A proxy of an object that is gone cannot tell what it was.
            if issubclass(
                type(value), dict | list | set | frozenset | collections.deque
            ):
                found[f'held, {where}.{name}'] += len(value)
    for module in list(sys.modules.values()):
        if module.__name__.startswith('blazar_sched.'):
            where = module.__name__.removeprefix('blazar_sched.')
            for name, value in vars(module).items():
                if isinstance(value, dict | list | set):
                    found[f'held, {where}.{name}'] += len(value)
    return found


def _attributes(each):
    return {
        *getattr(each, '__dict__', ()),
        *(
            name for kind in type(each).__mro__
            for name in getattr(kind, '__slots__', ())
        ),
    }


class Worker:
    """The replica of a nova-scheduler worker, in a process of its own."""

    def __init__(self, url, path):
        # Nothing of this process is in the other's memory.
        context = multiprocessing.get_context('spawn')
        self._pipe, other = context.Pipe()
        self._process = context.Process(
            target=_follow, args=(url, path, other), daemon=True
        )

    def __enter__(self):
        self._process.start()
        return self

    def __exit__(self, *raised):
        self._pipe.close()
        self._process.join(10)

    def follow(self, now):
        self._pipe.send((now, False))
        self._pipe.recv()

    def figures(self):
        self._pipe.send((0, True))
        return self._pipe.recv()


def _follow(url, path, pipe):
    logging.disable()
    ledger = Ledger(url)

    def call(method, **kwargs):
        return json.loads(json.dumps(getattr(ledger, method)(**kwargs)))

    pulled = puller.Puller(call, time.monotonic, lambda: 120.0)
    while True:
        try:
            now, wanted = pipe.recv()
        except EOFError:
            return
        if not wanted:
            pulled.pull(now)
            pipe.send(None)
            continue
        copy = pulled.copy
        snapshot_file.write(
            path, copy.ledger, copy.replica.revision, 0, copy.replica.items()
        )
        pipe.send({
            'snapshot file, bytes': os.stat(path).st_size,
            'worker, memory, bytes': memory(),
            'worker, objects': len(gc.get_objects()),
            **{
                f'worker, {name}': value for name, value in held().items()
                if name.startswith('held, replica.')
            },
        })


def grown(begin, end, ratio=RATIO):
    """Return the names of what has grown beyond the bound."""
    return [
        name for name, value in end.items()
        if value > ratio * begin.get(name, 0) and (
            name.startswith('time') or value > begin.get(name, 0) + MORE
        )
    ]


def show(begin, end):
    """Print the figures; return the exit status."""
    wrong = set(grown(begin, end))
    table = rich.table.Table('figure', 'begin', 'end', 'ratio')
    for name, value in end.items():
        before = begin.get(name, 0)
        if 'held, ' in name and name not in wrong:
            continue
        table.add_row(
            name, f'{before:,.6g}', f'{value:,.6g}',
            (f'{value / before:.2f}' if before else '-')
            + (' !' if name in wrong else ''),
        )
    rich.console.Console(width=120).print(table)
    for name in sorted(wrong):
        print(f'has grown: {name}')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
