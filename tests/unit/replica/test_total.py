# SPDX-License-Identifier: Apache-2.0
"""The demand for all hosts together, against addition."""

import dataclasses

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import pytest

from blazar_sched.domain.instance import Stay
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.window import FOREVER
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state

GIB = 1024
LAST = 12
BOTH = pytest.mark.parametrize('accounting_', [
    accounting.LedgerAccounting, accounting.SchedulerAccounting,
])

HOSTS = st.tuples(*(st.integers(0, 8) for _ in 'ab'))
INSTANCES = st.lists(st.tuples(
    st.sampled_from('ab'), st.integers(1, 4), st.sampled_from([FOREVER, 4, 9]),
    st.booleans(), st.booleans(),
), max_size=5)
ALLOCATIONS = st.lists(st.tuples(
    st.sampled_from('ab'), st.integers(0, 8), st.integers(1, 4),
    st.integers(0, 3),
), max_size=5)


class World:
    """A replica that counts the total, and the entities that it has."""

    def __init__(self, make, accounting_, vcpus):
        self.make = make
        self.replica = state.Replica(accounting_, relocating=True)
        self.hosts, self.instances, self.allocations = {}, {}, {}
        self.replica.load(0, [])
        self.resize(vcpus)

    def resize(self, vcpus):
        self.hosts = {
            name: self.make.host(name, count)
            for name, count in zip('ab', vcpus, strict=True)
        }
        self.write(*self.hosts.values())

    def write(self, *entities, gone=()):
        self.replica.apply(
            self.replica.revision + 1, [*gone, *map(record.encode, entities)]
        )

    def put_instances(self, drawn):
        for number, (host, vcpus, end, preemptible, moves) in enumerate(drawn):
            other = 'b' if host == 'a' else 'a'
            path = (Stay(host, 0, 3), Stay(other, 2, end)) if moves else ()
            self.instances[f'i{number}'] = self.make.instance(
                f'i{number}', host, vcpus, end=end, preemptible=preemptible,
                path=() if preemptible else path,
                movable='live' if moves else '',
            )
        self.write(*self.instances.values())

    def put_allocations(self, drawn):
        for number, (host, start, length, vcpus) in enumerate(drawn):
            self.allocations[str(number)] = self.make.allocation(
                str(number), host, start, start + length, vcpus
            )
        self.write(*self.allocations.values())

    def fixed(self, at, but=None):
        """Return the VCPUs of the instances that cannot be moved."""
        return sum(
            each.amounts['VCPU'] for each in self.instances.values()
            if not each.preemptible and not each.movable and at < each.end
            and each.uuid != but
        )

    def used(self, at):
        """Return the VCPUs that are needed of all hosts at a time."""
        return sum(
            each.amounts['VCPU'] for each in self.instances.values()
            if not each.preemptible and at < each.end
        ) + sum(
            self.hosts[each.host].capacity('VCPU') if each.whole
            else each.amounts['VCPU']
            for each in self.allocations.values()
            if each.start <= at < each.end
        )

    def check(self):
        capacity = sum(h.capacity('VCPU') for h in self.hosts.values())
        total = self.replica.indexes.total
        for at in range(LAST):
            left = capacity - self.used(at)
            for vcpus in (1, max(1, left), max(1, left + 1)):
                fits = total.has_room(at, at + 1, {'VCPU': vcpus}, 0.0)
                assert fits == (vcpus <= left), (at, vcpus, left)
            self.check_fixed(at, capacity)

    def check_fixed(self, at, capacity):
        fixed = self.replica.indexes.total.fixed
        for share, but in ((1.0, None), (0.5, None), (1.0, 'i0')):
            left = int(share * capacity) - self.fixed(at, but)
            for vcpus in (max(1, left), max(1, left + 1)):
                fits = fixed.has_room(
                    at, at + 1, {'VCPU': vcpus}, share, ignore=but
                )
                assert fits == (vcpus <= left), (at, vcpus, left)
        ends = sorted(
            (each.end, each.host) for each in self.instances.values()
            if not each.preemptible and not each.movable
        )
        assert fixed.latest == {host: end for end, host in ends}
        kept = sum(end > at for end in fixed.latest.values()) + sum(
            each.whole and each.start <= at < each.end
            for each in self.allocations.values()
        )
        has_host = self.replica.indexes.total.has_host
        assert has_host(at, at + 1, 0) == (kept < 2)
        assert has_host(at, at + 1, 1) == (kept < 1)


@BOTH
@settings(max_examples=100, deadline=None)
@given(
    vcpus=HOSTS, resized=HOSTS, instances=INSTANCES, allocations=ALLOCATIONS,
    gone=st.sets(st.integers(0, 4)),
)
def test_total_demand_is_the_sum_of_all_hosts(
    make, accounting_, vcpus, resized, instances, allocations, gone
):
    world = World(make, accounting_, vcpus)
    world.put_instances(instances)
    world.put_allocations(allocations)
    world.check()
    world.resize(resized)
    world.check()
    for number in gone:
        world.instances.pop(f'i{number}', None)
        world.allocations.pop(str(number), None)
    world.write(gone=[
        *((record.INSTANCE, f'i{n}', None) for n in gone),
        *((record.ALLOCATION, str(n), None) for n in gone),
    ])
    world.check()


@BOTH
@settings(max_examples=50, deadline=None)
@given(vcpus=HOSTS, instances=INSTANCES, allocations=ALLOCATIONS)
def test_a_copy_has_the_same_total(
    make, accounting_, vcpus, instances, allocations
):
    world = World(make, accounting_, vcpus)
    world.put_instances(instances)
    world.put_allocations(allocations)
    items = [
        *map(record.encode, world.hosts.values()),
        *map(record.encode, world.instances.values()),
    ]
    copy = state.Replica(accounting_, relocating=True)
    copy.load(1, items, world.allocations.values())
    world.replica = copy
    world.check()


def test_the_own_entries_are_ignored(make):
    world = World(make, accounting.LedgerAccounting, (4, 4))
    world.put_instances([('a', 4, FOREVER, False, False)])
    total = world.replica.indexes.total
    assert not total.has_room(0, 9, {'VCPU': 5}, 0.0)
    assert total.has_room(0, 9, {'VCPU': 5}, 0.0, ignore='i0')


@pytest.mark.parametrize('kept_free, fits', [
    (0.0, 8), (0.05, 8), (0.25, 6), (1.0, 0),
])
def test_a_share_is_kept_free(make, kept_free, fits):
    world = World(make, accounting.LedgerAccounting, (4, 4))
    total = world.replica.indexes.total

    def has_room(vcpus):
        return total.has_room(0, FOREVER, {'VCPU': vcpus}, kept_free)

    assert has_room(fits)
    assert not has_room(fits + 1)


def test_the_share_that_is_free_is_that_of_the_fullest_time(make):
    world = World(make, accounting.LedgerAccounting, (4, 4))
    total = world.replica.indexes.total
    assert set(total.free_shares(0).values()) == {1}
    world.put_instances([
        ('a', 2, 10, False, False), ('a', 1, FOREVER, False, False),
    ])
    assert total.free_shares(9)['VCPU'] == 5 / 8
    assert total.free_shares(10)['VCPU'] == 7 / 8
    # A forced server may have more than there is.
    world.put_instances([('b', 10, FOREVER, False, False)])
    assert total.free_shares(10)['VCPU'] < 0


def test_there_is_no_share_of_what_no_host_has():
    replica = state.Replica(accounting.LedgerAccounting, relocating=True)
    replica.load(0, [])
    assert replica.indexes.total.free_shares(0) == {}


@BOTH
def test_hosts_and_instances_without_vcpus_and_memory_are_no_error(
    make, accounting_
):
    """Bare metal: the flavors ask for one unit of a custom class."""
    metal = {'CUSTOM_METAL': Inventory(1)}
    host = dataclasses.replace(make.host('h'), inventory=metal)
    instance = dataclasses.replace(
        make.instance('i', 'h', 0), amounts={'CUSTOM_METAL': 1}
    )
    whole = dataclasses.replace(
        make.allocation('a', 'h', 2, 4, 1), amounts={}, whole=True
    )
    replica = state.Replica(accounting_, relocating=True)
    replica.load(0, map(record.encode, (host, instance)), [whole])
    disabled = dataclasses.replace(host, disabled=True)
    replica.apply(1, map(record.encode, (disabled, instance)))
    replica.apply(2, [
        (record.INSTANCE, 'i', None), (record.ALLOCATION, 'a', None),
    ])

    assert replica.indexes.total.free_shares(0) == {}


def test_memory_of_many_large_hosts_is_counted(make):
    """A lane of the index holds no sum above 2**31 MB."""
    replica = state.Replica(accounting.LedgerAccounting, relocating=True)
    large = {'VCPU': Inventory(100), 'MEMORY_MB': Inventory(4 * GIB * GIB)}
    hosts = [
        dataclasses.replace(make.host(f'h{n}'), inventory=large)
        for n in range(3000)
    ]
    replica.load(0, map(record.encode, hosts))
    total = replica.indexes.total
    assert total.capacity[:2] == (300_000, 3000 * 4 * GIB)
    assert total.has_room(0, FOREVER, {'MEMORY_MB': 1}, 0.05)
    assert not total.has_room(0, FOREVER, {'MEMORY_MB': 1}, 1.0)


def test_each_class_has_its_share_of_fixed_instances(make):
    """Memory is counted in GiB; no host has the class of a shared disk."""
    replica = state.Replica(accounting.SchedulerAccounting, relocating=True)
    host = dataclasses.replace(make.host('h'), inventory={
        'VCPU': Inventory(8), 'MEMORY_MB': Inventory(8 * GIB),
        'CUSTOM_GPU': Inventory(4),
    })
    replica.load(0, [record.encode(host)])
    has_room = replica.indexes.total.fixed.has_room

    def fits(**amounts):
        return has_room(0, FOREVER, amounts, 0.5)

    assert fits(VCPU=4, MEMORY_MB=4 * GIB, CUSTOM_GPU=2, DISK_GB=9)
    assert not fits(VCPU=5)
    assert not fits(MEMORY_MB=4 * GIB + 1)
    assert not fits(CUSTOM_GPU=3)


def test_an_instance_that_outlives_its_reservation_is_fixed(make):
    replica = state.Replica(accounting.SchedulerAccounting, relocating=True)
    bound = make.instance('i', 'h', 2, end=4, reservation_id='r', claim='r')
    replica.load(0, map(record.encode, (make.host('h', 8), bound)))
    fixed = replica.indexes.total.fixed
    assert fixed.has_room(9, FOREVER, {'VCPU': 4}, 0.5)

    replica.advance(9)

    assert not fixed.has_room(9, FOREVER, {'VCPU': 4}, 0.5)
    assert fixed.has_room(9, FOREVER, {'VCPU': 2}, 0.5)
    assert fixed.latest == {'h': FOREVER}


def test_amounts_that_cannot_be_added_up_leave_no_room(make):
    replica = state.Replica(accounting.SchedulerAccounting, relocating=True)
    large = 2**20
    host = dataclasses.replace(make.host('h'), inventory={
        'VCPU': Inventory(8), 'CUSTOM_KBIT': Inventory(large),
    })
    replica.load(0, map(record.encode, (host, *(
        dataclasses.replace(
            make.instance(f'i{n}', 'h', 0), amounts={'CUSTOM_KBIT': large}
        )
        for n in range(2100)
    ))), leave_out=True)
    fixed = replica.indexes.total.fixed
    assert not fixed.has_room(0, FOREVER, {'CUSTOM_KBIT': 1}, 1.0)
    assert fixed.has_room(0, FOREVER, {'VCPU': 1}, 1.0)


def test_the_total_is_counted_only_where_instances_are_relocated(make):
    replica = state.Replica(accounting.SchedulerAccounting)
    replica.load(0, [record.encode(make.host('a'))])
    assert replica.indexes.total is None
    replica.apply(1, [record.encode(make.host('b', unbounded='relocate'))])
    assert replica.indexes.total.capacity[0] == 16
