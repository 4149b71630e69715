# SPDX-License-Identifier: Apache-2.0
"""Offers and the first start with room for leases with floating IPs."""

import random

import pytest

from blazar_sched.domain import exception
from blazar_sched.parts.floating_ip import exception as refusals
from blazar_sched.parts.offer.manager import Offers
from tests.seeds import seeds
from tests.standins.neutron import NETWORK

ONE, TWO, THREE = (f'203.0.113.{n}' for n in (101, 102, 103))
NO_ROOM = (
    exception.NotEnoughHostsAvailable, refusals.NotEnoughFloatingIPAvailable
)


def addresses(amount=1, *required):
    return {
        'resource_type': 'virtual:floatingip', 'network_id': NETWORK,
        'amount': amount, 'required_floatingips': list(required),
    }


@pytest.fixture
def world(world):
    """Two hosts and three floating IPs."""
    for name in 'ab':
        world.add_host(name)
    for address in (ONE, TWO, THREE):
        world.floating_ips.create(NETWORK, address)
    return world


@pytest.fixture
def wanted(world):
    """wanted(*reservations) -> the fields of a request for offers."""

    def wanted(*reservations, start=100, latest=10_000, **values):
        return {
            'project_id': 'project', 'user_id': 'user',
            'alternatives': [list(reservations)],
            'start': world.now + start, 'latest_start': world.now + latest,
            'latest_end': None, 'duration': 100, 'max_duration': None,
            'align': None, 'best': 'earliest', 'limit': 2, 'distance': 1,
            **values,
        }

    return wanted


@pytest.fixture
def asap(world, wanted):
    """asap(*reservations) -> a lease at the first start with room."""

    def asap(*reservations, manager=None, duration=100, **values):
        bounds = wanted(*reservations, duration=duration, **values)
        leases = (manager or world.manager).leases
        return leases.create({
            **bounds, 'name': 'lease', 'before_end': None,
            'reservations': list(reservations),
            'end': bounds['start'] + duration,
        })

    return asap


def allocated(world, lease):
    return sorted(
        f.address for r in world.lease(lease).reservations
        for f in world.registered(r.id)
    )


def test_offers(world, wanted, whole):
    world.create(addresses(2), start=100, end=300)
    world.create(whole(2, 2), start=250, end=400)
    [offer, _] = Offers(world.manager).search(
        wanted(addresses(2), whole())
    )['offers']
    assert offer['start'] == world.now + 400
    assert offer['reservations'] == [
        {'resource_type': 'virtual:floatingip', 'available': 2},
        {'resource_type': 'physical:host', 'available': 1},
    ]
    [offer, _] = Offers(world.manager).search(wanted(
        addresses(2), best='longest', duration=50, max_duration=500, start=0,
        latest=300,
    ))['offers']
    assert (offer['start'], offer['end']) == (world.now + 300, world.now + 800)


def test_search_reports_the_addresses_that_are_lacking(world, wanted, whole):
    world.create(addresses(2), start=150, end=10**6)
    found = Offers(world.manager).search(
        wanted(whole(), addresses(2), latest=200)
    )
    assert found['offers'] == []
    assert found['nearest'] == {
        'reservation': 1, 'available': 1, 'duration': 50,
        'message': 'there are too few floating IPs',
    }


def test_no_such_network(world, wanted):
    found = Offers(world.manager).search(
        wanted({**addresses(), 'network_id': 'none'})
    )
    assert found['offers'] == []
    assert found['nearest']['available'] == 0


def test_the_first_start_with_a_required_address(world, asap):
    world.create(addresses(1, TWO), start=100, end=300)
    lease = asap(addresses(1, TWO))
    assert lease.start == world.now + 300
    assert allocated(world, lease) == [TWO]
    assert asap(addresses(2)).start == world.now + 100


def test_no_start_has_room(world, asap):
    world.create(addresses(2), start=100, end=10**6)
    with pytest.raises(refusals.NotEnoughFloatingIPAvailable):
        asap(addresses(2))
    assert len(world.ledger.leases()) == 1


def test_a_held_offer_holds_addresses(world, wanted, whole):
    offers = Offers(world.manager)
    [held, _] = offers.hold(wanted(addresses(2), whole()), 60)['offers']
    assert offers.get(held['id'], 'project')['reservations'] == [
        {'resource_type': 'virtual:floatingip', 'available': 2},
        {'resource_type': 'physical:host', 'available': 1},
    ]
    with pytest.raises(refusals.NotEnoughFloatingIPAvailable):
        world.create(addresses(2), start=150, end=250)
    lease = offers.accept({
        'offer': held['id'], 'name': 'lease', 'project_id': 'project',
        'user_id': 'user', 'before_end': None,
    }, 'key')
    assert len(allocated(world, lease)) == 2
    world.run(100)
    assert world.lease(lease).status == 'ACTIVE'
    world.check()


def test_a_held_offer_that_lapses_gives_the_addresses_back(world, wanted):
    Offers(world.manager).hold(wanted(addresses(3)), 60)
    world.run(60)
    world.create(addresses(3), start=50, end=250)
    world.check()


@pytest.mark.parametrize('act', ['asap', 'hold'])
def test_addresses_that_go_between_the_search_and_the_booking(
    world, conf, asap, wanted, act, monkeypatch
):
    """A lease of floating IPs alone, by another manager."""
    other = world.another(conf)
    commit = world.ledger.commit
    taken = []

    def late(work, *args):
        if not taken:
            taken.append(other.leases.create({
                'name': 'other', 'project_id': 'other', 'user_id': 'user',
                'start': world.now + 100, 'end': world.now + 300,
                'before_end': None, 'reservations': [addresses(2)],
            }))
        return commit(work, *args)

    monkeypatch.setattr(world.ledger, 'commit', late)
    if act == 'asap':
        start = asap(addresses(2)).start
    else:
        [held, *_] = Offers(world.manager).hold(
            wanted(addresses(2)), 60
        )['offers']
        start = held['start']
    assert start == world.now + 300
    other.ledger.close()


@pytest.mark.parametrize('seed', seeds(12, few=2))
def test_no_earlier_start_has_room(world, asap, whole, slots, seed):
    """Random leases, against a dry run at each second."""
    draw = random.Random(seed)
    found = 0
    for _ in range(20):
        reservations = [
            draw.choice([
                addresses(draw.randint(1, 3)),
                addresses(1, draw.choice([ONE, TWO, THREE])),
                whole(1, 1), slots(2, 4),
            ])
            for _ in range(draw.randint(1, 2))
        ]
        first, length = draw.randint(1, 20), draw.randint(1, 15)
        latest = first + 30

        def has_room(start, reservations=reservations, length=length):
            try:
                world.leases.create({
                    'name': 'trial', 'project_id': 'project',
                    'user_id': 'user', 'start': world.now + start,
                    'end': world.now + start + length, 'before_end': None,
                    'reservations': reservations,
                }, dry_run=True)
            except NO_ROOM:
                return False
            return True

        expected = next(filter(has_room, range(first, latest + 1)), None)
        try:
            lease = asap(
                *reservations, start=first, latest=latest, duration=length
            )
        except NO_ROOM:
            assert expected is None
        else:
            assert lease.start == world.now + expected
            found += expected > first
    world.check()
    assert found
