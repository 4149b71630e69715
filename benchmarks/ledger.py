# SPDX-License-Identifier: Apache-2.0
"""Creating leases: in a small ledger, in a large one, by 24 clients, bare.

Nova and Placement are not asked by a create, so there are none.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import json
import pathlib
import queue
import random
import statistics
import subprocess
import sys
import threading
import time
from typing import Any
import urllib.request
import uuid

import sqlalchemy as sa

from benchmarks import database
from benchmarks import workload
from benchmarks.measure import Result
from benchmarks.measure import Target
from benchmarks.measure import timed
from blazar_sched.cmd import service as cmd_service
from blazar_sched.conf import service as service_conf
from blazar_sched.domain import exception
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.window import Window
from blazar_sched.placing import lease_placing
from blazar_sched.service import assembly
from blazar_sched.service.ledger import engine as ledger_engine
from blazar_sched.service.ledger import models
from blazar_sched.service.manager.manager import Manager

SERVICE = 'blazar-sched'
BARE = 'bare transaction'
BY_SQL = 'one SQL query a host'

CREATE = 'create a lease'
CREATE_IN_LARGE = 'create a lease, 100 times the hosts and leases'
BY_CLIENTS = 'create a lease, 24 clients over REST'
LIST = 'list 10,000 leases over REST'

TARGETS = [
    Target(CREATE_IN_LARGE, SERVICE, against=(CREATE, SERVICE), ratio=1 / 1.5),
    Target(BY_CLIENTS, SERVICE, against=(BY_CLIENTS, BARE), ratio=1 / 4),
    Target(LIST, SERVICE, at_most=1),
]

CLIENTS = 24
DAY = workload.DAY


def run(
    hosts: int, seed: int, budget: float, say: Callable[[str], None]
) -> Iterator[Result]:
    """Measure with a hundredth of the hosts, then with all.

    :param budget: seconds for each work, but for the slow ones
    """
    for work, count in ((CREATE, max(hosts // 100, 1)), (
        CREATE_IN_LARGE, hosts
    )):
        with database.database() as url:
            leases = count * database.LEASES_A_HOST
            say(f'ledger: {count} hosts, {leases} leases')
            database.fill(url, count)
            yield from _creates(url, work, count, seed, budget)
            if count == hosts:
                say(f'ledger: {CLIENTS} clients')
                yield from _by_clients(url, 2 * budget)
                yield from _lists(url)


def conf(url: str) -> Any:
    conf = service_conf.load(files=[])
    conf.set_override('relocate_instances', False, 'manager')
    conf.set_override('enabled_filters', [], 'enforcement')
    conf.set_override('connection', url, 'database')
    conf.set_override('transport_url', 'fake://')
    conf.set_override('port', 0, 'api')
    conf.set_override('auth_strategy', 'noauth', 'api')
    return conf


def _creates(
    url: str, work: str, hosts: int, seed: int, budget: float
) -> Iterator[Result]:
    """Create leases in the manager, in windows of up to half a day."""
    manager = Manager(conf(url), clock=lambda: workload.NOW)
    chance = random.Random(seed)

    def create() -> None:
        start = database.FIRST_START + chance.randrange(300 * DAY)
        manager.leases.create({
            'name': 'measured',
            'project_id': 'measured',
            'user_id': 'user',
            'start': start,
            'end': start + chance.randrange(DAY // 24, DAY // 2),
            'before_end': None,
            'reservations': [_reservation()],
        })

    try:
        # The first one loads the replica.
        create()
        spent = timed([create] * 20, budget)
        yield Result(work, SERVICE, spent.median, runs=spent.runs)
        with _placing(_ByQueries(url)):
            spent = timed([create], budget)
        yield Result(
            work, BY_SQL, spent.median, runs=spent.runs,
            note=f'{hosts} queries where the index takes one call',
        )
    finally:
        manager.ledger.close()


@contextlib.contextmanager
def _placing(other: _ByQueries) -> Iterator[None]:
    """Have leases placed otherwise for a while."""
    real, lease_placing.place = lease_placing.place, other
    try:
        yield
    finally:
        lease_placing.place = real
        other.engine.dispose()


def _reservation() -> dict[str, Any]:
    return {'resource_type': 'physical:host', **database.request()}


class _ByQueries:
    """Places as without an index: each host's allocations asked of SQL."""

    def __init__(self, url: str) -> None:
        self.engine = sa.create_engine(url)

    def __call__(
        self, replica: Any, lease: Lease, window: Window, **unused: Any
    ) -> dict[str, list[Allocation]]:
        (reservation,) = lease.reservations
        held = models.Allocation
        free = None
        with self.engine.connect() as connection:
            for host in replica.hosts:
                taken = connection.scalar(
                    sa.select(sa.func.count()).where(
                        held.host == host, held.start < window.end,
                        held.end > window.start,
                    )
                )
                if not taken:
                    free = free or host
        if free is None:
            raise exception.NotEnoughHostsAvailable('full')
        return {reservation.id: [Allocation(
            str(uuid.uuid4()), reservation.id, free, window.start, window.end,
            whole=True,
        )]}


def _by_clients(url: str, budget: float) -> Iterator[Result]:
    """Let clients create, over REST; then bare transactions of the same."""
    service = serve(url)
    base = address(service)
    try:
        _post(base)
        rest = json.loads(
            elsewhere('benchmarks.ledger', 'create', base, str(budget))
        )
    finally:
        service.stop()
    # Writers wait for each other as long as the writers of the service do.
    _, engine = ledger_engine.create(url, pool={'pool_size': CLIENTS})
    bare = _rate(lambda: _bare(engine), budget)
    alone = _rate(lambda: _bare(engine), budget, clients=1)
    engine.dispose()
    yield Result(BY_CLIENTS, SERVICE, 1 / rest, note=f'{rest:.0f} a second')
    yield Result(
        BY_CLIENTS, BARE, 1 / bare,
        note=f'{bare:.0f} a second, {alone:.0f} by one client',
    )


def _rate(
    work: Callable[[], object], budget: float, clients: int = CLIENTS
) -> float:
    """Return how often a second clients together get the work done."""
    failed: queue.SimpleQueue[BaseException] = queue.SimpleQueue()
    counts = [0] * clients
    ready = threading.Barrier(clients)
    until = [0.0]

    def client(number: int) -> None:
        try:
            ready.wait()
            until[0] = until[0] or time.perf_counter() + budget
            while time.perf_counter() < until[0]:
                work()
                counts[number] += 1
        except Exception as e:
            failed.put(e)

    threads = [
        threading.Thread(target=client, args=(n,)) for n in range(clients)
    ]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if not failed.empty():
        raise failed.get()
    return sum(counts) / (time.perf_counter() - began)


def _post(base: str) -> None:
    start = time.time() + DAY + random.randrange(300 * DAY)
    create_lease(base, start, start + DAY // 4)


def create_lease(base: str, start: float, end: float) -> None:
    """Create a lease of one host over REST."""
    post(f'{base}/leases', {
        'name': 'measured',
        'start_date': date(start),
        'end_date': date(end),
        'reservations': [_reservation()],
    })


def post(url: str, body: dict[str, Any], version: str = '1.0') -> Any:
    """Return the body of the response to a request."""
    request = urllib.request.Request(
        url, json.dumps(body).encode(),
        {
            'Content-Type': 'application/json',
            'X-Auth-Token': 'user:measured',
            'OpenStack-API-Version': f'reservation {version}',
        },
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def date(at: float) -> str:
    return time.strftime('%Y-%m-%d %H:%M', time.gmtime(at))


def _bare(engine: sa.Engine) -> None:
    """Write what a create writes, and look at nothing."""
    # Far beyond those that are there.
    number = 2**40 + random.getrandbits(40)
    with engine.begin() as connection:
        connection.execute(
            sa.update(models.Ledger).values(
                revision=models.Ledger.revision + 1
            )
        )
        revision = connection.scalar(sa.select(models.Ledger.revision))
        for model, row in (
            (models.Lease, database.lease_row),
            (models.Reservation, database.reservation_row),
            (models.Allocation, database.allocation_row),
        ):
            connection.execute(sa.insert(model), row(number, 1))
        connection.execute(
            sa.insert(models.Event),
            [
                database.event_row(number, 1, 0, 'start_lease'),
                database.event_row(number, 1, 1, 'end_lease'),
            ],
        )
        connection.execute(
            sa.insert(models.Change),
            [
                {
                    'revision': revision, 'position': position,
                    'kind': 'reservation', 'key': str(number), 'data': None,
                }
                for position in range(2)
            ],
        )


def _lists(url: str) -> Iterator[Result]:
    """List a project's leases, as many as it has up to database.LISTED."""
    service = serve(url)
    try:
        seconds, leases = json.loads(
            elsewhere('benchmarks.ledger', 'list', address(service))
        )
    finally:
        service.stop()
    yield Result(
        LIST, SERVICE, statistics.median(seconds), runs=len(seconds),
        note=f'{leases} leases',
    )


def serve(url: str, **options: object) -> assembly.Service:
    """Start all in this process, as `blazar-sched serve` does.

    :param options: options of the manager
    """
    loaded = conf(url)
    for name, value in options.items():
        loaded.set_override(name, value, 'manager')
    service = assembly.start_all(loaded)
    cmd_service.spare_collections()
    return service


def address(service: assembly.Service) -> str:
    return f'http://{service.api.host}:{service.api.port}/v1'


def elsewhere(module: str, *arguments: str) -> str:
    """Return what a client prints in another process: a GIL is for one."""
    return subprocess.run(
        [sys.executable, '-m', module, *arguments],
        cwd=pathlib.Path(__file__).parents[1], check=True, text=True,
        stdout=subprocess.PIPE,
    ).stdout


def _create_in_turns(base: str, budget: str) -> float:
    """Return at which rate clients create in this process."""
    return _rate(lambda: _post(base), float(budget))


def _list(base: str) -> tuple[list[float], int]:
    """Return how long lists took, and how many leases the last one had."""
    request = urllib.request.Request(
        f'{base}/leases', headers={'X-Auth-Token': 'user:project-0'}
    )
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        with urllib.request.urlopen(request, timeout=60) as answer:
            body = answer.read()
        seconds.append(time.perf_counter() - began)
    return seconds, len(json.loads(body)['leases'])


if __name__ == '__main__':
    _WORKS = {'create': _create_in_turns, 'list': _list}
    print(json.dumps(_WORKS[sys.argv[1]](*sys.argv[2:])))
