# SPDX-License-Identifier: Apache-2.0
"""Floating IPs in the ledger, and their allocations."""

import dataclasses
import uuid

import pytest
import sqlalchemy as sa

from blazar_sched.domain import event
from blazar_sched.domain import window
from blazar_sched.domain.event import Claim
from blazar_sched.domain.window import Window
from blazar_sched.parts.floating_ip import exception as refusals
from blazar_sched.parts.floating_ip import models as floating_ips
from blazar_sched.parts.floating_ip.demand import Addresses
from blazar_sched.parts.floating_ip.demand import RESOURCE_TYPE
from blazar_sched.parts.floating_ip.floating_ip import FloatingIP
from blazar_sched.parts.floating_ip.floating_ip import Use
from tests.functional.ledger.conftest import *  # noqa: F401, F403
from tests.functional.ledger.conftest import on_every_engine

NETWORK = str(uuid.uuid4())
START, END = 100, 200


def noun(address, **fields):
    return FloatingIP(
        **{
            'id': str(uuid.uuid4()),
            'network_id': NETWORK,
            'subnet_id': str(uuid.uuid4()),
            'address': address,
            'created_at': 1,
            **fields,
        }
    )


@pytest.fixture
def pair(store):
    """Two floating IPs, the lower address first."""
    both = [noun('203.0.113.9'), noun('203.0.113.10')]

    def work(tx):
        for each in reversed(both):
            tx.run(floating_ips.add, each)

    store.write(work)
    return both


@pytest.fixture
def book(store, nouns):
    """book(ip, …, start=, end=) returns a lease with these floating IPs."""

    def write(*ips, start=START, end=END):
        lease = nouns.lease(start, end)
        demand = Addresses(NETWORK, len(ips)).demand
        lease = dataclasses.replace(
            lease,
            reservations=tuple(
                dataclasses.replace(r, demand=demand)
                for r in lease.reservations
            ),
        )

        def work(tx):
            tx.add_lease(lease, ())
            put(tx, lease, ips)

        store.commit(work)
        return lease

    return write


def put(tx, lease, ips, start=None, end=None):
    tx.put_off_hosts(
        RESOURCE_TYPE, lease.reservations[0].id, [ip.id for ip in ips],
        Window(start or lease.start, end or lease.end),
    )


def free(source, start=START, end=END, reservation_id='', network=NETWORK):
    return source.run(
        floating_ips.free, network, Window(start, end), reservation_id
    )


def held(source, lease):
    return source.run(floating_ips.list_, lease.reservations[0].id)


def test_added_floating_ips_are_listed(store, pair):
    assert store.run(floating_ips.list_) == pair
    for one in pair:
        assert store.run(floating_ips.get, one.id) == one


@pytest.mark.parametrize('unknown', [str(uuid.UUID(int=1)), 'no id', '\0', ''])
def test_unknown_floating_ip_is_not_found(store, pair, unknown):
    with pytest.raises(refusals.FloatingIPNotFound):
        store.run(floating_ips.get, unknown)
    with pytest.raises(refusals.FloatingIPNotFound):
        store.write(lambda tx: tx.run(floating_ips.delete, unknown))


def test_an_address_is_one_network_s_once(store, pair):
    again = noun(pair[0].address)
    with pytest.raises(refusals.FloatingIPExists):
        store.write(lambda tx: tx.run(floating_ips.add, again))
    elsewhere = dataclasses.replace(again, network_id=str(uuid.uuid4()))
    store.write(lambda tx: tx.run(floating_ips.add, elsewhere))
    assert len(store.run(floating_ips.list_)) == 3


def test_replicas_learn_nothing_of_it(store, pair):
    assert store.changes(0)['newest'] == 0


@pytest.mark.parametrize(
    'start, end, left',
    [
        (50, 100, 2), (50, 101, 1), (100, 200, 1), (150, 160, 1),
        (199, 300, 1), (200, 300, 2), (50, window.FOREVER, 1),
    ],
)
def test_free_floating_ips_of_a_window(store, pair, book, start, end, left):
    lease = book(pair[0])
    assert free(store, start, end) == pair[-left:]
    own = lease.reservations[0].id
    assert free(store, start, end, reservation_id=own) == pair


def test_hidden_addresses_and_those_of_other_networks_are_never_free(
    store, pair
):
    hidden = noun('203.0.113.11', reservable=False)
    store.write(lambda tx: tx.run(floating_ips.add, hidden))
    assert free(store) == pair
    for network in (str(uuid.uuid4()), '\0', 'no id'):
        assert free(store, network=network) == []


@on_every_engine
def test_uses_lists_the_allocations_of_a_network(store, pair, book):
    hidden = noun('203.0.113.11', reservable=False)
    elsewhere = noun('203.0.113.12', network_id=str(uuid.uuid4()))
    for each in (hidden, elsewhere):
        store.write(lambda tx, each=each: tx.run(floating_ips.add, each))
    book(pair[0], start=300, end=window.FOREVER)
    book(*pair, start=100, end=200)
    book(elsewhere)
    known = [NETWORK, 'no id', '\0', str(uuid.uuid4())]
    both = Window(100, 200)
    assert store.run(floating_ips.uses, known, 199) == [
        Use(pair[0], (both, Window(300))), Use(pair[1], (both,)),
    ]
    assert store.run(floating_ips.uses, known, 200) == [
        Use(pair[0], (Window(300),)), Use(pair[1]),
    ]
    assert store.run(floating_ips.uses, [], 0) == []


@on_every_engine
def test_a_reservation_s_own_is_free_to_it_though_not_reservable(
    store, pair, book
):
    lease = book(pair[0])
    broken = dataclasses.replace(pair[0], reservable=False, updated_at=7)
    store.write(lambda tx: tx.run(floating_ips.update, broken))
    assert store.run(floating_ips.list_) == [broken, pair[1]]
    own = lease.reservations[0].id
    assert free(store, reservation_id=own) == [broken, pair[1]]
    assert free(store, 300, 400) == pair[1:]


@on_every_engine
def test_leases_with_floating_ips_are_listed_by_start(
    store, pair, nouns, book
):
    later, first, over = (
        book(start=start, end=500) for start in (120, 110, 100)
    )
    other = nouns.lease(100, 200)
    store.commit(lambda tx: tx.add_lease(other, ()))
    store.write(lambda tx: tx.set_lease_status(over.id, 'TERMINATED', 1))
    found = store.leases_with(RESOURCE_TYPE)
    assert [lease.id for lease in found] == [first.id, later.id]
    assert found[0] == store.lease(first.id)


def test_a_lease_without_an_end_has_it_for_ever(store, pair, book):
    book(*pair, end=window.FOREVER)
    assert free(store, 50, 100) == pair
    assert free(store, 2 * 10**9, 2 * 10**9 + 1) == []


@on_every_engine
def test_a_commit_sees_what_it_has_written(store, pair, book):
    lease = book(pair[0])

    def work(tx):
        put(tx, lease, pair)
        assert free(tx) == []
        assert held(tx, lease) == pair
        put(tx, lease, pair[1:])
        assert free(tx) == pair[:1]

    store.write(work)
    assert held(store, lease) == pair[1:]


@on_every_engine
def test_another_window_of_the_same(store, pair, book, database):
    lease = book(*pair)

    def rows():
        with database.connect() as connection:
            found = connection.execute(
                sa.select(floating_ips.FloatingIPAllocation)
            )
            return {row.id: (row.start, row.end) for row in found}

    before = rows()
    store.write(lambda tx: put(tx, lease, pair, 120, 180))
    assert rows() == dict.fromkeys(before, (120, 180))
    assert free(store, 100, 120) == pair


@on_every_engine
def test_allocations_of_floating_ips_go_with_the_lease(store, pair, book):
    lease = book(*pair)
    with pytest.raises(refusals.CantDeleteFloatingIP):
        store.write(lambda tx: tx.run(floating_ips.delete, pair[0].id))
    store.commit(lambda tx: tx.delete_lease(lease.id))
    assert free(store) == pair
    store.write(lambda tx: tx.run(floating_ips.delete, pair[0].id))
    assert store.run(floating_ips.list_) == pair[1:]
    assert store.check() == []


def test_allocations_of_floating_ips_go_with_the_reservation(
    store, pair, book
):
    lease = book(*pair)
    store.commit(
        lambda tx: tx.put_lease(dataclasses.replace(lease, reservations=()))
    )
    assert free(store) == pair
    assert store.check() == []


def test_allocations_of_floating_ips_go_when_the_reservation_is_over(
    store, pair, book
):
    first, second = book(pair[0]), book(pair[1])
    id_ = first.reservations[0].id
    store.commit(lambda tx: tx.set_reservations_status([id_], 'deleted', 1))
    assert held(store, first) == []
    assert held(store, second) == pair[1:]


class TestBlocking:
    def end(self, store, lease):
        def work(tx):
            token = str(uuid.uuid4())
            [end] = [
                e for e in lease.events if e.event_type == event.END_LEASE
            ]
            tx.claim_event(end.id, Claim('me', token, 1), None)
            tx.finish_event(end.id, token, 'DONE')

        store.write(work)

    def test_until_the_lease_before_it_is_over(self, store, pair, book):
        first = book(pair[0], start=50, end=100)
        second = book(*pair)
        third = book(pair[1], start=200, end=300)
        assert not store.is_blocked(first.id)
        assert store.is_blocked(second.id)
        assert store.is_blocked(third.id)
        self.end(store, first)
        assert not store.is_blocked(second.id)

    def test_lease_of_another_floating_ip_does_not_block(
        self, store, pair, book
    ):
        book(pair[0], start=50, end=100)
        assert not store.is_blocked(book(pair[1]).id)


class TestCheck:
    def test_two_leases_at_one_instant(self, store, pair, book):
        book(pair[0], pair[1])
        assert store.check() == []
        book(pair[0], start=200, end=300)
        assert store.check() == []
        book(pair[1], start=199, end=300)
        [fault] = store.check()
        assert fault.startswith(f'floating_ip {pair[1].id}: ')

    @on_every_engine
    def test_outside_the_lease(self, store, pair, book):
        lease = book(pair[0])
        store.write(lambda tx: put(tx, lease, pair[:1], 99))
        [fault] = store.check()
        assert 'from 99 to 200, its lease is from 100 to 200' in fault

    def test_left_by_a_lease_that_is_over(self, store, pair, book):
        lease = book(pair[0])

        def work(tx):
            tx.set_lease_status(lease.id, 'TERMINATED', 1)
            (held,) = lease.reservations
            tx.set_reservations_status([held.id], 'deleted', 1)
            put(tx, lease, pair[:1])

        store.commit(work)
        assert any(
            f.startswith('floating_ip_allocation ') and 'TERMINATED' in f
            for f in store.check()
        )
