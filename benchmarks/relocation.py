# SPDX-License-Identifier: Apache-2.0
"""Relocation: what paths cost in a request, a replica, the ledger, a lease.

What is compared is measured in turns, in pairs, and the median of the pairs'
ratios or differences is shown: a slow minute of the machine is in both.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import functools
import itertools
import json
import random
import statistics
import time
from typing import Any

from nova.scheduler import filters
from nova.scheduler import weights

from benchmarks import database
from benchmarks import scheduler
from benchmarks.measure import Result
from benchmarks.measure import Target
from benchmarks.measure import timed
from benchmarks.measure import WrongAnswer
from blazar_sched.conf import service as service_conf
from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.instance import Stay
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.relocation import Rules
from blazar_sched.domain.settings import Settings
from blazar_sched.domain.window import FOREVER
from blazar_sched.filters import lifetime_filter
from blazar_sched.placing import relocation
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.manager.manager import Manager
from blazar_sched.weighers import lease_gap
from blazar_sched.worker import process
from blazar_sched.worker.paths import Paths
from blazar_sched.worker.request import read_once

DAY = 86400
# The windows for which hosts are leased whole, each for a day.
WINDOWS = 100
SMALL = 48
RULES = Rules()
FOREVER_POLICY, RELOCATE = 'forever', 'relocate'
NO_PATH, BY_PATH = 'without a path', 'with 3 later stays'
MIN_TURNS = 9
# Of each host, as many VCPUs as the host has.
INSTANCES = (8, 8, 8, 16, 24)
PROJECT = 'measured'
_INVENTORY = {
    resource_class: Inventory(total)
    for resource_class, total in scheduler.CAPACITY.items()
}

# How many of a hundred hosts are leased at no time, by the clouds' names.
CLOUDS = {
    'every host leased in one of 100 windows': 0,
    'half of the hosts never leased': 50,
}
LEASED, HALF = CLOUDS
# No lease ends, and hosts that take no instances have the headroom.
NO_END = 'no path from any host'

RATIO = 'times as long as with forever'
MORE = 'longer than with forever'
HEADROOM = 'headroom of a request'
BYTES = 'JSON of an instance record'
APPLY = 'apply an instance record to a replica'
TO_NO_PATH = 'times as long as without a path'
MEMORY = 'memory of the index for an instance'
COMMIT = 'commit an instance, SQLite'
CREATE = 'create a lease, {:,} hosts'
REFUSE = 'refuse a lease after a look at all hosts, {:,} hosts'
PLAN = 'plan a path, {:,} hosts'


def work(kind: str, size: int, cloud: str, asked: str) -> str:
    return f'{kind} {size:,} hosts, {asked}, {cloud}'


TARGETS = [
    Target(
        f'{work("filter", 10_000, cloud, scheduler.BOUNDED)}: {RATIO}',
        RELOCATE, at_most=1.05,
    )
    for cloud in CLOUDS
] + [
    Target(
        f'{work("filter", 10_000, cloud, scheduler.UNBOUNDED)}: {MORE}',
        RELOCATE, at_most=0.015,
    )
    for cloud in (*CLOUDS, NO_END)
] + [
    Target(
        f'{work("weigh", 10_000, LEASED, scheduler.UNBOUNDED)}: {RATIO}',
        RELOCATE, at_most=1.05,
    ),
]


def run(
    hosts: int, budget: float, say: Callable[[str], None]
) -> Iterator[Result]:
    """Measure each work for about `budget` seconds."""
    sizes = sorted({min(SMALL, hosts), max(hosts // 10, 1), hosts})
    for size, cloud in itertools.product(sizes, (*CLOUDS, NO_END)):
        say(f'relocation: filter, {size:,} hosts, {cloud}')
        yield from _in_scheduler(size, cloud, budget)
    say('relocation: records')
    yield from _records(budget)
    say('relocation: plans')
    for size in sizes[-2:]:
        yield from _plans(size, budget)
    say('relocation: the ledger')
    yield from _commits(budget)
    yield from _leases(sizes[-2], budget)


# Nova's scheduler


class Cloud(scheduler.Cloud):
    """Hosts that are leased whole in one of WINDOWS windows, or never."""

    def __init__(self, hosts: int, name: str) -> None:
        self._never = CLOUDS.get(name, 0)
        self._is_endless = name == NO_END
        self.size = hosts
        disabled = max(hosts // 10, 1) if self._is_endless else 0
        super().__init__(hosts + disabled, relocating=True)

    def leased(self) -> Iterator[record.Record]:
        for each in self.uuids[self.size:]:
            yield record.encode(
                Host(each, '', each, inventory=_INVENTORY, disabled=True)
            )
        for number, each in enumerate(self.uuids[:self.size]):
            if number % 100 < self._never:
                continue
            start = self.now + (2 + number % WINDOWS) * DAY
            end = FOREVER if self._is_endless else start + DAY
            yield self.allocated(each, self.new_uuid(), start, end, {})


def _in_scheduler(size: int, name: str, budget: float) -> Iterator[Result]:
    cloud = Cloud(size, name)
    handle = functools.partial(
        filters.HostFilterHandler().get_filtered_objects,
        [lifetime_filter.LifetimeFilter()],
    )
    weigh = functools.partial(
        weights.HostWeightHandler().get_weighed_objects,
        [lease_gap.LeaseGapWeigher()],
    )
    with scheduler.followed(cloud.replica):
        _check_paths(cloud, name, handle)
        for kind, call, asked, shown in (
            ('filter', handle, scheduler.BOUNDED, RATIO),
            ('filter', handle, scheduler.UNBOUNDED, MORE),
            ('weigh', weigh, scheduler.UNBOUNDED, RATIO),
        ):
            yield from _compared(
                work(kind, size, name, asked), shown,
                {
                    policy: functools.partial(_asking, cloud, policy, call)
                    for policy in (FOREVER_POLICY, RELOCATE)
                },
                functools.partial(cloud.request, asked), budget,
            )
        yield _headroom(cloud, name, budget)
        scheduler.check_nothing_failed()


def _check_paths(cloud: Cloud, name: str, call: scheduler.Call) -> None:
    with _policy(cloud, RELOCATE):
        passing = list(call(
            cloud.fresh(cloud.size), cloud.request(scheduler.UNBOUNDED)
        ))
    if bool(passing) != (name != NO_END):
        raise WrongAnswer(f'{len(passing)} hosts pass: {name}')


def _asking(
    cloud: Cloud, policy: str, call: scheduler.Call, spec: Any
) -> float:
    """Return the seconds of a request with a policy."""
    host_states = cloud.fresh(cloud.size)
    with _policy(cloud, policy):
        seconds = timed(
            [functools.partial(call, host_states, spec.obj_clone())], 0
        ).median
    process.ensure_started().decisions.settle(cloud.replica)
    return seconds


@contextlib.contextmanager
def _policy(cloud: Cloud, policy: str) -> Iterator[None]:
    before = cloud.replica.settings
    # The disks of the instances that are asked for are on their hosts.
    cloud.replica.settings = Settings(
        policy, relocating=True, rules=Rules(ways={'disk': 'live'})
    )
    try:
        yield
    finally:
        cloud.replica.settings = before


def _headroom(cloud: Cloud, name: str, budget: float) -> Result:
    def paths() -> Paths:
        request = read_once(
            cloud.request(scheduler.UNBOUNDED), cloud.replica, cloud.now,
            process.CONF.blazar_sched,
        )
        return Paths(cloud.replica, request, cloud.now, RULES, {})

    spent = timed(
        [functools.partial(paths().has_headroom, FOREVER) for _ in range(100)],
        budget / 10,
    )
    return Result(
        f'{HEADROOM}, {cloud.size:,} hosts, {name}', RELOCATE, spent.median,
        runs=spent.runs,
    )


def _compared(
    what: str, shown: str, calls: dict[str, Callable[[Any], float]],
    asked: Callable[[], Any], budget: float,
) -> Iterator[Result]:
    """Measure two calls in pairs, and compare the second with the first.

    :param shown: how the two are compared
    :param calls: return seconds, given what `asked` returns
    """
    base, other = calls
    took: dict[str, list[float]] = {name: [] for name in calls}
    deadline = time.monotonic() + budget * len(calls)
    for turn in itertools.count():
        if turn >= MIN_TURNS and time.monotonic() > deadline:
            break
        one = asked()
        # Each is the first as often as the other.
        for name in list(calls)[::1 if turn % 2 else -1]:
            took[name].append(calls[name](one))
    for name, seconds in took.items():
        yield Result(what, name, statistics.median(seconds), runs=len(seconds))
    pairs = list(zip(took[base], took[other], strict=True))
    if shown == MORE:
        value = statistics.median(b - a for a, b in pairs)
    else:
        value = statistics.median(b / a for a, b in pairs)
    yield Result(
        f'{what}: {shown}', other, max(value, 0.0),
        's' if shown == MORE else '', len(pairs),
    )


# Records, plans and the ledger


def _instance(
    number: int, vcpus: int = 4, host: int = 0, stays: int = 0
) -> Instance:
    """Return an instance, with later stays on the hosts that follow."""
    path = tuple(
        Stay(
            database.host_uuid(host + n), n * DAY,
            FOREVER if n == stays else (n + 1) * DAY + RULES.lead,
        )
        for n in range(stays + 1)
    )
    return Instance(
        database.host_uuid((1 << 32) + number), database.host_uuid(host),
        PROJECT,
        {
            inventory.VCPU: vcpus, inventory.MEMORY_MB: 4096 * vcpus,
            inventory.DISK_GB: 20,
        },
        path=path if stays else (), movable='live',
    )


def _hosts(count: int) -> Iterator[Host]:
    for n in range(count):
        yield Host(
            database.host_uuid(n), '', f'compute-{n:06d}', inventory=_INVENTORY
        )


def _records(budget: float) -> Iterator[Result]:
    for stays in (0, 1, 3):
        text = json.dumps(record.encode(_instance(0, stays=stays)))
        yield Result(BYTES, f'with {stays} later stays', len(text), 'B')
    hosts, count = 1000, 10_000
    memory = {}
    for stays in (0, 3):
        replica = state.Replica(accounting.SchedulerAccounting)
        replica.load(1, map(record.encode, (
            *_hosts(hosts),
            *(
                _instance(n, 1, n % (hosts - 3), stays) for n in range(count)
            ),
        )))
        memory[stays] = sum(replica.indexes.main.memory().values())
    yield Result(
        MEMORY, f'{BY_PATH}, beyond none', (memory[3] - memory[0]) / count, 'B'
    )
    replica = state.Replica(accounting.SchedulerAccounting, relocating=True)
    replica.load(1, map(record.encode, _hosts(hosts)))
    numbers = itertools.count()

    def apply(stays: int, number: int) -> float:
        text = json.dumps(record.encode(_instance(
            number, 1, number % (hosts - 3), stays
        )))

        def one() -> None:
            replica.apply(2, [json.loads(text)])

        return timed([one], 0).median

    yield from _compared(
        APPLY, TO_NO_PATH,
        {
            NO_PATH: functools.partial(apply, 0),
            BY_PATH: functools.partial(apply, 3),
        },
        lambda: next(numbers), budget,
    )


def _plans(size: int, budget: float) -> Iterator[Result]:
    """Plan paths where every host is leased in one of WINDOWS windows."""
    replica = state.Replica(accounting.LedgerAccounting)
    instances = [_instance(n, host=n) for n in range(size)]
    replica.load(1, map(record.encode, (
        *_hosts(size), *instances,
        *(
            Allocation(
                f'a{n}', f'r{n}', database.host_uuid(n),
                (2 + n % WINDOWS) * DAY, (3 + n % WINDOWS) * DAY, whole=True,
            )
            for n in range(size)
        ),
    )))
    chosen = random.Random(1).sample(instances, 40)
    one = timed(
        [
            functools.partial(relocation.plan, replica, each, 0, RULES)
            for each in chosen
        ],
        budget,
    )
    if not relocation.plan(replica, chosen[0], 0, RULES):
        raise WrongAnswer('no path was found')
    yield Result(PLAN.format(size), 'one by one', one.median, runs=one.runs)


def _commits(budget: float) -> Iterator[Result]:
    with database.database() as url:
        ledger = Ledger(url)
        numbers = itertools.count()

        def commit(stays: int, number: int) -> float:
            # Each instance is committed without a path, too.
            instance = _instance(number, 1, number % 40, stays)
            return timed([lambda: ledger.commit(
                lambda tx: tx.put_instances([instance])
            )], 0).median

        try:
            ledger.commit(
                lambda tx: [tx.put_host(each) for each in _hosts(48)]
            )
            yield from _compared(
                COMMIT, TO_NO_PATH,
                {
                    NO_PATH: functools.partial(commit, 0),
                    BY_PATH: functools.partial(commit, 3),
                },
                lambda: next(numbers), budget,
            )
        finally:
            ledger.close()


def _leases(size: int, budget: float) -> Iterator[Result]:
    """Create leases on hosts that are all in use, by a half or wholly."""
    for subject, instances in (
        ('on a free host', ()),
        ('on a host that five instances leave', (2, 4, 4, 8, 16)),
        ('refused', INSTANCES),
    ):
        with database.database() as url:
            manager = _manager(url, size, instances)
            try:
                spent = timed(
                    [
                        functools.partial(_create, manager, n)
                        for n in range(50)
                    ],
                    budget, again=False,
                )
            finally:
                manager.ledger.close()
        text = REFUSE if subject == 'refused' else CREATE
        yield Result(text.format(size), subject, spent.median, runs=spent.runs)


def _manager(url: str, size: int, instances: Sequence[int]) -> Manager:
    conf = service_conf.load(files=[])
    conf.set_override('connection', url, 'database')
    conf.set_override('transport_url', 'fake://')
    conf.set_override('port', 0, 'api')
    conf.set_override('auth_strategy', 'noauth', 'api')
    conf.set_override('enabled_filters', [], 'enforcement')
    manager = Manager(conf, clock=lambda: 0)

    def fill(tx: Any) -> None:
        numbers = itertools.count()
        for n, host in enumerate(_hosts(size)):
            tx.put_host(host)
            for vcpus in instances:
                tx.put_instances([_instance(next(numbers), vcpus, n)])

    manager.ledger.commit(fill)
    return manager


def _create(manager: Manager, number: int) -> None:
    start = (1 + number) * DAY
    with contextlib.suppress(exception.NotEnoughHostsAvailable):
        manager.leases.create({
            'name': 'measured',
            'project_id': PROJECT,
            'user_id': 'user',
            'start': start,
            'end': start + DAY // 2,
            'before_end': None,
            'reservations': [
                {'resource_type': 'physical:host', **database.request()}
            ],
        })
