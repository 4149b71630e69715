# SPDX-License-Identifier: Apache-2.0
"""Our filters and weigher in Nova's own handlers, beside Nova's and Blazar's.

Requests see so many hosts of one cloud of reservable ones. Each subject
filters or weighs HostStates that are `fresh`, as every request sees them
first, and then the same ones `again`, as the weighers and the next instance
of a multi-create do.

Nothing is logged, which is kind to BlazarFilter: at Nova's default level it
writes a line for each host that it refuses. What our filters keep of a
decision for ``blazar-sched why`` is made in another thread than the request's;
that is timed by itself.
"""

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import datetime
import functools
import gc
import itertools
import random
import statistics
import time
from typing import Any
from unittest import mock
import uuid

from blazarnova.scheduler.filters import blazar_filter
from nova import objects
from nova.objects import aggregate
from nova.objects import compute_node
from nova.objects import flavor
from nova.objects import request_spec
from nova.scheduler import filters
from nova.scheduler import host_manager
from nova.scheduler import weights
from nova.scheduler.filters import compute_filter
from nova.scheduler.weights import ram

from benchmarks import measure
from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import Host
from blazar_sched.domain.inventory import Inventory
from blazar_sched.filters import lifetime_filter
from blazar_sched.filters import reservation_filter
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.weighers import base
from blazar_sched.weighers import lease_gap
from blazar_sched.worker import filtering
from blazar_sched.worker import process

CAPACITY = {
    inventory.VCPU: 64, inventory.MEMORY_MB: 256 * 1024,
    inventory.DISK_GB: 4000,
}
# What is leased, and what is asked for: 1/64 of a host each, up to 8 of it.
PARTS = 64
MAX_PARTS = 8
# Each host has so many devices, of a class that HostState has no figure of.
DEVICE = 'CUSTOM_GPU'
DEVICES = 8
# Of each host, in a year.
ALLOCATIONS = 100
HOUR, DAY = 3600, 86400
MIN_TURNS = 5
PROJECT = 'b8a2e1c09f6d4c7f8e7d6c5b4a392817'

UNBOUNDED, BOUNDED, BOUND = 'unbounded', 'bounded', 'bound'
WITH_DEVICES = 'bounded with devices'
# As BOUNDED, in a cloud whose hosts have no devices.
NO_DEVICES = 'bounded, in a cloud without devices'
PREEMPTIBLE = 'preemptible'
FRESH, AGAIN = 'fresh', 'again'

OURS = ('ReservationFilter', 'LifetimeFilter', 'both of ours')
# Decisions of which the memory is measured, and the hosts whose use changes
# from one of them to the next.
KEPT, CHANGED = 100, 10

# (HostStates, RequestSpec): one call into a handler.
Call = Callable[[list[Any], Any], object]


class NoOp(filters.BaseHostFilter):
    """What Nova's loop costs around a filter that looks at each host."""

    def host_passes(self, host_state: Any, filter_properties: Any) -> bool:
        return True


def work(kind: str, size: int, sight: str, asked: str) -> str:
    """Return the name of a work: `kind` is 'filter', 'weigh' or 'settle'."""
    return f'{kind} {size:,} {sight} hosts, {asked}'


def memory(size: int, asked: str) -> str:
    """Return the name of the work whose value is the memory of decisions."""
    return f'{KEPT} kept decisions about {size:,} hosts, {asked}'


TARGETS = [
    *(
        measure.Target(
            work('filter', 10_000, FRESH, asked), 'LifetimeFilter',
            (work('filter', 10_000, FRESH, asked), against), ratio, None,
        )
        for asked in (UNBOUNDED, BOUNDED)
        for against, ratio in (('no-op filter', 1), ('BlazarFilter', 15))
    ),
    measure.Target(
        work('filter', 10_000, FRESH, WITH_DEVICES), 'LifetimeFilter',
        (work('filter', 10_000, FRESH, BOUNDED), 'LifetimeFilter'), 0.5, None,
    ),
    measure.Target(
        work('filter', 10_000, FRESH, BOUNDED), 'LifetimeFilter',
        (work('filter', 10_000, FRESH, NO_DEVICES), 'LifetimeFilter'), 0.9,
        None,
    ),
    *(
        measure.Target(
            work('weigh', 10_000, sight, asked), 'LeaseGapWeigher',
            (work('weigh', 10_000, sight, asked), 'RAMWeigher'), 1, None,
        )
        for asked in (UNBOUNDED, BOUNDED)
        for sight in (FRESH, AGAIN)
    ),
    *(
        measure.Target(memory(10_000, asked), 'both of ours', at_most=4 << 20)
        for asked in (UNBOUNDED, BOUNDED, BOUND)
    ),
]


def run(
    budget: float, sizes: Sequence[int], say: Callable[[str], None]
) -> Iterator[measure.Result]:
    """Measure each subject for about `budget` seconds per work.

    :param sizes: how many hosts the requests see
    :param say: is told what comes next
    """
    say(f'a cloud of {max(sizes):,} hosts')
    cloud = Cloud(max(sizes))
    with followed(cloud.replica):
        for size, asked in itertools.product(
            sizes, (UNBOUNDED, BOUNDED, BOUND, WITH_DEVICES, PREEMPTIBLE)
        ):
            say(f'{size:,} hosts in the scheduler, {asked}')
            yield from _measured(
                'filter', _filters(), cloud, size, asked, budget
            )
            # There is nothing to weigh where a reservation decides.
            if asked != BOUND:
                yield from _measured(
                    'weigh', _weighers(), cloud, size, asked, budget
                )
            yield _kept(cloud, size, asked)
            check_nothing_failed()
    say(NO_DEVICES)
    cloud = Cloud(max(sizes), devices=0)
    with followed(cloud.replica):
        for size in sizes:
            yield from _measured(
                'filter', _filters(), cloud, size, NO_DEVICES, budget
            )
        check_nothing_failed()


class Cloud:
    """Reservable hosts with a year of leases, as Nova sees them.

    A fifth of the hosts is leased whole, the others by parts, and every fifth
    part with devices. One reservation is open now, on every tenth host.

    :param devices: how many devices a host has
    """

    def __init__(
        self, hosts: int, seed: int = 1, relocating: bool = False,
        devices: int = DEVICES,
    ) -> None:
        self._devices = devices
        objects.register_all()
        self.random = random.Random(seed)
        self.now = process.now()
        self.uuids = [self.new_uuid() for _ in range(hosts)]
        self.reservation_id = self.new_uuid()
        self._rack = aggregate.Aggregate(name='rack', metadata={'rack': '7'})
        # As Blazar keeps its hosts: those of the reservation, and the rest.
        self._pools = [
            aggregate.Aggregate(
                name=self.reservation_id,
                metadata={
                    'availability_zone': f'blazar_{self.reservation_id}',
                    'blazar:owner': PROJECT,
                },
            ),
            aggregate.Aggregate(name='freepool', metadata={}),
        ]
        self.replica = state.Replica(
            accounting.SchedulerAccounting, relocating=relocating
        )
        self.replica.load(1, self._records())
        self._reported = [
            self._host_state(number) for number in range(hosts)
        ]

    def fresh(self, size: int) -> list[Any]:
        """Return HostStates as made for a request, and seen by nobody."""
        return [_remade(reported) for reported in self._reported[:size]]

    def change(self, count: int) -> None:
        """Have so many hosts report that something else is used of them."""
        for h in self.random.sample(self._reported, count):
            h.vcpus_used = self.random.randrange(CAPACITY[inventory.VCPU])

    def request(self, asked: str) -> Any:
        """Return a request of another size, and lifetime, each time."""
        held = amounts_of(self.random.randint(1, MAX_PARTS))
        hours = self.random.choice((1, 2, 6, 24, 72))
        hints = {
            UNBOUNDED: {},
            BOUNDED: {'lifetime': [f'{hours}h']},
            BOUND: {'reservation': [self.reservation_id]},
            WITH_DEVICES: {'lifetime': [f'{hours}h']},
            NO_DEVICES: {'lifetime': [f'{hours}h']},
            PREEMPTIBLE: {},
        }
        devices = {
            f'resources{n}:{DEVICE}': '1'
            for n in range(self.random.randint(1, DEVICES // 2))
        }
        return request_spec.RequestSpec(
            instance_uuid=self.new_uuid(), project_id=PROJECT,
            flavor=flavor.Flavor(
                vcpus=held[inventory.VCPU],
                memory_mb=held[inventory.MEMORY_MB],
                root_gb=held[inventory.DISK_GB], ephemeral_gb=0, swap=0,
                extra_specs={
                    WITH_DEVICES: devices,
                    PREEMPTIBLE: {'blazar:preemptible': 'true'},
                }.get(asked, {}),
            ),
            is_bfv=False, scheduler_hints=hints[asked],
        )

    def new_uuid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128)))

    def _records(self) -> Iterator[record.Record]:
        held = {
            resource_class: Inventory(total)
            for resource_class, total in (
                *CAPACITY.items(), (DEVICE, self._devices)
            )
            if total
        }
        for number, each in enumerate(self.uuids):
            yield record.encode(
                Host(each, str(number), f'c{number}', inventory=held)
            )
        yield from self.leased()

    def leased(self) -> Iterator[record.Record]:
        """Yield the records of what is leased."""
        yield record.encode(
            record.Reservation(
                self.reservation_id, self.new_uuid(), PROJECT,
                'virtual:instance', self.now - HOUR, window.FOREVER,
                amounts_of(MAX_PARTS),
            )
        )
        randrange = self.random.randrange
        step = 365 * DAY // ALLOCATIONS
        for number, each in enumerate(self.uuids):
            if number % 10 == 0:
                yield self.allocated(
                    each, self.reservation_id, self.now - HOUR, window.FOREVER,
                    amounts_of(MAX_PARTS),
                )
            for k in range(ALLOCATIONS):
                start = self.now + HOUR + k * step + randrange(step // 2)
                if number % 5 == 1:
                    # No two whole ones at once.
                    end, held = start + step // 2, {}
                else:
                    end = start + randrange(HOUR, 14 * DAY)
                    held = amounts_of(randrange(1, MAX_PARTS + 1))
                    if k % 5 == 0 and self._devices:
                        held[DEVICE] = randrange(1, self._devices + 1)
                yield self.allocated(each, self.new_uuid(), start, end, held)

    def allocated(
        self, host_uuid: str, reservation_id: str, start: int, end: int,
        amounts: dict[str, int],
    ) -> record.Record:
        return record.encode(
            Allocation(
                self.new_uuid(), reservation_id, host_uuid, start, end,
                amounts, whole=not amounts,
            )
        )

    def _host_state(self, number: int) -> Any:
        """Return a HostState that Nova has filled."""
        used = {
            resource_class: amount * self.random.randrange(32) // PARTS
            for resource_class, amount in CAPACITY.items()
        }
        name = f'c{number}'
        made = host_manager.HostState(name, name, 'cell')
        made.update(
            _compute_node(self.uuids[number], name, used),
            {
                'disabled': False, 'forced_down': False, 'topic': 'compute',
                'last_seen_up': datetime.datetime.now(datetime.UTC),
            },
            # Nova has one object of an aggregate for all of its hosts.
            [self._rack, self._pools[number % 10 > 0]],
            {},
        )
        return made


def amounts_of(parts: int) -> dict[str, int]:
    return {
        resource_class: amount * parts // PARTS
        for resource_class, amount in CAPACITY.items()
    }


def _compute_node(node_uuid: str, name: str, used: dict[str, int]) -> Any:
    disk_gb = CAPACITY[inventory.DISK_GB]
    ram_mb = CAPACITY[inventory.MEMORY_MB]
    return compute_node.ComputeNode(
        uuid=node_uuid, host=name, hypervisor_hostname=name, updated_at=None,
        vcpus=CAPACITY[inventory.VCPU], vcpus_used=used[inventory.VCPU],
        memory_mb=ram_mb, memory_mb_used=used[inventory.MEMORY_MB],
        free_ram_mb=ram_mb - used[inventory.MEMORY_MB], local_gb=disk_gb,
        local_gb_used=used[inventory.DISK_GB],
        free_disk_gb=disk_gb - used[inventory.DISK_GB],
        disk_available_least=None, numa_topology=None, pci_device_pools=None,
        host_ip=None, hypervisor_type='QEMU', hypervisor_version=8_000_000,
        cpu_info='', supported_hv_specs=[],
        stats={'num_instances': '0', 'io_workload': '0'}, metrics='[]',
        cpu_allocation_ratio=1.0, ram_allocation_ratio=1.0,
        disk_allocation_ratio=1.0,
    )


def _remade(reported: Any) -> Any:
    # HostState.update() takes 80 us, most of it to read the ComputeNode: the
    # same attributes in the same order are the same object without that.
    made = host_manager.HostState(
        reported.host, reported.nodename, reported.cell_uuid
    )
    for name, value in vars(reported).items():
        setattr(made, name, value)
    # It comes from the database each time: a string nobody has hashed yet.
    made.uuid = reported.uuid.encode().decode()
    return made


@contextlib.contextmanager
def followed(replica: state.Replica) -> Iterator[None]:
    """Let the filters of this process decide by `replica`, always fresh."""
    # What is there by now is no work for a collection between two runs.
    gc.freeze()
    try:
        with process.following(replica, time.time):
            yield
    finally:
        gc.unfreeze()


def check_nothing_failed() -> None:
    """A filter that fails has an answer all the same, and soon."""
    for each in (
        filtering.failure, filtering.stale_replica, base.failure
    ):
        if each.count:
            raise measure.WrongAnswer('one of ours did not decide')


def _filters() -> dict[str, Call]:
    ours = [
        reservation_filter.ReservationFilter(),
        lifetime_filter.LifetimeFilter(),
    ]
    chains = {
        'no-op filter': [NoOp()],
        'ComputeFilter': [_compute_filter()],
        'BlazarFilter': [blazar_filter.BlazarFilter()],
        'ReservationFilter': ours[:1],
        'LifetimeFilter': ours[1:],
        'both of ours': ours,
    }
    handle = filters.HostFilterHandler().get_filtered_objects
    return {
        name: functools.partial(handle, chain)
        for name, chain in chains.items()
    }


def _compute_filter() -> Any:
    # This cloud's services were seen up once, when it was made.
    with mock.patch.object(process.CONF, 'service_down_time', 365 * DAY):
        return compute_filter.ComputeFilter()


def _weighers() -> dict[str, Call]:
    handle = weights.HostWeightHandler().get_weighed_objects
    return {
        type(weigher).__name__: functools.partial(handle, [weigher])
        for weigher in (ram.RAMWeigher(), lease_gap.LeaseGapWeigher())
    }


def _measured(
    kind: str, calls: dict[str, Call], cloud: Cloud, size: int, asked: str,
    budget: float,
) -> Iterator[measure.Result]:
    """Measure the calls in turns, so that a slow minute is everybody's."""
    took: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    deadline = time.monotonic() + budget * len(calls)
    for turn in itertools.count():
        if turn >= MIN_TURNS and time.monotonic() > deadline:
            break
        spec = cloud.request(asked)
        for name, call in calls.items():
            host_states = cloud.fresh(size)
            for sight in (FRESH, AGAIN):
                # None finds it read by another.
                one = functools.partial(call, host_states, spec.obj_clone())
                took[kind, sight, name].append(measure.timed([one], 0).median)
                # As the thread of the chores does; here nobody else would.
                settle = functools.partial(
                    process.ensure_started().decisions.settle, cloud.replica
                )
                settling = measure.timed([settle], 0).median
                if name in OURS:
                    took['settle', sight, name].append(settling)
    for (what, sight, name), seconds in took.items():
        yield measure.Result(
            work(what, size, sight, asked), name, statistics.median(seconds),
            runs=len(seconds),
        )


def _kept(cloud: Cloud, size: int, asked: str) -> measure.Result:
    """Measure the memory of decisions, made while the use of hosts changes.
    """
    call = _filters()['both of ours']
    decisions = process.ensure_started().decisions
    before = 0
    # Those of each request of each filter; the first round fills the rest.
    for _ in range(2):
        measure.give_back()
        before = measure.resident()
        for _ in range(KEPT // 2):
            cloud.change(min(CHANGED, size))
            call(cloud.fresh(size), cloud.request(asked))
            decisions.settle(cloud.replica)
    measure.give_back()
    return measure.Result(
        memory(size, asked), 'both of ours',
        max(0, measure.resident() - before), 'B', KEPT,
    )
