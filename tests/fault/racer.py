# SPDX-License-Identifier: Apache-2.0
"""A process of those that race for the last slot."""

from concurrent import futures
import multiprocessing.synchronize
import time
from typing import Any

from blazar_sched.conf import service as service_conf
from blazar_sched.placing import lease_placing
from blazar_sched.service.api import deploy
from blazar_sched.service.bus import rpc
from blazar_sched.service.ledger import retry
from blazar_sched.service.ledger import tx
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.manager.manager import Manager
from tests import loopback
from tests.fault import site

PATIENCE = 120


def race(
    path: str, creators: int, managers: int, pause: float, protocol: bool,
    barrier: multiprocessing.synchronize.Barrier, pipe: Any,
) -> None:
    """Create a lease with each creator in every window that `pipe` names.

    The creators wait for each other at `barrier`. The statuses of the
    responses go back through the pipe.

    :param managers: the number of managers in this process, each with
        connections, a replica and a lock of its own, behind one API
    :param pause: seconds between the check and the write
    :param protocol: whether to commit as the ledger does, or without locking
    """
    conf = service_conf.load(files=[path])
    if not protocol:
        Ledger.commit = _commit_anyhow
        Ledger.write = _commit_anyhow
    _pause_after_placing(pause)
    servers = [
        rpc.Server(rpc.transport(conf), [Manager(conf).endpoint])
        for _ in range(managers)
    ]
    for server in servers:
        server.start()
    bus = rpc.Client(rpc.transport(conf))
    api = loopback.client(deploy.deploy(conf, bus))

    def create(window: tuple[str, str]) -> int:
        start, end = window
        body = {
            'name': 'lease',
            'start_date': start,
            'end_date': end,
            'reservations': [site.SLOT],
        }
        barrier.wait(PATIENCE)
        return api.simulate_post('/v1/leases', json=body).status_code

    with futures.ThreadPoolExecutor(creators) as pool:
        for window in iter(pipe.recv, None):
            pipe.send(list(pool.map(create, [window] * creators)))
    for server in servers:
        server.stop()


def _pause_after_placing(seconds: float) -> None:
    place = lease_placing.place

    def slowly(*args: Any, **kwargs: Any) -> Any:
        placed = place(*args, **kwargs)
        time.sleep(seconds)
        return placed

    lease_placing.place = slowly


def _commit_anyhow(ledger: Ledger, work: Any, dry_run: bool = False) -> Any:
    """Commit as Ledger.commit does, without the lock of the ledger's row."""
    with ledger._lock, ledger._to_write.connect() as connection:
        with tx.attempt(connection, ledger._load(), ()) as attempt:
            result = work(attempt)
        retry.commit(connection)
        return result
