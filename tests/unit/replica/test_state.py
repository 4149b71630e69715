# SPDX-License-Identifier: Apache-2.0
"""A replica has the content of its records, in whatever way they came."""

import dataclasses

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import pytest

from blazar_sched.domain import window
from blazar_sched.domain.host import ClosedWindow
from blazar_sched.domain.provider import Providers
from blazar_sched.domain.provider import Units
from blazar_sched.replica import accounting
from blazar_sched.replica import entities
from blazar_sched.replica import packing
from blazar_sched.replica import record
from blazar_sched.replica import state
from tests import lanes

BOTH = pytest.mark.parametrize(
    'accounting_',
    [accounting.SchedulerAccounting, accounting.LedgerAccounting],
)


def vcpus_used(replica, host, at):
    """Return the highest VCPU at `at`, relative to now for the scheduler."""
    rows = replica.indexes.main.rows([host])
    return replica.indexes.main.peak(rows, at, at + 1)[0]


def encoded(*nouns):
    return [record.encode(noun) for noun in nouns]


def gone(kind, key):
    return kind, key, None


@pytest.fixture
def scheduler():
    return state.Replica(accounting.SchedulerAccounting)


def test_applies_a_batch_in_any_order(scheduler, make):
    scheduler.apply(
        1,
        encoded(
            make.allocation('a1', 'h1', vcpus=3),
            make.instance('i1', 'h1', end=150), make.host('h1'),
            make.reservation('r1'),
        ),
    )
    assert scheduler.revision == 1
    assert vcpus_used(scheduler, 'h1', 99) == 0
    assert vcpus_used(scheduler, 'h1', 100) == 3
    assert vcpus_used(scheduler, 'h1', 150) == 2


def test_a_host_written_before_it_had_a_cleaning_time(scheduler, make):
    kind, key, data = record.encode(make.host('h1'))
    del data['cleaning_time']
    scheduler.apply(1, [(kind, key, data)])
    assert scheduler.hosts == {'h1': make.host('h1')}


def test_drops_a_host_with_all_that_was_on_it(scheduler, make):
    scheduler.apply(
        1, encoded(make.host('h1'), make.allocation('a1', 'h1', vcpus=3))
    )
    scheduler.apply(
        2, [gone(record.HOST, 'h1'), gone(record.ALLOCATION, 'a1')]
    )
    assert scheduler.indexes.main.hosts == []
    assert scheduler.indexes.allocations('r1') == {}


BAD = [
    ('host', 'h2', {}),
    ('reservation', 'r2', {'id': 'r2', 'project_id': 7}),
    ('instance', 'i1', {
        'uuid': 'i1', 'host': 'nowhere', 'project_id': 'p1',
        'amounts': {'VCPU': 1}, 'end': 5,
    }),
    ('allocation', 'a2', {
        'id': 'other', 'reservation_id': 'r1', 'host': 'h1', 'start': 1,
        'end': 2, 'whole': True,
    }),
    ('allocation', 'a2', {
        'id': 'a2', 'reservation_id': 'r1', 'host': 'h1', 'start': 2,
        'end': 2, 'whole': True,
    }),
]


@pytest.mark.parametrize('bad', BAD, ids=str)
def test_bad_record_changes_nothing(scheduler, make, bad):
    scheduler.apply(
        1, encoded(make.host('h1'), make.allocation('a1', 'h1', vcpus=3))
    )
    before = sorted(scheduler.items()), scheduler.indexes.main.generation
    with pytest.raises(ValueError):
        scheduler.apply(2, [*encoded(make.host('h3')), bad])
    after = sorted(scheduler.items()), scheduler.indexes.main.generation
    assert after == before
    assert scheduler.revision == 1


def newer(value):
    """Return data of records as the next version may write the data."""
    if isinstance(value, dict) and all(isinstance(k, str) for k in value):
        # The keys of the other dictionaries are resource classes or hosts.
        more = {'colour': ['red']} if value.keys() & FIELDS else {}
        return {k: newer(v) for k, v in value.items()} | more
    if isinstance(value, list | tuple):
        return [newer(each) for each in value]
    return value


FIELDS = {'uuid', 'id', 'total', 'start', 'capacity'}


def test_what_the_next_version_adds_changes_nothing(scheduler, make, as_items):
    host = make.host('h1')
    host = dataclasses.replace(
        host, maintenances=(ClosedWindow(50, 60),),
        providers=(Providers(2, ('T',), {'VGPU': Units(4, 1, 4, 1)}),),
    )
    records = encoded(
        host, make.reservation('r1'), make.instance('i1', 'h1', end=5),
        make.allocation('a1', 'h1', vcpus=3),
    )
    of_next = [
        *((kind, key, newer(data)) for kind, key, data in records),
        ('planet', 'x', {'id': 'x'}), ('planet', 'y', None),
    ]
    assert sum('colour' in str(each) for each in of_next) == 4
    other = state.Replica(accounting.SchedulerAccounting)
    copy = state.Replica(accounting.SchedulerAccounting)

    other.apply(1, records)
    scheduler.apply(1, of_next)
    copy.load(1, *packing.split(of_next))

    assert list(scheduler.items()) == list(other.items()) == list(copy.items())
    assert scheduler.hosts['h1'] == host


def test_what_is_on_an_unknown_host_is_left_out_of_a_full_copy(
    scheduler, make, as_items
):
    """The host's record may be among the changes that follow."""
    records, allocations = packing.split(as_items(encoded(
        make.host('h1'), make.reservation('r1'),
        make.instance('i1', 'h2', end=5), make.allocation('a1', 'h1', vcpus=3),
        make.allocation('a2', 'h2', vcpus=3),
    )))
    left_out = scheduler.load(1, records, allocations)
    assert left_out == {'i1', 'a2'}
    assert list(scheduler.indexes.allocations('r1')) == ['h1']
    scheduler.apply(2, encoded(
        make.host('h2'), make.allocation('a2', 'h2', vcpus=4),
        make.instance('i1', 'h2', end=7),
    ))
    assert scheduler.indexes.allocations('r1')['h2'].amounts == {'VCPU': 4}
    assert vcpus_used(scheduler, 'h2', 7) == -1


def test_its_items_make_it_anew(scheduler, make):
    scheduler.apply(1, encoded(
        make.host('h1'), make.host('h2', hold='dedicated'),
        make.reservation('r1'), make.reservation('r2'),
        make.allocation('a1', 'h1', vcpus=3),
        make.allocation('a2', 'h2', reservation_id='r2'),
        make.instance('i1', 'h2', end=5),
    ))
    other = state.Replica(accounting.SchedulerAccounting)

    assert other.load(1, *packing.split(scheduler.items())) == set()

    assert list(other.items()) == list(scheduler.items())
    assert (
        other.indexes.allocations('r1')
        == scheduler.indexes.allocations('r1')
        != {}
    )
    peaks = [
        each.indexes.main.peak(None, 0, 99) for each in (other, scheduler)
    ]
    assert peaks[0] == peaks[1]


@pytest.mark.parametrize('bad', [each for each in BAD if each[1] != 'i1'])
def test_bad_record_of_a_full_copy_changes_nothing(scheduler, make, bad):
    with pytest.raises(ValueError):
        scheduler.load(2, [*encoded(make.host('h1')), bad])
    assert list(scheduler.items()) == []
    assert len(scheduler.indexes.main.hosts) == 0
    assert scheduler.revision == 0


def test_text_for_a_number_in_a_full_copy(scheduler, make):
    wrong = make.allocation('a1', 'h1', start='soon')
    with pytest.raises(ValueError):
        scheduler.load(2, encoded(make.host('h1'), wrong))


def test_an_empty_copy(scheduler):
    scheduler.load(7, [])
    assert scheduler.revision == 7
    assert list(scheduler.items()) == []


def test_tells_hosts_with_a_hold_a_policy_or_closed_windows(scheduler, make):
    scheduler.load(
        1,
        encoded(
            make.host('h1', hold='dedicated'),
            make.host('h2', unbounded='never', available_until=100),
            make.host('h3'),
        ),
    )
    assert scheduler.dedicated == {'h1'}
    assert scheduler.with_policy == {'h2'}
    assert [h.uuid for h in scheduler.closing_hosts()] == ['h2']
    scheduler.apply(2, [
        *encoded(make.host('h1'), make.host('h3', hold='dedicated')),
        gone(record.HOST, 'h2'),
    ])
    assert scheduler.dedicated == {'h3'}
    assert scheduler.with_policy == set()
    assert list(scheduler.closing_hosts()) == []


def test_tells_the_index_the_time(scheduler, monkeypatch):
    told = []

    class Index:
        advance = told.append

    monkeypatch.setattr(scheduler.indexes, 'main', Index())
    scheduler.advance(150)
    assert told == [150]


def test_allocation_replaced_on_its_host_in_one_batch(scheduler, make):
    scheduler.apply(
        1, encoded(make.host('h1'), make.allocation('a1', 'h1', vcpus=3))
    )
    scheduler.apply(2, [
        *encoded(make.allocation('a2', 'h1', vcpus=2)),
        gone(record.ALLOCATION, 'a1'),
    ])
    assert scheduler.indexes.allocations('r1')['h1'].id == 'a2'


class TestScheduler:
    """Steps relative to the current use."""

    def test_bound_instance_is_counted_once(self, scheduler, make):
        scheduler.apply(
            1,
            encoded(
                make.host('h1'), make.allocation('a1', 'h1', vcpus=3),
                make.instance('i1', 'h1', 2, reservation_id='r1', end=200),
            ),
        )
        # The instance is in the current use, and so are 2 of the 3 reserved.
        assert vcpus_used(scheduler, 'h1', 150) == 3 - 2

    def test_bound_instance_that_outstays_its_reservation(
        self, scheduler, make
    ):
        scheduler.apply(
            1,
            encoded(
                make.host('h1'),
                make.instance('i1', 'h1', 2, reservation_id='r1', end=200),
            ),
        )
        scheduler.advance(200)
        assert vcpus_used(scheduler, 'h1', 200) == 0

    def test_bounded_instance_gives_back_at_its_end(self, scheduler, make):
        scheduler.apply(
            1, encoded(make.host('h1'), make.instance('i1', 'h1', end=150))
        )
        assert vcpus_used(scheduler, 'h1', 149) == 0
        assert vcpus_used(scheduler, 'h1', 150) == -1

    def test_overdue_instance_gives_nothing_back(self, scheduler, make):
        scheduler.apply(
            1, encoded(make.host('h1'), make.instance('i1', 'h1', end=150))
        )
        scheduler.advance(150)
        assert vcpus_used(scheduler, 'h1', 150) == 0

    def test_overdue_stays_so_when_its_record_comes_again(
        self, scheduler, make
    ):
        scheduler.apply(
            1, encoded(make.host('h1'), make.instance('i1', 'h1', end=150))
        )
        scheduler.advance(160)
        scheduler.apply(2, encoded(make.instance('i1', 'h1', 2, end=150)))
        assert vcpus_used(scheduler, 'h1', 170) == 0

    def test_overdue_instance_may_be_given_more_time(self, scheduler, make):
        scheduler.apply(
            1, encoded(make.host('h1'), make.instance('i1', 'h1', end=150))
        )
        scheduler.advance(160)
        scheduler.apply(2, encoded(make.instance('i1', 'h1', end=300)))
        assert vcpus_used(scheduler, 'h1', 299) == 0
        assert vcpus_used(scheduler, 'h1', 300) == -1

    def test_overdue_instance_can_go(self, scheduler, make):
        scheduler.apply(
            1, encoded(make.host('h1'), make.instance('i1', 'h1', end=150))
        )
        scheduler.advance(160)
        scheduler.apply(
            2, [gone(record.INSTANCE, 'i1'), gone(record.HOST, 'h1')]
        )
        assert list(scheduler.items()) == []

    def test_clock_set_back_changes_nothing(self, scheduler, make):
        scheduler.apply(
            1, encoded(make.host('h1'), make.instance('i1', 'h1', end=150))
        )
        scheduler.advance(160)
        scheduler.advance(10)
        assert vcpus_used(scheduler, 'h1', 170) == 0

    def test_unbounded_instance_changes_nothing(self, scheduler, make):
        scheduler.apply(1, encoded(make.host('h1'), make.instance('i1', 'h1')))
        assert len(scheduler.indexes.main) == 0

    def test_capacity_has_the_reserved_part_back(self, scheduler, make):
        host = make.host('h1')
        host.inventory['VCPU'] = type(host.inventory['VCPU'])(8, 2, 2.0)
        scheduler.apply(1, encoded(host))
        # (8 - 2) * 2 for instances, and the 2 that Nova counts as used.
        rows = scheduler.indexes.main.rows(['h1'])
        assert scheduler.indexes.main.fits(rows, 0, 9, (14, 0, 0)) == b'\x01'
        assert scheduler.indexes.main.fits(rows, 0, 9, (15, 0, 0)) == b'\x00'


class TestLedger:
    """Use compared with inventory."""

    @pytest.fixture
    def replica(self):
        return state.Replica(accounting.LedgerAccounting)

    @pytest.mark.parametrize('fields, before, after', [
        ({}, 1, 1),
        ({'end': 150}, 1, 0),
        ({'end': 150, 'reservation_id': 'r1'}, 0, 0),
        ({'preemptible': True}, 0, 0),
    ], ids=['unbounded', 'bounded', 'bound', 'preemptible'])
    def test_counts_an_instance(self, replica, make, fields, before, after):
        replica.apply(
            1, encoded(make.host('h1'), make.instance('i1', 'h1', **fields))
        )
        assert vcpus_used(replica, 'h1', 149) == before
        assert vcpus_used(replica, 'h1', 150) == after

    @pytest.mark.parametrize('reservation_id', [None, 'r1'])
    def test_overdue_instance_stays_for_ever(
        self, replica, make, reservation_id
    ):
        overdue = make.instance(
            'i1', 'h1', end=150, reservation_id=reservation_id
        )
        replica.apply(1, encoded(make.host('h1'), overdue))
        replica.advance(150)
        assert vcpus_used(replica, 'h1', window.TIME_LIMIT - 2) == 1


HOSTS = ('h1', 'h2', 'h3')


@st.composite
def histories(draw, make):
    """Generate batches of records on fixed hosts; return the final records."""
    batches, image = [], {}
    for _ in range(draw(st.integers(1, 8))):
        batch = []
        for _ in range(draw(st.integers(0, 5))):
            start = draw(st.integers(0, 50))
            key = draw(st.sampled_from('abcd'))
            end = start + draw(st.integers(1, 50))
            host = draw(st.sampled_from(HOSTS))
            batch.append(draw(st.sampled_from([
                *encoded(
                    make.allocation(f'a{key}', host, start, end, 2, f'r{key}'),
                    make.instance(f'i{key}', host, end=end),
                    make.instance(f'i{key}', host, reservation_id='r1'),
                    make.instance(f'i{key}', host)
                ),
                gone(record.ALLOCATION, f'a{key}'),
                gone(record.INSTANCE, f'i{key}'),
            ])))
        record.merge(image, batch)
        batches.append((draw(st.integers(0, 100)), batch))
    return batches, [(*key, data) for key, data in image.items()]


@BOTH
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_history_equals_a_rebuild(make, accounting_, data):
    batches, left = data.draw(histories(make))
    hosts = encoded(*(make.host(host) for host in HOSTS))
    lived = state.Replica(accounting_, overcommit=False)
    lived.apply(1, hosts)
    now = 0

    for at, batch in batches:
        now = max(now, at)
        lived.advance(at)
        lived.apply(lived.revision + 1, batch)
    rebuilt = state.Replica(accounting_, overcommit=False)
    rebuilt.advance(now)
    rebuilt.load(lived.revision, hosts + left)

    lived.indexes.main.check()
    rebuilt.indexes.main.check()
    assert sorted(lived.items(), key=str) == sorted(rebuilt.items(), key=str)
    for host in HOSTS:
        levels = [
            lanes.in_use(each.indexes.main, [host], 200)
            for each in (lived, rebuilt)
        ]
        assert levels[0] == levels[1]
        reserved = [
            lanes.in_use(each.indexes.reserved, [host], 200)
            for each in (lived, rebuilt)
        ]
        assert reserved[0] == reserved[1]
    for key in 'abcd':
        for each in (lived, rebuilt):
            assert sorted(each.indexes.reserved.held(f'r{key}')) == sorted(
                each.indexes.main.held(f'r{key}')
            )
        assert lived.indexes.allocations(
            f'r{key}'
        ) == rebuilt.indexes.allocations(f'r{key}')
    assert lived.bound == rebuilt.bound


class TestEnds:
    """The list of ends grows with the instances, not with the changes."""

    YEAR = 365 * 86400

    @pytest.mark.parametrize('gone', [False, True])
    def test_list_of_ends_has_at_most_two_entries_for_an_instance(
        self, make, gone
    ):
        replica = state.Replica(accounting.SchedulerAccounting)
        replica.apply(1, [record.encode(make.host('h1'))])
        for n in range(1000):
            one = make.instance('i1', 'h1', end=self.YEAR + n % 2)
            replica.apply(n + 2, [record.encode(one)])
            if gone:
                replica.apply(n + 2, [('instance', 'i1', None)])
        assert len(replica._ends) <= 2 + entities.MIN_ENDS

    def test_each_instance_is_overdue_in_its_time_all_the_same(self, make):
        """This holds for ends that move, and for deleted instances."""
        replica = state.Replica(accounting.SchedulerAccounting)
        replica.apply(1, [record.encode(make.host('h1', vcpus=10_000))])
        ends = {}
        for n in range(3000):
            uuid, now = f'i{n * 7 % 150}', n // 10
            replica.advance(now)
            if n % 5 == 4:
                ends.pop(uuid, None)
                replica.apply(n + 2, [('instance', uuid, None)])
            else:
                ends[uuid] = n * 13 % 600
                one = make.instance(uuid, 'h1', end=ends[uuid])
                replica.apply(n + 2, [record.encode(one)])
            if n % 100 == 99:
                assert replica._overdue == {
                    each for each, end in ends.items() if end <= now
                }
