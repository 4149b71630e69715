# SPDX-License-Identifier: Apache-2.0
"""Who is refused for want of room is told where there is some."""

import types

from hypothesis import assume
from hypothesis import given
from hypothesis import HealthCheck
from hypothesis import settings
from hypothesis import strategies as st
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window
from blazar_sched.placing import lease_placing
from blazar_sched.placing import options
from blazar_sched.service.manager import offer
from tests.unit.placing import test_lease_placing as test_placing

OTHERS = st.lists(
    st.tuples(test_placing.WINDOWS, test_placing.RESERVATIONS),
    min_size=1,
    max_size=4,
)
# Where a lease finds room there is no offer, which is often.
CROWDED = settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much],
)
# With one reservation that its main index alone decides on.
SIMPLE = test_placing.PHYSICAL | test_placing.FLAVOR.filter(
    lambda made: (
        made[1]['affinity'] is not None
        and made[1]['resources'].keys() == {'VCPU'}
    )
)


def has_room(world, wanted, at, duration):
    window = Window(at, at + duration)
    lease = test_placing.make_lease('mine', 'mine', window, wanted)
    try:
        lease_placing.place(world.replica, lease, window)
    except exception.NotEnoughHostsAvailable:
        return False
    return True


def refuse(world, lease):
    """Return what a lease that has no room is offered."""
    ledger = types.SimpleNamespace(look=lambda query: query(world.replica))
    try:
        lease_placing.place(world.replica, lease, lease.window)
    except exception.NotEnoughHostsAvailable as e:
        refusal = offer.with_start(e, ledger, lease, options.DEFAULT_OPTIONS)
        assert refusal.args == e.args and refusal.field == e.field
        return refusal.kwargs['offer']
    assume(False)


def crowded(hosts, others):
    world = test_placing.World(hosts)
    for n, (when, theirs) in enumerate(others):
        lease = test_placing.make_lease(f'other-{n}', 'theirs', when, theirs)
        world.place(lease, when)
    return world


@CROWDED
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


@CROWDED
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
    window = Window(0, 1)
    wanted = [('physical:host', {'min': 2, 'max': 2}), (resource_type, {})]
    lease = test_placing.make_lease('mine', 'mine', window, wanted)
    found = refuse(world, lease)
    assert found == {
        'reservation': 0, 'available': 1, 'start': None, 'end': None
    }


class TestProlongation:
    """What a lease that cannot be as long as asked is offered."""

    @pytest.fixture
    def lease(self, world):
        world.add_host('a')
        lease = world.create(start='now', end=100)
        world.run()
        assert world.lease(lease).status == 'ACTIVE'
        return lease

    def prolong(self, world, lease, seconds, **values):
        with pytest.raises(exception.NotEnoughHostsAvailable) as refusal:
            world.leases.update(
                lease.id,
                None,
                {'end': lease.end + seconds, **values},
                offering=True,
            )
        return refusal.value

    def test_it_is_told_the_latest_end_and_the_host(self, world, lease):
        rival = world.create(start=300, end=400)
        before = world.ledger.changes(0)['newest']
        refusal = self.prolong(world, lease, 900)
        assert world.ledger.changes(0)['newest'] == before
        assert (refusal.offer['start'], refusal.offer['end']) == (
            lease.start, rival.start,
        )
        assert 'host a, which is in use, can be kept until' in str(refusal)
        longer = world.leases.update(
            lease.id, None, {'end': refusal.offer['end']}
        )
        assert longer.end == rival.start
        # One second more is refused, and there is no later end.
        refusal = self.prolong(world, longer, 1)
        assert (refusal.offer['start'], refusal.offer['end']) == (None, None)

    def test_for_ever(self, world, lease):
        rival = world.create(start=300, end=400)
        refusal = self.prolong(world, lease, FOREVER - lease.end)
        assert refusal.offer['end'] == rival.start

    def test_cleaning_times_are_kept_free(self, world, lease, conf):
        conf.set_override('cleaning_time', 1, 'manager')
        rival = world.create(start=300, end=400)
        refusal = self.prolong(world, lease, 900)
        assert refusal.offer['end'] == rival.start - 60
        world.leases.update(lease.id, None, {'end': refusal.offer['end']})

    def test_what_a_later_end_is_not_to_blame_for(self, world, lease):
        [reservation] = lease.reservations
        more = {'id': reservation.id, 'min': 2, 'max': 2}
        refusal = self.prolong(world, lease, 10, reservations=[more])
        assert refusal.offer['end'] is None

    def test_one_that_has_not_begun(self, world):
        for name in 'ab':
            world.add_host(name)
        lease = world.create(start=100, end=200)
        for host in 'ab':
            world.create(start=300 if host == 'a' else 350, end=400)
        refusal = self.prolong(world, lease, 900)
        assert refusal.offer['end'] == world.now + 350

    def test_without_being_asked_there_is_none(self, world, lease):
        world.create(start=300, end=400)
        with pytest.raises(exception.NotEnoughHostsAvailable) as refusal:
            world.leases.update(lease.id, None, {'end': lease.end + 900})
        assert 'end' not in (refusal.value.offer or {})
