# SPDX-License-Identifier: Apache-2.0
"""No message of the manager is longer than a broker accepts."""

import dataclasses
import inspect
import json
from unittest import mock

import pytest

from blazar_sched.replica import wire
from blazar_sched.service.manager import endpoint as manager_endpoint
from blazar_sched.service.manager.endpoint import Endpoint
from blazar_sched.service.upkeep import host as manager_host
from blazar_sched.service.upkeep.host import Hosts
from tests.functional.ledger import test_uncountable
from tests.functional.ledger.conftest import on_every_engine

LENGTH = 20_000


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Pages have room for two long items."""
    monkeypatch.setattr(wire, 'MAX_BYTES', 3 * LENGTH)


@pytest.fixture
def endpoint(store):
    """The read-only part of the manager's end point."""
    hosts = object.__new__(Hosts)
    hosts._ledger, hosts._clock = store, lambda: 0
    parts = dict.fromkeys(inspect.signature(Endpoint).parameters, mock.Mock())
    own = {'ledger': store, 'hosts': hosts, 'parts': ()}
    return Endpoint(**{**parts, **own})


def pages(ask):
    """Request all pages; return all items, and the lengths of the pages."""
    page = ask()
    items, lengths = page['items'], [len(json.dumps(page))]
    while page['next'] is not None:
        page = ask(marker=page['next'])
        assert page['items']
        items += page['items']
        lengths.append(len(json.dumps(page)))
    return items, lengths


def long_host(nouns):
    return dataclasses.replace(
        nouns.host(), capabilities={'note': 'x' * LENGTH}
    )


def test_leases(store, endpoint, nouns):
    leases = [nouns.lease(user_id='x' * 200, name='x' * 200, reservations=40)
              for _ in range(20)]
    for lease in leases:
        store.commit(lambda tx, new=lease: tx.put_lease(new))
    items, lengths = pages(lambda **page: endpoint.list_leases(None, **page))
    assert [each['id'] for each in items] == [each.id for each in leases]
    assert len(lengths) > 5
    assert max(lengths) < 4 * LENGTH


@on_every_engine
def test_a_limit_of_leases(store, endpoint, nouns, monkeypatch):
    monkeypatch.setattr(manager_endpoint, 'MAX_ITEMS', 2)
    for _ in range(3):
        store.commit(lambda tx: tx.put_lease(nouns.lease()))
    assert len(endpoint.list_leases(None, limit=1)['items']) == 1
    page = endpoint.list_leases(None, limit=3)
    assert len(page['items']) == 2
    page = endpoint.list_leases(None, limit=3, marker=page['next'])
    assert (len(page['items']), page['next']) == (1, None)


@on_every_engine
def test_hosts(store, endpoint, nouns):
    hosts = [store.commit(lambda tx: tx.put_host(long_host(nouns)))
             for _ in range(7)]
    items, lengths = pages(lambda **page: endpoint.list_hosts(**page))
    assert [each['id'] for each in items] == [each.id for each in hosts]
    assert max(lengths) < 4 * LENGTH
    assert len(lengths) == 4


@on_every_engine
def test_allocations(store, endpoint, nouns, monkeypatch):
    """The allocations of a host may continue on the next page."""
    monkeypatch.setattr(manager_host, 'ALLOCATIONS', 3)
    monkeypatch.setattr(manager_host, 'HOSTS', 2)
    hosts = [store.commit(lambda tx: tx.put_host(nouns.host()))
             for _ in range(5)]
    expected = {host.id: [] for host in hosts}
    for number, host in enumerate(hosts):
        for start in range(number * 2):
            lease = nouns.lease(start=start)
            store.commit(lambda tx, new=lease, on=host: tx.add_lease(
                new, [nouns.allocation(new, on)]
            ))
            expected[host.id].append(lease.id)

    items, _ = pages(lambda **page: endpoint.list_allocations(**page))

    assert all(len(each['reservations']) <= 3 for each in items)
    found = {}
    for each in items:
        found.setdefault(each['host_id'], []).extend(
            held['lease_id'] for held in each['reservations']
        )
    assert found == expected
    [one] = endpoint.list_allocations(host_id=hosts[1].id)['items']
    assert len(one['reservations']) == 2
    last = pages(lambda **page: endpoint.list_allocations(
        host_id=hosts[4].id, **page
    ))[0]
    assert [len(each['reservations']) for each in last] == [3, 3, 2]


@on_every_engine
def test_changes_and_snapshots(store, nouns):
    """A commit that is longer than a page reaches the replicas too."""
    scheduler = test_uncountable.pulled(store)
    store.commit(lambda tx: tx.put_host(nouns.host()))
    scheduler.pull(1)
    for _ in range(5):
        store.commit(lambda tx: tx.put_host(long_host(nouns)))
    page = store.changes(1)
    assert page['revision'] == 3
    assert len(json.dumps(page)) < 4 * LENGTH

    scheduler.pull(1)
    assert scheduler.copy.replica.revision == 6

    store.commit(lambda tx: [tx.put_host(long_host(nouns)) for _ in range(9)])
    assert store.changes(6)['revision'] is None
    scheduler.pull(1)
    assert scheduler.copy.replica.revision == 7
    assert len(scheduler.copy.replica.hosts) == 15
    after, lengths = None, []
    while True:
        page = store.snapshot(after)
        lengths.append(len(json.dumps(page)))
        after = page['next']
        if after is None:
            break
    assert max(lengths) < 4 * LENGTH


def test_many_short_records_in_one_commit(store, nouns):
    """The records are more than requested, and fit in one page."""
    store.commit(lambda tx: [tx.put_host(nouns.host()) for _ in range(9)])
    assert store.changes(0, limit=3)['revision'] == 1
