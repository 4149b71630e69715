# SPDX-License-Identifier: Apache-2.0
"""A stream's allocations are restored from their texts into the index."""

import json

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import pytest

from blazar_sched import ext
from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.domain.allocation import Allocation
from blazar_sched.ext import packed
from blazar_sched.replica import packing
from blazar_sched.replica import record

names = st.uuids().map(str) | st.text(min_size=1)
amounts = st.dictionaries(
    st.sampled_from(inventory.RESOURCE_CLASSES),
    st.integers(1, ext.AMOUNT_LIMIT),
)
allocations = st.builds(
    Allocation, id=names, reservation_id=names, host=names,
    start=st.integers(0, window.TIME_LIMIT - 1),
    end=st.integers(0, window.TIME_LIMIT - 1) | st.just(window.FOREVER),
    amounts=amounts, whole=st.booleans(),
)

ENTRY = ('a1', 'r1', 'h1', 5, 9, (3, 0, 0), False)


def columns(*entries):
    return packing.columns(*packing.transposed(entries))


@given(given_=st.lists(allocations, max_size=20), chunk=st.integers(1, 5))
@settings(deadline=None)
def test_packed_allocations_are_restored_exactly(
    as_items, as_records, given_, chunk
):
    records = [record.encode(each) for each in given_]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, 'CHUNK', chunk)
        items = json.loads(json.dumps(list(as_items(records))))
    assert len(items) == -(-len(records) // chunk)
    assert list(as_records(items)) == records


def test_many_take_little_room():
    id_ = '5bb0ef43-3d64-4a4a-9b5c-6a6d3b{:06x}'.format
    [text] = packing.texts(
        (id_(n), id_(n // 10), id_(n % 100), n, 9999, (4, 0, 0), False)
        for n in range(9000)
    )
    assert len(text) < 40 * 9000


def test_records_come_first_and_are_let_be(make):
    records = [record.encode(make.host('h1')), record.encode(make.host('h2'))]
    text = packing.pack(columns(ENTRY))
    first, then = packing.split([*records, text, text])
    assert list(first) == records
    assert [each[2] for each in then] == [['a1'], ['a1']]


def test_a_record_after_the_allocations_is_refused(make):
    text = packing.pack(columns(ENTRY))
    first, then = packing.split([text, record.encode(make.host('h1'))])
    assert list(first) == []
    with pytest.raises(ValueError):
        list(then)


def test_allocations_of_other_classes_are_refused():
    packet = packed.pack(('A', 'B', 'C'), columns(ENTRY))
    text = packing.base64.b64encode(packet)
    with pytest.raises(ValueError):
        packing.unpack(text.decode())


@pytest.mark.parametrize('damage', [
    lambda text: text[:-4],
    lambda text: text[4:],
    lambda text: text[:40] + ('A' if text[40] != 'A' else 'B') + text[41:],
    lambda text: '',
    lambda text: '?' + text[1:],
    lambda text: 'é' + text[1:],
], ids=['end', 'start', 'changed', 'empty', 'character', 'accent'])
def test_damaged_allocations_are_refused(damage):
    text = packing.pack(columns(ENTRY))
    with pytest.raises(ValueError):
        packing.unpack(damage(text))


@pytest.mark.parametrize('known', [(), ('h1',), ('h2',), ('h2', 'h1')])
def test_what_is_on_an_unknown_host_is_left_out(known):
    entries = [
        ENTRY,
        ('a2', 'r1', 'h2', 5, ext.FOREVER, (0, 0, 0), True),
        ('a3', 'r2', 'h1', 7, 8, (1, 2, 3), False),
    ]
    index, other = (
        ext.TimelineIndex(inventory.RESOURCE_CLASSES) for _ in 'ab'
    )
    index.apply([
        *(('capacity', host, (4, 9, 9)) for host in known),
        *(('add', *entry) for entry in entries if entry[2] in known),
    ])

    part, left_out = packing.placed(
        columns(*entries), {host: n for n, host in enumerate(known)}
    )
    other.load_parts(list(known), [4, 9, 9] * len(known), [part])

    assert left_out == [e[0] for e in entries if e[2] not in known]
    assert other.dump() == index.dump() | {'generation': 1}


@pytest.mark.parametrize('entry', [
    ('a1', 'r1', 'h1', 'soon', 9, (3, 0, 0), False),
    ('a1', 'r1', 'h1', 5, 2**63, (3, 0, 0), False),
    ('a1', 'r1', 'h1', 5, 9, (3, None, 0), False),
    ('a1', 'r1', ['h1'], 5, 9, (3, 0, 0), False),
], ids=str)
def test_what_is_no_entry_is_refused(entry):
    with pytest.raises(ValueError):
        columns(entry)
