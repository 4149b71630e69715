# SPDX-License-Identifier: Apache-2.0
"""The check of the ledger finds every inconsistency, whatever its cause."""

import dataclasses

import pytest
import sqlalchemy as sa

from blazar_sched.domain import event
from blazar_sched.domain import window
from tests.functional.ledger.conftest import on_every_engine


@pytest.fixture
def plant(store, nouns, host):
    """Write allocations on the host, one lease each, without placing."""

    def put(*fields):
        def work(tx):
            for each in fields:
                lease = nouns.lease(
                    each.get('start', 100), each.get('end', 200)
                )
                allocation = nouns.allocation(lease, host, **each)
                tx.add_lease(lease, [allocation])

        store.commit(work)

    return put


WHOLE = {'amounts': {}, 'whole': True}


def test_a_full_host_is_no_fault(store, plant):
    # Eight in total; the second half begins when the first half ends.
    plant(
        {'vcpus': 3, 'start': 100, 'end': 200},
        {'vcpus': 5, 'start': 0, 'end': 300},
        {'vcpus': 3, 'start': 200, 'end': 300},
        {**WHOLE, 'start': 300, 'end': 400},
        {**WHOLE, 'start': 400, 'end': 500},
    )
    assert store.check() == []


def test_check_finds_an_overbooked_host(store, plant, host):
    plant(
        {'vcpus': 8, 'start': 100, 'end': 200},
        {'vcpus': 1, 'start': 199, 'end': 300},
    )
    found = [f'host {host.uuid}: 9 of 8 VCPU allocated at 199']
    assert store.check() == store.check(199) == found
    # An allocation that is over may have grown when there was room for it.
    assert store.check(200) == []


def test_every_class_is_looked_at(store, plant, host):
    # The host has (65536 - 512) * 1.5 MB and 1000 GB.
    plant({'amounts': {'MEMORY_MB': 97537, 'DISK_GB': 1001, 'CUSTOM_GPU': 1}})
    assert store.check() == [
        f'host {host.uuid}: 1 of 0 CUSTOM_GPU allocated at 100',
        f'host {host.uuid}: 1001 of 1000 DISK_GB allocated at 100',
        f'host {host.uuid}: 97537 of 97536 MEMORY_MB allocated at 100',
    ]


@pytest.mark.parametrize('other', [WHOLE, {'vcpus': 1}])
def test_a_whole_host_is_for_one(store, plant, host, other):
    plant({**WHOLE, 'start': 0, 'end': 101}, {**other, 'start': 100})
    (fault,) = store.check()
    assert fault.startswith(f'host {host.uuid}: 2 allocations at 100')


def test_many_at_one_instant(store, plant, host):
    """An end makes room for a start at the same time, in any order."""
    plant(
        *({'start': 100, 'end': 200} for _ in range(8)),
        *({'start': 200, 'end': 300} for _ in range(9)),
        *({'start': 300, 'end': 400} for _ in range(8)),
    )
    assert store.check() == [f'host {host.uuid}: 9 of 8 VCPU allocated at 200']


@on_every_engine
@pytest.mark.parametrize(('table', 'lost', 'children'), [
    ('lease', 'id', ['reservation', 'event', 'event', 'idempotency_key']),
    ('reservation', 'id', ['allocation', 'instance']),
    ('host', 'uuid', ['allocation', 'instance']),
])
def test_orphans(store, nouns, host, database, table, lost, children):
    lease = nouns.lease()
    (held,) = lease.reservations

    def work(tx):
        tx.put_lease(lease)
        tx.put_allocations(held.id, [nouns.allocation(lease, host)])
        tx.put_instances([nouns.instance(host, reservation_id=held.id)])
        tx.put_key('project', 'key', lease.id, 'digest', 0)

    store.commit(work)
    keys_off = {
        # SQLite does not enforce foreign keys by default.
        'sqlite': 'SELECT 1',
        'mysql': 'SET SESSION foreign_key_checks = 0',
        'postgresql': 'SET session_replication_role = replica',
    }
    with database.begin() as connection:
        connection.exec_driver_sql(keys_off[database.dialect.name])
        gone = connection.execute(
            sa.text(f'SELECT {lost} FROM {table}')
        ).scalar()
        connection.execute(sa.text(f'DELETE FROM {table}'))
    faults = store.check()
    assert sorted(fault.split()[0] for fault in faults) == sorted(children)
    assert all(
        fault.endswith(f'there is no {table} {gone}') for fault in faults
    )


@pytest.fixture
def lease(store, nouns, host):
    """An active lease without any inconsistency."""
    new = nouns.lease(status='ACTIVE')
    start, end = new.events
    new = dataclasses.replace(
        new,
        reservations=(
            dataclasses.replace(new.reservations[0], status='active'),
        ),
        events=(
            dataclasses.replace(start, status='DONE'),
            nouns.event(new, event.BEFORE_END_LEASE, 150), end,
        )
    )
    allocation = nouns.allocation(new, host)
    store.commit(lambda tx: tx.add_lease(new, [allocation]))
    assert store.check() == []
    return new


# Inconsistencies of an active lease from 100 to 200, and their messages.
BROKEN = {
    'no start event': (
        "DELETE FROM event WHERE event_type = 'start_lease'",
        'lease {lease}: ACTIVE, and has no start event',
    ),
    'no end event': (
        "DELETE FROM event WHERE event_type = 'end_lease'",
        'lease {lease}: ACTIVE, and has no end event',
    ),
    'two events of a kind': (
        "UPDATE event SET event_type = 'end_lease', time = 200"
        " WHERE event_type = 'before_end_lease'",
        'lease {lease}: 2 events end_lease',
    ),
    'never to start': (
        "UPDATE lease SET status = 'STARTING'",
        'lease {lease}: STARTING, though its event is over',
    ),
    'never to end': (
        "UPDATE lease SET status = 'TERMINATING'",
        "UPDATE event SET status = 'DONE' WHERE event_type = 'end_lease'",
        'lease {lease}: TERMINATING, though its event is over',
    ),
    'an event outside': (
        "UPDATE event SET time = 201 WHERE event_type = 'before_end_lease'",
        'event {before_end}: before_end_lease at 201, its lease is from 100'
        ' to 200',
    ),
    'an end that is not the end': (
        "UPDATE event SET time = 199 WHERE event_type = 'end_lease'",
        'event {end}: end_lease at 199, its lease is from 100 to 200',
    ),
    'in progress without a claim': (
        "UPDATE event SET status = 'IN_PROGRESS', owner = 'x', token = 'y'"
        " WHERE event_type = 'end_lease'",
        'event {end}: in progress without a claim',
    ),
    'a claim too many': (
        "UPDATE event SET token = 'y' WHERE event_type = 'end_lease'",
        'event {end}: UNDONE, and has a claim',
    ),
    'a reservation that has outlived its lease': (
        'DELETE FROM allocation', "UPDATE lease SET status = 'TERMINATED'",
        'reservation {reservation}: active, its lease is TERMINATED',
    ),
    'an allocation that has outlived its lease': (
        "UPDATE lease SET status = 'TERMINATED'",
        "UPDATE reservation SET status = 'deleted'",
        'allocation {allocation}: left, its reservation is deleted and its'
        ' lease TERMINATED',
    ),
    'an allocation that has outlived its reservation': (
        "UPDATE event SET status = 'DONE' WHERE event_type = 'end_lease'",
        "UPDATE reservation SET status = 'deleted'",
        'allocation {allocation}: left, its reservation is deleted and its'
        ' lease ACTIVE',
    ),
    'an allocation before': (
        'UPDATE allocation SET start = 99',
        'allocation {allocation}: from 99 to 200, its lease is from 100 to'
        ' 200',
    ),
    'a revision missing': (
        'DELETE FROM ledger_change WHERE revision = 2',
        'changes: of the revisions 1 to 3 there are only 2',
    ),
    'a revision cut': (
        'DELETE FROM ledger_change WHERE revision = 2 AND position = 0',
        'changes: revision 2 is not whole',
    ),
    'a revision of the future': (
        'UPDATE ledger SET revision = 2',
        'ledger: at revision 2, the newest change is of 3',
    ),
}


@on_every_engine
@pytest.mark.parametrize('name', BROKEN)
def test_check_finds_each_broken_row(store, nouns, database, lease, name):
    store.commit(lambda tx: tx.put_host(nouns.host()))
    *statements, said = BROKEN[name]
    start, before_end, end = lease.events
    ((allocation, _),) = store.allocations()
    with database.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    assert store.check() == [
        said.format(
            lease=lease.id, before_end=before_end.id, end=end.id,
            reservation=lease.reservations[0].id, allocation=allocation.id,
        )
    ]


def test_check_accepts_leases_in_every_status(store, nouns, host):
    """Leases in transitional statuses, and leases that are long over."""
    late = nouns.lease(1, 2)
    endless = nouns.lease(end=window.FOREVER)
    endless = dataclasses.replace(endless, events=endless.events[:1])
    deleting = nouns.lease(status='DELETING')
    deleting = dataclasses.replace(
        deleting, events=(nouns.event(deleting, event.END_LEASE, 150),)
    )
    # The lease was over before it could start: its end event is pending.
    missed = nouns.lease(1, 2, status='ACTIVE')
    missed = dataclasses.replace(
        missed,
        reservations=(
            dataclasses.replace(missed.reservations[0], status='deleted'),
        ),
        events=(
            dataclasses.replace(missed.events[0], status='DONE'),
            missed.events[1],
        ),
    )

    def work(tx):
        for each in (late, endless, deleting):
            tx.add_lease(each, [nouns.allocation(each, host)])
        tx.add_lease(missed, ())

    store.commit(work)
    assert store.check() == []
    store.prune(0)
    assert store.check() == []


def test_the_rescan_costs_the_same_queries_however_much(
    store, nouns, host, queries
):
    def fill(count):
        def work(tx):
            for number in range(count):
                lease = nouns.lease(number, number + 1)
                tx.add_lease(lease, [nouns.allocation(lease, host)])

        store.commit(work)

    counts = []
    for count in (1, 300):
        fill(count)
        queries.clear()
        assert store.check() == []
        counts.append(len(queries))
    assert counts[0] == counts[1]
