# SPDX-License-Identifier: Apache-2.0
"""Hosts that leases can leave, and the promise to all who get such a host."""

import itertools

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from blazar_sched.domain import exception
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window
from blazar_sched.placing import leavable
from blazar_sched.placing import reallocation
from blazar_sched.replica import record
from tests.unit.placing.placements import make_lease
from tests.unit.placing.test_displacement import HOSTS
from tests.unit.placing.test_displacement import LAB
from tests.unit.placing.test_displacement import lease_of
from tests.unit.placing.test_displacement import LEASES
from tests.unit.placing.test_displacement import NAMES
from tests.unit.placing.test_displacement import World


def book(world, leases):
    """Book leases; return those that were not refused."""
    booked = []
    for number, (window, wanted) in enumerate(leases):
        lease = make_lease(f'l{number}', 'mine', window, wanted)
        try:
            world.book(lease, None)
        except exception.NotEnoughHostsAvailable:
            continue
        booked.append(lease)
    return booked


def find(world, leases, hosts=NAMES):
    """Return what is found; the replica stays as it is."""
    before = world.look()
    found = leavable.find(world.replica, hosts, leases)
    assert world.look() == before
    return found


def hosts_in(found):
    return set(itertools.chain.from_iterable(found.values()))


def move_off(world, lease, host):
    """Have a lease leave a host, as the replanner does."""
    placed = reallocation.reallocate(
        world.replica, lease, lease.window, {host}
    )
    for id_, after in placed.items():
        before = [*world.replica.indexes.allocations(id_).values()]
        assert not reallocation.loses(before, after)
        world.allocations = {
            key: each for key, each in world.allocations.items()
            if each.reservation_id != id_
        } | {each.id: each for each in after}
        world.replica.apply(world.replica.revision + 1, [
            *map(record.removal, before), *map(record.encode, after),
        ])


@settings(max_examples=200, deadline=None)
@given(HOSTS, LEASES, st.data())
def test_whichever_hosts_get_an_instance_no_lease_loses_anything(
    hosts, leases, data
):
    world = World(hosts)
    booked = book(world, leases)
    found = find(world, booked)
    taken = data.draw(st.permutations(sorted(hosts_in(found))))
    for number, name in enumerate(taken):
        # The instance takes all of the host, for ever.
        vcpus = world.hosts[name].capacity('VCPU')
        world.put([
            Instance(f'i{number}', name, 'p', {'VCPU': vcpus}, FOREVER)
        ])
    for name in taken:
        for lease in booked:
            held = {
                each.host for r in lease.reservations
                for each in world.replica.indexes.allocations(r.id).values()
            }
            if name in held:
                move_off(world, lease, name)
    assert world.overloaded() == set()


def test_a_host_is_found_only_if_others_have_room():
    world = World(LAB)
    three = lease_of(3)
    world.book(three)
    [(id_, [host])] = find(world, [three]).items()
    assert id_ == three.reservations[0].id
    four = lease_of(1, id='m')
    world.book(four)
    assert find(world, [three, four]) == {}
    # Another window needs no room of this one.
    later = lease_of(4, id='n', window=Window(30, 40))
    world.book(later)
    assert find(world, [three, four, later]) == {}


def test_two_hosts_are_found_only_if_both_can_be_left_at_once():
    world = World(LAB)
    one, other = lease_of(1), lease_of(1, id='m')
    for lease in (one, other):
        world.book(lease)
    # There are two free hosts, for one lease each.
    assert len(hosts_in(find(world, [one, other]))) == 2
    third = lease_of(1, id='n')
    world.book(third)
    found = find(world, [one, other, third])
    assert len(hosts_in(found)) == 1


def test_the_hosts_of_other_leases_are_not_found():
    world = World(LAB)
    leaving, staying = lease_of(1), lease_of(1, id='m')
    for lease in (leaving, staying):
        world.book(lease)
    assert set(find(world, [leaving])) == {leaving.reservations[0].id}
