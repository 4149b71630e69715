# SPDX-License-Identifier: Apache-2.0
"""Equal requests of many replicas share one query of the changes."""

import pytest

from blazar_sched.domain import exception
from blazar_sched.service.manager import feed


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def looked(store, monkeypatch):
    """The queries of the ledger's changes."""
    looked = []
    changes = store.changes

    def counted(since, limit):
        looked.append(since)
        return changes(since, limit)

    monkeypatch.setattr(store, 'changes', counted)
    return looked


@pytest.fixture
def commit(store, nouns):
    return lambda: store.commit(lambda tx: tx.put_host(nouns.host()))


@pytest.fixture
def fed(store, clock):
    return feed.Feed(store, clock)


def test_equal_requests_share_one_query(store, commit, looked, fed):
    commit()
    truth = store.changes(0, 1000)
    looked.clear()
    assert all(fed.changes(0, 1000) == truth for _ in range(100))
    assert looked == [0]


def test_each_question_has_its_own_answer(store, commit, looked, fed):
    for _ in range(3):
        commit()
    for _ in range(2):
        for since in range(4):
            assert fed.changes(since, 1000)['since'] == since
        assert fed.changes(0, 1)['revision'] == 1
    assert looked == [0, 1, 2, 3, 0]


def test_a_commit_is_never_missed(store, commit, fed):
    """Another manager may commit: each request checks the revision."""
    for n in range(20):
        commit()
        assert fed.changes(n, 1000) == store.changes(n, 1000)
        assert fed.changes(0, 1000)['revision'] == n + 1


def test_a_commit_between_the_two_looks_keeps_nothing_wrong(
    store, commit, fed, monkeypatch
):
    commit()
    changes = store.changes

    def and_then_one_comes(since, limit):
        commit()
        monkeypatch.setattr(store, 'changes', changes)
        return changes(since, limit)

    monkeypatch.setattr(store, 'changes', and_then_one_comes)
    assert fed.changes(0, 1000)['newest'] == 2
    assert fed.changes(0, 1000) == changes(0, 1000)


def test_pages_are_kept_for_a_moment_only(commit, looked, fed, clock):
    commit()
    for _ in range(3):
        fed.changes(0, 1000)
        fed.changes(0, 1000)
        clock.now += 2 * feed.KEPT
    assert looked == [0, 0, 0]


def test_only_so_many_pages_are_kept(commit, looked, fed):
    commit()
    for limit in range(1, 50):
        fed.changes(0, limit)
    assert len(fed._kept.pages) == feed.MAX_PAGES


def test_refused_request_is_refused_again(commit, fed):
    commit()
    for _ in range(2):
        with pytest.raises(exception.InvalidInput):
            fed.changes(-1, 1000)
