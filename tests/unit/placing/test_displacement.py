# SPDX-License-Identifier: Apache-2.0
"""Leases that find room only where instances get relocation paths."""

import contextlib
import dataclasses

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import requirements
from blazar_sched.domain.group_limit import GroupLimit
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.relocation import Rules
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window
from blazar_sched.placing import displacement
from blazar_sched.placing import lease_placing
from blazar_sched.placing.options import Options
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state
from tests.unit.placing.placements import make_host
from tests.unit.placing.placements import make_lease

NAMES = 'abcd'
LAST = 24
RULES = Rules(lead=1, most_moves=3, shortest_stay=1)

HOSTS = st.tuples(*(
    st.builds(
        lambda name, vcpus: make_host(name, vcpus, 0, False, (), 'any'),
        st.just(name), st.integers(2, 4),
    )
    for name in NAMES
))
INSTANCES = st.lists(
    st.tuples(
        st.sampled_from(NAMES), st.integers(1, 2),
        st.sampled_from([FOREVER, FOREVER, 8]), st.booleans(),
        st.sampled_from([False, False, True]),
    ),
    max_size=6,
)
WANTED = st.builds(
    lambda n: [('physical:host', {'min': n, 'max': n})], st.integers(1, 3)
) | st.builds(
    lambda vcpus, n, affinity: [(
        'flavor:instance',
        {'resources': {'VCPU': vcpus}, 'amount': n, 'affinity': affinity},
    )],
    st.integers(1, 2), st.integers(1, 5),
    st.sampled_from([None, None, True, False]),
)
LEASES = st.lists(
    st.tuples(
        st.builds(
            lambda start, length: Window(start, start + length),
            st.integers(2, 14), st.integers(1, 8),
        ),
        WANTED,
    ),
    min_size=1, max_size=4,
)


class World:
    """A replica, with what it should have by addition."""

    def __init__(self, hosts, instances=(), group_limits=()):
        self.hosts = {host.uuid: host for host in hosts}
        self.replica = state.Replica(
            accounting.LedgerAccounting, relocating=True,
            group_limits=group_limits,
        )
        self.replica.load(0, map(record.encode, hosts))
        self.instances = {}
        self.allocations = {}
        for number, (host, vcpus, end, movable, preemptible) in enumerate(
            instances
        ):
            self.put([Instance(
                f'i{number}', host, 'p', {'VCPU': vcpus}, end,
                preemptible=preemptible,
                movable='live' if movable and not preemptible else '',
            )])

    def put(self, instances):
        self.instances |= {each.uuid: each for each in instances}
        self._apply(map(record.encode, instances))

    def book_in_parts(self, lease):
        """Book a lease; commit the new path of one instance after another."""
        cleared = {}
        while True:
            try:
                return self.book(lease, cleared=cleared, enough=1)
            except displacement.TooManyDisplaced as e:
                assert e.hosts.keys() > cleared.keys()
                cleared = e.hosts
                self.put(displacement.clear(self.replica, e.hosts, 0, RULES))

    def book(self, lease, rules=RULES, cleared=None, enough=None):
        """Place a lease and commit; return the displaced instances."""
        before = self.look()
        try:
            placed, displaced = displacement.place(
                self.replica, lease, lease.window, 0, rules,
                lambda: lease_placing.place(self.replica, lease, lease.window),
                cleared=cleared, enough=enough,
            )
        finally:
            assert self.look() == before
        allocations = [a for many in placed.values() for a in many]
        self.allocations |= {a.id: a for a in allocations}
        self._apply(map(record.encode, allocations))
        self.put(displaced)
        return displaced

    def _apply(self, records):
        self.replica.apply(self.replica.revision + 1, records)

    def look(self):
        main = self.replica.indexes.main
        return sorted(
            held for owner in (*self.instances, *self.owners(), 'cleared')
            for held in main.held(owner)
        ), dict(self.replica.instances)

    def owners(self):
        return {a.reservation_id for a in self.allocations.values()}

    def used(self, host, at):
        """Return the VCPUs taken of a host, and the whole allocations."""
        taken, whole = 0, 0
        for each in self.instances.values():
            if each.preemptible:
                continue
            stays = each.path or ()
            there = sum(
                stay.host == host and stay.start <= at < stay.end
                for stay in stays
            ) if stays else each.host == host and at < each.end
            taken += there * each.amounts['VCPU']
        for each in self.allocations.values():
            if each.host == host and each.start <= at < each.end:
                taken += each.amounts.get('VCPU', 0)
                whole += each.whole
        return taken, whole

    def overloaded(self):
        """Return each (host, time) at which more is taken than there is."""
        found = set()
        for name, host in self.hosts.items():
            for at in range(LAST):
                taken, whole = self.used(name, at)
                if taken > host.capacity('VCPU') or whole > 1 or (
                    whole and taken
                ):
                    found.add((name, at))
        return found


@settings(max_examples=300, deadline=None)
@given(HOSTS, INSTANCES, LEASES, st.booleans())
def test_displacement_promises_no_capacity_twice(
    hosts, instances, leases, in_parts
):
    world = World(hosts, instances)
    # Hosts may have too much already: they must not get more.
    before = world.overloaded()
    immovable = {
        uuid: each for uuid, each in world.instances.items()
        if not each.movable
    }
    book = world.book_in_parts if in_parts else world.book

    for number, (window, wanted) in enumerate(leases):
        lease = make_lease(f'l{number}', 'mine', window, wanted)
        with contextlib.suppress(exception.NotEnoughHostsAvailable):
            book(lease)
        assert world.overloaded() <= before
        for uuid, each in immovable.items():
            assert world.instances[uuid] == each
        for each in world.instances.values():
            assert not each.path or each.path[-1].end == each.end
            assert len(each.path) <= 1 + RULES.most_moves


LAB = tuple(make_host(name, 4, 0, False, (), 'any') for name in NAMES)
WINDOW = Window(10, 20)


def lease_of(hosts, id='l', window=WINDOW):
    return make_lease(
        id, 'mine', window, [('physical:host', {'min': hosts, 'max': hosts})]
    )


def lab(*vcpus, movable=True):
    """Return a world with an unbounded instance on each of some hosts."""
    return World(LAB, [
        (name, amount, FOREVER, movable, False)
        for name, amount in zip(NAMES, vcpus, strict=False) if amount
    ])


def test_a_lease_takes_a_host_that_can_be_cleared():
    world = lab(1, 1, 1, 1)
    [displaced] = world.book(lease_of(1))
    assert displaced.path[0].end == 10
    assert displaced.path[1].start == 9
    assert displaced.path[1].host != displaced.host


def test_the_host_with_the_least_in_the_way_is_cleared():
    world = lab(3, 3, 1, 3)
    [displaced] = world.book(lease_of(1))
    assert displaced.host == 'c'


def test_the_hosts_of_other_leases_are_not_looked_at_first(monkeypatch):
    monkeypatch.setattr(displacement, 'WEIGHED', 1)
    monkeypatch.setattr(displacement, 'MAX_WEIGHED', 1)
    world = lab(3, 3, 1, 0)
    world.book(lease_of(1, 'first'))
    [displaced] = world.book(lease_of(1, 'second'))
    assert displaced.host == 'c'


def test_hosts_beyond_the_default_requirement_are_cleared_too():
    world = World(LAB, [
        (name, 1, FOREVER, name == 'b', False) for name in NAMES
    ])
    options = Options(
        default=requirements.parse('["==", "$hypervisor_hostname", "a"]', ''),
        retry=True,
    )
    lease = lease_of(1)
    _, [displaced] = displacement.place(
        world.replica, lease, lease.window, 0, RULES,
        lambda: lease_placing.place(
            world.replica, lease, lease.window, options=options
        ),
        options,
    )
    assert displaced.host == 'b'


def test_a_free_host_is_taken_first():
    world = lab(1, 1, 1, 0)
    assert world.book(lease_of(1)) == []


def test_all_hosts_or_nothing():
    with pytest.raises(exception.NotEnoughHostsAvailable):
        lab(3, 3, 3, 3).book(lease_of(2))


@pytest.mark.parametrize('hosts', [1, 2, 3])
def test_a_lease_clears_hosts_in_parts(hosts):
    world = lab(1, 1, 1, 1)
    world.book_in_parts(lease_of(hosts))
    assert len(world.allocations) == hosts
    assert world.overloaded() == set()


def test_an_instance_counts_once_for_each_new_path():
    """The instance of `c` goes to a free host, which has to be cleared too."""
    with pytest.raises(displacement.TooManyDisplaced):
        lab(0, 0, 2, 4).book(lease_of(3), enough=2)


def test_a_part_leaves_the_hosts_free_that_others_have_cleared():
    world = lab(1, 1, 1, 1)
    with pytest.raises(displacement.TooManyDisplaced) as first:
        world.book(lease_of(3), enough=1)
    [cleared] = first.value.hosts
    world.put(displacement.clear(world.replica, first.value.hosts, 0, RULES))
    with pytest.raises(displacement.TooManyDisplaced) as second:
        world.book(lease_of(3), cleared=first.value.hosts, enough=1)
    assert first.value.hosts.items() < second.value.hosts.items()
    world.put(displacement.clear(world.replica, second.value.hosts, 0, RULES))
    assert not any(world.used(cleared, at)[0] for at in range(10, 20))


def test_a_free_host_may_be_filled_to_clear_others():
    world = lab(2, 2, 3, 0)
    world.book(lease_of(2))
    assert world.overloaded() == set()


def test_a_host_that_is_gone_is_not_cleared():
    hosts = {'gone': WINDOW, 'a': WINDOW}
    [moved] = displacement.clear(lab(1, 0, 0, 0).replica, hosts, 0, RULES)
    assert moved.host == 'a'


def test_a_lease_is_refused_without_any_host():
    with pytest.raises(exception.NotEnoughHostsAvailable):
        World([]).book(lease_of(1))


def test_who_is_not_movable_is_not_displaced():
    with pytest.raises(exception.NotEnoughHostsAvailable):
        lab(1, 1, 1, 1, movable=False).book(lease_of(1))


def test_a_group_limit_does_not_count_the_cleaning_time():
    a, b, c = (
        dataclasses.replace(
            make_host(name, 4, 0, False, (), 'any'), cleaning_time=1
        )
        for name in 'abc'
    )
    world = World(
        [a, b, c],
        [('a', 1, FOREVER, True, False), ('b', 1, FOREVER, False, False)],
        [GroupLimit('one host', max=1)],
    )
    one = [('physical:host', {'min': 1, 'max': 1})]
    world.book(make_lease('first', 'p', Window(150, 200), one))
    [moved] = world.book(make_lease('second', 'p', Window(100, 110), one))
    assert moved.host == 'a'


def test_no_host_is_cleared_where_instances_are_not_relocated():
    world = lab(1, 1, 1, 1)
    with pytest.raises(exception.NotEnoughHostsAvailable):
        world.book(lease_of(1), rules=None)


def test_an_instance_is_displaced_from_a_later_stay():
    world = lab(4, 0, 0, 0)
    world.book(lease_of(3, 'first'))
    world.book(lease_of(1, 'second', Window(30, 40)))
    [instance] = world.instances.values()
    # Three hosts are leased, and the instance has the fourth.
    assert not instance.path
    world.book(lease_of(3, 'third', Window(50, 60)))
    displaced = world.book(lease_of(1, 'fourth', Window(22, 25)))
    assert displaced == []
    assert world.overloaded() == set()


def test_slots_take_what_is_left_beside_other_leases():
    world = lab(3, 3, 3, 3)
    slots = [(
        'flavor:instance',
        {'resources': {'VCPU': 2}, 'amount': 2, 'affinity': True},
    )]
    with pytest.raises(exception.NotEnoughHostsAvailable):
        world.book(make_lease('s', 'mine', WINDOW, slots))
    smaller = lab(1, 1, 3, 3)
    displaced = smaller.book(make_lease('s', 'mine', WINDOW, slots))
    assert [each.host for each in displaced] == ['a']
    assert smaller.overloaded() == set()


SLOT = [(
    'flavor:instance',
    {'resources': {'VCPU': 1}, 'amount': 1, 'affinity': None},
)]


@pytest.mark.parametrize('end, host', [(FOREVER, 'b'), (10, 'a')])
def test_slots_go_first_where_an_instance_cannot_leave(end, host):
    world = World(LAB, [
        ('a', 3, FOREVER, True, False), ('b', 1, end, False, False),
    ])
    world.book(make_lease('s', 'mine', WINDOW, SLOT))
    [slot] = world.allocations.values()
    assert slot.host == host


@pytest.mark.parametrize('start, hosts', [(19, 1), (20, 2)])
def test_slots_go_first_where_others_are(start, hosts):
    world = World(LAB)
    world.book(make_lease('s', 'mine', WINDOW, SLOT))
    [slot] = world.allocations.values()
    world.replica.apply(world.replica.revision + 1, [record.encode(
        record.Reservation('s-0', 's', 'mine', 'flavor:instance', 10, 20)
    )])
    full = next(name for name in NAMES if name != slot.host)
    world.put([Instance('i', full, 'p', {'VCPU': 3}, FOREVER, movable='live')])
    world.book(make_lease('t', 'mine', Window(start, 30), SLOT))
    assert len({each.host for each in world.allocations.values()}) == hosts


def test_a_displaced_instance_may_be_displaced_again():
    world = lab(1, 4, 4, 4)
    world.put([
        dataclasses.replace(each, end=30) for each in world.instances.values()
        if each.host != 'a'
    ])
    world.book(lease_of(1, 'first', Window(40, 50)))
    world.book(lease_of(3, 'second', Window(60, 70)))
    assert world.overloaded() == set()
