# SPDX-License-Identifier: Apache-2.0
"""The simulation: events in the order of virtual time, and their results."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import heapq
import itertools
import random
from typing import Any
import uuid

from blazar_sched.parts.simulate import cloud
from blazar_sched.parts.simulate import lease
from blazar_sched.parts.simulate import result
from blazar_sched.parts.simulate import scheduler
from blazar_sched.parts.simulate import trace
from blazar_sched.parts.simulate.policy import Policy

# The order of the events of one instant: events that free room come first.
LEAVE, END, MOVE, START, BOOK, ARRIVE = range(6)

# Called from time to time with the number of arrivals and bookings done.
Tell = Callable[[int], object]
STEP = 500


@dataclasses.dataclass(frozen=True, slots=True)
class Scenario:
    """The input of each policy; the first `pool` hosts are kept for leases.

    :param span: the number of seconds that are played
    :param options: the options of ``[blazar_sched]``
    :param migration_failure: the probability that a live migration fails
    """

    hosts: Sequence[trace.Host]
    instances: Sequence[trace.Instance]
    bookings: Sequence[lease.Booking]
    pool: int
    span: int
    options: dict[str, Any]
    migration_failure: float = 0.0

    @property
    def size(self) -> int:
        return len(self.instances) + len(self.bookings)


def simulate(
    scenario: Scenario, policy: Policy, tell: Tell = lambda _: None,
    stays: list[cloud.RecordedStay] | None = None,
) -> result.Result:
    """Return the result of a policy on a scenario.

    :param stays: receives every stay of an instance on a host, for checks
    :raises Failure: if a filter or weigher failed
    """
    options = {**scenario.options, **policy.options}
    there = cloud.Cloud(
        scenario.hosts, scenario.pool, policy, options,
        scenario.migration_failure,
    )
    if not policy.leases:
        scenario = dataclasses.replace(scenario, bookings=())
    found = result.Result(policy.name, leases=len(scenario.bookings))
    with scheduler.following(there.seen, lambda: there.now, **options):
        _Simulation(scenario, there, found).run(tell)
    found.evicted.update(there.evicted)
    found.failed_moves = there.failed_moves
    found.reallocated = there.reallocated
    if stays is not None:
        there.now = scenario.span
        stays += there.stays()
    vcpus = sum(host.vcpus for host in scenario.hosts)
    found.sum_up(there.used, there.idle, vcpus, scenario.span)
    gpus = sum(host.gpus for host in scenario.hosts)
    found.sum_up_gpus(there.used_gpus, there.idle_gpus, gpus, scenario.span)
    return found


class _Simulation:
    """The queue of future events, by (time, kind, number)."""

    def __init__(
        self, scenario: Scenario, there: cloud.Cloud, found: result.Result
    ) -> None:
        self._there = there
        self._found = found
        self._span = scenario.span
        self._number = itertools.count()
        self._ids = random.Random(0)
        self._later: list[tuple[int, int, int, Any]] = []
        self._given = heapq.merge(
            self._all(BOOK, ((each.at, each) for each in scenario.bookings)),
            self._all(
                ARRIVE, ((each.arrival, each) for each in scenario.instances)
            ),
        )
        self._do: dict[int, Callable[[Any], object]] = {
            LEAVE: there.leave, END: there.end, MOVE: self._move,
            START: self._start, BOOK: self._book, ARRIVE: self._arrive,
        }

    def run(self, tell: Tell) -> None:
        for done, event in enumerate(self._given):
            self._until(event[:2])
            self._happen(event)
            if done % STEP == 0:
                tell(done)
        self._until((self._span, LEAVE))

    def _all(
        self, kind: int, many: Iterator[tuple[int, Any]]
    ) -> Iterator[tuple[int, int, int, Any]]:
        for at, argument in many:
            yield at, kind, next(self._number), argument

    def _plan(self, at: int, kind: int, argument: Any) -> None:
        heapq.heappush(self._later, (at, kind, next(self._number), argument))

    def _until(self, limit: tuple[int, int]) -> None:
        while self._later and self._later[0][:2] < limit:
            self._happen(heapq.heappop(self._later))

    def _happen(self, event: tuple[int, int, int, Any]) -> None:
        self._there.now, kind, _, argument = event
        self._do[kind](argument)
        while self._there.booked:
            at, id_ = self._there.booked.pop()
            self._plan(max(at, self._there.now), MOVE, id_)

    def _arrive(self, asked: trace.Instance) -> None:
        id_ = str(uuid.UUID(int=self._ids.getrandbits(128)))
        self._found.count(asked)
        if self._there.boot(id_, asked):
            self._plan(self._there.now + asked.lifetime, LEAVE, id_)
        else:
            self._found.refuse(asked)

    def _move(self, id_: str) -> None:
        moved = self._there.move(id_)
        if moved is not None:
            self._found.count_move(moved)

    def _book(self, booking: lease.Booking) -> None:
        asked = booking.lease
        if not self._there.book(asked):
            self._found.refused_leases.append(asked.name)
            return
        self._plan(asked.start, START, asked.id)
        self._plan(asked.end, END, asked.id)

    def _start(self, lease_id: str) -> None:
        evicted, on_time = self._there.start(lease_id)
        self._found.evicted.update(evicted)
        self._found.late += not on_time
