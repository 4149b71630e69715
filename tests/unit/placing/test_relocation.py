# SPDX-License-Identifier: Apache-2.0
"""Relocation paths, against every path that there is."""

import dataclasses
import functools

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import pytest

from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.instance import Stay
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.relocation import Rules
from blazar_sched.domain.window import FOREVER
from blazar_sched.placing import relocation
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state

# From this time on no allocation is left.
LAST = 14
NAMES = 'abcd'
GPU = 'CUSTOM_GPU'
RULES = Rules(lead=1, most_moves=3, shortest_stay=1)


def make_host(name, vcpus, gpus, zone='', **fields):
    held = {'VCPU': vcpus, 'MEMORY_MB': 100, 'DISK_GB': 100, GPU: gpus}
    return Host(
        uuid=name, id=name, hypervisor_hostname=name, availability_zone=zone,
        inventory={c: Inventory(total) for c, total in held.items() if total},
        **fields,
    )


@dataclasses.dataclass
class Taken:
    host: str
    start: int
    length: int
    vcpus: int
    gpus: int
    whole: bool

    def allocation(self, n):
        amounts = {'VCPU': self.vcpus, GPU: self.gpus}
        return Allocation(
            str(n), f'r{n}', self.host, self.start, self.start + self.length,
            {} if self.whole else {c: x for c, x in amounts.items() if x},
            self.whole,
        )


HOSTS = st.tuples(*(
    st.builds(make_host, st.just(name), st.integers(1, 4), st.just(2))
    for name in NAMES
))
TAKEN = st.lists(
    st.builds(
        Taken, st.sampled_from(NAMES), st.integers(0, LAST - 2),
        st.integers(1, 4), st.integers(0, 3), st.integers(0, 2), st.booleans(),
    ).filter(lambda t: t.whole or t.vcpus or t.gpus),
    max_size=12,
)


def make_replica(hosts, taken=(), instances=()):
    replica = state.Replica(accounting.LedgerAccounting)
    replica.load(0, map(record.encode, hosts))
    replica.apply(1, [
        *(record.encode(each.allocation(n)) for n, each in enumerate(taken)),
        *map(record.encode, instances),
    ])
    return replica


def make_instance(host='a', vcpus=1, gpus=0, end=FOREVER, **fields):
    amounts = {'VCPU': vcpus, GPU: gpus}
    return Instance(
        'i', host, 'p', {c: n for c, n in amounts.items() if n}, end,
        movable='live', **fields,
    )


class World:
    """The room for one instance on each host at each second, by addition."""

    def __init__(self, hosts, taken, instance):
        self.hosts = {host.uuid: host for host in hosts}
        self.taken = taken
        self.instance = instance
        self.has_room = functools.cache(self._has_room)

    def _has_room(self, name, at):
        here = [
            each for each in self.taken
            if each.host == name
            and each.start <= at < each.start + each.length
        ]
        if any(each.whole for each in here):
            return False
        used = {
            'VCPU': sum(each.vcpus for each in here),
            GPU: sum(each.gpus for each in here),
        }
        return all(
            used[c] + amount <= self.hosts[name].capacity(c)
            for c, amount in self.instance.amounts.items()
        )

    def until(self, name, start):
        """Return the time until which a host has room from a start on.

        Room until the end of the instance is room for ever.
        """
        last = min(LAST, self.instance.end)
        at = start
        while at < last and self.has_room(name, at):
            at += 1
        return FOREVER if at >= last else at

    def is_reachable(self, name, start, leave_after, moves):
        """Tell whether any path leads from a host to the end.

        The host is left at any time after `leave_after`. A move prolongs the
        time with room, also if the host could have been left later.
        """
        until = self.until(name, start)
        if until >= self.instance.end:
            return True
        return moves > 0 and any(
            self.is_reachable(other, at - RULES.lead, at + 1, moves - 1)
            for at in range(leave_after, until + 1)
            for other in NAMES
            if other != name
            and self.until(other, at - RULES.lead) > until
        )


@settings(max_examples=400, deadline=None)
@given(
    HOSTS, TAKEN, st.integers(1, 3), st.integers(0, 1),
    st.sampled_from([FOREVER, FOREVER, 5, 9]), st.integers(0, 4),
)
def test_a_path_is_found_if_there_is_one(
    hosts, taken, vcpus, gpus, end, shortest
):
    """A path that is not there is never found either."""
    instance = make_instance(vcpus=vcpus, gpus=gpus, end=end)
    replica = make_replica(hosts, taken)
    world = World(hosts, taken, instance)
    rules = dataclasses.replace(RULES, shortest_stay=shortest)
    path = relocation.plan(replica, instance, 0, rules)
    assert (path is not None) is world.is_reachable(
        'a', 0, rules.least_stay('live'), rules.most_moves
    )
    if path:
        check(world, path)
    elif path is not None:
        assert world.until('a', 0) >= end


def check(world, path):
    """Check that a path has room everywhere, and follows the rules."""
    assert path[0].host == world.instance.host
    assert path[-1].end == world.instance.end
    assert 1 < len(path) <= 1 + RULES.most_moves
    for stay in path:
        assert all(
            world.has_room(stay.host, at)
            for at in range(stay.start, min(stay.end, LAST))
        )
    for stay, following in zip(path, path[1:], strict=False):
        assert following.host != stay.host
        assert following.start == stay.end - RULES.lead
        assert following.end > stay.end


def whole(host, start, length):
    return Taken(host, start, length, 0, 0, True)


def stays(path):
    return [dataclasses.astuple(stay) for stay in path]


LAB = tuple(make_host(name, 4, 0) for name in 'abc')


def test_an_instance_stays_where_it_has_room_to_its_end():
    replica = make_replica(LAB, [whole('a', 9, 3)])
    assert relocation.plan(replica, make_instance(end=9), 0, RULES) == ()


def test_the_stays_overlap_by_the_lead():
    replica = make_replica(LAB, [whole('a', 9, 3)])
    rules = dataclasses.replace(RULES, lead=4)
    path = relocation.plan(replica, make_instance(), 0, rules)
    assert stays(path)[0] == ('a', 0, 9)
    assert stays(path)[1][1:] == (5, FOREVER)


def test_of_the_hosts_with_room_to_the_end_the_fullest_is_next():
    replica = make_replica(
        LAB, [whole('a', 9, 3), Taken('c', 0, 100, 2, 0, False)]
    )
    path = relocation.plan(replica, make_instance(end=50), 0, RULES)
    assert stays(path)[1][0] == 'c'


def test_no_path_begins_with_a_stay_that_is_too_short():
    replica = make_replica(LAB, [whole('a', 9, 3)])
    rules = dataclasses.replace(RULES, shortest_stay=10)
    assert relocation.plan(replica, make_instance(), 0, rules) is None


def test_a_move_may_prolong_the_time_by_little():
    taken = [whole('a', 9, 100), whole('b', 10, 100), whole('c', 0, 9)]
    replica = make_replica(LAB, taken)
    rules = dataclasses.replace(RULES, shortest_stay=9)
    path = relocation.plan(replica, make_instance(vcpus=2), 0, rules)
    assert [stay.host for stay in path] == ['a', 'b', 'c']


def test_no_more_moves_than_the_rules_allow():
    taken = [whole('a', 3, 100), whole('b', 5, 100), whole('c', 0, 3)]
    replica = make_replica(LAB, taken)
    path = relocation.plan(replica, make_instance(), 0, RULES)
    assert [stay.host for stay in path] == ['a', 'b', 'c']
    once = dataclasses.replace(RULES, most_moves=1)
    assert relocation.plan(replica, make_instance(), 0, once) is None


def test_an_instance_that_is_not_movable_gets_no_path():
    replica = make_replica(LAB, [whole('a', 9, 3)])
    instance = dataclasses.replace(make_instance(), movable='')
    assert relocation.plan(replica, instance, 0, RULES) is None


@pytest.mark.parametrize('other', [
    make_host('b', 4, 0, zone='elsewhere'),
    make_host('b', 4, 0, disabled=True),
    make_host('b', 4, 0, hold='dedicated'),
    make_host('b', 4, 0, unbounded='never'),
    make_host('b', 4, 0, hypervisor_type='ironic'),
])
def test_a_path_leads_only_to_hosts_that_take_the_instance(other):
    replica = make_replica([LAB[0], other], [whole('a', 9, 3)])
    assert relocation.plan(replica, make_instance(), 0, RULES) is None


@pytest.mark.parametrize(('gpus', 'other'), [(0, 'b'), (1, 'c')])
def test_devices_are_not_left_behind(gpus, other):
    """A host without the class of a device has no room for the device."""
    hosts = [make_host('a', 4, 1), make_host('b', 2, 0), make_host('c', 4, 1)]
    replica = make_replica(hosts, [whole('a', 9, 3)])
    path = relocation.plan(replica, make_instance(gpus=gpus), 0, RULES)
    assert [stay.host for stay in path] == ['a', other]


def test_the_own_path_is_no_obstacle():
    taken = [whole('a', 9, 3)]
    path = (Stay('a', 0, 9), Stay('b', 8, FOREVER))
    instance = make_instance(vcpus=4, path=path)
    replica = make_replica(LAB[:2], taken, [instance])
    assert relocation.plan(replica, instance, 0, RULES) == path


def test_the_path_counts_on_each_host():
    path = (Stay('a', 0, 9), Stay('b', 8, 20), Stay('c', 19, FOREVER))
    instance = make_instance(vcpus=3, path=path)
    replica = make_replica(LAB, [], [instance])

    def peak(host, at):
        main = replica.indexes.main
        return main.peak(main.rows([host]), at, at + 1)[0]

    expected = {'a': range(0, 9), 'b': range(8, 20), 'c': range(19, 25)}
    for host, there in expected.items():
        for at in range(25):
            assert peak(host, at) == (3 if at in there else 0)
    replica.apply(2, [(record.INSTANCE, 'i', None)])
    assert all(peak(host, at) == 0 for host in 'abc' for at in range(25))


def test_an_instance_that_has_not_left_in_time_stays_counted():
    path = (Stay('a', 0, 9), Stay('b', 8, FOREVER))
    replica = make_replica(LAB, [], [make_instance(vcpus=3, path=path)])
    main = replica.indexes.main
    replica.advance(9)
    for host in 'ab':
        assert main.peak(main.rows([host]), 9, FOREVER)[0] == 3
