# SPDX-License-Identifier: Apache-2.0
"""Only leases that are over are purged."""

import dataclasses
import uuid

import pytest
import sqlalchemy as sa

from blazar_sched.domain import states
from blazar_sched.domain.window import FOREVER
from blazar_sched.service.ledger import ledger
from blazar_sched.service.ledger import models

ENDED = 2000
DAY = 86400


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch):
    monkeypatch.setattr(ledger, 'PURGE_SLICE', 3)


@pytest.fixture
def put(store, nouns):
    """put(status, end) -> the id of a new lease."""

    def put(status=states.LEASE_TERMINATED, end=ENDED):
        noun = nouns.lease(start=1000, end=end, status=status)
        store.commit(lambda tx: tx.put_lease(noun))
        return noun.id

    return put


def there(store):
    return {noun.id for noun in store.leases()}


def test_leases_that_ended_before_are_deleted_in_slices(store, put):
    kept = {
        put(end=ENDED + 1), put(states.LEASE_ERROR, end=ENDED + 1),
        put(states.LEASE_ACTIVE), put(states.LEASE_PENDING),
    }
    # These are inconsistencies of events, because no manager ran the leases.
    faults = store.check()
    old = [put() for _ in range(6)] + [put(states.LEASE_ERROR)]
    assert store.count_over(ENDED + 1)['lease'] == 7
    store.commit(
        lambda tx: tx.put_key('project', 'key', old[0], 'digest', ENDED)
    )

    assert list(store.purge(ENDED + 1)) == [3, 3, 1]
    assert store.lease_by_key('project', 'key') == (None, 'digest')

    assert there(store) == kept
    assert not there(store) & set(old)
    assert list(store.purge(ENDED + 1)) == []
    # The parts of the leases are deleted too.
    assert store.check() == faults


def test_a_slice_has_few_reservations(store, nouns):
    def reserved(count):
        lease = nouns.lease(
            start=1000, end=ENDED, status=states.LEASE_TERMINATED
        )
        [one] = lease.reservations
        return dataclasses.replace(lease, reservations=tuple(
            dataclasses.replace(one, id=str(uuid.uuid4()))
            for _ in range(count)
        ))

    for count in (2, 2, 5, 1):
        store.commit(lambda tx, n=count: tx.put_lease(reserved(n)))
    sizes = []
    real = store.commit

    def commit(work):
        before = len(store.leases())
        result = real(work)
        sizes.append(before - len(store.leases()))
        return result

    store.commit = commit
    assert sum(store.purge(ENDED + 1)) == 4
    # No two of the leases with two or five reservations go together.
    assert max(sizes) <= 2 and len(sizes) >= 4


def test_lease_that_ended_at_the_given_time_stays(store, put):
    lease_id = put()
    assert list(store.purge(ENDED)) == []
    assert there(store) == {lease_id}


def test_replicas_hear_nothing_of_leases_that_are_over(store, nouns, host):
    """A lease in ERROR still has its records."""
    over, broken = (
        nouns.lease(start=1000, end=ENDED, status=status)
        for status in (states.LEASE_TERMINATED, states.LEASE_ERROR)
    )

    def work(tx):
        tx.add_leases([over, broken], [nouns.allocation(broken, host)])
        for held in over.reservations:
            tx.set_reservations_status([held.id], 'deleted', 1)

    store.commit(work)
    since = store.changes(0)['newest']
    assert list(store.purge(ENDED + 1)) == [2]
    assert {key for _, key, _ in store.changes(since)['records']} > {
        broken.reservations[0].id
    }
    assert over.reservations[0].id not in str(store.changes(since))
    assert store.changes(since)['newest'] == since + 1


def test_purge_forgets_the_hosts_that_a_lease_left_long_ago(store, nouns):
    first, second, third = hosts = [nouns.host() for _ in range(3)]
    lease = nouns.lease(ENDED - 100, FOREVER)
    [reservation] = lease.reservations

    def work(tx):
        for each in hosts:
            tx.put_host(each)
        tx.put_lease(lease)

    store.commit(work)
    for host, now in ((first, 0), (second, ENDED - 1), (third, ENDED)):
        held = dataclasses.replace(
            nouns.allocation(lease, host), start=lease.start, end=FOREVER
        )
        store.commit(lambda tx, held=held, now=now: tx.put_allocations(
            reservation.id, [held], now
        ))

    def left():
        return {
            a.host for a, _ in store.allocations(lease_id=lease.id, past=True)
        }

    assert left() == {each.uuid for each in hosts}
    assert store.count_over(ENDED)['past_allocation'] == 1
    assert list(store.purge(ENDED)) == []
    assert left() == {second.uuid, third.uuid}


def test_what_ended_besides_leases_is_deleted_in_slices(
    store, nouns, monkeypatch
):
    """No commit waits for the deletion of more than a slice."""
    lease = nouns.lease(ENDED - 100, FOREVER)
    [reservation] = lease.reservations
    store.commit(lambda tx: tx.put_lease(lease))
    past = models.PastAllocation
    store.write(lambda tx: tx.run(
        lambda connection: connection.execute(sa.insert(past), [
            {
                'id': f'{n}', 'reservation_id': reservation.id, 'host': 'host',
                'start': 0, 'end': ENDED, 'amounts': {}, 'whole': True,
            }
            for n in range(7)
        ])
    ))
    left = []
    write = store.write

    def counted(work):
        result = write(work)
        left.append(len(store.allocations(past=True)))
        return result

    monkeypatch.setattr(store, 'write', counted)
    assert list(store.purge(ENDED + 1)) == []
    assert left == [4, 1, 0]


def test_two_concurrent_purges_delete_each_lease_once(
    store, open_ledger, put, monkeypatch
):
    """One purge meets leases that the other has just deleted."""
    for _ in range(3):
        put()
    first = store.purge(ENDED + 1)
    other = open_ledger()
    commit = store.commit

    def late(work):
        assert list(other.purge(ENDED + 1)) == [3]
        return commit(work)

    monkeypatch.setattr(store, 'commit', late)
    assert list(first) == []
    assert there(store) == set()
