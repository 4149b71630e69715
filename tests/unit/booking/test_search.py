# SPDX-License-Identifier: Apache-2.0
"""A lease that is refused for lack of room is offered a later start."""

import types

from hypothesis import assume
from hypothesis import given
from hypothesis import HealthCheck
from hypothesis import settings
from hypothesis import strategies as st

from blazar_sched.domain import exception
from blazar_sched.domain.window import Window
from blazar_sched.placing import lease_placing
from blazar_sched.placing import options
from blazar_sched.service.booking.search import WindowSearch
from tests.standins import processor
from tests.unit.placing import placements
from tests.unit.placing.placements import Placements

OTHERS = st.lists(
    st.tuples(placements.WINDOWS, placements.RESERVATIONS), min_size=1,
    max_size=4,
)
# There is no offer if the lease finds room, which is often.
CROWDED = settings(
    max_examples=100, deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much],
)
# A lease with one reservation, on which its main index alone decides.
SIMPLE = placements.PHYSICAL | placements.FLAVOR.filter(
    lambda made: (
        made[1]['affinity'] is not None
        and made[1]['resources'].keys() == {'VCPU'}
    )
)


def has_room(world, wanted, at, duration):
    window = Window(at, at + duration)
    lease = placements.make_lease('mine', 'mine', window, wanted)
    try:
        lease_placing.place(world.replica, lease, window)
    except exception.NotEnoughHostsAvailable:
        return False
    return True


def refuse(world, lease):
    """Return the offer for a lease that has no room."""
    search = WindowSearch(
        types.SimpleNamespace(
            ledger=types.SimpleNamespace(
                read_replica=lambda query: query(world.replica)
            ),
            writer=types.SimpleNamespace(
                options=options.DEFAULT_OPTIONS, rules=None,
                free_off_hosts=lambda *_: [],
            ),
        ),
        thread_time=processor.ticking(),
    )
    try:
        lease_placing.place(world.replica, lease, lease.window)
    except exception.NotEnoughHostsAvailable as e:
        refusal = search.with_start(e, lease, 0)
        assert refusal.args == e.args and refusal.field == e.field
        return refusal.kwargs['offer']
    assume(False)


def crowded(hosts, others):
    world = Placements(hosts)
    for n, (when, theirs) in enumerate(others):
        lease = placements.make_lease(f'other-{n}', 'theirs', when, theirs)
        world.place(lease, when)
    return world


@CROWDED
@given(placements.HOSTS, OTHERS, placements.WINDOWS, placements.RESERVATIONS)
def test_the_window_has_room_and_nothing_is_held_for_it(
    hosts, others, window, wanted
):
    world = crowded(hosts, others)
    lease = placements.make_lease('mine', 'mine', window, wanted)
    before = world.look()
    found = refuse(world, lease)
    assert world.look() == before
    # After all other leases are over the room is largest.
    assert (found['start'] is not None) == has_room(
        world, wanted, 3 * placements.TIMES, window.duration
    )
    if found['start'] is not None:
        assert found['end'] - found['start'] == window.duration
        assert window.start < found['start']
        assert has_room(world, wanted, found['start'], window.duration)


@CROWDED
@given(placements.HOSTS, OTHERS, placements.WINDOWS, SIMPLE)
def test_of_a_plain_reservation_it_is_the_first(hosts, others, window, wanted):
    # The use of GPUs alone does not matter to the main index.
    others = [
        (when, [r for r in theirs if 'VCPU' in r[1].get('resources', 'VCPU')])
        for when, theirs in others
    ]
    world = crowded(hosts, others)
    lease = placements.make_lease('mine', 'mine', window, [wanted])
    found = refuse(world, lease)
    first = next(
        (
            at
            for at in range(window.start, 3 * placements.TIMES)
            if has_room(world, [wanted], at, window.duration)
        ),
        None,
    )
    assert found['start'] == first


@settings(deadline=None)
@given(st.sampled_from(['virtual:floatingip', 'somebody:elses']))
def test_no_start_where_more_is_wanted_than_hosts(resource_type):
    hosts = [placements.make_host('a', 1, 0, False, (), 'cheap')]
    world = Placements(hosts)
    window = Window(0, 1)
    addresses = {'network_id': 'n', 'amount': 1, 'required_floatingips': []}
    wanted = [
        ('physical:host', {'min': 2, 'max': 2}), (resource_type, addresses)
    ]
    lease = placements.make_lease('mine', 'mine', window, wanted)
    found = refuse(world, lease)
    assert found == {
        'reservation': 0, 'available': 1, 'start': None, 'end': None
    }
