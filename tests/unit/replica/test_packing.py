# SPDX-License-Identifier: Apache-2.0
"""Allocations come back from their text, and other records are let be."""

import json

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import pytest

from blazar_sched import ext
from blazar_sched.domain import allocation
from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.replica import packing
from blazar_sched.replica import record

names = st.uuids().map(str) | st.text(min_size=1)
amounts = st.dictionaries(
    st.sampled_from([*inventory.RESOURCE_CLASSES, 'CUSTOM_GPU']),
    st.integers(1, ext.AMOUNT_LIMIT),
)
allocations = st.builds(
    allocation.Allocation,
    id=names,
    reservation_id=names,
    host=names,
    start=st.integers(0, window.TIME_LIMIT - 1),
    end=st.integers(0, window.TIME_LIMIT - 1) | st.just(window.FOREVER),
    amounts=amounts,
    whole=st.booleans(),
)


def unpacked(items):
    for item in json.loads(json.dumps(items)):
        if isinstance(item, str):
            yield from packing.unpack(item)
        else:
            yield tuple(item)


@given(st.lists(allocations, max_size=20), st.integers(1, 5))
@settings(deadline=None)
def test_come_back_as_they_were(given_, chunk):
    records = [record.encode(each) for each in given_]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, 'CHUNK', chunk)
        items = list(packing.compact(records))

    assert len(items) == -(-len(records) // chunk)
    assert list(unpacked(items)) == records


def test_an_amount_of_0_is_left_out(make):
    zero = {inventory.VCPU: 2, inventory.DISK_GB: 0}
    kind, key, data = record.encode(make.allocation('a1', 'h1', vcpus=2))

    [text] = packing.compact([(kind, key, data | {'amounts': zero})])

    assert list(packing.unpack(text)) == [(kind, key, data)]


def test_other_records_are_let_be(make):
    records = [
        record.encode(each) for each in (
            make.host('h1'),
            make.allocation('a1', 'h1', vcpus=2),
            make.instance('i1', 'h1'),
            make.allocation('a2', 'h1'),
        )
    ]

    items = list(packing.compact(records))

    assert items[:2] == [records[0], records[2]]
    assert list(unpacked(items[2:])) == [records[1], records[3]]


def test_columns_make_the_index():
    entries = [
        ('a1', 'r1', 'h2', 5, 9, (3, 0), False),
        ('a2', 'r1', 'h1', 5, ext.FOREVER, (0, 0), True),
    ]
    index, other = (ext.TimelineIndex(('VCPU', 'DISK_GB')) for _ in 'ab')
    index.apply([
        ('capacity', 'h1', (4, 9)),
        ('capacity', 'h2', (8, 9)),
        *(('add', *entry) for entry in entries),
    ])

    other.load(*packing.columns({'h1': (4, 9), 'h2': (8, 9)}, entries))

    assert other.dump() == index.dump()


@pytest.mark.parametrize(
    'entry',
    [
        ('a1', 'r1', 'nowhere', 5, 9, (3, 0), False),
        ('a1', 'r1', 'h1', 'soon', 9, (3, 0), False),
        ('a1', 'r1', 'h1', 5, 2**63, (3, 0), False),
        ('a1', 'r1', 'h1', 5, 9, (3, None), False),
        ('a1', 'r1', ['h1'], 5, 9, (3, 0), False),
    ],
    ids=str,
)
def test_what_is_no_entry_is_refused(entry):
    with pytest.raises(ValueError):
        packing.columns({'h1': (4, 9)}, [entry])
