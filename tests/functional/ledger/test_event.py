# SPDX-License-Identifier: Apache-2.0
"""Events are due in order, and run under a claim that one manager holds."""

import dataclasses
import functools
import threading
import uuid

import pytest

from blazar_sched.domain.event import Claim
from tests.functional.ledger.conftest import on_every_engine
from tests.waiting import at_once


@pytest.fixture
def lease(store, nouns):
    new = nouns.lease(100, 200)
    store.commit(lambda tx: tx.put_lease(new))
    return new


def claim(store, event, owner='me', until=160, seen=None):
    """Return the new claim, None if it was refused."""
    new = Claim(owner, str(uuid.uuid4()), until)
    taken = store.write(lambda tx: tx.claim_event(event.id, new, seen))
    return new if taken else None


def renew(store, tokens, until):
    return store.write(lambda tx: tx.renew_claims(tokens, until))


def finish(store, event, held, status='DONE'):
    return store.write(
        lambda tx: tx.finish_event(event.id, held.token, status)
    )


def status(store, event):
    (found,) = (
        e for e in store.lease(event.lease_id).events if e.id == event.id
    )
    return found.status


@on_every_engine
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
    start, end, before_end = ending.events
    assert [e for e, _ in store.due_events(200)] == [
        start, before_end, end, starting.events[0],
    ]


def test_an_event_is_due_from_its_time_on(store, lease):
    start, end = lease.events
    assert store.next_event()[0] == 100
    assert store.due_events(99) == []
    assert store.due_events(100) == [(start, None)]
    assert store.due_events(200) == [(start, None), (end, None)]


@on_every_engine
def test_empty_ledger_has_no_due_event(store):
    assert store.due_events(10**9) == []
    assert store.next_event()[0] is None


def test_event_in_progress_is_listed_with_its_claim(store, lease):
    """This holds for any time: clocks of managers may differ."""
    start, end = lease.events
    held = claim(store, start)
    ((seen, with_),) = store.due_events(0)
    assert (seen.id, seen.status, with_) == (start.id, 'IN_PROGRESS', held)
    assert store.next_event()[0] == end.time
    finish(store, start, held)
    assert store.due_events(100) == []


def test_due_events_are_one_query(store, nouns, queries):
    def work(tx):
        for _ in range(300):
            tx.add_lease(nouns.lease(), [])

    store.commit(work)
    queries.clear()
    assert len(store.due_events(1000)) == 600
    assert len([q for q in queries if q.startswith('SELECT')]) == 1


@on_every_engine
def test_one_of_two_managers_gets_the_claim(store, open_ledger, lease):
    start, end = lease.events
    other = open_ledger()
    held = claim(store, start, 'one')
    assert held
    assert claim(other, start, 'two') is None
    assert claim(other, end, 'two')
    assert finish(store, start, held)
    assert claim(other, start, 'two') is None
    assert claim(other, start, 'two', seen=held) is None
    assert status(store, start) == 'DONE'


@on_every_engine
def test_a_claim_is_taken_over_as_it_was_seen(store, open_ledger, lease):
    start, _ = lease.events
    other = open_ledger()
    stopped = claim(store, start, 'one')
    for wrong in (
        dataclasses.replace(stopped, until=159),
        dataclasses.replace(stopped, token='x'),
    ):
        assert claim(other, start, 'two', seen=wrong) is None
    taken = claim(other, start, 'two', seen=stopped)
    assert taken
    # The first manager resumes.
    assert not finish(store, start, stopped)
    assert renew(store, [stopped.token], 1000) == set()
    assert claim(store, start, 'one', seen=stopped) is None
    assert store.due_events(0)[0][1] == taken
    assert finish(other, start, taken)
    assert not finish(other, start, taken)


@on_every_engine
def test_a_renewed_claim_is_not_taken_over(store, open_ledger, lease):
    start, end = lease.events
    first, second = claim(store, start, 'one'), claim(store, end, 'one')
    lost = claim(store, end, 'two', seen=second)
    tokens = [first.token, second.token]
    assert renew(store, tokens, 300) == {first.token}
    assert renew(store, tokens, 300) == {first.token}
    assert renew(store, [], 300) == set()
    assert claim(open_ledger(), start, 'two', seen=first) is None
    renewed = dataclasses.replace(first, until=300)
    assert [c for _, c in store.due_events(0)] == [renewed, lost]
    assert claim(open_ledger(), start, 'two', seen=renewed)


def test_an_event_can_be_given_back(store, lease):
    start, _ = lease.events
    held = claim(store, start)
    assert finish(store, start, held, 'UNDONE')
    assert store.due_events(100) == [(start, None)]
    assert not finish(store, start, held)
    assert claim(store, start, seen=held) is None
    assert claim(store, start)


def test_an_update_of_the_lease_keeps_the_claim(store, lease):
    start, _ = lease.events
    held = claim(store, start)

    def rename(tx):
        now = tx.lease(lease.id)
        tx.put_lease(dataclasses.replace(
            now, name='renamed',
            events=(
                now.events[0], dataclasses.replace(now.events[1], time=300),
            )
        ))

    store.commit(rename)
    assert store.due_events(0)[0][1] == held
    assert finish(store, start, held)


@on_every_engine
def test_an_event_that_is_due_anew_has_no_claim(store, lease):
    start, _ = lease.events
    held = claim(store, start)
    store.commit(lambda tx: tx.put_lease(lease))
    assert store.due_events(100) == [(start, None)]
    assert not finish(store, start, held)
    assert store.check() == []


def test_a_deleted_lease_takes_its_claim_along(store, lease):
    start, _ = lease.events
    held = claim(store, start)
    store.commit(lambda tx: tx.delete_lease(lease.id))
    assert not finish(store, start, held)


@on_every_engine
def test_a_claim_and_an_update_do_not_undo_each_other(
    store, open_ledger, lease
):
    """The claim waits for an update that has read the event before."""
    start, _ = lease.events
    other = open_ledger()
    claims = []
    claimer = threading.Thread(
        target=lambda: claims.append(claim(other, start, 'two'))
    )

    def work(tx):
        held = tx.lease(lease.id)
        if not claimer.ident:
            claimer.start()
            claimer.join(0.2)
        tx.put_lease(dataclasses.replace(
            held, start=150,
            events=(
                dataclasses.replace(held.events[0], time=150), held.events[1],
            )
        ))

    store.commit(work)
    claimer.join(60)
    (held,) = claims
    now = store.lease(lease.id).events[0]
    assert (now.time, now.status) == (150, 'IN_PROGRESS')
    assert finish(other, start, held)


@on_every_engine
@pytest.mark.parametrize('after', [None, 'one that stands still'])
def test_many_claimers_one_claim(store, open_ledger, lease, after):
    start, _ = lease.events
    seen = claim(store, start, after) if after else None
    managers = [open_ledger() for _ in range(12)]
    claims = at_once(*(
        functools.partial(claim, each, start, seen=seen) for each in managers
    ))
    assert len(claims) == 12
    assert len([c for c in claims if c]) == 1


def occupy(tx, nouns, host, *leases):
    for lease in leases:
        tx.add_lease(lease, [nouns.allocation(lease, host)])


@on_every_engine
def test_a_host_is_left_before_it_is_entered(store, nouns, host):
    ending, starting = nouns.lease(100, 200), nouns.lease(200, 300)
    store.commit(lambda tx: occupy(tx, nouns, host, ending, starting))
    assert store.is_blocked(starting.id)
    assert not store.is_blocked(ending.id)
    # This holds also while the end of the lease is being done.
    held = claim(store, ending.events[1])
    assert store.is_blocked(starting.id)
    finish(store, ending.events[1], held)
    assert not store.is_blocked(starting.id)


def test_neighbours_in_time_do_not_block_each_other(store, nouns, host):
    one, other = nouns.lease(100, 200), nouns.lease(150, 250)
    store.commit(lambda tx: occupy(tx, nouns, host, one, other))
    assert not store.is_blocked(one.id)
    assert not store.is_blocked(other.id)


def test_another_host_blocks_nobody(store, nouns, host):
    ending, starting = nouns.lease(100, 200), nouns.lease(200, 300)

    def work(tx):
        occupy(tx, nouns, host, ending)
        occupy(tx, nouns, tx.put_host(nouns.host()), starting)

    store.commit(work)
    assert not store.is_blocked(starting.id)
    assert not store.is_blocked('x')


def test_to_be_blocked_is_one_query(store, nouns, host, queries):
    leases = [nouns.lease(n, n + 1) for n in range(100)]
    store.commit(lambda tx: occupy(tx, nouns, host, *leases))
    queries.clear()
    assert store.is_blocked(leases[-1].id)
    assert len([q for q in queries if q.startswith('SELECT')]) == 1
