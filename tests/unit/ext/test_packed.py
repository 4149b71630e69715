# SPDX-License-Identifier: Apache-2.0
"""Columns are restored from bytes exactly, or refused."""

import array
import struct
import tracemalloc
import uuid
import zlib

from hypothesis import given
from hypothesis import strategies as st
import pytest

from blazar_sched import ext
from blazar_sched.ext import packed
from blazar_sched.ext import timeline_index

CLASSES = ('VCPU', 'MEMORY_MB')
A, B = (str(uuid.UUID(int=n << 120 | n)) for n in (0xAB, 0xCD))
TWINS = pytest.mark.parametrize(
    'twin', [timeline_index.TimelineIndex, ext.TimelineIndex]
)


def numbers(*values):
    return array.array('q', values)


COLUMNS = (
    [A, 'compute-1'],
    numbers(64, 1024, 0, 0),
    [A, B],
    ['r1', 'r1'],
    numbers(1, 0),
    numbers(0, ext.TIME_LIMIT - 2),
    numbers(1, ext.FOREVER),
    numbers(0, 0, -ext.AMOUNT_LIMIT, ext.AMOUNT_LIMIT),
    b'\1\0',
)
EMPTY = (
    [], numbers(), [], [], numbers(), numbers(), numbers(), numbers(), b'',
)

uuids = st.uuids().map(str)
# Any character, including half of a surrogate pair.
texts = st.text(st.characters(exclude_categories=()), min_size=1)
names = st.one_of(
    uuids, texts, uuids.map(str.upper), uuids.map(lambda each: each + '\n'),
    st.text('0123456789abcdef-\n ', min_size=1),
)
times = st.integers(0, ext.TIME_LIMIT - 1)
amounts = st.integers(-ext.AMOUNT_LIMIT, ext.AMOUNT_LIMIT)


@st.composite
def columns(draw):
    """Generate resource classes and columns of the right lengths."""
    def several(values, least, most):
        return draw(st.lists(values, min_size=least, max_size=most))

    name = draw(st.sampled_from([uuids, names]))
    classes = tuple(several(names, 0, 3))
    hosts = several(name, 1, 4)
    ids = several(name, 0, 6)
    count, width = len(ids), len(classes)
    return classes, (
        hosts, numbers(*several(amounts, *[len(hosts) * width] * 2)), ids,
        several(name, count, count),
        numbers(*several(st.integers(0, len(hosts) - 1), count, count)),
        numbers(*several(times, count, count)),
        numbers(*several(times | st.just(ext.FOREVER), count, count)),
        numbers(*several(amounts, *[count * width] * 2)),
        bytes(several(st.integers(0, 1), count, count)),
    )


@given(columns())
def test_packed_columns_are_restored_exactly(given_):
    back = packed.unpack(packed.pack(*given_))
    assert back == given_
    assert [type(each) for each in back[1]] == [type(e) for e in given_[1]]


@TWINS
def test_makes_the_same_index(twin):
    index = twin(CLASSES)
    index.apply([
        ('capacity', 'h1', (8, 100)),
        ('capacity', A, (8, 100)),
        ('add', B, 'r1', A, 5, ext.FOREVER, (1, -2), False),
        ('add', 'i2', 'r1', A, 5, 9, (0, 0), True),
        ('add', 'i3', 'r2', 'h1', 0, 1, (3, 0), False),
    ], force=True)
    other = twin(CLASSES)
    _, back = packed.unpack(packed.pack(CLASSES, index.columns()))
    other.load(*back)
    assert other.dump() | {'generation': 0} == (
        index.dump() | {'generation': 0}
    )


def test_empty_columns_are_restored():
    assert packed.unpack(packed.pack((), EMPTY)) == ((), EMPTY)


@given(columns(), st.data())
def test_no_changed_byte_goes_unnoticed(given_, data):
    whole = bytearray(packed.pack(*given_))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ext.DamagedSnapshot):
        packed.unpack(bytes(whole))


def test_no_changed_bit_goes_unnoticed():
    whole = packed.pack(CLASSES, COLUMNS)
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ext.DamagedSnapshot):
            packed.unpack(bytes(damaged))


def test_another_length_is_refused():
    whole = packed.pack(CLASSES, COLUMNS)
    for other in (*(whole[:n] for n in range(len(whole))), whole + b'\0'):
        with pytest.raises(ext.DamagedSnapshot):
            packed.unpack(other)


def test_another_version_is_refused(monkeypatch):
    whole = packed.pack(CLASSES, COLUMNS)
    monkeypatch.setattr(packed, 'VERSION', packed.VERSION + 1)
    with pytest.raises(ext.DamagedSnapshot, match='version'):
        packed.unpack(whole)


def sections_of(whole):
    """Return the sections of a packet, without header and checksum."""
    sections, at = [], 10
    while at < len(whole) - 4:
        length = int.from_bytes(whole[at:at + 8], 'little')
        sections.append(whole[at + 8:at + 8 + length])
        at += 8 + length
    return sections


def sealed(body):
    """Return a packet with a right header and checksum around any bytes."""
    body = packed.MAGIC + struct.pack('<H', packed.VERSION) + body
    return body + struct.pack('<I', zlib.crc32(body))


def packet(sections):
    return sealed(b''.join(
        len(each).to_bytes(8, 'little') + each for each in sections
    ))


class TestForged:
    """A right checksum over invalid content."""

    SECTIONS = sections_of(packed.pack(CLASSES, COLUMNS))
    NUMBERS = zlib.decompress(SECTIONS[8])

    @pytest.mark.parametrize('at', range(9))
    @pytest.mark.parametrize(
        'other', [b'\0', b'\xff' * 7, bytes(16), b'\xff' * 400],
        ids=['one', 'odd', 'sixteen', 'many'],
    )
    def test_other_section(self, at, other):
        sections = list(self.SECTIONS)
        sections[at] = other
        with pytest.raises(ext.DamagedSnapshot):
            packed.unpack(packet(sections))

    @pytest.mark.parametrize('count', [0, 8, 10])
    def test_sections_too_few_or_too_many(self, count):
        with pytest.raises(ext.DamagedSnapshot):
            packed.unpack(packet([*self.SECTIONS, b''][:count]))

    @pytest.mark.parametrize('length', [1, 2**32, 2**64 - 1])
    def test_length_beyond_the_end(self, length):
        with pytest.raises(ext.DamagedSnapshot):
            packed.unpack(sealed(length.to_bytes(8, 'little')))

    # Capacities take 16 bytes, then two owners, two rows.
    @pytest.mark.parametrize('at', [16, 24, -1], ids=['owner', 'row', 'whole'])
    def test_number_that_leads_nowhere(self, at):
        changed = bytearray(self.NUMBERS)
        changed[at] = 2
        with pytest.raises(ext.DamagedSnapshot, match='out of range'):
            packed.unpack(
                packet([*self.SECTIONS[:8], zlib.compress(bytes(changed))])
            )

    @pytest.mark.parametrize('section', [
        SECTIONS[8][:-1], SECTIONS[8] + b'\0', zlib.compress(NUMBERS + b'\0'),
        zlib.compress(NUMBERS[:-1]),
    ], ids=['cut', 'followed', 'longer', 'shorter'])
    def test_numbers_that_do_not_add_up(self, section):
        with pytest.raises(ext.DamagedSnapshot):
            packed.unpack(packet([*self.SECTIONS[:8], section]))

    def test_takes_no_more_memory_than_it_may(self):
        bomb = zlib.compress(bytes(1 << 28), 9)
        # Names of length 0.
        few, many = bytes(4 * ext.CLASSES_LIMIT), bytes(4 << 16)
        packets = [
            packet([*self.SECTIONS[:8], bomb]),
            packet([many, b'', *self.SECTIONS[2:8], bomb]),
            packet([few, b'', many, b'', many, b'', many, b'', bomb]),
        ]
        for each in packets:
            tracemalloc.start()
            with pytest.raises(ext.DamagedSnapshot):
                packed.unpack(each)
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert most < 100 * len(each)


@pytest.mark.parametrize('at, other, refusal', [
    (0, [A, None], ext.InvalidName),
    (0, [A], ext.InvalidColumn),
    (1, numbers(1, 2, 3), ext.InvalidColumn),
    (1, numbers(1, 2, 3, 2**31), ext.TimelineError),
    (2, [A, 7], ext.InvalidName),
    (2, [A], ext.InvalidColumn),
    (3, ['r1'], ext.InvalidColumn),
    (3, ['r1', None], ext.InvalidName),
    (4, numbers(0, 2), ext.UnknownHost),
    (4, numbers(0, -1), ext.TimelineError),
    (5, numbers(0), ext.InvalidColumn),
    (5, numbers(0, ext.FOREVER), ext.TimelineError),
    (6, numbers(1, ext.TIME_LIMIT), ext.InvalidWindow),
    (6, [1, 2.5], ext.TimelineError),
    (7, numbers(1), ext.InvalidColumn),
    (8, b'\1', ext.InvalidColumn),
])
def test_what_no_index_holds_is_refused(at, other, refusal):
    wrong = (*COLUMNS[:at], other, *COLUMNS[at + 1:])
    with pytest.raises(refusal):
        packed.pack(CLASSES, wrong)


def test_too_many_classes_are_refused():
    classes = [f'c{n}' for n in range(ext.CLASSES_LIMIT + 1)]
    with pytest.raises(ext.InvalidName):
        packed.pack(classes, EMPTY)


def test_uuids_take_sixteen_bytes():
    def length(ids):
        zeros = numbers(*[0] * len(ids))
        return len(packed.pack((), (
            [A], numbers(), ids, ids, zeros, zeros, zeros, numbers(),
            bytes(len(ids)),
        )))

    ids = [str(uuid.UUID(int=n << 120)) for n in range(100)]
    assert length(ids) < 100 * (16 + 16 + 4)
    assert length([*ids[:-1], 'another']) > 100 * (36 + 36)
