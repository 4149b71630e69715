# SPDX-License-Identifier: Apache-2.0
"""Resource classes that HostState does not have, in indexes of their own."""

from unittest import mock

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import pytest

from blazar_sched import ext
from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.inventory import Inventory
from blazar_sched.ext import timeline_index
from blazar_sched.replica import accounting
from blazar_sched.replica import packing
from blazar_sched.replica import record
from blazar_sched.replica import state
from tests import lanes

GPU = 'CUSTOM_GPU'
BOTH = pytest.mark.parametrize(
    'accounting_',
    [accounting.SchedulerAccounting, accounting.LedgerAccounting],
)


def encoded(*nouns):
    return [record.encode(noun) for noun in nouns]


def gone(kind, key):
    return kind, key, None


def gpus_used(replica, host, at):
    index = replica.indexes.extra[GPU]
    return index.peak(index.rows([host]), at, at + 1)[0]


@pytest.fixture(
    params=[accounting.SchedulerAccounting, accounting.LedgerAccounting]
)
def replica(request):
    return state.Replica(request.param)


def test_a_cloud_without_such_classes_has_no_such_index(replica, make):
    replica.apply(1, encoded(
        make.host('h1'), make.allocation('a1', 'h1', vcpus=3),
        make.instance('i1', 'h1'),
    ))
    assert replica.indexes.extra == {}


def test_only_hosts_with_inventory_are_in_the_index(replica, make):
    replica.apply(1, encoded(make.host('h1'), make.host('h2', gpus=2)))
    assert list(replica.indexes.extra) == [GPU]
    assert replica.indexes.extra[GPU].hosts == ['h2']
    replica.apply(2, encoded(make.host('h1', gpus=1), make.host('h2')))
    assert replica.indexes.extra[GPU].hosts == ['h1']
    replica.apply(3, [gone(record.HOST, 'h1')])
    assert replica.indexes.extra == {}


def test_more_than_the_index_can_count(replica, make):
    host = make.host('h1')
    host.inventory[GPU] = Inventory(ext.AMOUNT_LIMIT, allocation_ratio=16.0)
    replica.apply(1, encoded(host))
    index = replica.indexes.extra[GPU]
    assert list(index.fits(None, 0, 9, [inventory.MAX_AMOUNT])) == [1]


@pytest.mark.parametrize('fields, before, after', [
    ({}, 2, 2),
    ({'end': 150}, 2, 0),
    ({'end': 150, 'reservation_id': 'r1'}, 0, 0),
    ({'preemptible': True}, 0, 0),
], ids=['unbounded', 'bounded', 'bound', 'preemptible'])
def test_instances_are_added_up_for_everybody(
    replica, make, fields, before, after
):
    replica.apply(1, encoded(
        make.host('h1', gpus=4), make.instance('i1', 'h1', gpus=2, **fields)
    ))
    assert gpus_used(replica, 'h1', 149) == before
    assert gpus_used(replica, 'h1', 150) == after


def test_an_overdue_instance_stays_for_ever(replica, make):
    replica.apply(1, encoded(
        make.host('h1', gpus=4), make.instance('i1', 'h1', gpus=2, end=150)
    ))
    replica.advance(150)
    assert gpus_used(replica, 'h1', window.TIME_LIMIT - 2) == 2


def test_what_takes_only_of_another_class(replica, make):
    """A flavor of bare metal does this."""
    replica.apply(1, encoded(
        make.host('h1', gpus=4), make.reservation('r1'),
        make.allocation('a1', 'h1', gpus=1),
        make.instance('i1', 'h1', vcpus=0, gpus=2),
    ))
    assert gpus_used(replica, 'h1', 150) == 3
    assert len(replica.indexes.main) == 0
    assert replica.indexes.allocations('r1')['h1'].amounts == {GPU: 1}


def test_held_has_the_amounts_of_every_class(replica, make):
    held = make.allocation('a1', 'h1', vcpus=3, gpus=2)
    replica.apply(1, encoded(
        make.host('h1', gpus=4), make.host('h2'), held,
        make.allocation('a2', 'h2'),
    ))
    assert replica.indexes.allocations('r1') == {
        'h1': held, 'h2': make.allocation('a2', 'h2')
    }


def test_what_is_taken_outlives_the_inventory(replica, make):
    held = make.allocation('a1', 'h1', vcpus=3, gpus=2)
    replica.apply(1, encoded(make.host('h1', gpus=4), held))
    replica.apply(2, encoded(make.host('h1')))
    assert replica.indexes.allocations('r1') == {'h1': held}
    assert list(replica.indexes.extra[GPU].fits(None, 300, 400, [1])) == [0]
    replica.apply(3, encoded(make.host('h1', gpus=4)))
    assert gpus_used(replica, 'h1', 150) == 2
    replica.apply(4, [gone(record.ALLOCATION, 'a1')])
    replica.apply(5, encoded(make.host('h1')))
    assert replica.indexes.extra == {}


def test_what_its_host_has_none_of_is_no_matter_of_the_hosts(replica, make):
    """A provider below the host's own has the class, so no one can reserve it.
    """
    on_both = encoded(
        make.instance('i1', 'h1', gpus=2), make.instance('i2', 'h2', gpus=1)
    )
    replica.apply(1, [*on_both, *encoded(make.host('h1'), make.host('h2'))])
    assert replica.indexes.extra == {}
    replica.apply(2, encoded(make.host('h2', gpus=4)))
    assert replica.indexes.extra[GPU].hosts == ['h2']
    assert gpus_used(replica, 'h2', 150) == 1
    # The instance moves to a host that has the class, and away again.
    replica.apply(3, encoded(make.instance('i1', 'h2', gpus=2)))
    assert gpus_used(replica, 'h2', 150) == 3
    replica.apply(4, encoded(make.instance('i1', 'h1', gpus=2)))
    assert replica.indexes.extra[GPU].hosts == ['h2']


def test_a_host_that_comes_back_without_what_its_servers_have(make):
    """nova-scheduler keeps classes that it cannot see on its timeline."""
    replica = state.Replica(accounting.SchedulerAccounting)
    replica.apply(1, encoded(
        make.host('h1', gpus=4), make.instance('i1', 'h1', gpus=2)
    ))
    replica.apply(2, [gone(record.HOST, 'h1')])
    replica.apply(3, encoded(make.host('h1')))
    assert replica.indexes.extra == {}
    replica.apply(4, [gone(record.HOST, 'h1')])
    replica.apply(5, encoded(make.host('h1', gpus=4)))
    assert gpus_used(replica, 'h1', 150) == 2


def test_taken_of_what_the_host_never_had(replica, make):
    """The host's record may be older than the instance's."""
    replica.apply(1, encoded(
        make.host('h1'), make.allocation('a1', 'h1', vcpus=3, gpus=2)
    ))
    assert replica.indexes.allocations('r1')['h1'].amounts == {
        'VCPU': 3, GPU: 2,
    }
    replica.apply(2, [gone(record.ALLOCATION, 'a1')])
    assert replica.indexes.extra == {}


BAD = [
    lambda make: make.allocation('a2', 'nowhere', gpus=1),
    lambda make: make.allocation('a2', 'h1', start=9, end=9, gpus=1),
    lambda make: make.allocation('a2', 'h1', gpus='many'),
    lambda make: make.allocation('a2', 'h1', gpus=ext.AMOUNT_LIMIT),
    lambda make: make.allocation('a2', 'nowhere', vcpus=1),
]


@pytest.mark.parametrize('bad', BAD)
def test_a_bad_record_changes_nothing(replica, make, bad):
    replica.apply(1, encoded(
        make.host('h1', gpus=4), make.reservation('r1'),
        make.allocation('a1', 'h1', vcpus=1, gpus=2),
    ))
    before = sorted(replica.items(), key=str), levels(replica)

    with pytest.raises(ValueError):
        replica.apply(2, encoded(
            make.host('h1', gpus=8), make.host('h3', gpus=1),
            make.allocation('a1', 'h3', vcpus=1, gpus=1), bad(make),
        ))

    assert (sorted(replica.items(), key=str), levels(replica)) == before
    with pytest.raises(ext.OverCapacity):
        add = 'add', 'x', 'x', 'h1', 0, 9, (5,), False
        replica.indexes.extra[GPU].apply([add])
    replica.apply(2, encoded(make.host('h1')))
    assert replica.indexes.allocations('r1')['h1'].amounts == {
        'VCPU': 1, GPU: 2,
    }


@pytest.mark.parametrize('bad', BAD[1:4])
def test_a_bad_record_of_a_full_copy_changes_nothing(replica, make, bad):
    hosts = [make.host('h1', gpus=4), make.allocation('a1', 'h1', gpus=1)]
    with pytest.raises(ValueError):
        replica.load(1, encoded(*hosts, bad(make)))
    assert (replica.indexes.extra, replica.indexes.main.hosts) == ({}, [])


def test_a_full_copy(replica, make):
    nouns = [
        make.host('h1', gpus=4), make.host('h2'), make.reservation('r1'),
        make.reservation('r2'), make.instance('i1', 'h1', gpus=1),
    ]
    allocations = [
        make.allocation('a1', 'h1', vcpus=1, gpus=1),
        make.allocation('a2', 'h2', vcpus=1),
        make.allocation('a3', 'h1', reservation_id='r2', gpus=2),
    ]
    replica.apply(1, encoded(*nouns, *allocations))
    items = list(replica.items())

    # Only allocations that columns have no place for are records.
    sent = [i for i in items if not isinstance(i, str)]
    assert {key for kind, key, _ in sent if kind == 'allocation'} >= {
        'a1', 'a3'
    }
    other = state.Replica(replica.accounting)
    assert other.load(1, *packing.split(items)) == set()
    assert list(other.items()) == items
    assert levels(other) == levels(replica)
    for id_ in 'r1', 'r2':
        assert other.indexes.allocations(id_) == replica.indexes.allocations(
            id_
        )


def test_records_after_the_allocations(replica, make, as_items):
    """The pages of the ledger have this order."""
    held = make.allocation('a1', 'h1', vcpus=1, gpus=1)
    items = list(as_items(encoded(
        make.host('h1', gpus=4), held,
        make.allocation('a2', 'h1', start=200, end=300, reservation_id='r2'),
        make.allocation('a3', 'h2', vcpus=1, gpus=1),
        make.instance('i1', 'h2', vcpus=0, gpus=1),
    )))
    assert not isinstance(items[-1], str)
    left_out = replica.load(1, *packing.split(items))
    assert left_out == {'a3', 'i1'}
    assert replica.indexes.allocations('r1') == {'h1': held}
    assert replica.indexes.allocations('r2')['h1'].whole


def test_other_records_do_not_come_after_the_allocations(make):
    late = record.encode(make.host('h1'))
    for bad in (late, gone(record.ALLOCATION, 'a1')):
        items = [packing.pack(packing.columns(*[()] * 7)), bad]
        records, allocations = packing.split(items)
        assert list(records) == []
        with pytest.raises(ValueError):
            list(allocations)


HOSTS = ('h1', 'h2')


def nouns(make, key, host, start, end, amounts):
    vcpus, gpus = amounts
    return encoded(
        make.allocation(f'a{key}', host, start, end, vcpus, f'r{key}', gpus),
        make.instance(f'i{key}', host, vcpus, gpus, end=end),
        make.instance(f'i{key}', host, vcpus, gpus),
        make.instance(f'i{key}', host, reservation_id=f'r{key}'),
        make.host(host, gpus=gpus),
    )


@st.composite
def histories(draw, make):
    """Generate batches of records; return the final records too."""
    batches, image = [], {}
    for _ in range(draw(st.integers(1, 8))):
        batch = []
        for _ in range(draw(st.integers(0, 4))):
            start = draw(st.integers(0, 50))
            key = draw(st.sampled_from('abc'))
            batch.append(draw(st.sampled_from([
                *nouns(
                    make, key, draw(st.sampled_from(HOSTS)), start,
                    start + draw(st.integers(1, 50)),
                    draw(st.sampled_from([(1, 0), (0, 1), (1, 2), (2, 3)])),
                ),
                gone(record.ALLOCATION, f'a{key}'),
                gone(record.INSTANCE, f'i{key}'),
            ])))
        record.merge(image, batch)
        batches.append((draw(st.integers(0, 100)), batch))
    return batches, [(*key, data) for key, data in image.items()]


def levels(replica):
    """Return the levels of each class on each host, until 100."""
    return {
        (name, host): [sums[0] for sums in lanes.in_use(index, [host], 100)]
        for name, index in replica.indexes.extra.items()
        for host in index.hosts
    }


def counted(left, now):
    """Count reservations and instances second by second.

    Instances count only where the host has inventory of the class.
    """
    nouns = [record.decode(kind, data) for kind, _, data in left if data]
    with_gpus = {
        noun.uuid for noun in nouns
        if isinstance(noun, Host) and GPU in noun.inventory
    }
    found = {(GPU, host): [0] * 100 for host in HOSTS}
    for noun in nouns:
        if isinstance(noun, Allocation):
            start, end = noun.start, noun.end
        elif isinstance(noun, Instance) and noun.host in with_gpus:
            # An instance that is past its end counts until it is deleted.
            start, end = 0, noun.end if noun.end > now else window.FOREVER
        else:
            continue
        for at in range(start, min(end, 100)):
            found[GPU, noun.host][at] += noun.amounts.get(GPU, 0)
    return found


def nonzero(sums, after):
    return {
        where: levels[after:] for where, levels in sums.items()
        if any(levels[after:])
    }


def start_with_hosts(make, accounting_):
    replica = state.Replica(accounting_, overcommit=False)
    replica.apply(1, encoded(*(make.host(host) for host in HOSTS)))
    return replica


@BOTH
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_history_equals_a_rebuild(make, accounting_, data):
    batches, left = data.draw(histories(make))
    lived = start_with_hosts(make, accounting_)
    now = 0

    for at, batch in batches:
        now = max(now, at)
        lived.advance(at)
        lived.apply(lived.revision + 1, batch)
    rebuilt = state.Replica(accounting_, overcommit=False)
    rebuilt.advance(now)
    hosts = {f'h{n}': n for n in (1, 2)}
    known = {key for kind, key, _ in left if kind == record.HOST}
    rebuilt.load(
        lived.revision,
        encoded(*(make.host(h) for h in hosts if h not in known)) + left,
    )

    assert levels(lived) == levels(rebuilt)
    assert nonzero(levels(lived), now) == nonzero(counted(left, now), now)
    for name in 'main', 'reserved':
        both = [getattr(each.indexes, name) for each in (lived, rebuilt)]
        for host in HOSTS:
            one, other = (lanes.in_use(each, [host], 100) for each in both)
            assert one == other
    for index in lived.indexes.main, *lived.indexes.extra.values():
        index.check()
    for key in 'abc':
        assert lived.indexes.allocations(
            f'r{key}'
        ) == rebuilt.indexes.allocations(f'r{key}')
        for each in lived, rebuilt:
            assert sorted(each.indexes.reserved.held(f'r{key}')) == sorted(
                each.indexes.main.held(f'r{key}')
            )
    assert sorted(lived.items(), key=str) == sorted(rebuilt.items(), key=str)
    assert lived.bound == rebuilt.bound


@BOTH
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_reader_never_sees_less_than_there_is(make, accounting_, data):
    """A reader in the middle of a batch sees either state of each host.

    It sees at least the use before or after the batch, as the main index has
    it.
    """
    batches, _ = data.draw(histories(make))
    seen = []

    class Watched(timeline_index.TimelineIndex):
        def apply(self, changes, force=False):
            super().apply(changes, force)
            if replica is not None:
                seen.append((replica.indexes.main.generation, levels(replica)))

    replica = None
    with mock.patch.object(ext, 'TimelineIndex', Watched):
        lived = start_with_hosts(make, accounting_)
        for _, batch in batches:
            before, old = lived.indexes.main.generation, levels(lived)
            seen.clear()
            replica = lived
            lived.apply(lived.revision + 1, batch)
            replica, new = None, levels(lived)
            after = lived.indexes.main.generation
            for generation, now in seen:
                assert (
                    generation == before and covers(now, old)
                    or generation == after and covers(now, new)
                )


def covers(now, least):
    return all(
        all(map(int.__ge__, now.get(where, [0] * 100), wanted))
        for where, wanted in least.items() if any(wanted)
    )
