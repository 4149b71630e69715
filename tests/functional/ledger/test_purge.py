# SPDX-License-Identifier: Apache-2.0
"""Only leases that are over are purged."""

import pytest

from blazar_sched.domain import states
from blazar_sched.service.ledger import ledger

ENDED = 2000


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


def test_what_has_ended_before_goes_in_slices(store, put):
    kept = {
        put(end=ENDED + 1), put(states.LEASE_ERROR),
        put(states.LEASE_ACTIVE), put(states.LEASE_PENDING),
    }
    # These are inconsistencies of events, because no manager ran the leases.
    faults = store.check()
    old = [put() for _ in range(7)]

    assert list(store.purge(ENDED + 1)) == [3, 3, 1]

    assert there(store) == kept
    assert not there(store) & set(old)
    assert list(store.purge(ENDED + 1)) == []
    # The parts of the leases are deleted too.
    assert store.check() == faults


def test_what_has_ended_at_that_moment_stays(store, put):
    lease_id = put()
    assert list(store.purge(ENDED)) == []
    assert there(store) == {lease_id}


def test_two_at_once(store, open_ledger, put, monkeypatch):
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
    assert list(first) == [0]
    assert there(store) == set()
