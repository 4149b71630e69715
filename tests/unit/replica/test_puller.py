# SPDX-License-Identifier: Apache-2.0
"""Whatever the wire does, the replica is correct or reports that it is not."""

import itertools
import logging

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import pytest

from blazar_sched.domain.relocation import Rules
from blazar_sched.domain.settings import Settings
from blazar_sched.replica import puller
from blazar_sched.replica import record
from blazar_sched.replica.wire import OLDEST_WIRE_VERSION
from blazar_sched.replica.wire import WIRE_VERSION

MAX_AGE = 100


class Wire:
    """A connection to the ledger that applies a test's faults to responses."""

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
    return puller.Puller(wire.call, clock, lambda: MAX_AGE)


@pytest.mark.parametrize(('took', 'manager', 'ahead'), [
    (0, 100, 0), (0, 90.5, 9.5), (0, 3700, -3600),
    (8, 104, 0), (8, 90, 10), (8, 110, -2), (0, None, 0),
])
def test_learns_by_how_much_its_clock_is_wrong(ledger, took, manager, ahead):
    """As far as the duration of the call does not explain the difference."""
    at = [100.0]

    def call(method, **kwargs):
        page = getattr(ledger, method)(**kwargs)
        at[0] += took
        return page if method == 'snapshot' else {**page, 'now': manager}

    pulled = puller.Puller(call, Clock(), lambda: MAX_AGE, clock=lambda: at[0])
    pulled.pull(0)
    at[0] = 100.0
    pulled.pull(0)
    assert pulled.ahead == ahead


def told(wire, ledger, **more):
    """Let the manager add fields to the pages of changes."""
    wire.tampering = lambda method, kwargs: {
        **getattr(ledger, method)(**kwargs),
        **(more if method == 'changes' else {}),
    }


def test_follows_the_settings_that_managers_tell(pulled, ledger, wire, make):
    settings = Settings(
        'relocate', 'share:0.6', True, Rules(lead=60, ways={'disk': 'live'})
    )
    fill(ledger, make)
    told(wire, ledger, settings=settings.encode())
    pulled.pull(0)
    assert pulled.copy.replica.settings == settings
    assert pulled.copy.replica.indexes.total is not None
    # Without a change of the ledger, and of a later release.
    told(wire, ledger, settings=settings.encode() | {
        'unbounded': 'never', 'colour': 'red',
        'rules': {'lead': 90, 'colour': 'red'},
    })
    pulled.pull(0)
    assert pulled.copy.replica.settings == Settings(
        'never', 'share:0.6', True, Rules(lead=90)
    )


def test_what_no_manager_tells_lets_nobody_in_wrongly(pulled, ledger, make):
    """Managers of the last release tell nothing."""
    fill(ledger, make)
    pulled.pull(0)
    assert pulled.copy.replica.settings == Settings(
        'forever', 'forever', relocating=False
    )


@pytest.mark.parametrize('wrong', [
    7, {}, {'unbounded': 'later', 'unbounded_fixed': 'never',
            'relocating': True, 'rules': {}},
])
def test_settings_that_cannot_be_read_make_it_stale(
    pulled, ledger, wire, make, wrong
):
    fill(ledger, make)
    pulled.pull(0)
    told(wire, ledger, settings=wrong)
    with pytest.raises(puller.Unusable, match='settings'):
        pulled.pull(0)
    assert pulled.copy.fresh_at is None


def image_of(replica):
    """Return the content of the replica, by kind and key."""
    records = [each for each in replica.items() if not isinstance(each, str)]
    for reservation_id in replica.reservations:
        held = replica.indexes.allocations(reservation_id)
        records += map(record.encode, held.values())
    return {(kind, key): data for kind, key, data in records}


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
            # The page with the allocation comes before that with its host, and
            # a host of a page is deleted.
            ledger.commit(
                make.host(f'h{n}'), make.reservation(f'r{n}'),
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


def test_a_fresh_replica_is_never_set_back(pulled, ledger, wire, clock, make):
    """An old response only lets it age, whatever the reason."""
    fill(ledger, make)
    pulled.pull(0)
    wire.ledger = ledger.at(3)
    clock.at += MAX_AGE
    with pytest.raises(puller.Unanswered, match='revision 3.* lags behind'):
        pulled.pull(0)
    assert image_of(pulled.copy.replica) == ledger.image
    assert pulled.copy.fresh_at == clock.at - MAX_AGE
    wire.ledger = ledger
    wire.asked.clear()
    pulled.pull(0)
    assert wire.asked == ['changes']


def test_a_stale_replica_is_set_back_with_a_warning(
    pulled, ledger, wire, clock, make, caplog
):
    """This happens after a restore from a backup."""
    fill(ledger, make)
    pulled.pull(0)
    wire.ledger = ledger.at(3)
    clock.at += MAX_AGE + 1
    pulled.pull(0)
    assert image_of(pulled.copy.replica) == wire.ledger.image
    assert pulled.is_fresh(pulled.copy)
    [told] = [r.getMessage() for r in caplog.records]
    assert 'went back from revision 10 to 3' in told


def test_old_pages_of_a_full_copy(pulled, ledger, wire, make, monkeypatch):
    """Managers whose databases lag respond to some of the requests."""
    small_pages(monkeypatch)
    fill(ledger, make)
    for n in range(5):
        ledger.commit(gone=[(record.ALLOCATION, f'a{n}')])
        ledger.commit(gone=[(record.HOST, f'h{n}')])
    # The first pages are of revision 18, the pages of allocations of 13.
    lags = {None: 2, 'reservation/r0': 2, 'reservation/r2': 2}
    lagged = []

    def tampering(method, kwargs):
        if method == 'changes':
            return ledger.changes(**kwargs)
        lag = lags.get(kwargs['after'], 7)
        lagged.append(lag)
        return ledger.at(ledger.newest - lag).snapshot(**kwargs)

    wire.tampering = tampering
    pulled.pull(0)

    assert lagged == [2, 2, 2, 7, 7]
    assert image_of(pulled.copy.replica) == ledger.image
    pulled.copy.replica.indexes.main.check()


@pytest.mark.parametrize('stray', ['snapshot', 'changes'])
def test_a_page_of_another_ledger(
    pulled, ledger, wire, make, memory_ledger, monkeypatch, stray
):
    small_pages(monkeypatch)
    fill(ledger, make)
    other = memory_ledger(revisions=ledger.revisions)

    def tampering(method, kwargs):
        of = other if method == stray and kwargs != first else ledger
        return getattr(of, method)(**kwargs)

    first = {'after': None, 'limit': 2}
    wire.tampering = tampering
    with pytest.raises(puller.Unanswered, match='changed between two pages'):
        pulled.pull(0)


def test_changes_that_end_before_a_page_of_the_copy(
    pulled, ledger, wire, make, monkeypatch
):
    small_pages(monkeypatch)
    fill(ledger, make)
    answering = itertools.chain([ledger.at(8)], itertools.repeat(ledger))

    def tampering(method, kwargs):
        old = ledger.at(8) if method == 'changes' else next(answering)
        return getattr(old, method)(**kwargs)

    wire.tampering = tampering
    with pytest.raises(puller.Unanswered, match='end at revision 8'):
        pulled.pull(0)
    assert pulled.copy is None


def test_a_copy_that_lacks_a_host_is_refused(pulled, ledger, wire, make):
    fill(ledger, make)
    del ledger.image[record.HOST, 'h3']
    with pytest.raises(puller.Unusable, match='host that does not exist'):
        pulled.pull(0)
    with pytest.raises(puller.Unusable, match='host that does not exist'):
        pulled.load(ledger.id, 10, ledger.items(), 1.0, 0)


def test_an_answer_for_another_page_is_refused(
    pulled, ledger, wire, make, monkeypatch
):
    small_pages(monkeypatch)
    fill(ledger, make)
    wire.tampering = lambda method, kwargs: getattr(ledger, method)(
        **(kwargs | {'after': 'host/h1'})
    )
    with pytest.raises(puller.Unusable, match='another request'):
        pulled.pull(0)


def test_a_page_that_leads_to_itself_is_refused(
    pulled, ledger, wire, make, monkeypatch
):
    """The page is not requested again and again."""
    small_pages(monkeypatch)
    fill(ledger, make)
    first = ledger.snapshot(None, 2)['next']

    def tamper(method, kwargs):
        assert len(wire.asked) < 9
        return getattr(ledger, method)(**kwargs) | {'next': first}

    wire.tampering = tamper
    with pytest.raises(puller.Unusable, match='no next page'):
        pulled.pull(0)
    assert wire.asked == ['snapshot', 'snapshot']


@pytest.mark.parametrize('version', [
    OLDEST_WIRE_VERSION - 1, WIRE_VERSION + 1,
])
def test_another_version_only_lets_it_age(
    pulled, ledger, wire, clock, make, version
):
    """The replica follows the changes once the peer is upgraded."""
    fill(ledger, make)
    pulled.pull(0)
    ledger.commit(make.host('h9'))
    wire.tampering = lambda method, kwargs: {
        'version': version, 'oldest': version
    }
    clock.at += 50
    with pytest.raises(puller.Unanswered, match='upgrade'):
        pulled.pull(0)
    assert pulled.copy.fresh_at == 1000.0
    wire.tampering = None
    wire.asked.clear()
    pulled.pull(0)
    assert wire.asked == ['changes']
    assert image_of(pulled.copy.replica) == ledger.image


def test_another_ledger_needs_a_snapshot(pulled, ledger, make, caplog):
    fill(ledger, make)
    pulled.pull(0)
    # As many revisions, of another history.
    ledger.id = 'another'
    ledger.image = {}
    ledger.revisions = [[]] * ledger.newest
    pulled.pull(0)
    assert pulled.copy.ledger == 'another'
    assert image_of(pulled.copy.replica) == {}
    [told] = [r.getMessage() for r in caplog.records]
    assert 'The ledger was replaced' in told


GARBAGE = {
    'no version': lambda page: page | {'version': None},
    'no object': lambda page: 'hello',
    'none': lambda page: None,
    'no records': lambda page: page | {'records': None},
    'damaged': lambda page: page | {'records': ['dGltZWxpbmU=']},
    'another question': lambda page: page | {'since': page['since'] + 1},
    'nowhere': lambda page: page | {
        'revision': page['since'], 'newest': page['since'] + 1, 'records': [],
    },
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
def test_silence_only_lets_it_age(pulled, ledger, wire, clock, make, failure):
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
    pulled.load(ledger.id, ledger.newest, ledger.items(), 1.0, 0)
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
    index = pulled.copy.replica.indexes.main
    assert index.peak(index.rows(['h1']), 100, 101)[0] == 0


def test_advance_counts_what_has_ended(pulled, ledger, make):
    ledger.commit(make.host('h1'), make.instance('i1', 'h1', end=100))
    pulled.pull(now=50)
    index = pulled.copy.replica.indexes.main
    assert index.peak(index.rows(['h1']), 100, 101)[0] == -1
    pulled.advance(100)
    assert index.peak(index.rows(['h1']), 100, 101)[0] == 0


class Managers:
    """Several managers, some of which lag or have another ledger.

    Each request has the next fault: a function of the response.
    """

    def __init__(self, memory_ledger, make):
        self.ledger = memory_ledger()
        # A response from before the database was created anew.
        self.before = memory_ledger()
        fill(self.before, make, 2)
        self.make = make
        self.names = itertools.count()
        self.faults = itertools.repeat(('fine', 0))
        self.answers = []

    def commit(self, number):
        """Commit a change that a client may make; `number` selects it."""
        n, ledger, make = next(self.names), self.ledger, self.make
        hosts = sorted(k for kind, k in ledger.image if kind == record.HOST)
        reservations = [
            k for kind, k in ledger.image if kind == record.RESERVATION
        ]
        if number % 4 == 0 or not hosts:
            ledger.commit(make.host(f'h{number}-{n}', gpus=number))
        elif number % 4 == 1:
            gpus = number // 5
            ledger.commit(
                make.reservation(f'of-{n}'),
                *(
                    make.allocation(
                        f'{n}-{h}', h, reservation_id=f'of-{n}', gpus=gpus
                    )
                    for h in hosts[:number]
                ),
                make.instance(f'i{n}', hosts[-1], end=500, gpus=gpus),
            )
        elif number % 4 == 2:
            host = hosts[number % len(hosts)]
            self.drop(lambda data: data.get('host') == host, host)
        elif reservations:
            gone = reservations[number % len(reservations)]
            self.drop(lambda data: data.get('reservation_id') == gone, gone)

    def drop(self, belongs, key):
        self.ledger.commit(gone=[
            (kind, k) for (kind, k), data in self.ledger.image.items()
            if k == key or belongs(data)
        ])

    def call(self, method, **kwargs):
        fault, number = next(self.faults)
        ledger = self.ledger
        if fault == 'busy':
            self.commit(number)
        if fault == 'lagging':
            ledger = ledger.at(max(0, ledger.newest - number))
        if fault == 'old epoch':
            ledger = self.before
        answer = getattr(ledger, method)(**kwargs)
        self.answers.append((method, answer))
        if fault == 'lost':
            raise TimeoutError
        if fault == 'earlier':
            alike = [a for m, a in self.answers if m == method]
            return alike[number % len(alike)]
        if fault == 'other version':
            return answer | {'oldest': WIRE_VERSION + 1}
        if fault in GARBAGE and method == 'changes':
            return GARBAGE[fault](answer)
        return answer

    def check(self, pulled):
        """Check that the copy equals SQL at its revision, or is stale."""
        copy = pulled.copy
        if copy is None or copy.fresh_at is None:
            return
        ledgers = {self.ledger.id: self.ledger, self.before.id: self.before}
        truth = ledgers[copy.ledger].at(copy.replica.revision)
        assert image_of(copy.replica) == truth.image
        indexes = copy.replica.indexes
        for index in (indexes.main, *indexes.extra.values()):
            index.check()


FAULTS = (
    'fine', 'fine', 'fine', 'lost', 'busy', 'busy', 'lagging', 'earlier',
    'old epoch', 'other version', *GARBAGE,
)  # fmt: skip


@given(
    turns=st.lists(
        st.tuples(
            st.lists(st.integers(0, 7), max_size=3),
            st.lists(
                st.tuples(st.sampled_from(FAULTS), st.integers(0, 7)),
                max_size=8,
            ),
            st.sampled_from([1, MAX_AGE + 1]),
        ),
        max_size=6,
    ),
    limit=st.integers(1, 4),
)
@settings(max_examples=200, deadline=None)
def test_equals_the_ledger_or_says_that_it_does_not(
    make, memory_ledger, turns, limit
):
    """P7: this holds for any responses and any commits meanwhile."""
    managers = Managers(memory_ledger, make)
    fill(managers.ledger, make, 2)
    clock = Clock()
    pulled = puller.Puller(managers.call, clock, lambda: MAX_AGE)
    with pytest.MonkeyPatch.context() as patch:
        small_pages(patch, limit)
        logging.disable(logging.WARNING)
        for commits, faults, seconds in turns:
            for number in commits:
                managers.commit(number)
            managers.faults = itertools.chain(
                faults, itertools.repeat(('fine', 0))
            )
            before, fresh = pulled.copy, (
                pulled.copy is not None and pulled.is_fresh(pulled.copy)
            )
            at = before and before.replica.revision
            try:
                pulled.pull(int(clock.at))
            except (puller.Unanswered, puller.Unusable):
                assert pulled.copy is None or before is not None
            managers.check(pulled)
            if fresh and pulled.copy.ledger == before.ledger:
                assert pulled.copy.replica.revision >= at
            clock.at += seconds
        # The replica recovers by itself.
        managers.faults = itertools.repeat(('fine', 0))
        clock.at += MAX_AGE + 1
        pulled.pull(int(clock.at))
        logging.disable(logging.NOTSET)

    assert pulled.copy.replica.revision == managers.ledger.newest
    assert image_of(pulled.copy.replica) == managers.ledger.image
    assert pulled.is_fresh(pulled.copy)
