# SPDX-License-Identifier: Apache-2.0
"""Leases are read as they were written, with all their parts."""

import dataclasses

import pytest
import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.domain.demand import Hosts
from tests.functional.ledger.conftest import on_every_engine


def put(store, *leases):
    def work(tx):
        for lease in leases:
            tx.put_lease(lease)

    store.commit(work)


def occupy(store, instance, *allocations):
    """Write an instance, and the only allocation of each reservation."""

    def work(tx):
        for allocation in allocations:
            tx.put_allocations(allocation.reservation_id, [allocation])
        tx.put_instances([instance])

    store.commit(work)


@on_every_engine
def test_a_lease_comes_back_whole(store, nouns):
    lease = nouns.lease(
        end=window.FOREVER, reservations=3,
        name='späť 租 🙂 "; DROP TABLE lease; --', degraded=True,
        trust_id='trust', updated_at=window.TIME_LIMIT,
    )
    whole = nouns.reservation(
        lease,
        demand=Hosts(
            1, 2, resource_properties='["=", …]', before_end='snapshot'
        ),
        missing_resources=True, created_at=5,
    )
    lease = dataclasses.replace(
        lease, reservations=(whole, *lease.reservations)
    )
    put(store, lease)
    assert store.lease(lease.id) == lease
    assert store.leases() == [lease]


@on_every_engine
def test_a_lease_that_is_split_shares_what_it_had(store, nouns, host):
    """The split lease keeps its data, and replicas learn its reservations."""
    old = nouns.lease(reservations=2)
    put(store, old)
    kept, gone = old.reservations
    held = [
        nouns.allocation(old, host, reservation_id=gone.id),
        nouns.allocation(old, host, reservation_id=kept.id),
    ]
    bound = nouns.instance(host, reservation_id=gone.id)
    occupy(store, bound, *held)
    other = nouns.lease()
    other = dataclasses.replace(
        other, reservations=(dataclasses.replace(gone, lease_id=other.id),)
    )
    rest = dataclasses.replace(old, reservations=(kept,))

    def split(tx):
        tx.split_lease(other)
        tx.put_lease(rest)

    store.commit(split)
    assert store.lease(old.id) == rest
    assert store.lease(other.id) == other
    assert [
        [a.id for a, _ in store.allocations(lease_id=lease.id)]
        for lease in (other, rest)
    ] == [[allocation.id] for allocation in held]
    replica = store.replica
    assert replica.reservations[gone.id].lease_id == other.id
    assert replica.instances[bound.uuid].reservation_id == gone.id
    assert store.check() == []


@on_every_engine
def test_an_update_leaves_exactly_what_was_put(store, nouns, host):
    old = nouns.lease(reservations=2)
    other = nouns.lease()
    put(store, old, other)
    kept, dropped = old.reservations
    bound = nouns.instance(host, reservation_id=dropped.id)
    on_kept = nouns.allocation(old, host)
    on_dropped = nouns.allocation(old, host, reservation_id=dropped.id)
    occupy(store, bound, on_kept, on_dropped)
    new = dataclasses.replace(
        old, name='renamed', end=300, status='ACTIVE',
        reservations=(
            nouns.reservation(old), dataclasses.replace(kept, status='active'),
        ),
        events=(
            dataclasses.replace(old.events[1], time=300),
            nouns.event(old, 'before_end_lease', 250),
        )
    )
    put(store, new)
    assert store.leases() == [new, other]
    assert store.allocations() == [(on_kept, old.id)]
    # The instance still exists: it counts by itself now.
    assert store.instances() == [
        dataclasses.replace(bound, reservation_id=None)
    ]


@on_every_engine
def test_a_deleted_lease_is_gone_with_all_it_owned(store, nouns, host):
    lease, other = nouns.lease(reservations=2), nouns.lease()
    put(store, lease, other)
    mine, theirs = nouns.allocation(lease, host), nouns.allocation(other, host)
    bound = nouns.instance(host, reservation_id=lease.reservations[0].id)
    occupy(store, bound, mine, theirs)
    store.commit(lambda tx: tx.delete_lease(lease.id))
    assert store.leases() == [other]
    assert store.allocations() == [(theirs, other.id)]
    assert [e.lease_id for e, _ in store.due_events(1000)] == [other.id] * 2
    assert store.instances() == [
        dataclasses.replace(bound, reservation_id=None)
    ]
    assert store.check() == []
    with pytest.raises(exception.LeaseNotFound):
        store.commit(lambda tx: tx.delete_lease(lease.id))


@on_every_engine
def test_another_project_does_not_find_it(store, nouns):
    mine, theirs = nouns.lease(), nouns.lease(project_id='other')
    put(store, mine, theirs)
    assert store.owned_lease(mine.id, 'project') == mine
    assert store.lease(mine.id) == mine
    assert store.leases('project') == [mine]
    with pytest.raises(exception.LeaseNotFound) as other:
        store.owned_lease(theirs.id, 'project')
    with pytest.raises(exception.LeaseNotFound) as unknown:
        store.owned_lease(mine.id[::-1], 'project')
    assert str(other.value).replace(theirs.id, '') == str(
        unknown.value
    ).replace(mine.id[::-1], '')


@on_every_engine
def test_no_other_text_finds_it(store, nouns):
    id_ = 'abcdefab-0000-0000-0000-00000000000f'
    put(store, nouns.lease(id=id_))
    for asked in (
        id_.upper(), id_ + ' ', id_ + '\0', id_[:-1] + '%', '', '\ud800',
        'x' * 1_000_000,
    ):
        with pytest.raises(exception.LeaseNotFound):
            store.lease(asked)
        assert store.allocations(lease_id=asked) == []


@pytest.mark.row('F86')
def test_a_list_costs_the_same_queries_however_long(store, nouns, queries):
    put(store, nouns.lease())
    queries.clear()
    store.leases()
    few = len(queries)
    put(store, *(nouns.lease(reservations=2) for _ in range(600)))
    queries.clear()
    assert len(store.leases()) == 601
    assert len(queries) == few


def test_a_new_lease_comes_back_whole(store, nouns, host):
    """This holds also for a lease that is added, not replaced."""
    lease = nouns.lease(reservations=3)
    kept = [
        nouns.allocation(lease, host, reservation_id=r.id)
        for r in lease.reservations
    ]
    store.commit(lambda tx: tx.add_lease(lease, iter(kept)))
    assert store.lease(lease.id) == lease
    found = store.allocations(lease_id=lease.id)
    assert sorted(found, key=str) == sorted(
        ((a, lease.id) for a in kept), key=str
    )
    replica = store.commit(lambda tx: tx.replica)
    assert set(replica.reservations) == {r.id for r in lease.reservations}
    assert replica.indexes.main.peak(None, 100, 200)[0] == 3
    with pytest.raises(sa.exc.IntegrityError):
        store.commit(lambda tx: tx.add_lease(lease, []))


def test_a_lease_without_allocations(store, nouns):
    lease = nouns.lease(reservations=0)
    store.commit(lambda tx: tx.add_lease(lease, []))
    assert store.leases() == [lease]


@on_every_engine
def test_a_new_lease_is_one_statement_a_table(store, nouns, host, queries):
    """The ledger's row is locked meanwhile: nothing is read."""
    other = store.commit(lambda tx: tx.put_host(nouns.host()))
    lease = nouns.lease(reservations=3)
    kept = [
        nouns.allocation(lease, on, reservation_id=r.id)
        for r in lease.reservations
        for on in (host, other)
    ]
    queries.clear()
    store.commit(lambda tx: tx.add_lease(lease, kept))
    words = [' '.join(q.split()[:3]).replace('`', '') for q in queries]
    # PostgreSQL takes the time limits of a transaction at its beginning.
    begins = 'BEGIN', 'SET LOCAL'
    assert [w for w in words if not w.startswith(begins)] == [
        'UPDATE ledger SET', 'INSERT INTO lease', 'INSERT INTO reservation',
        'INSERT INTO event', 'INSERT INTO allocation',
        'INSERT INTO ledger_change', 'UPDATE writer SET',
    ]


def test_the_status_of_nothing(store):
    with pytest.raises(exception.LeaseNotFound):
        store.commit(lambda tx: tx.set_lease_status('x', 'ACTIVE', 1))
    with pytest.raises(exception.NotFound):
        store.commit(lambda tx: tx.set_reservations_status(['x'], 'active', 1))


def test_more_reservations_take_no_more_statements(store, nouns, queries):
    """All other commits wait for each statement of a start."""
    counts = []
    for number in (2, 20):
        lease = nouns.lease(reservations=number)
        put(store, lease)
        ids = [r.id for r in lease.reservations]

        def work(tx, ids=ids):
            tx.set_reservations_made({id_: {'a': id_} for id_ in ids})
            tx.set_reservations_status(ids, 'active', 1)
            tx.set_reservations_status(ids, 'deleted', 2)

        queries.clear()
        store.commit(work)
        counts.append(len(queries))
        assert [
            (r.made, r.status) for r in store.lease(lease.id).reservations
        ] == [({'a': id_}, 'deleted') for id_ in ids]
    assert counts[0] == counts[1]


def test_more_servers_of_a_host_take_no_more_statements(
    store, nouns, host, queries
):
    counts = []
    for number in (2, 20):
        new = [nouns.instance(host) for _ in range(number)]
        for end in (100, 200):
            queries.clear()
            store.commit(lambda tx, new=new, end=end: tx.put_instances(
                [dataclasses.replace(each, end=end) for each in new]
            ))
            counts.append(len(queries))
    assert counts[:2] == counts[2:]
    assert {each.end for each in store.instances()} == {200}


@on_every_engine
def test_flags_that_are_not_named_stay(store, nouns):
    lease = nouns.lease(degraded=True)
    put(store, lease)
    (held,) = lease.reservations

    def work(tx):
        tx.set_lease_status(lease.id, 'ACTIVE', 5)
        tx.set_reservations_status([held.id], 'active', 6)
        tx.set_reservations_made({held.id: {}}, {held.id: True})

    store.write(work)
    store.write(lambda tx: tx.set_reservations_made({held.id: {'a': 1}}))
    store.write(lambda tx: tx.set_reservations_status([held.id], 'error', 7))
    now = store.lease(lease.id)
    assert (now.status, now.degraded) == ('ACTIVE', True)
    assert now.updated_at == 5
    (held,) = now.reservations
    assert (held.status, held.updated_at) == ('error', 7)
    assert held.missing_resources and held.made == {'a': 1}


@on_every_engine
def test_whole_hosts_are_those_of_the_projects_open_leases(store, nouns):
    leases = [
        nouns.lease(), nouns.lease(), nouns.lease(status='DELETING'),
        nouns.lease(project_id='other'),
    ]

    def work(tx):
        hosts = [tx.put_host(nouns.host()) for _ in (*leases, 'in part')]
        whole = [
            nouns.allocation(lease, host, amounts={}, whole=True)
            for lease, host in zip(leases, hosts, strict=False)
        ]
        in_part = nouns.allocation(leases[0], hosts[-1])
        tx.add_leases(leases, [*whole, in_part])
        return hosts

    hosts = store.commit(work)
    assert sorted(store.whole_hosts('project')) == sorted(
        (lease.id, host.uuid)
        for lease, host in zip(leases[:2], hosts, strict=False)
    )
    assert store.check() == []
    for lease in leases:
        assert store.lease(lease.id) == lease
