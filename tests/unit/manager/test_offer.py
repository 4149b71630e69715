# SPDX-License-Identifier: Apache-2.0
"""Who is refused for want of room is told where there is some."""

import types

from hypothesis import assume
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import window as window_
from blazar_sched.service.manager import offer
from blazar_sched.service.manager import placing
from blazar_sched.service.manager import terms as terms_
from tests.unit.manager import test_placing

OTHERS = st.lists(
    st.tuples(test_placing.WINDOWS, test_placing.RESERVATIONS),
    min_size=1,
    max_size=4,
)
# With one reservation that its main index alone decides on.
SIMPLE = test_placing.PHYSICAL | test_placing.FLAVOR.filter(
    lambda made: (
        made[1]['affinity'] is not None
        and made[1]['resources'].keys() == {'VCPU'}
    )
)


def has_room(world, wanted, at, duration):
    window = window_.Window(at, at + duration)
    lease = test_placing.make_lease('mine', 'mine', window, wanted)
    try:
        placing.place(world.replica, lease, window)
    except exception.NotEnoughHostsAvailable:
        return False
    return True


def refuse(world, lease):
    """Return what a lease that has no room is offered."""
    ledger = types.SimpleNamespace(look=lambda query: query(world.replica))
    try:
        placing.place(world.replica, lease, lease.window)
    except exception.NotEnoughHostsAvailable as e:
        refusal = offer.with_start(e, ledger, lease, terms_.PLAIN)
        assert refusal.args == e.args and refusal.field == e.field
        return refusal.kwargs['offer']
    assume(False)


def crowded(hosts, others):
    world = test_placing.World(hosts)
    for n, (when, theirs) in enumerate(others):
        lease = test_placing.make_lease(f'other-{n}', 'theirs', when, theirs)
        world.place(lease, when)
    return world


@settings(max_examples=300, deadline=None)
@given(
    test_placing.HOSTS,
    OTHERS,
    test_placing.WINDOWS,
    test_placing.RESERVATIONS,
)
def test_the_window_has_room_and_nothing_is_held_for_it(
    hosts, others, window, wanted
):
    world = crowded(hosts, others)
    lease = test_placing.make_lease('mine', 'mine', window, wanted)
    before = world.look()
    found = refuse(world, lease)
    assert world.look() == before
    # After all others are over there is the most room there can be.
    assert (found['start'] is not None) == has_room(
        world, wanted, 3 * test_placing.TIMES, window.duration
    )
    if found['start'] is not None:
        assert found['end'] - found['start'] == window.duration
        assert window.start < found['start']
        assert has_room(world, wanted, found['start'], window.duration)


@settings(max_examples=300, deadline=None)
@given(
    test_placing.HOSTS,
    OTHERS,
    test_placing.WINDOWS,
    SIMPLE,
)
def test_of_a_plain_reservation_it_is_the_first(hosts, others, window, wanted):
    # What a GPU is taken of alone is no matter of the main index.
    others = [
        (when, [r for r in theirs if 'VCPU' in r[1].get('resources', 'VCPU')])
        for when, theirs in others
    ]
    world = crowded(hosts, others)
    lease = test_placing.make_lease('mine', 'mine', window, [wanted])
    found = refuse(world, lease)
    first = next(
        (
            at
            for at in range(window.start, 3 * test_placing.TIMES)
            if has_room(world, [wanted], at, window.duration)
        ),
        None,
    )
    assert found['start'] == first


@pytest.mark.row('F29')
def test_a_lease_is_told_how_much_there_is_and_when_there_is_enough(world):
    for name in 'ab':
        world.add_host(name)
    world.create(start=100, end=200)
    wanted = {'resource_type': 'physical:host', 'min': 2, 'max': 2}
    with pytest.raises(exception.NotEnoughHostsAvailable) as refusal:
        world.leases.create(
            {
                'name': 'late',
                'project_id': 'project',
                'user_id': 'user',
                'start': world.now + 150,
                'end': world.now + 250,
                'before_end': None,
                'reservations': [wanted],
            },
            offering=True,
        )
    assert refusal.value.kwargs['offer'] == {
        'reservation': 0,
        'available': 1,
        'start': world.now + 200,
        'end': world.now + 300,
    }


@settings(deadline=None)
@given(st.sampled_from(['virtual:floatingip', 'somebody:elses']))
def test_no_start_where_more_is_wanted_than_hosts(resource_type):
    hosts = [test_placing.make_host('a', 1, 0, False, (), 'cheap')]
    world = test_placing.World(hosts)
    window = window_.Window(0, 1)
    wanted = [('physical:host', {'min': 2, 'max': 2}), (resource_type, {})]
    lease = test_placing.make_lease('mine', 'mine', window, wanted)
    found = refuse(world, lease)
    assert found == {
        'reservation': 0, 'available': 1, 'start': None, 'end': None
    }
