# SPDX-License-Identifier: Apache-2.0
"""A refusal for lack of room offers a time at which there is room."""

import json

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.window import FOREVER


@pytest.mark.row('F29')
def test_a_lease_is_told_how_much_there_is_and_when_there_is_enough(world):
    world.add_hosts('a', 'b')
    world.create(start=100, end=200)
    wanted = {'resource_type': 'physical:host', 'min': 2, 'max': 2}
    with pytest.raises(exception.NotEnoughHostsAvailable) as refusal:
        world.leases.create(
            world.values(wanted, start=150, end=250), offering=True,
        )
    offer = refusal.value.kwargs['offer']
    assert offer.items() >= {
        'reservation': 0, 'available': 1, 'start': world.now + 200,
        'end': world.now + 300,
    }.items()


@pytest.fixture
def refuse(world):
    """refuse(reservations, start, end) -> the start that a refusal offers."""

    def refuse(reservations, start, end):
        with pytest.raises(exception.NotEnoughHostsAvailable) as refusal:
            world.leases.create({
                'name': 'late', 'project_id': 'project', 'user_id': 'user',
                'start': world.now + start,
                'end': FOREVER if end is None else world.now + end,
                'before_end': None, 'reservations': reservations,
            }, offering=True)
        return refusal.value.offer['start'] - world.now

    return refuse


def test_a_refusal_names_the_first_gap(
    world, whole, refuse
):
    """The first gap of a host is found, although a later start has room."""
    world.add_hosts('a', 'b')
    only_b = whole(
        resource_properties=json.dumps(['==', '$hypervisor_hostname', 'b'])
    )
    for start, end in ((10, 1800), (2400, 10000)):
        world.create(only_b, start=start, end=end)
    two = [whole(), whole()]
    assert refuse(two, 10, 510) == 1800
    # A window of 700 seconds does not fit into the gap.
    assert refuse(two, 10, 710) == 10000


def test_a_refused_lease_without_end_is_offered_its_first_start(
    world, whole, refuse
):
    world.add_host('a')
    for start, end in ((10, 100), (200, 300)):
        world.create(whole(), start=start, end=end)
    assert refuse([whole()], 10, None) == 300


class TestProlongation:
    """The end that a refused extension offers."""

    @pytest.fixture
    def lease(self, world):
        world.add_host('a')
        lease = world.start_lease(end=100)
        assert world.lease(lease).status == 'ACTIVE'
        return lease

    def prolong(self, world, lease, seconds, **values):
        with pytest.raises(exception.NotEnoughHostsAvailable) as refusal:
            world.leases.update(
                lease.id, None, {'end': lease.end + seconds, **values},
                offering=True,
            )
        return refusal.value

    def test_refusal_tells_the_latest_end_and_the_host(self, world, lease):
        rival = world.create(start=300, end=400)
        before = world.ledger.changes(0)['newest']
        refusal = self.prolong(world, lease, 900)
        assert world.ledger.changes(0)['newest'] == before
        assert (refusal.offer['start'], refusal.offer['end']) == (
            lease.start, rival.start,
        )
        assert 'host a, which is in use, can be kept until' in str(refusal)
        longer = world.update_lease(lease, end=refusal.offer['end'])
        assert longer.end == rival.start
        # One second more is refused, and the offer has no later end.
        refusal = self.prolong(world, longer, 1)
        assert (refusal.offer['start'], refusal.offer['end']) == (None, None)

    def test_end_is_that_of_the_extension(self, world, lease):
        rival = world.create(start=300, end=400)
        found = world.manager.extensions.get(lease.id, None, lease.end + 900)
        refusal = self.prolong(world, lease, 900)
        assert refusal.offer['end'] == found['end'] == rival.start

    def test_refusal_for_more_hosts_offers_no_end(self, world, lease):
        [reservation] = lease.reservations
        more = {'id': reservation.id, 'min': 2, 'max': 2}
        refusal = self.prolong(world, lease, 10, reservations=[more])
        assert refusal.offer['end'] is None

    def test_refused_prolongation_of_a_pending_lease_has_an_offer(self, world):
        world.add_hosts('a', 'b')
        lease = world.create(start=100, end=200)
        for host in 'ab':
            world.create(start=300 if host == 'a' else 350, end=400)
        refusal = self.prolong(world, lease, 900)
        assert refusal.offer['end'] == world.now + 350

    def test_refusal_has_no_offer_unless_it_is_wanted(self, world, lease):
        world.create(start=300, end=400)
        with pytest.raises(exception.NotEnoughHostsAvailable) as refusal:
            world.update_lease(lease, end=lease.end + 900)
        assert 'end' not in (refusal.value.offer or {})
