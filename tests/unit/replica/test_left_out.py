# SPDX-License-Identifier: Apache-2.0
"""A replica leaves out records that it cannot use, and closes the host."""

import pytest

from blazar_sched import ext
from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.replica import accounting
from blazar_sched.replica import left_out
from blazar_sched.replica import packing
from blazar_sched.replica import record
from blazar_sched.replica import state

MAX_AMOUNT = inventory.MAX_AMOUNT


def encoded(*nouns):
    return [record.encode(noun) for noun in nouns]


def fits(replica, host, vcpus=1):
    rows = replica.indexes.main.rows([host])
    return bool(
        replica.indexes.main.fits(rows, 150, window.FOREVER, (vcpus, 0, 0))[0]
    )


@pytest.fixture
def replica(make):
    new = state.Replica(accounting.LedgerAccounting)
    new.apply(1, encoded(
        make.host('h1'), make.host('h2'), make.reservation('r1'),
        make.allocation('a1', 'h1', vcpus=ext.AMOUNT_LIMIT - 1),
    ))
    return new


def test_the_rest_of_a_batch_is_used(replica, make):
    replica.apply(2, encoded(
        make.allocation('a2', 'h1', vcpus=2),
        make.allocation('a3', 'h2', vcpus=1),
    ), leave_out=True)
    assert replica.revision == 2
    assert [key for _, key, _ in replica.left_out.for_now()] == ['a2']
    assert 'a3' in replica.indexes.main
    assert not fits(replica, 'h1', 0)
    assert fits(replica, 'h2')


def test_a_check_changes_nothing(replica, make):
    before = list(replica.items()), replica.indexes.main.generation
    replica.check(encoded(
        make.host('h3', gpus=1), make.allocation('a2', 'h3', gpus=1),
        make.allocation('a3', 'h1', vcpus=1),
    ))
    with pytest.raises(ext.AmountOverflow):
        replica.check(encoded(make.allocation('a2', 'h1', vcpus=2)))
    assert (list(replica.items()), replica.indexes.main.generation) == before
    assert replica.indexes.extra == {}


def test_left_out_record_is_tried_again_with_later_changes(replica, make):
    replica.apply(
        2, encoded(make.allocation('a2', 'h1', vcpus=2)), leave_out=True
    )
    replica.apply(3, [(record.ALLOCATION, 'a1', None)])
    assert len(replica.left_out) == 0
    assert replica.indexes.allocations('r1')['h1'].id == 'a2'
    assert fits(replica, 'h1')


def test_an_instance_stays_known(replica, make):
    """The sync of instance records with Nova must find the record."""
    many = [make.instance(f'i{n}', 'h2', vcpus=2**40) for n in range(3)]
    replica.apply(2, encoded(*many), leave_out=True)
    assert len(replica.left_out) == 1
    assert replica.instances.keys() == {'i0', 'i1', 'i2'}
    assert not fits(replica, 'h2', 0)
    assert set(replica.present._on['h2'].instances) == {'i0', 'i1', 'i2'}
    replica.apply(3, [(record.INSTANCE, 'i0', None)])
    assert len(replica.left_out) == 0
    assert set(replica.present._on['h2'].instances) == {'i1', 'i2'}
    assert not fits(replica, 'h2')


def test_instances_that_overflow_with_time(make):
    replica = state.Replica(accounting.LedgerAccounting)
    replica.apply(1, encoded(make.host('h1'), make.reservation('r1'), *(
        make.instance(
            f'i{n}', 'h1', vcpus=MAX_AMOUNT, end=50 + n, reservation_id='r1'
        )
        for n in range(3)
    )))
    replica.advance(60)
    assert len(replica.left_out) == 1
    assert not fits(replica, 'h1', 0)


def test_what_is_left_out_is_in_its_items(replica, make):
    """A worker that starts from its file knows the left-out records too."""
    replica.apply(
        2, encoded(make.allocation('a2', 'h1', vcpus=2)), leave_out=True
    )
    replica.apply(3, [left_out.marked(
        (record.HOST, 'h3', {'colour': 'red'}), ValueError('red')
    )])
    other = state.Replica(replica.accounting)
    assert other.load(3, *packing.split(replica.items())) == set()
    assert list(other.items()) == list(replica.items())
    assert other.left_out.closed == {'h1', 'h3'}
    assert not fits(other, 'h1', 0)
    assert not fits(other, 'h3', 0)


def test_a_host_that_cannot_be_read_can_go(replica):
    marked = left_out.marked((record.HOST, 'h2', {}), ValueError('empty'))
    replica.apply(2, [marked])
    assert not fits(replica, 'h2', 0)
    replica.apply(3, [(record.HOST, 'h2', None)])
    assert len(replica.left_out) == 0
    assert replica.indexes.main.hosts == ['h1']


def test_a_full_copy(make, as_items):
    """Columns, records and other resource classes."""
    nouns = [
        make.host('h1'), make.host('h2', gpus=4), make.host('h3'),
        make.reservation('r1'), make.reservation('r2'),
        make.allocation('a1', 'h1', vcpus=ext.AMOUNT_LIMIT),
        make.allocation('a2', 'h1', vcpus=1, reservation_id='r2'),
        make.allocation('a3', 'h3', vcpus=1),
        *(make.instance(f'i{n}', 'h2', gpus=MAX_AMOUNT) for n in range(3)),
    ]
    with pytest.raises(ext.TimelineError):
        state.Replica(accounting.LedgerAccounting).load(
            1, *packing.split(as_items(encoded(*nouns)))
        )
    replica = state.Replica(accounting.LedgerAccounting)

    missing = replica.load(
        1, *packing.split(as_items(encoded(*nouns))), leave_out=True
    )

    assert missing == set()
    assert replica.left_out.closed == {'h1', 'h2'}
    assert not fits(replica, 'h1', 0)
    assert not fits(replica, 'h2', 0)
    assert fits(replica, 'h3')
    assert 'a3' in replica.indexes.main
