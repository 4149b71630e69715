# SPDX-License-Identifier: Apache-2.0
"""A replica fed by pages, and the ledger's own replica, are correct.

The reference is a new replica built from the tables.
"""

import dataclasses
import random

import pytest
import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.domain.allocation import Allocation
from blazar_sched.replica import accounting
from blazar_sched.replica import packing
from blazar_sched.replica import puller
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.replica import wire
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import snapshot
from tests.functional.ledger.conftest import histories
from tests.functional.ledger.conftest import on_every_engine

LAST = 1000


class Clients:
    """Random changes that a manager may make, through the given ledgers."""

    def __init__(self, seed, nouns, ledgers):
        self.random = random.Random(seed)
        self.nouns = nouns
        self.ledgers = ledgers

    def step(self):
        """Commit one to four changes, or roll them back."""
        fail = self.random.random() < 0.2
        count = self.random.randint(1, 4)

        def work(tx):
            for _ in range(count):
                self.random.choice(self.CHANGES)(self, tx)
            if fail:
                raise exception.Conflict('given up')

        try:
            self.random.choice(self.ledgers).commit(work)
        except exception.Conflict:
            assert fail

    def put_host(self, tx):
        tx.put_host(self._host())

    def _host(self):
        return self.nouns.host(
            vcpus=self.random.randint(1, 64), gpus=self.random.choice([0, 4])
        )

    def _amounts(self, vcpus):
        """The amounts include GPUs, whether the host has GPUs or not."""
        gpus = self.random.choice([0, 0, 1, 2])
        return {'VCPU': vcpus, **({'CUSTOM_GPU': gpus} if gpus else {})}

    def update_host(self, tx):
        if hosts := tx.hosts():
            host = self.random.choice(hosts)
            tx.put_host(dataclasses.replace(
                host, reservable=not host.reservable,
                inventory=self._host().inventory
            ))

    def delete_host(self, tx):
        if len(hosts := tx.hosts()) > 3:
            tx.delete_host(self.random.choice(hosts).uuid)

    def put_lease(self, tx):
        start = self.random.randrange(LAST)
        end = self.random.choice(
            [window.FOREVER, start + self.random.randint(1, LAST)]
        )
        count = self.random.randint(1, 3)
        lease = self.nouns.lease(start, end, reservations=count)
        tx.put_lease(lease)
        for held in lease.reservations:
            self._place(tx, lease, held)

    def update_lease(self, tx):
        if leases := tx.leases():
            lease = self.random.choice(leases)
            kept = lease.reservations[self.random.randint(0, 1) :]
            added = [self.nouns.reservation(lease)]
            tx.put_lease(dataclasses.replace(
                lease, start=lease.start // 2,
                reservations=(*kept, *added[len(kept) :])
            ))
            for held in tx.lease(lease.id).reservations:
                self._place(tx, tx.lease(lease.id), held)

    def open_lease(self, tx):
        """Open a lease as its start does, possibly twice."""
        if leases := tx.leases():
            for held in self.random.choice(leases).reservations:
                uuid = self.random.choice(['one', 'another'])
                tx.set_reservations_made({held.id: {'aggregate_uuid': uuid}})

    def delete_lease(self, tx):
        if leases := tx.leases():
            tx.delete_lease(self.random.choice(leases).id)

    def end_lease(self, tx):
        """End a part of a lease, as the end of the lease ends all parts."""
        if leases := tx.leases():
            ended = self.random.choice(leases).reservations[:2]
            tx.release_instances([held.id for held in ended])
            for held in ended:
                tx.set_reservations_status([held.id], 'deleted', 1)

    def _place(self, tx, lease, held):
        """Place a lease on random hosts, usually other ones than before."""
        if held.status == 'deleted':
            return
        hosts = tx.hosts()
        chosen = self.random.sample(
            hosts, self.random.randint(0, min(3, len(hosts)))
        )
        known = [a.id for a, _ in tx.allocations(reservation_id=held.id)]
        whole = self.random.random() < 0.3
        tx.put_allocations(held.id, [
            self.nouns.allocation(
                lease, host, reservation_id=held.id, whole=whole,
                amounts={} if whole else self._amounts(1 + number),
                **({'id': known[number]} if number < len(known) else {})
            )
            for number, host in enumerate(chosen)
        ])

    def put_instance(self, tx):
        if hosts := tx.hosts():
            bound = [
                r.id for lease in tx.leases() for r in lease.reservations
                if r.status != 'deleted'
            ]
            tx.put_instances([self.nouns.instance(
                self.random.choice(hosts),
                end=self.random.choice(
                    [window.FOREVER, self.random.randrange(1, LAST)]
                ),
                reservation_id=self.random.choice([None, *bound]),
                preemptible=self.random.random() < 0.2,
                amounts=self._amounts(1)
            )])

    def move_instance(self, tx):
        if instances := tx.instances():
            tx.put_instances([dataclasses.replace(
                self.random.choice(instances),
                host=self.random.choice(tx.hosts()).uuid,
                amounts=self._amounts(3)
            )])

    def delete_instance(self, tx):
        if instances := tx.instances():
            tx.delete_instances([self.random.choice(instances).uuid])

    CHANGES = (
        put_host, put_lease, put_lease, put_lease, update_lease, put_instance,
        put_instance, move_instance, delete_instance, update_host,
        delete_lease, delete_host, open_lease, end_lease,
    )  # fmt: skip


def assert_same(replica, truth):
    """Check that two replicas have the same content and the same index."""
    for name in ('revision', 'hosts', 'reservations', 'instances', 'bound'):
        assert getattr(replica, name) == getattr(truth, name), name
    for id_ in truth.reservations:
        assert replica.indexes.allocations(id_) == truth.indexes.allocations(
            id_
        )
    assert replica.indexes.extra.keys() == truth.indexes.extra.keys()
    assert_same_index(replica.indexes.main, truth.indexes.main)
    for name, index in replica.indexes.extra.items():
        assert_same_index(index, truth.indexes.extra[name])


def assert_same_index(ours, theirs):
    ours.check()
    assert sorted(ours.hosts) == sorted(theirs.hosts)
    assert len(ours) == len(theirs)
    hosts = sorted(theirs.hosts)
    for start in range(0, 2 * LAST, LAST // 20):
        windows = [(start, start + 50), (start, window.FOREVER)]
        for each in windows:
            assert ours.peak(ours.rows(hosts), *each) == theirs.peak(
                theirs.rows(hosts), *each
            )


def truth(open_ledger):
    """Return a new replica built from the tables."""
    return open_ledger().commit(lambda tx: tx.replica)


def image_by_changes(store, since, image, limit):
    """Bring `image` from `since` to the newest revision."""
    while True:
        page = wire.parse_changes(store.changes(since, limit))
        assert page.since == since
        record.merge(image, page.records)
        since = page.revision
        if since == page.newest:
            return since


def replica_of(image, revision):
    """Return a replica built from pages, as a scheduler builds it."""
    new = state.Replica(accounting.LedgerAccounting)
    new.load(revision, ((*key, data) for key, data in image.items()))
    return new


@histories(4)
def test_every_way_leads_to_the_truth(store, open_ledger, nouns, seed):
    clients = Clients(seed, nouns, [store, open_ledger()])
    image, since, truths = {}, 0, []
    for turn in range(60):
        clients.step()
        if turn % 10 == 9:
            expected = truth(open_ledger)
            truths.append(expected)
            assert_same(store.commit(lambda tx: tx.replica), expected)
            since = image_by_changes(store, since, image, limit=3)
            assert_same(replica_of(image, since), expected)
    assert_same(replica_of({}, 0), state.Replica(accounting.LedgerAccounting))
    assert any(
        any(map(each.indexes.allocations, each.reservations))
        for each in truths
    )
    assert any(each.instances for each in truths)
    assert any(r.aggregate for t in truths for r in t.reservations.values())


def test_start_that_makes_the_same_objects_again_has_no_revision(store, nouns):
    lease = nouns.lease()
    [held] = lease.reservations
    store.commit(lambda tx: tx.put_lease(lease))

    def revision(made, commit=store.commit):
        commit(lambda tx: tx.set_reservations_made({held.id: made}))
        return store.changes(0, 1)['newest']

    first = revision({'aggregate_uuid': 'one'})
    again = {'aggregate_uuid': 'one', 'aggregate_id': 2}
    assert revision(again, store.write) == first
    assert store.lease(lease.id).reservations[0].made == again
    assert revision({'aggregate_uuid': 'another'}) == first + 1


def scheduler_of(store):
    """Return a scheduler's replica of the current ledger."""
    new = state.Replica(accounting.SchedulerAccounting)
    known = store.commit(lambda tx: tx.replica)
    assert new.load(known.revision, *packing.split(known.items())) == set()
    return new


@pytest.fixture
def small_pages(monkeypatch):
    monkeypatch.setattr(puller, 'LIMIT', 3)
    monkeypatch.setattr(snapshot, 'PER_RECORD', 1)


@histories(4)
def test_a_snapshot_of_a_moving_ledger(
    store, open_ledger, nouns, small_pages, seed
):
    """Several managers respond with pages, with commits in between."""
    managers = [store, open_ledger()]
    clients = Clients(seed, nouns, managers)
    for _ in range(20):
        clients.step()
    revisions = set()

    def call(method, **kwargs):
        page = getattr(clients.random.choice(managers), method)(**kwargs)
        if method == 'snapshot':
            revisions.add(page['revision'])
            clients.step()
        return page

    pulled = puller.Puller(call, lambda: 0.0, lambda: 1.0)
    pulled.pull(0)

    assert len(revisions) > 1
    assert_same(pulled.copy.replica, scheduler_of(open_ledger()))


def test_a_reservation_that_is_over_leaves_every_copy(
    store, open_ledger, nouns, host
):
    lease = nouns.lease(reservations=2)
    over, other = lease.reservations
    follower = open_ledger()

    def end(tx):
        tx.set_reservations_status([over.id], 'deleted', 1)

    def rename(tx):
        tx.put_lease(dataclasses.replace(tx.lease(lease.id), name='renamed'))

    store.commit(
        lambda tx: tx.add_lease(lease, [nouns.allocation(lease, host)])
    )
    follower.warm()
    for work in (end, rename):
        store.commit(work)
        for copy in (
            store.commit(lambda tx: tx.replica),
            follower.commit(lambda tx: tx.replica),
            truth(open_ledger), scheduler_of(store),
        ):
            assert copy.reservations.keys() == {other.id}
            assert len(copy.indexes.main) == 0
    since = store.changes(0)['newest']
    store.commit(lambda tx: tx.delete_lease(lease.id))
    [(_, key, _)] = store.changes(since)['records']
    assert key == other.id


def count(allocations):
    if isinstance(allocations, Allocation):
        return 1
    return len(allocations[2])


@pytest.mark.parametrize('limit', [1, 2, 7, 1000])
def test_a_snapshot_is_whole_whatever_the_size_of_its_pages(
    store, nouns, host, small_pages, limit
):
    clients = Clients(5, nouns, [store])
    for _ in range(20):
        clients.step()
    items, after = [], None
    while True:
        page = wire.parse_snapshot(store.snapshot(after, limit))
        assert (page.ledger, page.after) == (store.id, after)
        records, allocations = map(list, packing.split(page.items))
        assert len(records) + sum(map(count, allocations)) <= limit
        items += page.items
        after = page.next
        if after is None:
            break
    new = state.Replica(accounting.SchedulerAccounting)

    assert new.load(page.revision, *packing.split(items)) == set()

    assert_same(new, scheduler_of(store))
    assert any(map(new.indexes.allocations, new.reservations))
    assert any(map(new.indexes.extra.owns, new.reservations))


def test_a_page_has_many_allocations(store, nouns, host):
    lease = nouns.lease(reservations=7)

    def work(tx):
        tx.put_lease(lease)
        for held in lease.reservations:
            tx.put_allocations(held.id, [
                nouns.allocation(lease, host, reservation_id=held.id)
            ])

    store.commit(work)
    page = wire.parse_snapshot(store.snapshot('allocation/', limit=1))
    [columns] = map(packing.unpack, page.items)
    assert len(columns[2]) == 7
    assert page.next is None


def test_a_page_has_no_more_records_than_was_asked_for(store, nouns, host):
    """This holds for any number of allocations outside the columns."""
    lease = nouns.lease(reservations=7)

    def work(tx):
        tx.put_lease(lease)
        for n, held in enumerate(lease.reservations):
            amounts = {'VCPU': 1, 'CUSTOM_GPU': 1} if n % 3 else {'VCPU': 1}
            tx.put_allocations(held.id, [
                nouns.allocation(
                    lease, host, reservation_id=held.id, amounts=amounts
                )
            ])

    store.commit(work)
    seen, after = [], 'allocation/'
    while after is not None:
        page = wire.parse_snapshot(store.snapshot(after, limit=2))
        _, allocations = packing.split(page.items)
        columns, *others = allocations
        assert len(others) <= 2
        seen += [*columns[2], *(noun.id for noun in others)]
        after = page.next
    held = [a.id for a, _ in store.allocations(lease_id=lease.id)]
    assert sorted(seen) == sorted(held)


def test_an_empty_ledger(store):
    page = wire.parse_snapshot(store.snapshot())
    assert (page.revision, page.items) == (0, [])
    page = wire.parse_snapshot(store.snapshot(page.next))
    assert [packing.unpack(text)[2] for text in page.items] == [[]]
    assert page.next is None
    page = wire.parse_changes(store.changes(0))
    assert (page.revision, page.records, page.newest) == (0, [], 0)


def test_a_page_has_whole_revisions_only(store, nouns, host):
    sizes = [1]
    for count in (1, 3, 1, 2):

        def work(tx, count=count):
            tx.put_lease(nouns.lease(reservations=count))

        store.commit(work)
        sizes.append(count)
    for limit in range(1, 10):
        since = 0
        while since < len(sizes):
            page = wire.parse_changes(store.changes(since, limit))
            given = sizes[since : page.revision]
            assert len(page.records) == sum(given)
            # A page has as many records as fit, but at least one.
            assert sum(given) <= limit or len(given) == 1
            if page.revision < len(sizes):
                assert sum(given) + sizes[page.revision] > limit
            since = page.revision


@on_every_engine
def test_a_revision_that_is_not_known(store, host, database):
    store.commit(lambda tx: tx.delete_host(host.uuid))
    for since in (3, 10**30):
        page = wire.parse_changes(store.changes(since))
        assert (page.revision, page.records, page.newest) == (None, [], 2)
    # The change has freed capacity.
    with database.begin() as connection:
        connection.execute(
            sa.delete(models.Change).where(models.Change.revision == 1)
        )
    assert store.changes(0)['revision'] is None
    assert store.changes(1)['revision'] == 2
    assert store.changes(2)['revision'] == 2


def test_a_replica_whose_changes_are_gone_starts_anew(
    store, open_ledger, nouns, database
):
    behind = open_ledger()
    behind.commit(lambda tx: tx.put_lease(nouns.lease()))
    clients = Clients(1, nouns, [store])
    for _ in range(10):
        clients.step()
    with database.begin() as connection:
        connection.execute(
            sa.delete(models.Change).where(models.Change.revision < 4)
        )
    assert_same(behind.commit(lambda tx: tx.replica), truth(open_ledger))


@pytest.mark.parametrize(('ask', 'field'), [
    (lambda store: store.changes(-1), 'since'),
    (lambda store: store.changes(0, 0), 'limit'),
    (lambda store: store.snapshot(None, 0), 'limit'),
    (lambda store: store.snapshot('nothing'), 'after'),
    (lambda store: store.snapshot("'; --/"), 'after'),
])
def test_a_page_that_cannot_be(store, ask, field):
    with pytest.raises(exception.InvalidInput) as refused:
        ask(store)
    assert refused.value.field == field
