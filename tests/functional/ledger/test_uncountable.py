# SPDX-License-Identifier: Apache-2.0
"""Amounts that no timeline index can count block only their host."""

import dataclasses
import random
import time

import pytest
import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.domain.inventory import Inventory
from blazar_sched.replica import puller
from blazar_sched.replica import record
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger.tx import PlacingTx
from tests.functional.ledger import test_feed
from tests.functional.ledger.conftest import histories

GPU = 'CUSTOM_GPU'
VCPU = inventory.VCPU
MAX_AMOUNT = 2**31 - 1
FIGURES = [0, 1, 8, 2**29, 2**30, MAX_AMOUNT, 2**31, 10**12]
RATIOS = [0.0001, 1.0, 16.0, 9999.0, 3.4e38, float('inf')]
TIMES = [0, 100, window.TIME_LIMIT - 1, window.FOREVER]


class Absurd:
    """Random changes that a manager may make, with absurd amounts."""

    def __init__(self, seed, nouns, ledgers):
        self.random = random.Random(seed)
        self.nouns = nouns
        self.ledgers = ledgers
        self.refused = self.promised = 0

    def step(self):
        changes = self.random.choices(self.CHANGES, k=self.random.choice(
            [1, 1, 2, 3]
        ))

        def work(tx):
            for change in changes:
                change(self, tx)

        try:
            self.random.choice(self.ledgers).commit(work)
        except exception.Uncountable:
            self.refused += 1
        else:
            self.promised += Absurd.put_lease in changes

    def _inventory(self):
        return Inventory(
            *self.random.choices(FIGURES, k=2), self.random.choice(RATIOS)
        )

    def _amounts(self):
        names = [*inventory.RESOURCE_CLASSES, GPU]
        return {
            name: self.random.choice(FIGURES)
            for name in self.random.sample(names, 2)
        }

    def _window(self):
        start, end = sorted(self.random.sample(TIMES, 2))
        return {'start': start, 'end': end}

    def put_host(self, tx):
        tx.put_host(self.nouns.host(inventory=self._inventories()))

    def _inventories(self):
        names = [*inventory.RESOURCE_CLASSES, GPU]
        return {
            name: self._inventory() for name in self.random.sample(names, 3)
        }

    def update_host(self, tx):
        for host in self.random.sample(tx.hosts(), min(1, len(tx.hosts()))):
            tx.put_host(
                dataclasses.replace(host, inventory=self._inventories())
            )

    def delete_host(self, tx):
        for host in tx.hosts()[3:]:
            tx.delete_host(host.uuid)

    def put_lease(self, tx):
        hosts = tx.hosts()
        if not hosts:
            return
        lease = self.nouns.lease(**self._window())
        on = self.random.sample(hosts, self.random.randint(1, len(hosts)))
        tx.add_lease(lease, [
            self.nouns.allocation(lease, host, amounts=self._amounts())
            for host in on
        ])

    def delete_lease(self, tx):
        for lease in tx.leases(limit=1):
            tx.delete_lease(lease.id)

    def put_instance(self, tx):
        if not tx.hosts():
            return
        bound = [r.id for lease in tx.leases() for r in lease.reservations]
        tx.put_instances([self.nouns.instance(
            self.random.choice(tx.hosts()), amounts=self._amounts(),
            end=self.random.choice(TIMES),
            preemptible=self.random.random() < 0.3,
            reservation_id=self.random.choice([None, *bound]),
        )])

    def delete_instance(self, tx):
        for instance in tx.instances()[:2]:
            tx.delete_instances([instance.uuid])

    CHANGES = (
        put_host, update_host, delete_host, put_lease, put_lease, delete_lease,
        put_instance, put_instance, put_instance, delete_instance,
    )  # fmt: skip


def pulled(ledger):
    def call(method, **kwargs):
        return getattr(ledger, method)(**kwargs)

    return puller.Puller(call, time.monotonic, lambda: 60.0)


def assert_alike(replica, truth):
    """Check that replicas agree on content, closed hosts and left-out records.
    """
    for name in 'revision', 'hosts', 'reservations', 'instances':
        assert getattr(replica, name) == getattr(truth, name), name
    assert replica.left_out.closed == truth.left_out.closed
    assert replica.indexes.extra.keys() == truth.indexes.extra.keys()
    for name in (None, *truth.indexes.extra):
        ours, theirs = (
            each.indexes.main if name is None else each.indexes.extra[name]
            for each in (replica, truth)
        )
        ours.check()
        hosts = sorted(set(theirs.hosts) - truth.left_out.closed)
        for start in TIMES[:-1]:
            assert ours.peak(
                ours.rows(hosts), start, window.FOREVER
            ) == theirs.peak(theirs.rows(hosts), start, window.FOREVER)
    nothing = (0,) * len(inventory.RESOURCE_CLASSES)
    closed = replica.indexes.main.rows(sorted(truth.left_out.closed))
    assert not any(
        replica.indexes.main.fits(closed, 0, window.FOREVER, nothing)
    )


@histories(6)
def test_every_replica_can_follow(store, open_ledger, nouns, seed):
    other = open_ledger()
    clients = Absurd(seed, nouns, [store, other])
    scheduler = pulled(store)
    for turn in range(40):
        clients.step()
        if turn % 4 == 3:
            scheduler.pull(100)
        if turn % 10 == 9:
            new = pulled(other)
            new.pull(100)
            scheduler.pull(100)
            assert_alike(scheduler.copy.replica, new.copy.replica)
            assert_alike(
                store.commit(lambda tx: tx.replica),
                test_feed.truth(open_ledger),
            )
    assert clients.refused or clients.promised


def is_closed(replica, host):
    nothing = (0,) * len(inventory.RESOURCE_CLASSES)
    rows = replica.indexes.main.rows([host.uuid])
    return not replica.indexes.main.fits(rows, 0, window.FOREVER, nothing)[0]


@pytest.mark.parametrize('held', [
    Inventory(400_000, 0, 9999.0), Inventory(MAX_AMOUNT, 0, 16.0),
    Inventory(10, 20, 1.0), Inventory(10, 20, float('inf')),
], ids=str)
def test_any_capacity_of_a_host(store, open_ledger, host, held):
    """Placement does not have the limits of the index."""
    scheduler = pulled(store)
    scheduler.pull(1)
    store.commit(lambda tx: tx.put_host(dataclasses.replace(
        host, inventory={**host.inventory, inventory.DISK_GB: held, GPU: held}
    )))
    scheduler.pull(1)
    assert scheduler.copy.replica.revision == 2
    for ledger in store, open_ledger():
        assert ledger.commit(lambda tx: len(tx.hosts())) == 1
    store.commit(lambda tx: tx.put_host(host))


def promise(store, nouns, host, amount):
    lease = nouns.lease()
    store.commit(lambda tx: tx.add_lease(
        lease, [nouns.allocation(lease, host, amounts={VCPU: amount})]
    ))
    return lease


def test_a_sum_beyond_counting_is_refused(store, open_ledger, nouns, host):
    first = promise(store, nouns, host, MAX_AMOUNT)
    revision = store.changes(0)['newest']
    with pytest.raises(exception.Uncountable, match=host.uuid):
        promise(store, nouns, host, 1)

    def work(tx):
        lease = nouns.lease()
        tx.add_lease(lease, [nouns.allocation(lease, host)])

    with pytest.raises(exception.Uncountable):
        store.dry_run(work)
    with pytest.raises(exception.Uncountable):
        store.dry_run(lambda tx: store.dry_run(work, within=tx))
    assert store.leases() == [first]
    assert store.changes(0)['newest'] == revision
    store.commit(lambda tx: tx.delete_lease(first.id))
    promise(open_ledger(), nouns, host, 1)


@pytest.fixture
def unchecked(monkeypatch):
    """Makes ledgers commit without a check, as former versions did."""
    monkeypatch.setattr(PlacingTx, 'require_countable', lambda tx: None)


def test_a_ledger_that_holds_such_a_sum(
    store, open_ledger, nouns, host, unchecked, caplog
):
    """Replicas leave the allocations out, log that, and close the host."""
    scheduler = pulled(store)
    first = promise(store, nouns, host, MAX_AMOUNT)
    scheduler.pull(1)
    second = promise(store, nouns, host, 2)

    caplog.clear()
    replicas = [
        store.commit(lambda tx: tx.replica),
        test_feed.truth(open_ledger),
    ]
    for _ in range(2):
        scheduler.pull(1)
    replicas.append(scheduler.copy.replica)
    new = pulled(store)
    new.pull(1)
    replicas.append(new.copy.replica)

    assert {each.revision for each in replicas} == {3}
    assert all(len(each.left_out) == 1 for each in replicas)
    assert all(is_closed(each, host) for each in replicas)
    told = [r for r in caplog.records if 'left out until' in r.getMessage()]
    # The first replica is excluded: it logged that with its commit.
    assert len(told) == 3
    for lease in first, second:
        store.commit(lambda tx, gone=lease: tx.delete_lease(gone.id))
    for each in scheduler, new:
        each.pull(1)
    assert not any(len(each.left_out) for each in replicas[:1] + [
        scheduler.copy.replica, new.copy.replica
    ])
    assert not is_closed(store.commit(lambda tx: tx.replica), host)


@pytest.mark.parametrize('spoil', [
    {'traits': 7}, {'inventory': {VCPU: {'amount': 1}}},
])
def test_a_record_of_another_version(
    store, open_ledger, database, nouns, host, spoil
):
    """The host of the record is known, and closed until it is rewritten."""
    scheduler = pulled(store)
    scheduler.pull(1)
    _, _, data = record.encode(host)
    with database.begin() as connection:
        connection.execute(sa.update(models.Ledger).values(revision=2))
        connection.execute(sa.insert(models.Change).values(
            revision=2, position=0, kind=record.HOST, key=host.uuid,
            data=data | spoil,
        ))
        if 'inventory' in spoil:
            connection.execute(sa.update(models.Host).values(
                inventory=spoil['inventory']
            ))

    scheduler.pull(1)
    assert is_closed(scheduler.copy.replica, host)
    assert is_closed(store.commit(lambda tx: tx.replica), host)
    if 'inventory' in spoil:
        assert is_closed(test_feed.truth(open_ledger), host)
        new = pulled(store)
        new.pull(1)
        assert is_closed(new.copy.replica, host)
        # Its row is spoiled, too, so that no update can rewrite it.
        return
    store.commit(lambda tx: tx.put_host(
        dataclasses.replace(nouns.host(), uuid=host.uuid, id=host.id)
    ))
    scheduler.pull(1)
    assert not is_closed(scheduler.copy.replica, host)
    assert not is_closed(store.commit(lambda tx: tx.replica), host)


def test_no_reader_sees_changes_that_are_not_committed(
    store, nouns, host, monkeypatch
):
    """No change is visible before COMMIT, or after a COMMIT that failed."""
    seen = []
    dialect = store._to_write.dialect

    def fail(connection):
        seen.append(len(store.replica.indexes.main))
        raise ValueError('no COMMIT')

    store.warm()
    with monkeypatch.context() as patch:
        patch.setattr(dialect, 'do_commit', fail)
        with pytest.raises(ValueError, match='no COMMIT'):
            promise(store, nouns, host, 1)

    assert seen == [0]
    assert store.read_replica(lambda replica: len(replica.indexes.main)) == 0
    promise(store, nouns, host, 1)
    assert store.read_replica(lambda replica: len(replica.indexes.main)) == 1
