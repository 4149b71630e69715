# SPDX-License-Identifier: Apache-2.0
"""Held offers: what they block, how they lapse, and what accepts them."""

import random

import pytest

from blazar_sched.domain import exception
from blazar_sched.parts.offer.exception import MaxHeldOffers
from blazar_sched.parts.offer.exception import OfferLapsed
from blazar_sched.parts.offer.exception import OfferNotFound
from blazar_sched.parts.offer.manager import Offers
from blazar_sched.service import faults
from tests.seeds import seeds

# Seconds for which an offer is held.
HOLD = 60


@pytest.fixture
def world(world):
    """A cloud with two hosts of 8 VCPUs."""
    for name in 'ab':
        world.add_host(name)
    return world


@pytest.fixture
def wanted(world, whole):
    """wanted(*reservations) -> the fields of a request for offers."""

    def wanted(*reservations, **values):
        return {
            'project_id': 'project', 'user_id': 'user',
            'alternatives': [list(reservations) or [whole(2, 2)]],
            'start': world.now + 100, 'latest_start': None,
            'latest_end': None, 'duration': 100, 'max_duration': None,
            'align': None, 'best': 'earliest', 'limit': 2, 'distance': 1,
            **values,
        }

    return wanted


@pytest.fixture
def search(world, wanted):
    """search(*reservations) -> the offers, of which none is held."""
    return lambda *reservations, **values: (
        Offers(world.manager).search(wanted(*reservations, **values))['offers']
    )


@pytest.fixture
def hold(world, wanted):
    """hold(*reservations) -> the offers, of which the first is held."""

    def hold(*reservations, seconds=HOLD, **values):
        found = Offers(world.manager).hold(
            wanted(*reservations, **values), seconds
        )
        world.check()
        return found['offers']

    return hold


def accept(world, offer_id, name='lease', dry_run=False, **values):
    lease = Offers(world.manager).accept({
        'offer': offer_id, 'name': name, 'project_id': 'project',
        'user_id': 'user', 'before_end': None, **values,
    }, f'offer {offer_id}', dry_run)
    world.check()
    return lease


def has_room(world, whole, number=1):
    """Tell whether the window of the offers has room for hosts."""
    try:
        lease = world.create(whole(number, number), start=100, end=200)
    except exception.NotEnoughHostsAvailable:
        return False
    world.leases.delete(lease.id, None)
    return True


def test_an_acceptance_waits_for_the_server_group_as_a_create_does(
    world, hold, slots
):
    [offer, *_] = hold(slots(1, affinity=True), start=world.now + 10)
    world.clock.now += 20
    accept(world, offer['id'])
    assert world.waited > 0


def test_room_of_a_held_offer_is_taken(world, whole, hold):
    first, second = hold()
    assert first['held_until'] == world.now + HOLD
    assert (second['id'], second['held_until']) == (None, None)
    assert not has_room(world, whole)
    assert world.create(whole(), start=200, end=300)
    # The next search does not find the window.
    assert hold()[0]['start'] > first['start']


def test_an_accepted_offer_is_a_lease(world, hold):
    offer = hold()[0]
    held = world.held(world.ledger.lease(offer['id']))
    lease = accept(world, offer['id'], name='night-run')
    assert lease.id == offer['id']
    assert (lease.start, lease.end) == (offer['start'], offer['end'])
    assert (lease.name, lease.status) == ('night-run', 'PENDING')
    assert world.held(lease) == held
    assert Offers(world.manager).list('project') == []
    world.run(HOLD)
    world.run(100)
    assert world.lease(lease).status == 'ACTIVE'
    world.run(100)
    assert world.lease(lease).status == 'TERMINATED'
    world.check()


def test_an_offer_lapses(world, whole, hold):
    offer = hold()[0]
    world.run(HOLD - 1)
    assert not has_room(world, whole)
    world.run(1)
    assert has_room(world, whole, 2)
    with pytest.raises(OfferNotFound):
        Offers(world.manager).get(offer['id'], 'project')
    with pytest.raises(OfferLapsed):
        accept(world, offer['id'])
    assert world.ledger.leases() == []
    assert [a for a, _ in world.ledger.allocations()] == []
    world.check()


def test_a_deleted_offer_is_free(world, whole, hold):
    offer = hold()[0]
    with pytest.raises(OfferNotFound):
        Offers(world.manager).delete(offer['id'], 'another')
    Offers(world.manager).delete(offer['id'], 'project')
    assert has_room(world, whole, 2)
    with pytest.raises(OfferNotFound):
        Offers(world.manager).delete(offer['id'], 'project')
    with pytest.raises(OfferLapsed):
        accept(world, offer['id'])
    world.run(HOLD)
    world.check()


def test_a_dry_run_accepts_nothing(world, hold):
    offer = hold()[0]
    revision = world.ledger.replica.revision
    assert accept(world, offer['id'], dry_run=True).id == offer['id']
    assert world.ledger.replica.revision == revision
    [held] = Offers(world.manager).list('project')
    assert held['held_until'] == offer['held_until']


def test_a_held_offer_is_no_lease(world, hold):
    offer = hold()[0]
    leases, id_ = world.leases, offer['id']
    assert world.ledger.leases() == []
    for refused in (
        lambda: leases.update(id_, 'project', {'name': 'x'}),
        lambda: leases.update(id_, None, {'end': 'now'}),
        lambda: leases.delete(id_, 'project'),
        lambda: world.manager.extensions.get(id_, None, world.now + 900),
    ):
        with pytest.raises(exception.LeaseNotFound):
            refused()
    assert Offers(world.manager).get(id_, 'project')['start'] == offer['start']


def test_a_window_that_begins_before_the_acceptance(world, whole, hold):
    offer = hold(start='now')[0]
    world.run(50)
    lease = accept(world, offer['id'])
    world.run()
    assert (lease.start, lease.end) == (offer['start'], offer['end'])
    assert world.lease(lease).status == 'ACTIVE'


def test_an_offer_lapses_at_the_end_of_its_window(world, whole, hold):
    offer = hold(start='now', duration=HOLD // 2)[0]
    assert offer['held_until'] == offer['end']
    world.run(HOLD // 2)
    assert Offers(world.manager).list(None) == []


def test_an_offer_moves_off_a_host_that_fails(world, whole, hold):
    world.add_host('c')
    offer = hold()[0]
    world.fail('a')
    lease = accept(world, offer['id'])
    assert {host for _, host, _ in world.held(lease)} == {
        world.host(name).uuid for name in 'bc'
    }


def test_the_number_of_held_offers_is_limited(world, whole, hold, conf):
    conf.set_override('max_held_offers', 2, 'manager')
    small = whole(1, 1)
    first, _ = hold(small), hold(small, start=world.now + 300)
    with pytest.raises(MaxHeldOffers) as refusal:
        hold(small, start=world.now + 500)
    assert refusal.value.field == 'hold'
    assert hold(small, start=world.now + 500, project_id='another')
    # An accepted offer is not held any more.
    accept(world, first[0]['id'])
    assert hold(small, start=world.now + 500)


def test_an_offer_that_is_held_too_long_is_refused(world, hold, conf):
    conf.set_override('max_offer_hold', HOLD, 'manager')
    with pytest.raises(exception.InvalidInput) as refusal:
        hold(seconds=HOLD + 1)
    assert refusal.value.field == 'hold'
    assert Offers(world.manager).list(None) == []


def test_no_room_holds_nothing(world, whole, hold):
    revision = world.ledger.replica.revision
    assert hold(whole(3, 3)) == []
    assert world.ledger.replica.revision == revision


def test_an_acceptance_while_the_offer_lapses(world, whole, hold):
    """The acceptance wins: nothing of the lease is deleted."""
    offer = hold()[0]
    accepted = []

    def accept_at(point):
        if point == 'lapse_offer:worked' and not accepted:
            accepted.append(accept(world, offer['id']))

    faults.arm(accept_at)
    try:
        world.run(HOLD)
    finally:
        faults.arm(None)
    [lease] = accepted
    assert world.lease(lease).status == 'PENDING'
    assert not has_room(world, whole)
    world.run(100)
    assert world.lease(lease).status == 'ACTIVE'
    world.check()


@pytest.mark.parametrize('point', [
    'lapse_offer:claimed', 'lapse_offer:worked', 'commit:before',
])
def test_a_manager_that_is_killed_while_an_offer_lapses(
    world, conf, whole, hold, killed, point
):
    hold()
    with killed(point):
        world.run(HOLD)
    world.begin(conf)
    world.run(conf.manager.event_claim_seconds * 3)
    world.run(conf.manager.event_claim_seconds * 3)
    assert Offers(world.manager).list(None) == []
    assert world.ledger.check() == []


@pytest.mark.row('F34')
@pytest.mark.parametrize('seed', seeds(20, few=4))
def test_any_held_offer_can_be_accepted(world, whole, slots, hold, conf, seed):
    """A held offer is never refused, and blocks as a lease does."""
    draw = random.Random(seed)
    conf.set_override('max_held_offers', 100, 'manager')
    offered = []
    for _ in range(12):
        wanted = draw.choice([
            whole(1, draw.randint(1, 2)), slots(draw.randint(1, 5), 2),
        ])
        start = world.now + draw.randint(1, 40)
        if draw.random() < 0.4:
            try:
                world.create(
                    wanted, start=start - world.now,
                    end=start - world.now + draw.randint(1, 20),
                )
            except exception.NotEnoughHostsAvailable:
                continue
        else:
            offered += hold(
                wanted, start=start, duration=draw.randint(1, 20),
                best=draw.choice(['earliest', 'longest', 'most']),
                latest_start=start + 30, max_duration=40,
            )[:1]
        if offered and draw.random() < 0.3:
            gone = offered.pop(draw.randrange(len(offered)))
            Offers(world.manager).delete(gone['id'], 'project')
    draw.shuffle(offered)
    for offer in offered:
        lease = accept(world, offer['id'])
        assert (lease.start, lease.end) == (offer['start'], offer['end'])
