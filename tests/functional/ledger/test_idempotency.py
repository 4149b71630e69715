# SPDX-License-Identifier: Apache-2.0
"""An idempotency key creates one lease, and outlives the lease for a while."""

import functools

import pytest
import sqlalchemy as sa

from tests.functional.ledger.conftest import on_every_engine
from tests.waiting import at_once

NOW = 1_900_000_000


def create(store, nouns, key, project='project', digest='digest'):
    """Create a lease as a manager does; return the id of the key's lease."""

    def work(tx):
        known = tx.lease_by_key(project, key)
        if known is not None:
            return known
        lease = nouns.lease(project_id=project)
        tx.add_lease(lease, [])
        tx.put_key(project, key, lease.id, digest, NOW)
        return lease.id, digest

    return store.commit(work)


def test_a_key_leads_to_its_lease(store, nouns):
    assert store.lease_by_key('project', 'key') is None
    made = create(store, nouns, 'key')
    assert create(store, nouns, 'key', digest='other') == made
    assert store.lease_by_key('project', 'key') == made
    assert [lease.id for lease in store.leases()] == [made[0]]


@on_every_engine
def test_keys_are_a_projects_own_and_exact(store, nouns):
    made = {
        create(store, nouns, key, project)
        for key in ('key', 'Key', 'kéy'.encode().hex(), 'x' * 255)
        for project in ('project', 'other')
    }
    assert len(made) == len(store.leases()) == 8


@on_every_engine
def test_a_key_is_kept_for_a_while_after_its_lease(store, nouns):
    id_, _ = create(store, nouns, 'key')
    store.write(lambda tx: tx.drop_keys(NOW + 1, 10))
    assert store.lease_by_key('project', 'key') == (id_, 'digest')
    store.commit(lambda tx: tx.delete_lease(id_))
    store.write(lambda tx: tx.drop_keys(NOW, 10))
    assert store.lease_by_key('project', 'key') == (None, 'digest')
    store.write(lambda tx: tx.drop_keys(NOW + 1, 10))
    assert store.lease_by_key('project', 'key') is None
    assert create(store, nouns, 'key')[0] != id_
    assert store.check() == []


@on_every_engine
def test_a_key_is_never_given_to_another_lease(store, nouns):
    create(store, nouns, 'key')
    other = nouns.lease()

    def work(tx):
        tx.add_lease(other, [])
        tx.put_key('project', 'key', other.id, 'digest', NOW)

    with pytest.raises(sa.exc.IntegrityError):
        store.commit(work)
    assert len(store.leases()) == 1


@on_every_engine
def test_one_of_eight_concurrent_creates_makes_the_lease(
    store, open_ledger, nouns
):
    """Each client is a manager of its own."""
    managers = [open_ledger() for _ in range(8)]
    made = at_once(*(
        functools.partial(create, each, nouns, 'key') for each in managers
    ))
    assert len(set(made)) == len(store.leases()) == 1
