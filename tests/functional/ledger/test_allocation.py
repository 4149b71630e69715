# SPDX-License-Identifier: Apache-2.0
"""Allocations are stored exactly, and found by host, lease and window."""

import dataclasses

import pytest

from blazar_sched.domain import window
from tests.functional.ledger.conftest import on_every_engine


@pytest.fixture
def hosts(store, nouns):
    return [
        store.commit(lambda tx: tx.put_host(nouns.host())) for _ in range(2)
    ]


@pytest.fixture
def lease(store, nouns):
    new = nouns.lease(end=window.FOREVER)
    store.commit(lambda tx: tx.put_lease(new))
    return new


def put(store, lease, *allocations):
    (held,) = lease.reservations
    store.commit(lambda tx: tx.put_allocations(held.id, allocations))


def by_id(allocations):
    return {a.id: a for a in allocations}


def test_allocations_are_read_as_written(store, nouns, lease, hosts):
    some = nouns.allocation(lease, hosts[0], vcpus=3)
    whole = nouns.allocation(lease, hosts[1], amounts={}, whole=True)
    put(store, lease, some, whole)
    found = store.allocations()
    assert by_id(a for a, _ in found) == by_id([some, whole])
    assert {owner for _, owner in found} == {lease.id}


def test_put_replaces_the_earlier_allocations(store, nouns, lease, hosts):
    first, second = (nouns.allocation(lease, host) for host in hosts)
    put(store, lease, first, second)
    shorter = dataclasses.replace(first, end=900)
    put(store, lease, shorter)
    assert store.allocations() == [(shorter, lease.id)]
    # Another allocation replaces it on the same host.
    put(store, lease, nouns.allocation(lease, hosts[0], id='new'))
    assert [a.id for a, _ in store.allocations()] == ['new']
    put(store, lease)
    assert store.allocations() == []


@on_every_engine
def test_two_can_change_places(store, nouns, lease, hosts):
    first, second = (nouns.allocation(lease, host) for host in hosts)
    put(store, lease, first, second)
    first, second = (
        dataclasses.replace(first, host=second.host),
        dataclasses.replace(second, host=first.host),
    )
    put(store, lease, first, second)
    assert by_id(a for a, _ in store.allocations()) == by_id([first, second])
    replica = store.commit(lambda tx: tx.replica)
    assert replica.indexes.allocations(first.reservation_id) == {
        first.host: first, second.host: second,
    }


def test_only_changed_allocations_are_in_the_feed(store, nouns, lease, hosts):
    first, second = (nouns.allocation(lease, host) for host in hosts)
    put(store, lease, first, second)
    before = store.changes(0)['newest']
    put(store, lease, first, second)
    assert store.changes(0)['newest'] == before
    put(store, lease, dataclasses.replace(first, end=900), second)
    page = store.changes(before)
    assert [key for _, key, _ in page['records']] == [first.id]


@on_every_engine
def test_allocations_are_found_by_lease_and_host(store, nouns, hosts):
    early, late = nouns.lease(100, 200), nouns.lease(200, 300)
    a, b = nouns.allocation(early, hosts[0]), nouns.allocation(late, hosts[0])
    c = nouns.allocation(late, hosts[1], start=250)

    def work(tx):
        tx.put_lease(early)
        tx.put_lease(late)
        tx.put_allocations(a.reservation_id, [a])
        tx.put_allocations(b.reservation_id, [b, c])

    store.commit(work)

    def found(**kwargs):
        return [noun for noun, _ in store.allocations(**kwargs)]

    assert found() == [a, b, c]
    assert found(reservation_id=a.reservation_id) == [a]
    assert found(lease_id=late.id) == [b, c]
    assert found(host=hosts[0].uuid) == [a, b]
    assert found(host=hosts[0].uuid, lease_id=late.id) == [b]
    # The end is not part of the window.
    assert found(after=199) == [a, b, c]
    assert found(after=200) == [b, c]
    assert found(host='x') == []
