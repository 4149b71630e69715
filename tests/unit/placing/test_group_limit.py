# SPDX-License-Identifier: Apache-2.0
"""Placing within group limits, compared with brute force."""

from collections import Counter
import dataclasses
import itertools

from hypothesis import given
from hypothesis import strategies as st
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.group_limit import GroupLimit
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window
from blazar_sched.placing import lease_placing
from blazar_sched.placing import reallocation
from blazar_sched.placing import window_limits
from blazar_sched.placing.options import DEFAULT_OPTIONS
from blazar_sched.placing.window_search import Bounds
from blazar_sched.placing.window_search import edges
from blazar_sched.placing.window_search import MAX_ATTEMPTS
from blazar_sched.placing.window_search import Search
from blazar_sched.replica import record
from tests.unit.placing.placements import FLAVOR
from tests.unit.placing.placements import make_lease
from tests.unit.placing.placements import Placements
from tests.unit.placing.placements import TIMES
from tests.unit.placing.placements import WINDOWS

RACKS = 'AB'
LAST = 3 * TIMES


def make_host(name, rack='A', vcpus=4, watts='300', **fields):
    inventory = {
        c: Inventory(total)
        for c, total in (
            ('VCPU', vcpus), ('MEMORY_MB', 8192), ('DISK_GB', 100),
            ('CUSTOM_GPU', 3),
        )
    }
    return Host(
        name, name, name, inventory=inventory,
        capabilities={'rack': rack, 'watts': watts}, **fields,
    )


def rack(name, most, **counted):
    return GroupLimit(
        f'rack {name}', f'["==", "$rack", "{name}"]', max=most, **counted
    )


def hosts(least, most=None):
    return 'physical:host', {'min': least, 'max': most or least}


def slots(amount, affinity=None, **resources):
    return 'flavor:instance', {
        'resources': resources or {'VCPU': 1}, 'amount': amount,
        'affinity': affinity,
    }


def place(world, id_, window, *wanted, **options):
    lease = make_lease(id_, 'mine', window, wanted)
    return world.place(lease, window, **options)


def on(placed):
    return sorted(a.host for a in itertools.chain(*placed.values()))


class Counted:
    """What is reserved of the groups, counted second by second."""

    def __init__(self, world, limits):
        self._world = world
        self._limits = limits

    def most(self, limit):
        members = self.members(limit)
        if limit.max is not None:
            return limit.max
        return int(limit.share * sum(self._whole(limit, h) for h in members))

    def members(self, limit):
        text = limit.resource_properties
        return [
            host for host in self._world.replica.hosts.values()
            if not text or f'"{host.capabilities["rack"]}"' in text
        ]

    def at(self, limit, at, but=None):
        """Return what is reserved of a group at a time."""
        names = {h.uuid: h for h in self.members(limit)}
        return sum(
            self._amount(limit, names[a.host], a)
            for id_, many in self._world.allocations.items() for a in many
            if a.host in names and a.start <= at < a.end
            and not (but and id_.startswith(but))
        )

    def peak(self, limit, window, but=None):
        return max(
            self.at(limit, at, but) for at in range(window.start, window.end)
        )

    def check(self, placed, window):
        """Check that no group is exceeded where a lease was placed."""
        for limit in self._limits:
            names = {h.uuid: h for h in self.members(limit)}
            mine = sum(
                self._amount(limit, names[a.host], a)
                for a in itertools.chain(*placed.values()) if a.host in names
            )
            assert not mine or self.peak(limit, window) <= self.most(limit)

    def _whole(self, limit, host):
        if limit.resource_class:
            held = host.inventory.get(limit.resource_class)
            return held.total if held else 0
        if limit.counted_property:
            return int(host.capabilities[limit.counted_property])
        return 1

    def _amount(self, limit, host, allocation):
        if allocation.whole or not limit.resource_class:
            return self._whole(limit, host)
        return allocation.amounts.get(limit.resource_class, 0)


LIMITS = st.lists(
    st.builds(
        lambda name, counted, most: (
            dataclasses.replace(
                rack(name, None, **counted), share=most / 16
            ) if most < 0 else rack(name, most, **counted)
        ),
        st.sampled_from(RACKS),
        st.sampled_from([
            {}, {'resource_class': 'VCPU'}, {'resource_class': 'CUSTOM_GPU'},
            {'counted_property': 'watts'},
        ]),
        st.sampled_from([0, 1, 2, 3, 5, 8, 400, 700]),
    ) | st.builds(
        lambda share: GroupLimit('share', share=share / 8), st.integers(0, 8)
    ),
    min_size=1, max_size=3, unique_by=lambda limit: limit.name,
)
MADE = st.tuples(*(
    st.builds(
        make_host, st.just(name), st.sampled_from(RACKS), st.integers(1, 6),
        st.sampled_from(['100', '300', '400']),
    )
    for name in 'abcd'
))
PHYSICAL = st.builds(
    lambda least, more: hosts(least, least + more), st.integers(1, 3),
    st.integers(0, 1),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just('place'), WINDOWS,
            st.lists(PHYSICAL | FLAVOR, min_size=1, max_size=2),
        ),
        st.tuples(st.just('extend'), st.integers(0, 9), st.integers(1, 5)),
        st.tuples(st.just('remove'), st.integers(0, 9)),
        st.tuples(st.just('host'), st.integers(0, 3), MADE),
    ),
    max_size=12,
)


@pytest.mark.row('F115')
@given(MADE, LIMITS, STEPS)
def test_no_lease_exceeds_a_limit(made, limits, steps):
    world = Placements(made, group_limits=limits)
    counted = Counted(world, limits)
    leases = {}
    for number, (what, *args) in enumerate(steps):
        if what == 'place':
            window, wanted = args
            placed = place(world, f'l{number}-', window, *wanted)
            if placed is not None:
                leases[f'l{number}-'] = window, wanted
                counted.check(placed, window)
        elif what == 'host':
            which, anew = args
            world.replica.apply(
                world.replica.revision + 1, [record.encode(anew[which])]
            )
            world.hosts[anew[which].uuid] = anew[which]
        elif leases:
            id_ = list(leases)[args[0] % len(leases)]
            window, wanted = leases[id_]
            if what == 'extend':
                longer = Window(window.start, window.end + args[1])
                placed = place(world, id_, longer, *wanted, active=True)
                if placed is not None:
                    leases[id_] = longer, wanted
                    counted.check(placed, longer)
            else:
                del leases[id_]
                gone = [n for n in world.allocations if n.startswith(id_)]
                world.replica.apply(world.replica.revision + 1, [
                    (record.ALLOCATION, a.id, None)
                    for name in gone for a in world.allocations.pop(name)
                ])
        for group in world.replica.indexes.groups:
            for at in range(LAST):
                assert group.room(Window(at, at + 1)) == (
                    counted.most(group.limit) - counted.at(group.limit, at)
                )


@given(
    st.lists(st.sampled_from(RACKS), min_size=5, max_size=5),
    st.lists(st.integers(0, 4), min_size=2, max_size=2),
    st.lists(st.tuples(WINDOWS, st.integers(1, 3)), max_size=4), WINDOWS,
    st.integers(1, 5),
)
def test_as_many_hosts_as_the_limits_leave_are_found(
    racks, most, booked, window, least
):
    limits = [rack(name, n) for name, n in zip(RACKS, most, strict=True)]
    world = Placements(
        [make_host(n, r) for n, r in zip('abcde', racks, strict=True)],
        group_limits=limits,
    )
    for number, (when, count) in enumerate(booked):
        place(world, f'l{number}-', when, hosts(count))
    taken = {
        a.host for many in world.allocations.values() for a in many
        if a.start < window.end and window.start < a.end
    }
    free = Counter(
        host.capabilities['rack'] for host in world.hosts.values()
        if host.uuid not in taken
    )
    counted = Counted(world, limits)
    there = sum(
        max(0, min(free[name], limit.max - counted.peak(limit, window)))
        for name, limit in zip(RACKS, limits, strict=True)
    )
    placed = place(world, 'mine', window, hosts(least))
    assert (placed is not None) == (there >= least)


@given(
    st.integers(0, 12), st.integers(0, 12), st.integers(1, 12),
    st.integers(1, 2),
)
def test_as_many_instances_as_the_limits_leave_are_found(
    most_a, most_b, amount, vcpus
):
    limits = [
        rack('A', most_a, resource_class='VCPU'),
        rack('B', most_b, resource_class='VCPU'),
    ]
    world = Placements(
        [make_host(n, r) for n, r in zip('abc', 'ABB', strict=True)],
        group_limits=limits,
    )
    there = min(4 // vcpus, most_a // vcpus) + min(
        2 * (4 // vcpus), most_b // vcpus
    )
    placed = place(world, 'mine', Window(0, 1), slots(amount, VCPU=vcpus))
    assert (placed is not None) == (there >= amount)


@given(
    st.integers(1, 3), st.lists(
        st.tuples(WINDOWS, st.integers(1, 2)), min_size=1, max_size=5
    ),
    st.integers(0, 6), st.integers(1, 4), st.integers(1, 2),
)
def test_the_search_finds_the_first_window(most, booked, first, least, count):
    world = Placements(
        [make_host(n) for n in 'abcd'], group_limits=[rack('A', most)]
    )
    for number, (when, wanted) in enumerate(booked):
        place(world, f'l{number}-', when, hosts(wanted))
    lease = make_lease('mine', 'mine', Window(0, 1), [hosts(count)])
    bounds = Bounds(first, LAST, least, least)

    def attempt(window):
        return lease_placing.place(world.replica, lease, window)

    found = Search(
        bounds, attempt, lambda: edges(world.replica, lease, bounds),
        lambda at: window_limits.first_start(
            world.replica, lease, at, least, DEFAULT_OPTIONS
        ),
    ).earliest(1, 1)

    def has_room(start):
        try:
            attempt(Window(start, start + least))
        except exception.NotEnoughHostsAvailable:
            return False
        return True

    expected = next(filter(has_room, range(first, LAST + 1)), None)
    assert [each.window.start for each in found] == (
        [] if expected is None else [expected]
    )


@pytest.mark.parametrize('wanted', [
    hosts(1), slots(3), slots(2, affinity=True), slots(1, CUSTOM_GPU=1),
], ids=str)
def test_a_group_that_is_full_for_long_does_not_end_the_search(wanted):
    world = Placements(
        [make_host('a'), make_host('b')],
        group_limits=[GroupLimit('one host', max=1)],
    )
    busy = MAX_ATTEMPTS + 10
    for at in range(busy):
        place(world, f'l{at}-', Window(at, at + 1), hosts(1))
    lease = make_lease('mine', 'mine', Window(0, 1), [wanted])
    bounds = Bounds(0, 2 * busy, 3, 3)
    search = Search(
        bounds,
        lambda window: lease_placing.place(world.replica, lease, window),
        lambda: edges(world.replica, lease, bounds),
        lambda at: window_limits.first_start(
            world.replica, lease, at, 3, DEFAULT_OPTIONS
        ),
    )
    [found] = search.earliest(1, 1)
    assert found.window.start == busy


def test_another_rack_is_used_and_the_refusal_names_both():
    world = Placements(
        [make_host('a', 'A'), make_host('b', 'A'), make_host('c', 'B')],
        group_limits=[rack('A', 350, counted_property='watts'), rack('B', 1)],
    )
    window = Window(0, 10)
    assert on(place(world, 'one', window, hosts(2))) in (['a', 'c'], [
        'b', 'c'
    ])
    lease = make_lease('two', 'mine', Window(9, 11), [hosts(1)])
    with pytest.raises(exception.NotEnoughHostsAvailable) as caught:
        lease_placing.place(world.replica, lease, Window(9, 11))
    assert str(caught.value) == (
        '1 host is needed, 0 are free; the group limit rack A leaves 50 of '
        '350 in the window'
    )
    # The window after is free.
    assert place(world, 'two', Window(10, 11), hosts(1))


def test_an_active_lease_grows_on_a_host_that_counts_already():
    world = Placements(
        [make_host('a'), make_host('b')],
        group_limits=[rack('A', 1), GroupLimit(
            'memory', resource_class='MEMORY_MB', max=1024
        )],
    )
    window = Window(0, 10)
    place(world, 'one', window, slots(1, MEMORY_MB=512))
    assert on(place(
        world, 'one', window, slots(2, MEMORY_MB=512), active=True
    )) == ['a']
    assert place(
        world, 'one', window, slots(3, MEMORY_MB=512), active=True
    ) is None


def test_a_limit_does_not_count_the_cleaning_time():
    world = Placements(
        [make_host('a', cleaning_time=5), make_host('b', cleaning_time=5)],
        group_limits=[rack('A', 1)],
    )
    one = Window(0, 10)
    place(world, 'one', one, slots(1))
    assert place(world, 'two', Window(12, 20), slots(1))
    assert place(world, 'one', Window(0, 12), slots(2), active=True)
    lease = make_lease('one', 'mine', one, [slots(2)])
    with pytest.raises(exception.NotEnoughHostsAvailable) as caught:
        lease_placing.place(
            world.replica, lease, Window(0, 13),
            lease_placing.allocations_of(world.replica, lease), active=True,
        )
    assert str(caught.value) == (
        'the present allocations of the lease have no room in the new window: '
        'the group limit rack A is exceeded by 1'
    )


def test_slots_of_a_failed_host_move_to_a_host_that_counts_already():
    world = Placements(
        [make_host('a'), make_host('b', 'B')], group_limits=[rack('A', 1)]
    )
    window = Window(0, 10)
    place(world, 'one', window, slots(5))
    world.replica.apply(
        world.replica.revision + 1, [record.encode(make_host('a', vcpus=6))]
    )
    lease = make_lease('one', 'mine', window, [slots(5)])
    placed = reallocation.reallocate(world.replica, lease, window, ['b'])
    [[moved]] = placed.values()
    assert (moved.host, moved.amounts['VCPU']) == ('a', 5)


def test_a_failed_host_is_replaced_within_the_limit():
    world = Placements(
        [make_host('a'), make_host('b'), make_host('c', 'B')],
        group_limits=[rack('A', 1), rack('B', 0)],
    )
    window = Window(0, 10)
    [host] = on(place(world, 'one', window, hosts(1)))
    lease = make_lease('one', 'mine', window, [hosts(1)])
    placed = reallocation.reallocate(world.replica, lease, window, [host])
    assert on(placed) == [{'a': 'b', 'b': 'a'}[host]]


def test_what_a_host_has_room_for_no_longer_moves_within_the_limit():
    world = Placements(
        [make_host('a', vcpus=6)],
        group_limits=[GroupLimit('all', resource_class='VCPU', max=6)],
    )
    window = Window(0, 10)
    [[held]] = place(world, 'one', window, slots(5)).values()
    world.replica.apply(1, [
        record.encode(make_host('a', vcpus=3)), record.encode(make_host('b'))
    ])
    placed = reallocation.reallocate(
        world.replica, make_lease('one', 'mine', window, [slots(5)]), window,
        (), reduced=[dataclasses.replace(held, amounts={'VCPU': 3})],
    )
    assert {
        a.host: a.amounts['VCPU'] for a in itertools.chain(*placed.values())
    } == {'a': 3, 'b': 2}


def test_no_lease_gets_more_than_can_be_counted():
    large = {'DISK_GB': Inventory(1 << 20)}
    world = Placements(
        [
            dataclasses.replace(make_host(str(n)), inventory=large)
            for n in range(2049)
        ],
        group_limits=[GroupLimit('disks', resource_class='DISK_GB')],
    )
    assert place(world, 'one', Window(0, 1), hosts(2047))
    assert place(world, 'two', Window(0, 1), hosts(1)) is None


def test_what_counts_nothing_is_not_refused_where_a_limit_is_exceeded():
    limit = GroupLimit('GPUs', resource_class='CUSTOM_GPU', share=0.5)
    bare = dataclasses.replace(make_host('c'), inventory={
        'VCPU': Inventory(4), 'MEMORY_MB': Inventory(8192),
    })
    world = Placements(
        [make_host('a'), make_host('b'), bare], group_limits=[limit]
    )
    window = Window(0, 10)
    place(world, 'one', window, slots(3, VCPU=1, CUSTOM_GPU=1))
    world.replica.apply(world.replica.revision + 1, [
        record.encode(dataclasses.replace(make_host('b'), inventory={
            'VCPU': Inventory(4), 'CUSTOM_GPU': Inventory(1),
        })),
    ])
    [group] = world.replica.indexes.groups
    assert group.room(window) == -1
    small = slots(1, CUSTOM_GPU=1)
    assert place(world, 'two', window, small) is None
    assert on(place(world, 'three', window, hosts(1))) == ['c']
    assert place(world, 'four', window, slots(5, VCPU=1))


@pytest.mark.parametrize('watts', itertools.permutations(['400', '200']))
def test_hosts_that_a_lease_cannot_use_leave_the_limit_to_others(watts):
    world = Placements(
        [
            make_host('b', 'B', watts='300'),
            *(make_host(f'a{n}', watts=n) for n in watts),
        ],
        group_limits=[GroupLimit('W', counted_property='watts', max=300)],
    )
    wanted = {'min': 1, 'max': 1, 'resource_properties': (
        '["==", "$rack", "A"]'
    )}
    placed = place(world, 'one', Window(0, 1), ('physical:host', wanted))
    assert on(placed) == ['a200']


@given(
    st.lists(
        st.sampled_from(['100', '200', '300', '400']), min_size=4, max_size=4
    ),
    st.sets(st.sampled_from('abcd')), st.integers(0, 500),
    st.sampled_from([hosts(1), slots(3, affinity=True)]),
)
def test_one_host_within_the_limit_is_found(watts, taken, most, wanted):
    world = Placements(
        [make_host(name, watts=n) for name, n in zip(
            'abcd', watts, strict=True
        )],
        group_limits=[GroupLimit('W', counted_property='watts', max=most)],
    )
    world.replica.apply(1, [
        record.encode(Instance(f'i{name}', name, 'p', {'VCPU': 2}, FOREVER))
        for name in taken
    ])
    free = [
        int(n) for name, n in zip('abcd', watts, strict=True)
        if name not in taken
    ]
    placed = place(world, 'one', Window(0, 1), wanted)
    assert (placed is not None) == any(n <= most for n in free)


def test_a_host_may_leave_a_group_while_the_capacity_is_counted():
    class Leaving(dict):
        def __contains__(self, host):
            return self.pop(host, None) is not None

    world = Placements([make_host('a')], group_limits=[rack('A', 1)])
    [group] = world.replica.indexes.groups
    group.members = Leaving(group.members)
    assert group.amount('a', None, 1) == 1


def test_a_share_is_the_decimal_number_of_the_option():
    limit = GroupLimit('share', share=0.29)
    assert (limit.most(99), limit.most(100)) == (28, 29)


def test_memory_is_counted_in_gib():
    limit = GroupLimit('memory', resource_class='MEMORY_MB', max=16384)
    world = Placements(
        [make_host(name) for name in 'abc'], group_limits=[limit]
    )
    window = Window(0, 1)
    assert place(world, 'one', window, hosts(1))
    assert place(world, 'two', window, slots(8, MEMORY_MB=1024))
    assert place(world, 'three', window, slots(1, MEMORY_MB=1)) is None
