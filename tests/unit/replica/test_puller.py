# SPDX-License-Identifier: Apache-2.0
"""Whatever the wire does, the replica is right or says that it is not."""

import itertools

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import pytest

from blazar_sched.replica import puller
from blazar_sched.replica import record


class Wire:
    """Calls the ledger, and does to an answer what a test wants done."""

    def __init__(self, ledger):
        self.ledger = ledger
        self.asked = []
        self.tampering = None

    def call(self, method, **kwargs):
        self.asked.append(method)
        if self.tampering is not None:
            return self.tampering(method, kwargs)
        return getattr(self.ledger, method)(**kwargs)


class Clock:
    def __init__(self):
        self.at = 1000.0

    def __call__(self):
        return self.at


@pytest.fixture
def wire(ledger):
    return Wire(ledger)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def pulled(wire, clock):
    return puller.Puller(wire.call, clock)


def image_of(replica):
    return {(kind, key): data for kind, key, data in replica.records()}


def small_pages(monkeypatch, limit=2):
    monkeypatch.setattr(puller, 'LIMIT', limit)


def fill(ledger, make, hosts=5):
    for n in range(hosts):
        ledger.commit(make.host(f'h{n}'))
        ledger.commit(
            make.reservation(f'r{n}'),
            make.allocation(f'a{n}', f'h{n}', reservation_id=f'r{n}'),
        )


def test_first_pull_takes_a_snapshot(pulled, ledger, wire, clock, make):
    fill(ledger, make)

    pulled.pull(0)

    assert image_of(pulled.copy.replica) == ledger.image
    assert pulled.copy.replica.revision == ledger.newest
    assert pulled.copy.fresh_at == clock.at
    assert wire.asked == ['snapshot', 'changes']


def test_next_pull_takes_only_changes(pulled, ledger, wire, make):
    fill(ledger, make)
    pulled.pull(0)
    replica = pulled.copy.replica
    wire.asked.clear()

    ledger.commit(make.host('h9'), gone=[(record.ALLOCATION, 'a0')])
    pulled.pull(0)

    assert pulled.copy.replica is replica
    assert image_of(replica) == ledger.image
    assert wire.asked == ['changes']


def test_many_pages(pulled, ledger, make, monkeypatch):
    small_pages(monkeypatch)
    fill(ledger, make)
    pulled.pull(0)
    fill(ledger, make, 9)
    pulled.pull(0)

    assert image_of(pulled.copy.replica) == ledger.image
    assert pulled.copy.replica.revision == ledger.newest


def test_revision_longer_than_a_page(pulled, ledger, make, monkeypatch):
    small_pages(monkeypatch)
    pulled.pull(0)
    ledger.commit(*(make.host(f'h{n}') for n in range(7)))

    pulled.pull(0)

    assert len(pulled.copy.replica.hosts) == 7


def test_commits_between_the_pages_of_a_snapshot(
    pulled, ledger, wire, make, monkeypatch
):
    small_pages(monkeypatch)
    fill(ledger, make)
    fresh = itertools.count(100)

    def tampering(method, kwargs):
        answer = getattr(ledger, method)(**kwargs)
        if method == 'snapshot':
            n = next(fresh)
            # The allocation's page comes before its host's, and a host that
            # a page has shown goes.
            ledger.commit(
                make.host(f'h{n}'),
                make.allocation(f'a{n}', f'h{n}', reservation_id=f'r{n}'),
            )
            ledger.commit(gone=[
                (record.ALLOCATION, f'a{n - 100}'),
                (record.HOST, f'h{n - 100}'),
            ])
        return answer

    wire.tampering = tampering
    pulled.pull(0)

    assert image_of(pulled.copy.replica) == ledger.image


def test_forgotten_revision_needs_a_snapshot(pulled, ledger, wire, make):
    fill(ledger, make)
    pulled.pull(0)
    before = pulled.copy.replica
    ledger.commit(make.host('h9'))
    ledger.pruned = ledger.newest
    wire.asked.clear()

    pulled.pull(0)

    assert pulled.copy.replica is not before
    assert image_of(pulled.copy.replica) == ledger.image
    assert wire.asked == ['changes', 'snapshot', 'changes']


def test_ledger_set_back_needs_a_snapshot(pulled, ledger, make):
    fill(ledger, make)
    pulled.pull(0)
    del ledger.revisions[3:]
    ledger.image.clear()
    for records in ledger.revisions:
        record.merge(ledger.image, records)

    pulled.pull(0)

    assert image_of(pulled.copy.replica) == ledger.image


def test_another_ledger_needs_a_snapshot(pulled, ledger, make):
    fill(ledger, make)
    pulled.pull(0)
    # As many revisions, of another history.
    ledger.id = 'another'
    ledger.image = {}
    ledger.revisions = [[]] * ledger.newest

    pulled.pull(0)

    assert pulled.copy.ledger == 'another'
    assert image_of(pulled.copy.replica) == {}


GARBAGE = {
    'other version': lambda page: page | {'version': page['version'] + 1},
    'no object': lambda page: 'hello',
    'none': lambda page: None,
    'no records': lambda page: page | {'records': None},
    'damaged': lambda page: page | {'records': ['dGltZWxpbmU=']},
    'another question': lambda page: page | {'since': page['since'] + 1},
    'nowhere': lambda page: page | {
        'revision': page['since'], 'newest': page['since'] + 1, 'records': [],
    },
    'unknown kind': lambda page: page | {'records': [['planet', 'x', {}]]},
    'unknown field': lambda page: page | {'records': [['host', 'x', {}]]},
    'text for a number': lambda page: page | {
        'records': [['instance', 'x', {
            'uuid': 'x', 'host': 'h0', 'project_id': 'p', 'end': 'soon',
            'amounts': {'VCPU': 1},
        }]]
    },
    'list for an object': lambda page: page | {
        'records': [['instance', 'x', {
            'uuid': 'x', 'host': 'h0', 'project_id': 'p', 'amounts': [1],
        }]]
    },
}


@pytest.mark.parametrize('spoil', GARBAGE.values(), ids=GARBAGE)
def test_garbage_makes_it_stale_until_a_snapshot(
    pulled, ledger, wire, make, spoil
):
    fill(ledger, make)
    pulled.pull(0)
    ledger.commit(make.host('h9'))
    wire.tampering = lambda method, kwargs: spoil(
        getattr(ledger, method)(**kwargs)
    )

    with pytest.raises(puller.Unusable):
        pulled.pull(0)
    assert pulled.copy.fresh_at is None
    assert 'h0' in pulled.copy.replica.hosts

    wire.tampering = None
    wire.asked.clear()
    pulled.pull(0)
    assert 'snapshot' in wire.asked
    assert pulled.copy.fresh_at is not None
    assert image_of(pulled.copy.replica) == ledger.image


@pytest.mark.parametrize('failure', [TimeoutError, ValueError, KeyError])
def test_silence_only_lets_it_age(
    pulled, ledger, wire, clock, make, failure
):
    fill(ledger, make)
    pulled.pull(0)

    def tampering(method, kwargs):
        raise failure

    wire.tampering = tampering
    clock.at += 50
    with pytest.raises(puller.Unanswered):
        pulled.pull(0)

    assert pulled.copy.fresh_at == 1000.0


def test_freshness_is_that_of_the_question(pulled, wire, ledger, clock):
    def tampering(method, kwargs):
        clock.at += 5
        return getattr(ledger, method)(**kwargs)

    wire.tampering = tampering
    pulled.pull(0)

    assert pulled.copy.fresh_at == 1000.0


def test_kept_copy_goes_on_by_changes(pulled, ledger, wire, clock, make):
    fill(ledger, make)
    pulled.load(ledger.id, ledger.newest, ledger.records(), 1.0, 0)
    assert pulled.copy.fresh_at == 1.0
    ledger.commit(make.host('h9'))

    pulled.pull(0)

    assert image_of(pulled.copy.replica) == ledger.image
    assert wire.asked == ['changes']


def test_kept_copy_with_bad_records_is_refused(pulled, ledger):
    with pytest.raises(puller.Unusable):
        pulled.load(ledger.id, 3, [('host', 'x', {'uuid': 7})], 1.0, 0)

    assert pulled.copy is None


def test_instance_that_is_overdue_on_arrival(pulled, ledger, make):
    ledger.commit(make.host('h1'), make.instance('i1', 'h1', end=100))

    pulled.pull(now=100)

    index = pulled.copy.replica.index
    assert index.peak(index.rows(['h1']), 100, 101)[0] == 0


def test_advance_counts_what_has_ended(pulled, ledger, make):
    ledger.commit(make.host('h1'), make.instance('i1', 'h1', end=100))
    pulled.pull(now=50)
    index = pulled.copy.replica.index
    assert index.peak(index.rows(['h1']), 100, 101)[0] == -1

    pulled.advance(100)

    assert index.peak(index.rows(['h1']), 100, 101)[0] == 0


FAULTS = ('none', 'lost', 'doubled', 'old', *GARBAGE)


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(FAULTS), st.integers(0, 3)), max_size=12
    ),
    limit=st.integers(1, 4),
)
@settings(max_examples=100, deadline=None)
def test_equals_the_ledger_after_any_faults(
    make, memory_ledger, steps, limit
):
    """P7: duplicates, loss, disorder and garbage leave no trace."""
    ledger = memory_ledger()
    wire = Wire(ledger)
    pulled = puller.Puller(wire.call, lambda: 0.0)
    answers = []

    def call(method, fault, kwargs):
        answer = getattr(ledger, method)(
            **(kwargs | {'limit': limit})
        )
        answers.append(answer)
        if fault == 'lost':
            raise TimeoutError
        if fault == 'doubled':
            return getattr(ledger, method)(**(kwargs | {'limit': limit}))
        if fault == 'old':
            return answers[0]
        if fault in GARBAGE and 'since' in answer:
            return GARBAGE[fault](answer)
        return answer

    for n, (fault, commits) in enumerate(steps):
        for m in range(commits):
            ledger.commit(make.host(f'h{n}-{m}'))
        wire.tampering = (
            lambda method, kwargs, fault=fault: call(method, fault, kwargs)
        )
        try:
            pulled.pull(0)
        except (puller.Unanswered, puller.Unusable):
            continue
        assert image_of(pulled.copy.replica) == ledger.image

    wire.tampering = None
    pulled.pull(0)
    assert image_of(pulled.copy.replica) == ledger.image
    pulled.copy.replica.index.check()
