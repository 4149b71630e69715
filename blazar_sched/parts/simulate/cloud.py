# SPDX-License-Identifier: Apache-2.0
"""A cloud in virtual time: the instances on each host, and the allocations.

Two replicas are fed with records as the ledger writes them: the filters
decide by one replica, and leases and relocation paths are placed by the other.
The hosts that are kept for leases, the pool, are reservable; where instances
are relocated, all hosts are, and leases go to the pool first. No replica
includes the other hosts. Whether an instance fits on a host at this moment is
computed here, as Placement does.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import heapq
import random
from typing import Any
import uuid

from nova.scheduler import host_manager
from oslo_config import cfg

from blazar_sched.conf import relocation as relocation_conf
from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain import requirements
from blazar_sched.domain import window
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import Host as ReservableHost
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.settings import Settings
from blazar_sched.domain.way import COLD
from blazar_sched.domain.way import NOT
from blazar_sched.parts.simulate import lease
from blazar_sched.parts.simulate import placing
from blazar_sched.parts.simulate import result
from blazar_sched.parts.simulate import scheduler
from blazar_sched.parts.simulate import trace
from blazar_sched.parts.simulate.policy import FREEPOOL
from blazar_sched.parts.simulate.policy import Policy
from blazar_sched.placing import displacement
from blazar_sched.placing import lease_placing
from blazar_sched.placing import leavable
from blazar_sched.placing import overload
from blazar_sched.placing import reallocation
from blazar_sched.placing import relocation
from blazar_sched.placing.options import DEFAULT_OPTIONS
from blazar_sched.placing.options import Options
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state

# Where instances are relocated, a lease gets hosts of the pool if possible.
_POOL_FIRST = Options(
    default=requirements.parse('["==", "$pool", "true"]', 'pool'), retry=True
)
# A live migration takes so many seconds, and one more for each GiB of memory.
_SECONDS = 10
# The least seconds until a live migration that has failed is tried again.
_PAUSE = 30


@dataclasses.dataclass(slots=True)
class Host:
    """A host, its HostState, and the uuids of the instances running on it.

    There is one HostState for all requests. Its figures are kept up to date,
    except `num_instances`, by which filters recognize a multi-create.
    """

    uuid: str
    vcpus: int
    memory_mb: int
    state: scheduler.HostState
    gpus: int = 0
    gpus_used: int = 0
    running: list[str] = dataclasses.field(default_factory=list)
    # The allocations without room on the host since their window opened.
    waiting: list[Allocation] = dataclasses.field(default_factory=list)

    def has_room(self, vcpus: int, memory_mb: int, gpus: int = 0) -> bool:
        here = self.state
        fits: bool = (
            here.vcpus_used + vcpus <= here.vcpus_total
            and memory_mb <= here.free_ram_mb
            and self.gpus_used + gpus <= self.gpus
        )
        return fits

    def take(self, vcpus: int, memory_mb: int, gpus: int) -> None:
        """Increase the use of the host; a negative amount decreases it."""
        self.state.vcpus_used += vcpus
        self.state.free_ram_mb -= memory_mb
        self.gpus_used += gpus

    def size(self, allocation: Allocation) -> tuple[int, int, int]:
        """Return the vCPUs, MB and GPUs that an allocation has."""
        if allocation.whole:
            return self.vcpus, self.memory_mb, self.gpus
        amounts = allocation.amounts
        return (
            amounts[inventory.VCPU], amounts[inventory.MEMORY_MB],
            amounts.get(lease.GPU, 0),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class RecordedStay:
    """The time for which an instance was on a host, for later checks.

    `kind` is None for the instance that fills an allocation of a lease.
    """

    instance: str
    host: str
    start: int
    end: int
    vcpus: int
    memory_mb: int
    gpus: int
    kind: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class Running:
    """A running instance; `kind` is None if a reservation has the instance.

    `since` is when the instance came to its host, `movable` how it is moved.
    """

    since: int
    host: Host
    vcpus: int
    memory_mb: int
    gpus: int
    end: int = window.FOREVER
    kind: str | None = None
    movable: str = NOT


class _Feed:
    """A replica, and the records that the replica does not have yet.

    All records are passed to the replica when the replica is read. Most
    instances are gone again before the replica is read.
    """

    def __init__(self, replica: state.Replica) -> None:
        self._replica = replica
        self._untold: dict[record.Key, record.Record] = {}

    def tell(self, records: Iterable[record.Record]) -> None:
        self._untold.update((each[:2], each) for each in records)

    def replica(self) -> state.Replica:
        """Return the replica, up to date."""
        if self._untold:
            instances = self._replica.instances
            self._replica.apply(self._replica.revision + 1, [
                each for key, each in self._untold.items()
                if each[2] is not None or key[0] != record.INSTANCE
                or key[1] in instances
            ])
            self._untold.clear()
        return self._replica


class Cloud:
    """Hosts under a policy; the first `pool` hosts are kept for leases.

    `now` is the time, which the simulation advances.

    :param options: the options of ``[manager]`` and ``[blazar_sched]``
    :param migration_failure: the probability that a live migration fails
    """

    def __init__(
        self, hosts: Sequence[trace.Host], pool: int, policy: Policy,
        options: Mapping[str, Any], migration_failure: float = 0.0,
    ) -> None:
        self.now = 0
        self.policy = policy
        settings = _settings(options)
        self._relocates = not policy.closed and (
            settings.unbounded == duration.RELOCATE
        )
        self._rules = settings.rules
        # The moves to make, noted since the last look, as (time, uuid of the
        # instance): at the start of the next stay, or of the next try.
        self.booked: list[tuple[int, str]] = []
        # The kinds of the instances that were evicted for moves.
        self.evicted: list[str] = []
        self._migration_failure = migration_failure
        self._chances = random.Random(0)
        self.failed_moves = 0
        # How many leases left a host for an instance.
        self.reallocated = 0
        self.hosts = [_host(number, host) for number, host in enumerate(hosts)]
        self._states = [host.state for host in self.hosts]
        self._by_uuid = {host.uuid: host for host in self.hosts}
        self.held: dict[str, set[str]] = {
            host.uuid: set() for host in self.hosts[:pool]
        }
        self._running: dict[str, Running] = {}
        # Every stay that is over.
        self._stays: list[RecordedStay] = []
        # The leases, with their allocations and the record of the reservation.
        self._leases: dict[str, Lease] = {}
        self._allocations: dict[str, list[Allocation]] = {}
        self._leavable: leavable.Leavable = {}
        self._reservations: dict[str, record.Reservation] = {}
        self.seen = state.Replica(
            accounting.SchedulerAccounting,
            settings=Settings() if policy.closed else settings,
        )
        ledger = state.Replica(
            accounting.LedgerAccounting, relocating=self._relocates
        )
        records = [
            _record(host, host.uuid in self.held)
            for host in self.hosts[:None if self._relocates else pool]
        ]
        for replica in (ledger, self.seen):
            replica.load(1, records)
        self._ledger, self._seen = _Feed(ledger), _Feed(self.seen)
        if self._relocates:
            self.held |= {host.uuid: set() for host in self.hosts[pool:]}
        self._pool = {host.uuid for host in self.hosts[:pool]}
        self._scheduler = scheduler.Scheduler(policy, self.held)
        self.used = result.Level()
        self.idle = result.Level(pool)
        self.used_gpus = result.Level()
        self.idle_gpus = result.Level(sum(h.gpus for h in hosts[:pool]))

    # Instances

    def boot(self, id_: str, asked: trace.Instance) -> bool:
        """Put an instance on a host, if a host has room for the instance."""
        vcpus, memory_mb, gpus = asked.vcpus, asked.memory_mb, asked.gpus
        here = [
            there for there in self._states
            if there.vcpus_used + vcpus <= there.vcpus_total
            and memory_mb <= there.free_ram_mb
        ]
        if gpus:
            here = [
                there for there in here
                if self._by_uuid[there.uuid].has_room(0, 0, gpus)
            ]
        if not here:
            return False
        preemptible = asked.kind == trace.PREEMPTIBLE
        spec = scheduler.spec(
            id_, vcpus, memory_mb, asked.declared, preemptible, gpus=gpus,
            movable=asked.movable,
        )
        # What was found for the instance before is out of date.
        self._write_leavable({})
        chosen = self._choose(here, spec)
        if chosen is None and self._find_leavable():
            chosen = self._choose(here, spec)
        if chosen is None:
            return False
        end = window.FOREVER
        if asked.declared is not None:
            end = duration.end_after(self.now, asked.declared)
        self._arrive(id_, Running(
            self.now, self._by_uuid[chosen.uuid], vcpus, memory_mb, gpus, end,
            asked.kind, asked.movable,
        ))
        self._relieve(chosen.uuid)
        return True

    def leave(self, id_: str) -> bool:
        """Remove an instance; return False if the instance is gone already."""
        gone = self._running.get(id_)
        if gone is None:
            return False
        self._depart(id_, gone)
        if self._is_tracked(gone.host):
            self._tell([(record.INSTANCE, id_, None)])
        for allocation in tuple(gone.host.waiting):
            self._use(allocation)
        return True

    def _depart(self, id_: str, gone: Running) -> None:
        """Take an instance from its host."""
        self._stays.append(_recorded(id_, gone, self.now))
        host = gone.host
        del self._running[id_]
        host.running.remove(id_)
        del host.state.instances[id_]
        host.take(-gone.vcpus, -gone.memory_mb, -gone.gpus)
        self._count(host, -gone.vcpus, -gone.gpus)

    def _come(self, id_: str, new: Running) -> None:
        """Put an instance on its host."""
        host = new.host
        host.take(new.vcpus, new.memory_mb, new.gpus)
        host.running.append(id_)
        # By uuid, as in Nova; the filters read only the uuids.
        host.state.instances[id_] = None
        self._running[id_] = new
        self._count(host, new.vcpus, new.gpus)

    def _arrive(
        self, id_: str, new: Running, reservation_id: str | None = None
    ) -> None:
        host = new.host
        self._come(id_, new)
        if not self._is_tracked(host):
            return
        instance = Instance(
            id_, host.uuid, lease.PROJECT,
            {
                inventory.VCPU: new.vcpus,
                inventory.MEMORY_MB: new.memory_mb,
                **({lease.GPU: new.gpus} if new.gpus else {}),
            },
            new.end, reservation_id, new.kind == trace.PREEMPTIBLE,
            movable=self._way(new),
        )
        if instance.movable:
            path = relocation.plan(
                self._ledger_now(), instance, self.now, self._rules
            )
            instance = dataclasses.replace(instance, path=path or ())
        self._put(instance)

    def _is_tracked(self, host: Host) -> bool:
        """Tell whether the ledger has the instances on a host.

        Blazar does not track the servers that run.
        """
        return host.uuid in self.held and not self.policy.closed

    def _way(self, new: Running) -> str:
        """Return how an instance is relocated."""
        is_relocated = (
            self._relocates and new.kind in (trace.UNBOUNDED, trace.BOUNDED)
        )
        return new.movable if is_relocated else NOT

    def _put(self, instance: Instance) -> None:
        self._tell([record.encode(instance)])
        self._plan_move(instance)

    def _plan_move(self, instance: Instance) -> None:
        """Note the next move of an instance; nobody chooses another time."""
        if instance.relocations:
            at = instance.relocations[0].start
            if instance.movable == COLD:
                at = max(at, instance.leaves_at - self._rules.lead)
            self.booked.append((at, instance.uuid))

    def move(self, id_: str) -> int | None:
        """Move an instance to the next host of its path, if that is due.

        A live migration that fails is tried again, on the same path.

        :returns: MB that were moved, 0 if the host has no room; None if no
            move is due, or if the move fails
        """
        ledger = self._ledger_now()
        known = ledger.instances.get(id_)
        if known is None or not known.relocations:
            return None
        following = known.relocations[0]
        if following.start > self.now:
            return None
        if not relocation.must_leave(ledger, known, self.now):
            self._put(dataclasses.replace(known, path=()))
            return None
        old = self._running[id_]
        target = self._by_uuid[following.host]
        size = old.vcpus, old.memory_mb, old.gpus
        vcpus, memory_mb = self._unfilled(target, id_)
        self.evicted += self._evict(target, (
            old.vcpus + vcpus, old.memory_mb + memory_mb, old.gpus
        ))
        if not target.has_room(*size):
            return 0
        if self._chances.random() < self._migration_failure:
            self._try_again(id_, old)
            return None
        self._depart(id_, old)
        self._come(id_, dataclasses.replace(old, since=self.now, host=target))
        path = known.path[1:] if len(known.path) > 2 else ()
        self._put(dataclasses.replace(known, host=target.uuid, path=path))
        for allocation in tuple(old.host.waiting):
            self._use(allocation)
        return old.memory_mb

    def _try_again(self, id_: str, instance: Running) -> None:
        """Note that a live migration has failed and is to be tried again."""
        self.failed_moves += 1
        taken = _SECONDS + instance.memory_mb // inventory.MIB_PER_GIB
        self.booked.append((self.now + max(_PAUSE, taken), id_))

    def _count(self, host: Host, vcpus: int, gpus: int) -> None:
        in_pool = host.uuid in self._pool
        self.used.change(self.now, vcpus)
        if in_pool:
            self.idle.change(self.now, -vcpus / host.vcpus)
        if gpus:
            self.used_gpus.change(self.now, gpus)
            if in_pool:
                self.idle_gpus.change(self.now, -gpus)

    def stays(self) -> list[RecordedStay]:
        """Return every stay of an instance on a host, until now."""
        return self._stays + [
            _recorded(id_, there, self.now)
            for id_, there in self._running.items()
        ]

    # Leases

    def book(self, asked: Lease) -> bool:
        """Place a lease, if there is room for the lease."""
        try:
            placed, displaced = self._place(self._ledger_now(), asked)
        except exception.NotEnoughHostsAvailable:
            return False
        [reservation] = asked.reservations
        allocations = placed[reservation.id]
        self._leases[asked.id] = asked
        self._allocations[asked.id] = allocations
        slot = None if allocations[0].whole else dict(reservation.demand.slot)
        self._reservations[asked.id] = record.Reservation(
            reservation.id, asked.id, asked.project_id,
            reservation.resource_type, asked.start, asked.end, slot,
        )
        self._tell([
            record.encode(self._reservations[asked.id]),
            *map(record.encode, allocations),
            *map(record.encode, displaced),
        ])
        for each in displaced:
            self._plan_move(each)
        return True

    def _place(
        self, ledger: state.Replica, asked: Lease
    ) -> tuple[lease_placing.Allocations, list[Instance]]:
        """Place a lease; return the allocations, and displaced instances."""
        if not self.policy.packing:
            return placing.scatter(ledger, asked, asked.window), []
        options = _POOL_FIRST if self._relocates else DEFAULT_OPTIONS

        def attempt() -> lease_placing.Allocations:
            return lease_placing.place(
                ledger, asked, asked.window, options=options
            )

        if not (self._relocates and self.policy.displacement):
            return attempt(), []
        return displacement.place(
            ledger, asked, asked.window, self.now, self._rules, attempt,
            options,
        )

    def _find_leavable(self) -> bool:
        """Write which hosts leases can leave; tell whether there are any.

        The manager writes this after each change. Here it is only asked for
        where nothing else helps, which is the only case in which it counts.
        """
        if not (self._relocates and self.policy.reallocation):
            return False
        ledger, soon = self._ledger_now(), self.now + self._rules.lead
        found = leavable.find(
            ledger, leavable.hosts_to_try(ledger, self.now, soon),
            [each for each in self._leases.values() if each.start > soon],
            _POOL_FIRST,
        )
        self._write_leavable(found)
        return bool(found)

    def _write_leavable(self, found: leavable.Leavable) -> None:
        if found == self._leavable:
            return
        self._leavable = found
        for id_, old in self._reservations.items():
            hosts = found.get(old.id, ())
            if hosts != old.leavable:
                new = dataclasses.replace(old, leavable=hosts)
                self._reservations[id_] = new
                self._tell([record.encode(new)])

    def _relieve(self, host_uuid: str) -> None:
        """Move leases off a host that holds too much, as replanning does."""
        ledger = self._ledger_now()
        if host_uuid not in ledger.leavable:
            return
        here = [
            (each, id_) for id_, many in self._allocations.items()
            for each in many if each.host == host_uuid
        ]
        for _, id_ in overload.allocations_to_move(
            ledger, host_uuid, ledger.present.instances_on(host_uuid), here,
            self.now, (),
        ):
            asked = self._leases[id_]
            [new] = reallocation.reallocate(
                ledger, asked, asked.window, {host_uuid}, options=_POOL_FIRST
            ).values()
            self._tell([
                *map(record.removal, self._allocations[id_]),
                *map(record.encode, new),
            ])
            self._allocations[id_] = new
            ledger = self._ledger_now()
            self.reallocated += 1

    def start(self, lease_id: str) -> tuple[list[str], bool]:
        """Start a lease, with an instance of its owner that fills each host.

        :returns: the kinds of the instances that were evicted for the lease,
            and whether all allocations of the lease could be used at once
        """
        evicted: list[str] = []
        for allocation in self._allocations[lease_id]:
            host = self._by_uuid[allocation.host]
            self.held[host.uuid].add(allocation.reservation_id)
            size = host.size(allocation)
            if not allocation.whole:
                size = (*self._unfilled(host), size[2])
            evicted += self._evict(host, size)
        on_time = True
        for allocation in self._allocations[lease_id]:
            if not self._use(allocation):
                self._by_uuid[allocation.host].waiting.append(allocation)
                on_time = False
        return evicted, on_time

    def _unfilled(
        self, host: Host, ignore: str | None = None
    ) -> tuple[int, int]:
        """Return the vCPUs and MB that are taken on a host, and not in use.

        These are those of open reservations, and of moves that are due.

        :param ignore: the uuid of an instance that is not counted
        """
        taken = relocation.taken_now(
            self._ledger_now(), host.uuid, self.now, ignore
        )
        used_mb = host.memory_mb - host.state.free_ram_mb
        return (
            max(0, taken[inventory.VCPU] - host.state.vcpus_used),
            max(0, taken[inventory.MEMORY_MB] - used_mb),
        )

    def end(self, lease_id: str) -> None:
        """Remove the instances of a lease's owner, and the lease."""
        allocations = self._allocations.pop(lease_id)
        del self._leases[lease_id], self._reservations[lease_id]
        for allocation in allocations:
            host = self._by_uuid[allocation.host]
            if allocation in host.waiting:
                host.waiting.remove(allocation)
            self.leave(_user(allocation))
            self.held[host.uuid].discard(allocation.reservation_id)
        self._tell([
            *((record.ALLOCATION, each.id, None) for each in allocations),
            (record.RESERVATION, allocations[0].reservation_id, None),
        ])

    def _use(self, allocation: Allocation) -> bool:
        """Boot an instance that fills an allocation; False without room."""
        host = self._by_uuid[allocation.host]
        id_, size = _user(allocation), host.size(allocation)
        vcpus, memory_mb, gpus = size
        if not host.has_room(*size) or not self._choose(
            [host.state],
            scheduler.spec(
                id_, vcpus, memory_mb,
                reservation_id=allocation.reservation_id, gpus=gpus,
            ),
        ):
            return False
        self._arrive(
            id_, Running(self.now, host, *size), allocation.reservation_id
        )
        if allocation in host.waiting:
            host.waiting.remove(allocation)
        return True

    def _evict(self, host: Host, size: tuple[int, int, int]) -> Iterator[str]:
        """Evict yielding instances from a host, youngest first, as needed.

        :param size: the vCPUs, MB and GPUs that have to be free then
        """
        for id_ in reversed(tuple(host.running)):
            if host.has_room(*size):
                return
            other = self._running[id_]
            if not other.gpus and host.has_room(*size[:2]):
                # Only GPUs are missing.
                continue
            overdue = other.end <= self.now
            if other.kind is not None and (
                overdue or other.kind == trace.PREEMPTIBLE
            ):
                self.leave(id_)
                yield other.kind

    def _tell(self, records: Collection[record.Record]) -> None:
        for feed in (self._ledger, self._seen):
            feed.tell(records)

    def _ledger_now(self) -> state.Replica:
        """Return the ledger's replica, up to date."""
        replica = self._ledger.replica()
        replica.advance(self.now)
        return replica

    def _choose(
        self, host_states: Sequence[scheduler.HostState], spec: scheduler.Spec
    ) -> scheduler.HostState | None:
        """Return the HostState that the scheduler chooses, or None."""
        self._seen.replica()
        return self._scheduler.choose(host_states, spec)


def _recorded(id_: str, there: Running, now: int) -> RecordedStay:
    return RecordedStay(
        id_, there.host.state.host, there.since, now, there.vcpus,
        there.memory_mb, there.gpus, there.kind,
    )


def _user(allocation: Allocation) -> str:
    """Return the uuid of the instance that fills an allocation."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, allocation.id))


def least_pool(
    hosts: Sequence[trace.Host], bookings: Iterable[lease.Booking]
) -> int:
    """Return the least number of first hosts that hold all of the bookings.

    :raises InvalidInput: if all hosts together do not hold the bookings
    """
    bookings = list(bookings)
    least, most = 0, len(hosts)
    if not _holds(hosts, most, bookings):
        raise exception.InvalidInput(
            f'{most} hosts have no room for the {len(bookings)} leases'
        )
    while least < most:
        half = (least + most) // 2
        if _holds(hosts, half, bookings):
            most = half
        else:
            least = half + 1
    return most


def _holds(
    hosts: Sequence[trace.Host], pool: int, bookings: Sequence[lease.Booking]
) -> bool:
    there = Cloud(hosts, pool, FREEPOOL, {})
    over: list[tuple[int, str]] = []
    for booking in bookings:
        there.now = booking.at
        while over and over[0][0] <= booking.at:
            there.end(heapq.heappop(over)[1])
        if not there.book(booking.lease):
            return False
        heapq.heappush(over, (booking.lease.end, booking.lease.id))
    return True


def _host(number: int, host: trace.Host) -> Host:
    here = host_manager.HostState(host.name, host.name, 'cell')
    here.uuid = str(uuid.uuid5(uuid.NAMESPACE_OID, f'{number} {host.name}'))
    here.vcpus_total = host.vcpus
    here.total_usable_ram_mb = here.free_ram_mb = host.memory_mb
    return Host(here.uuid, host.vcpus, host.memory_mb, here, host.gpus)


def _settings(options: Mapping[str, Any]) -> Settings:
    """Return what managers with the options tell nova-scheduler."""
    conf = cfg.ConfigOpts()
    conf.register_opts(relocation_conf.opts)
    for name, value in options.items():
        if name in conf:
            conf.set_override(name, value)
    return relocation_conf.settings(conf)


def _record(host: Host, in_pool: bool) -> record.Record:
    return record.encode(ReservableHost(
        host.uuid, host.uuid, host.state.host,
        capabilities={'pool': 'true'} if in_pool else {},
        inventory={
            inventory.VCPU: Inventory(host.vcpus),
            inventory.MEMORY_MB: Inventory(host.memory_mb),
            **({lease.GPU: Inventory(host.gpus)} if host.gpus else {}),
        },
    ))
