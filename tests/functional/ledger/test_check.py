# SPDX-License-Identifier: Apache-2.0
"""The rescan finds what must never be, however it came about."""

import pytest
import sqlalchemy as sa


@pytest.fixture
def plant(store, nouns, host):
    """Puts allocations on the host, one lease each, unasked."""

    def put(*fields):
        def work(tx):
            for each in fields:
                lease = nouns.lease()
                allocation = nouns.allocation(lease, host, **each)
                tx.put_lease(lease)
                tx.put_allocations(allocation.reservation_id, [allocation])

        store.commit(work)

    return put


WHOLE = {'amounts': {}, 'whole': True}


def test_a_full_host_is_no_fault(store, plant):
    # Eight in all; the second half begins when the first ends.
    plant(
        {'vcpus': 3, 'start': 100, 'end': 200},
        {'vcpus': 5, 'start': 0, 'end': 300},
        {'vcpus': 3, 'start': 200, 'end': 300},
        {**WHOLE, 'start': 300, 'end': 400},
        {**WHOLE, 'start': 400, 'end': 500},
    )
    assert store.check() == []


def test_one_too_many(store, plant, host):
    plant(
        {'vcpus': 8, 'start': 100, 'end': 200},
        {'vcpus': 1, 'start': 199, 'end': 300},
    )
    assert store.check() == [
        f'host {host.uuid}: 9 of 8 VCPU allocated at 199'
    ]


def test_every_class_is_looked_at(store, plant, host):
    # (65536 - 512) * 1.5 MB and 1000 GB are there.
    plant({'amounts': {'MEMORY_MB': 97537, 'DISK_GB': 1001}})
    assert store.check() == [
        f'host {host.uuid}: 97537 of 97536 MEMORY_MB allocated at 100',
        f'host {host.uuid}: 1001 of 1000 DISK_GB allocated at 100',
    ]


@pytest.mark.parametrize('other', [WHOLE, {'vcpus': 1}])
def test_a_whole_host_is_for_one(store, plant, host, other):
    plant({**WHOLE, 'start': 0, 'end': 101}, {**other, 'start': 100})
    (fault,) = store.check()
    assert fault.startswith(f'host {host.uuid}: 2 allocations at 100')


@pytest.mark.parametrize(
    ('table', 'lost', 'children'),
    [
        ('lease', 'id', ['reservation', 'event', 'event']),
        ('reservation', 'id', ['allocation', 'instance']),
        ('host', 'uuid', ['allocation', 'instance']),
    ],
)
def test_orphans(store, nouns, host, database, table, lost, children):
    lease = nouns.lease()
    (held,) = lease.reservations

    def work(tx):
        tx.put_lease(lease)
        tx.put_allocations(held.id, [nouns.allocation(lease, host)])
        tx.put_instance(nouns.instance(host, reservation_id=held.id))

    store.commit(work)
    keys_off = {
        # SQLite has them off unless asked.
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
