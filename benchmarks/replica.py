# SPDX-License-Identifier: Apache-2.0
"""Starting a replica: from its file, from the ledger, and in a manager.

Each start is in a process of its own, for its peak of memory. The ledger is
that of benchmarks.database; a worker asks for it over the bus that
BLAZAR_SCHED_BENCH_BROKER names, else through a pipe.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
import gc
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
from typing import Any
import uuid

import sqlalchemy as sa

from benchmarks import database
from benchmarks import workload
from benchmarks.measure import Result
from benchmarks.measure import Target
from blazar_sched.conf import service as service_conf
from blazar_sched.replica import puller
from blazar_sched.replica import snapshot_file
from blazar_sched.service.bus import rpc
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.worker.process import CONF
from blazar_sched.worker.process import Worker

BROKER = 'BLAZAR_SCHED_BENCH_BROKER'

FROM_FILE = 'start from the snapshot file'
FROM_LEDGER = 'start from the ledger'
WRITING = 'write the snapshot file'
PEAK = '{}, peak of memory beyond an empty worker'

WORKER = 'worker'
MANAGER = 'manager'

TARGETS = [
    Target(FROM_FILE, WORKER, at_most=5),
    Target(PEAK.format(FROM_FILE), WORKER, at_most=400 * 2**20),
    Target(PEAK.format(FROM_LEDGER), WORKER, at_most=400 * 2**20),
]

# Allocations of a reservation, each on another host.
ALLOCATIONS = 10
SIZES = (1, 2, 4, 8)
# A host is free again the day after.
SPAN = 2 * workload.DAY


def run(
    hosts: int, allocations: int, seed: int, say: Callable[[str], None]
) -> Iterator[Result]:
    """Measure with so many allocations of each host."""
    with database.database() as url, (
        tempfile.TemporaryDirectory()
    ) as directory:
        say(f'replica: writing {hosts * allocations} allocations')
        fill(url, hosts, allocations, seed)
        path = str(pathlib.Path(directory, 'snapshot'))
        say('replica: from the ledger')
        yield from _from_ledger(url, path)
        say('replica: from the file')
        yield from _told(FROM_FILE, WORKER, _child('from_file', path))
        say('replica: in a manager')
        yield from _told(FROM_LEDGER, MANAGER, _child('in_manager', url))


def fill(url: str, hosts: int, allocations: int, seed: int) -> None:
    """Write hosts, and reservations of ten of them each, one after another.
    """
    chance = random.Random(seed)
    count = hosts * allocations // ALLOCATIONS
    ids = [str(uuid.UUID(int=chance.getrandbits(128))) for _ in range(count)]

    def held() -> Iterator[dict[str, Any]]:
        for n in range(count * ALLOCATIONS):
            size = SIZES[n % len(SIZES)]
            yield {
                'id': str(uuid.UUID(int=chance.getrandbits(128))),
                'reservation_id': ids[n // ALLOCATIONS],
                'host': database.host_uuid(n % hosts),
                'start': workload.NOW + n // hosts * SPAN,
                'end': workload.NOW + n // hosts * SPAN + workload.DAY,
                'amounts': {} if n % 5 == 0 else {
                    'VCPU': size, 'MEMORY_MB': 2048 * size,
                    'DISK_GB': 20 * size,
                },
                'whole': n % 5 == 0,
            }

    engine = sa.create_engine(url)
    with engine.begin() as connection:
        database.insert(
            connection, models.Host, map(database.host_row, range(hosts))
        )
        for model, row in (
            (models.Lease, database.lease_row),
            (models.Reservation, database.reservation_row),
        ):
            database.insert(connection, model, (
                {
                    **row(n, hosts),
                    **({'id': ids[n]} if model is models.Reservation else {}),
                }
                for n in range(count)
            ))
        database.insert(connection, models.Allocation, held())
    engine.dispose()


def _from_ledger(url: str, path: str) -> Iterator[Result]:
    """Have a worker ask this process, as its manager, for everything."""
    ledger = Ledger(url)
    broker = os.environ.get(BROKER)
    if broker is None:
        told = _child('from_ledger', path, answer=ledger)
        way = 'through a pipe'
    else:
        conf = service_conf.load(files=[])
        conf.set_override('relocate_instances', False, 'manager')
        conf.set_override('enabled_filters', [], 'enforcement')
        conf.set_override('transport_url', broker)
        server = rpc.Server(rpc.transport(conf), [_EndPoint(ledger)])
        server.start()
        told = _child('from_ledger', path, broker)
        server.stop()
        way = 'over the bus'
    ledger.close()
    yield from _told(FROM_LEDGER, WORKER, told, f'{way}, {url.split(":")[0]}')
    yield Result(
        WRITING, WORKER, told['writing'],
        note=f'{os.path.getsize(path) >> 20} MiB',
    )
    yield Result(PEAK.format(WRITING), WORKER, told['writing_peak'], 'B')


class _EndPoint:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def changes(self, ctxt: Any, since: int, limit: int) -> Any:
        return self._ledger.changes(since, limit)

    def snapshot(self, ctxt: Any, after: str | None, limit: int) -> Any:
        return self._ledger.snapshot(after, limit)


def _told(
    work: str, subject: str, told: dict[str, Any], note: str = ''
) -> Iterator[Result]:
    yield Result(
        work, subject, told['seconds'],
        note=f'{told["entries"]} entries' + (note and f', {note}'),
    )
    yield Result(PEAK.format(work), subject, told['peak'], 'B')


def _child(*arguments: str, answer: Ledger | None = None) -> dict[str, Any]:
    """Run one of the works below in a process; return what it tells.

    :param answer: what its questions are answered from
    """
    process = subprocess.Popen(
        [sys.executable, '-m', 'benchmarks.replica', *arguments],
        cwd=pathlib.Path(__file__).parents[1], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    with process:
        for line in process.stdout:
            asked = json.loads(line)
            if 'method' not in asked:
                return dict(asked)
            page = getattr(answer, asked.pop('method'))(**asked)
            process.stdin.write(json.dumps(page) + '\n')
            process.stdin.flush()
    raise RuntimeError(f'{arguments[0]} has failed')


# In the process of its own


class Meter:
    """Seconds, and the peak of memory since it was made."""

    def __init__(self) -> None:
        gc.collect()
        # Linux: the peak is what there is, from here on.
        pathlib.Path('/proc/self/clear_refs').write_text('5')
        self._before = _peak()
        self._began = time.perf_counter()

    def read(self) -> tuple[float, int]:
        return time.perf_counter() - self._began, _peak() - self._before


def _peak() -> int:
    status = pathlib.Path('/proc/self/status').read_text()
    return 1024 * int(status.split('VmHWM:')[1].split()[0])


def _ask(method: str, **kwargs: Any) -> Any:
    print(json.dumps({'method': method, **kwargs}), flush=True)
    return json.loads(sys.stdin.readline())


def from_ledger(path: str, broker: str | None = None) -> dict[str, Any]:
    """Pull everything, then write it to the file."""
    call = _ask
    if broker is not None:
        CONF([], default_config_files=[])
        CONF.set_override('transport_url', broker, 'blazar_sched')
        call = Worker().call
        # The bus has its connections then.
        call('changes', since=0, limit=1)
    pulled = puller.Puller(call, time.monotonic, lambda: 120)
    meter = Meter()
    pulled.pull(workload.NOW)
    seconds, peak = meter.read()
    copy = pulled.copy
    assert copy is not None
    meter = Meter()
    snapshot_file.write(
        path, copy.ledger, copy.replica.revision, workload.NOW,
        copy.replica.items(),
    )
    writing, writing_peak = meter.read()
    return {
        'seconds': seconds, 'peak': peak, 'writing': writing,
        'writing_peak': writing_peak,
        'entries': len(copy.replica.indexes.main),
    }


def from_file(path: str) -> dict[str, Any]:
    pulled = puller.Puller(_ask, time.monotonic, lambda: 120)
    meter = Meter()
    with snapshot_file.reading(path) as kept:
        pulled.load(kept.ledger, kept.revision, kept.items, 0, workload.NOW)
    seconds, peak = meter.read()
    assert pulled.copy is not None
    return {
        'seconds': seconds, 'peak': peak,
        'entries': len(pulled.copy.replica.indexes.main),
    }


def in_manager(url: str) -> dict[str, Any]:
    ledger = Ledger(url)
    meter = Meter()
    ledger.commit(lambda tx: None)
    seconds, peak = meter.read()
    assert ledger.replica is not None
    return {
        'seconds': seconds, 'peak': peak,
        'entries': len(ledger.replica.indexes.main),
    }


WORKS = {'from_ledger': from_ledger, 'from_file': from_file,
         'in_manager': in_manager}


if __name__ == '__main__':
    print(json.dumps(WORKS[sys.argv[1]](*sys.argv[2:])), flush=True)
