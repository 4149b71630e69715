# SPDX-License-Identifier: Apache-2.0
"""Old changes are pruned without harm or delay to others."""

import pytest

from blazar_sched.service.ledger import ledger
from tests.functional.ledger.conftest import on_every_engine
from tests.functional.ledger.conftest import on_servers
from tests.waiting import at_once


@pytest.fixture
def fill(store, nouns):
    """Commit revisions of one lease each."""

    def commit(count, by=store):
        for _ in range(count):
            by.commit(lambda tx: tx.put_lease(nouns.lease()))

    return commit


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch):
    monkeypatch.setattr(ledger, 'SLICE', 3)


def test_the_newest_are_kept(store, fill):
    fill(10)
    assert store.prune(4) == 6
    assert store.changes(5)['revision'] is None
    page = store.changes(6)
    assert (page['revision'], page['newest']) == (10, 10)
    assert store.prune(4) == 0
    fill(1)
    assert store.prune(4) == 1
    assert store.check() == []


def test_prune_keeps_all_of_few_changes(store, fill):
    assert store.prune(10) == 0
    fill(3)
    assert store.prune(3) == store.prune(10) == 0
    assert store.changes(0)['revision'] == 3


def test_revisions_continue_after_all_changes_are_pruned(
    store, fill, open_ledger, nouns
):
    fill(4)
    assert store.prune(0) == 4
    page = store.changes(4)
    assert (page['revision'], page['newest']) == (4, 4)
    # The revisions continue from there.
    fill(1)
    assert store.changes(4)['revision'] == 5
    assert store.check() == []


@on_every_engine
def test_two_prune_while_others_commit(store, open_ledger, fill):
    """Exactly the old changes are deleted, and no manager fails."""
    fill(30)

    def prune():
        mine = open_ledger()
        return sum(mine.prune(5) for _ in range(5))

    first, second, _ = at_once(prune, prune, lambda: fill(20))
    store.prune(5)
    page = store.changes(45)
    assert (page['revision'], page['newest']) == (50, 50)
    assert store.changes(44)['revision'] is None
    assert first + second >= 25
    assert store.check() == []


@on_servers
def test_no_commit_waits_for_a_prune(store, fill, open_ledger):
    """No commit waits for it, even if it stops in the middle."""
    fill(10)
    other = open_ledger()
    with other._to_write.connect() as connection:
        ledger.change.prune(connection, 5, 3)
        fill(1)
        assert store.changes(9)['revision'] == 11
