# SPDX-License-Identifier: Apache-2.0
"""Events are due in order, and done under a claim that one holds."""

import dataclasses
import threading

import pytest


@pytest.fixture
def lease(store, nouns):
    new = nouns.lease(100, 200)
    store.commit(lambda tx: tx.put_lease(new))
    return new


def claim(store, event, owner, now, until):
    return store.commit(
        lambda tx: tx.claim_event(event.id, owner, now, until), placing=False
    )


def finish(store, event, token, status='DONE'):
    return store.commit(
        lambda tx: tx.finish_event(event.id, token, status), placing=False
    )


def test_at_one_instant_what_ends_makes_room(store, nouns):
    ending = nouns.lease(100, 200)
    ending = dataclasses.replace(
        ending,
        events=(*ending.events, nouns.event(ending, 'before_end_lease', 200)),
    )
    starting, later = nouns.lease(200, 300), nouns.lease(201, 300)

    def work(tx):
        for lease in (later, starting, ending):
            tx.put_lease(lease)

    store.commit(work)
    due = store.due_events(200)
    assert [(e.event_type, owner) for e, owner in due] == [
        ('start_lease', ending),
        ('before_end_lease', ending),
        ('end_lease', ending),
        ('start_lease', starting),
    ]


def test_an_event_is_due_from_its_time_on(store, lease):
    start, end = lease.events
    assert store.next_event_time() == 100
    assert store.due_events(99) == []
    assert store.due_events(100) == [(start, lease)]
    assert [e for e, _ in store.due_events(200)] == [start, end]


def test_nothing_is_due(store):
    assert store.due_events(10**9) == []
    assert store.next_event_time() is None


def test_one_of_two_claimers_gets_it(store, open_ledger, lease):
    start, end = lease.events
    other = open_ledger()
    token = claim(store, start, 'one', now=100, until=160)
    assert token
    assert claim(other, start, 'two', now=100, until=160) is None
    assert claim(other, end, 'two', now=100, until=160)
    assert store.due_events(159) == []
    assert finish(store, start, token)
    assert claim(other, start, 'two', now=1000, until=2000) is None
    assert store.lease(lease.id).events[0].status == 'DONE'


def test_a_claim_that_ran_out_is_taken_over(store, open_ledger, lease):
    start, _ = lease.events
    other = open_ledger()
    stopped = claim(store, start, 'one', now=100, until=160)
    assert store.next_event_time() == 160
    assert claim(other, start, 'two', now=159, until=300) is None
    assert [e.id for e, _ in other.due_events(160)] == [start.id]
    token = claim(other, start, 'two', now=160, until=300)
    assert token not in (None, stopped)
    # The first one comes to life again.
    assert not finish(store, start, stopped)
    assert store.lease(lease.id).events[0].status == 'IN_PROGRESS'
    assert finish(other, start, token)
    assert not finish(other, start, token)


def test_an_event_can_be_given_back(store, lease):
    start, _ = lease.events
    token = claim(store, start, 'one', now=100, until=160)
    assert finish(store, start, token, 'UNDONE')
    assert [e.id for e, _ in store.due_events(100)] == [start.id]
    assert not finish(store, start, token)
    assert claim(store, start, 'two', now=100, until=160)


def test_an_update_of_the_lease_keeps_the_claim(store, lease):
    start, end = lease.events
    token = claim(store, start, 'one', now=100, until=160)

    def rename(tx):
        held = tx.lease(lease.id)
        tx.put_lease(
            dataclasses.replace(
                held,
                name='renamed',
                events=(
                    held.events[0],
                    dataclasses.replace(held.events[1], time=300),
                ),
            )
        )

    store.commit(rename)
    assert claim(store, start, 'two', now=159, until=300) is None
    assert finish(store, start, token)


def test_a_deleted_lease_takes_its_claim_along(store, lease):
    start, _ = lease.events
    token = claim(store, start, 'one', now=100, until=160)
    store.commit(lambda tx: tx.delete_lease(lease.id))
    assert not finish(store, start, token)


def test_a_claim_and_an_update_do_not_undo_each_other(
    store, open_ledger, lease
):
    """The claim waits for an update that has read the event before."""
    start, _ = lease.events
    other = open_ledger()
    tokens = []
    claimer = threading.Thread(
        target=lambda: tokens.append(
            claim(other, start, 'two', now=100, until=160)
        )
    )

    def work(tx):
        held = tx.lease(lease.id)
        if not claimer.ident:
            claimer.start()
            claimer.join(0.2)
        tx.put_lease(
            dataclasses.replace(
                held,
                start=150,
                events=(
                    dataclasses.replace(held.events[0], time=150),
                    held.events[1],
                ),
            )
        )

    store.commit(work)
    claimer.join(60)
    (token,) = tokens
    now = store.lease(lease.id).events[0]
    assert (now.time, now.status) == (150, 'IN_PROGRESS')
    assert finish(other, start, token)


def test_many_claimers_one_token(store, open_ledger, lease):
    start, _ = lease.events
    ready = threading.Barrier(12)
    tokens = []

    def claimer():
        mine = open_ledger()
        ready.wait(60)
        tokens.append(claim(mine, start, 'me', now=100, until=160))

    threads = [threading.Thread(target=claimer) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(tokens) == 12
    assert len([t for t in tokens if t]) == 1
