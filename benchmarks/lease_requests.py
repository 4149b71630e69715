# SPDX-License-Identifier: Apache-2.0
"""Lease requests: the creation of a request, and the search for room.

The ledger is that of benchmarks.offers. The requests are for more hosts than
are free in their ranges of starts, and all of them wait.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
import statistics
import time

from benchmarks import database
from benchmarks import ledger
from benchmarks import offers
from benchmarks import workload
from benchmarks.measure import Result
from benchmarks.measure import Target
from benchmarks.measure import WrongAnswer
from blazar_sched.cmd import service as cmd_service
from blazar_sched.parts.request.lease_request import NORMAL
from blazar_sched.parts.request.lease_request import PRIORITIES
from blazar_sched.parts.request.manager import LeaseRequests
from blazar_sched.service.manager.manager import Manager
from tests import looped

DAY = workload.DAY
WAITING = 100

CREATE = f'create a lease request, up to {WAITING} wait'
STEP = f'search for room for {WAITING} waiting requests'
SHOW = f'show the last of {WAITING} waiting requests'

TARGETS = [
    Target(CREATE, offers.MANAGER, at_most=0.1),
    Target(STEP, offers.MANAGER, at_most=1),
    *(Target(work, offers.LOOK, at_most=0.05) for work in (CREATE, STEP)),
]


def run(
    hosts: int, seed: int, budget: float, say: Callable[[str], None]
) -> Iterator[Result]:
    """Measure requests for a twentieth of the hosts, of 100 hosts or more."""
    hosts = max(hosts, 100)
    with database.database() as url:
        say(f'lease requests: {hosts} hosts, {WAITING} waiting requests')
        offers.fill(url, hosts, seed)
        manager = Manager(ledger.conf(url), clock=lambda: workload.NOW)
        try:
            yield from _measured(manager, hosts, budget)
        finally:
            manager.ledger.close()


def _measured(manager: Manager, hosts: int, budget: float) -> Iterator[Result]:
    looks = offers.time_looks(manager)
    requests = looped.of(manager, LeaseRequests)
    # The first one loads the replica.
    _create(manager, 0, hosts)
    cmd_service.spare_collections()
    looks.clear()
    seconds = []
    for number in range(1, WAITING):
        began = time.perf_counter()
        last = _create(manager, number, hosts)
        seconds.append(time.perf_counter() - began)
    yield Result(
        CREATE, offers.MANAGER, statistics.median(seconds), runs=len(seconds)
    )
    yield Result(CREATE, offers.LOOK, max(looks), runs=len(looks))
    looks.clear()

    def search() -> None:
        # As if the revision were new, and the loop had rested.
        requests._requests.forget_all_but(set())
        requests._rested_at = 0.0
        requests.search_again()
        requests.step()

    until = time.perf_counter() + budget
    seconds = offers.every(search, until)
    yield Result(
        STEP, offers.MANAGER, statistics.median(seconds), runs=len(seconds)
    )
    yield Result(STEP, offers.LOOK, max(looks), runs=len(looks))
    seconds = offers.every(
        lambda: requests.get(last, None), time.perf_counter() + budget
    )
    yield Result(
        SHOW, offers.MANAGER, statistics.median(seconds), runs=len(seconds)
    )


def _create(manager: Manager, number: int, hosts: int) -> str:
    """Create a lease request of a project of its own; return the id."""
    latest = offers.START + DAY * (1 + number % 5)
    made = looped.of(manager, LeaseRequests).create({
        'name': 'measured', 'project_id': f'project-{number}',
        'user_id': 'user', 'start': offers.START, 'latest_start': latest,
        'duration': 3 * DAY, 'wait_until': latest, 'flexible': False,
        'priority': PRIORITIES.index(NORMAL),
        'reservations': [{
            'resource_type': 'physical:host', **database.request(),
            'min': hosts // 20, 'max': hosts // 20, 'before_end': 'default',
        }],
    })
    if made['status'] != 'WAITING':
        raise WrongAnswer(f'lease request {number} is {made["status"]}')
    return str(made['id'])
