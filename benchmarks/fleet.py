# SPDX-License-Identifier: Apache-2.0
"""A thousand workers of nova-scheduler on one manager.

The workers' pullers, replicas and waits are the real ones, and so are the
manager's answers: the pages from SQL, written as JSON. Only time is simulated.
A call takes as long as its answer was measured to take, and OVERHEAD for what
the bus and its library do; the manager answers one call at a time, as threads
under one GIL do. So the figures are of one process of the manager.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from collections.abc import Iterator
import dataclasses
import heapq
import itertools
import json
import time
from typing import Any

from benchmarks import database
from benchmarks.measure import Result
from benchmarks.measure import Target
from blazar_sched.domain import inventory
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.inventory import Inventory
from blazar_sched.replica import pace
from blazar_sched.replica import puller
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.manager import feed
from blazar_sched.worker import threads

WORKERS = 1000
HOSTS = 20
POLL_INTERVAL = 5.0
# Seconds of the manager's processor for a call over RabbitMQ, besides what
# its answer takes: measured of one that has nothing to look for.
OVERHEAD = 0.0011
# Instance records that a commit writes.
RECORDS = 4
# Seconds that are looked at after what happens, and that a manager is away.
LOOK, AWAY = 20.0, 60.0

FLEET = 'workers'
IDLE = 'pulls a second while nothing happens'
AFTER_COMMIT = 'pulls in the busiest second after a commit'
KNOWN = 'until every worker knows a commit'
READS = 'changes read from SQL after a commit'
BYTES = 'bytes answered after a commit'
AFTER_RESTART = 'pulls in the busiest second after a restart of the manager'
RECOVERED = 'until every worker is answered after a restart of the manager'

TARGETS = [
    Target(IDLE, FLEET, at_most=WORKERS / pace.LEAST_OF_POLL / POLL_INTERVAL),
    Target(KNOWN, FLEET, at_most=POLL_INTERVAL),
    Target(READS, FLEET, at_most=WORKERS / 20),
    Target(RECOVERED, FLEET, at_most=2 * threads.RPC_TIMEOUT),
]


class _Away(Exception):
    """Nobody has answered in time."""


@dataclasses.dataclass(slots=True)
class _Span:
    """What was asked from a time on.

    :ivar since: seconds of the simulated time
    :ivar pulls: how many pulls began in each second
    :ivar sent: the bytes of all answers
    :ivar last: when the last pull was answered that had something new
    """

    since: float
    pulls: Counter[int] = dataclasses.field(default_factory=Counter)
    sent: int = 0
    last: float = 0.0

    @property
    def busiest(self) -> int:
        return max(self.pulls.values(), default=0)


class _Manager:
    """Answers calls one after the other, or not at all."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.is_away = False
        self.reads = 0
        # When it has answered all that it was asked for.
        self.free_at = 0.0
        self._feed = feed.Feed(ledger, lambda: self.free_at)
        changes = ledger.changes

        def counted(*args: Any) -> Any:
            self.reads += 1
            return changes(*args)

        ledger.changes = counted  # type: ignore[method-assign]

    def answer(
        self, method: str, arguments: dict[str, Any], at: float
    ) -> tuple[Any, float, int]:
        """Return the answer, when it is there, and its size in bytes.

        :raises _Away: if the manager is away
        """
        if self.is_away:
            raise _Away
        asked: Any = self._feed if method == 'changes' else self.ledger
        began = time.perf_counter()
        page = getattr(asked, method)(**arguments)
        text = json.dumps(page)
        took = time.perf_counter() - began + OVERHEAD
        self.free_at = max(self.free_at, at) + took
        return json.loads(text), self.free_at, len(text)


class _Worker:
    """One worker's puller, and when it pulls next."""

    def __init__(self, fleet: _Fleet) -> None:
        self.due = 0.0
        self.failures = 0
        self._fleet = fleet
        self._puller = puller.Puller(
            self._call, lambda: fleet.now, lambda: 120.0
        )

    @property
    def revision(self) -> int:
        copy = self._puller.copy
        return 0 if copy is None else copy.replica.revision

    def pull(self) -> None:
        """Pull, and choose the time of the next pull."""
        fleet, before = self._fleet, self.revision
        self.ended = fleet.now
        try:
            self._puller.pull(int(time.time()))
        except puller.Unanswered:
            self.failures += 1
            self.ended += threads.RPC_TIMEOUT
            self.due = self.ended + pace.pause(self.failures, POLL_INTERVAL)
            return
        if self.failures or self.revision != before:
            fleet.span.last = max(fleet.span.last, self.ended)
        self.failures = 0
        self.due = self.ended + pace.poll(POLL_INTERVAL)

    def _call(self, method: str, **arguments: Any) -> Any:
        fleet = self._fleet
        page, self.ended, size = fleet.manager.answer(
            method, arguments, max(self.ended, fleet.now)
        )
        fleet.span.sent += size
        return page


class _Fleet:
    """All workers, in simulated time."""

    def __init__(self, manager: _Manager) -> None:
        self.manager = manager
        self.now = 0.0
        self.span = _Span(0.0)
        self.workers = [_Worker(self) for _ in range(WORKERS)]
        for each in self.workers:
            each.due = pace.poll(POLL_INTERVAL)
        self._ties = itertools.count()

    def hear(self) -> None:
        """Have every worker hear of a commit, if it waits for one."""
        for each in self.workers:
            if not each.failures:
                each.due = min(each.due, self.now + pace.news())

    def play(self, seconds: float) -> _Span:
        """Let so much time pass; return what was asked."""
        self.span = _Span(self.now)
        until = self.now + seconds
        queue = [(w.due, next(self._ties), w) for w in self.workers]
        heapq.heapify(queue)
        while queue[0][0] < until:
            self.now, _, worker = heapq.heappop(queue)
            self.span.pulls[int(self.now - self.span.since)] += 1
            worker.pull()
            heapq.heappush(queue, (worker.due, next(self._ties), worker))
        self.now = until
        return self.span


def run(say: Callable[[str], None]) -> Iterator[Result]:
    """Play a quiet time, a commit, and a restart of the manager."""
    with database.database() as url:
        ledger = Ledger(url)
        try:
            yield from _played(ledger, say)
        finally:
            ledger.close()


def _played(ledger: Ledger, say: Callable[[str], None]) -> Iterator[Result]:
    ledger.commit(_hosts)
    manager = _Manager(ledger)
    fleet = _Fleet(manager)

    def result(work: str, value: float, unit: str = '') -> Result:
        return Result(work, FLEET, value, unit, note=f'{WORKERS} of them')

    say('fleet: a quiet time')
    fleet.play(2 * POLL_INTERVAL)
    span = fleet.play(LOOK)
    yield result(IDLE, sum(span.pulls.values()) / LOOK)
    say('fleet: a commit')
    ledger.commit(_instances)
    manager.reads = 0
    fleet.hear()
    span = fleet.play(LOOK)
    yield result(AFTER_COMMIT, span.busiest)
    yield result(KNOWN, span.last - span.since, 's')
    yield result(READS, manager.reads)
    yield result(BYTES, span.sent, 'B')
    say('fleet: a restart of the manager')
    manager.is_away = True
    fleet.play(AWAY)
    ledger.commit(_instances)
    manager.is_away = False
    fleet.hear()
    span = fleet.play(2 * LOOK)
    yield result(AFTER_RESTART, span.busiest)
    yield result(RECOVERED, span.last - span.since, 's')


def _hosts(tx: Any) -> None:
    for n in range(HOSTS):
        tx.put_host(
            Host(
                database.host_uuid(n), '', f'compute-{n}',
                inventory={inventory.VCPU: Inventory(64)},
            )
        )


def _instances(tx: Any) -> None:
    for n in range(RECORDS):
        tx.put_instances([
            Instance(
                database.host_uuid(HOSTS + n), database.host_uuid(n), 'p1',
                {inventory.VCPU: 1},
            )
        ])
