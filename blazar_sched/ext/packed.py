# SPDX-License-Identifier: Apache-2.0
"""Serialization of the columns of an index.

All numbers are little-endian. The bytes begin with a header of magic and
version, and end with a CRC-32 of all bytes before it. Between them are nine
sections, each preceded by its length in bytes:

- the resource classes, the hosts, the ids and the distinct owners have two
  sections each: the length of each name, and the names in UTF-8. If all names
  are UUIDs, the first section is empty and the second one has 16 bytes for
  each name;
- the last section has the numbers, compressed: capacities, owners (positions
  among the distinct owners), rows, starts, ends, amounts, wholes.

The checksum detects damage; it does not protect against forgery. Reading any
bytes takes memory in proportion to their length.
"""

from __future__ import annotations

import array
import collections
from collections.abc import Iterable
from collections.abc import Sequence
import itertools
import struct
import sys
from typing import TypeAlias
import zlib

from blazar_sched.ext import errors

Numbers: TypeAlias = 'array.array[int]'
# hosts, capacity, ids, owners, rows, starts, ends, amounts, whole: the result
# of TimelineIndex.columns() and the arguments of TimelineIndex.load().
Columns = tuple[
    list[str], Numbers, list[str], list[str], Numbers, Numbers, Numbers,
    Numbers, bytes,
]  # fmt: skip

MAGIC = b'timeline'
VERSION = 1

_HEADER = struct.Struct('<8sH')
_LENGTH = struct.Struct('<Q')
_CHECKSUM = struct.Struct('<I')
_SECTIONS = 9
# A UUID without its digits, and the positions of the digits.
_UUID = b'........-....-....-....-............\n'
_DIGITS = [at for at, character in enumerate(_UUID) if character == ord('.')]
# Stands for FOREVER; each finite time is smaller.
_NEVER = errors.TIME_LIMIT


def pack(resource_classes: Sequence[str], columns: Columns) -> bytes:
    """Return the columns of an index with these resource classes as bytes.

    :raises TimelineError: if a column has a wrong length, or a value that is
        not valid in an index
    """
    hosts, capacity, ids, owners, rows, starts, ends, amounts, whole = columns
    width, count = len(resource_classes), len(ids)
    # Each owner gets the next number at its first lookup.
    distinct: collections.defaultdict[str, int] = collections.defaultdict()
    distinct.default_factory = distinct.__len__
    if width > errors.CLASSES_LIMIT:
        raise errors.InvalidName('resource_classes', resource_classes)
    if _NEVER in ends:
        raise errors.InvalidWindow('ends', _NEVER)
    numbers = b''.join((
        _dump('capacity', 'i', capacity, len(hosts) * width),
        _dump('owners', 'I', map(distinct.__getitem__, owners), count),
        _dump('rows', 'I', rows, count),
        _dump('starts', 'I', starts, count),
        _dump(
            'ends', 'I',
            [_NEVER if end == errors.FOREVER else end for end in ends], count,
        ),
        _dump('amounts', 'i', amounts, count * width),
        _dump('whole', 'B', [bool(each) for each in whole], count),
    ))
    if count and max(rows) >= len(hosts):
        raise errors.UnknownHost(max(rows))
    sections = (
        *_dump_names('resource_classes', list(resource_classes)),
        *_dump_names('hosts', hosts),
        *_dump_names('id', ids),
        *_dump_names('owner', list(distinct)),
        zlib.compress(numbers, 1),
    )
    body = b''.join((
        _HEADER.pack(MAGIC, VERSION),
        *itertools.chain.from_iterable(
            (_LENGTH.pack(len(section)), section) for section in sections
        ),
    ))
    return body + _CHECKSUM.pack(zlib.crc32(body))


def unpack(data: bytes) -> tuple[tuple[str, ...], Columns]:
    """Return the packed resource classes and columns.

    The columns have the lengths that TimelineIndex.load requires, and each
    owner and row exists; TimelineIndex.load checks everything else.

    :raises DamagedSnapshot: if the bytes are not the complete result of
        `pack` in this version
    """
    try:
        return _unpack(data)
    except (zlib.error, UnicodeDecodeError) as e:
        raise errors.DamagedSnapshot(str(e)) from e


def _unpack(data: bytes) -> tuple[tuple[str, ...], Columns]:
    sections = _sections(data)
    resource_classes, hosts, ids, distinct = map(
        _load_names, sections[0:8:2], sections[1:8:2]
    )
    width, count = len(resource_classes), len(ids)
    # The bytes of the names and the limit of classes bound the numbers.
    if width > errors.CLASSES_LIMIT:
        raise errors.DamagedSnapshot('its resource classes are too many')
    capacity, owners, rows, starts, ends, amounts, whole = _load(
        sections[8],
        (
            ('i', len(hosts) * width), ('I', count), ('I', count),
            ('I', count), ('I', count), ('i', count * width), ('B', count),
        ),
    )
    if (
        max(rows, default=-1) >= len(hosts)
        or max(owners, default=-1) >= len(distinct)
        or max(whole, default=0) > 1
    ):
        raise errors.DamagedSnapshot('a number is out of range')
    return tuple(resource_classes), (
        hosts,
        array.array('q', capacity),
        ids,
        [distinct[n] for n in owners],
        array.array('q', rows),
        array.array('q', starts),
        array.array(
            'q', [errors.FOREVER if end == _NEVER else end for end in ends]
        ),
        array.array('q', amounts),
        bytes(whole),
    )


def _sections(data: bytes) -> list[memoryview]:
    """Return the sections, after checks of the version and the checksum."""
    if len(data) < _HEADER.size + _CHECKSUM.size:
        raise errors.DamagedSnapshot('it is truncated')
    magic, version = _HEADER.unpack_from(data)
    if magic != MAGIC or version != VERSION:
        raise errors.DamagedSnapshot('it is of another version')
    body = memoryview(data)[:-_CHECKSUM.size]
    if _CHECKSUM.pack(zlib.crc32(body)) != data[-_CHECKSUM.size:]:
        raise errors.DamagedSnapshot('the checksum does not match')
    sections = []
    at = _HEADER.size
    for _ in range(_SECTIONS):
        begin = at + _LENGTH.size
        at = begin + int.from_bytes(body[at:begin], 'little')
        sections.append(body[begin:at])
    if at != len(body):
        raise errors.DamagedSnapshot('its lengths do not add up')
    return sections


def _dump(
    field: str, typecode: str, values: Iterable[int], length: int
) -> bytes:
    try:
        column = array.array(typecode, values)
    except (OverflowError, TypeError) as e:
        raise errors.InvalidField(field, str(e)) from e
    if len(column) != length:
        raise errors.InvalidColumn(field, len(column), length)
    return _little_endian(column).tobytes()


def _load(
    section: memoryview, layout: Iterable[tuple[str, int]]
) -> list[Numbers]:
    """Return one array for each (typecode, length) of the layout."""
    columns = [(array.array(typecode), length) for typecode, length in layout]
    size = sum(column.itemsize * length for column, length in columns)
    unpacker = zlib.decompressobj()
    numbers = memoryview(unpacker.decompress(section, size + 1))
    if len(numbers) != size or not unpacker.eof or unpacker.unused_data:
        raise errors.DamagedSnapshot('its lengths do not add up')
    at = 0
    for column, length in columns:
        end = at + column.itemsize * length
        column.frombytes(numbers[at:end])
        at = end
    return [_little_endian(column) for column, _ in columns]


def _little_endian(column: Numbers) -> Numbers:
    if sys.byteorder == 'big':
        column.byteswap()
    return column


def _dump_names(field: str, names: Sequence[str]) -> tuple[bytes, bytes]:
    """Return the lengths of names and the names; no lengths for UUIDs."""
    try:
        text = ''.join(names)
    except TypeError as e:
        raise errors.InvalidName(field, str(e)) from e
    try:
        uuids = bytes.fromhex(text.replace('-', ''))
    except ValueError:
        uuids = b''
    # fromhex accepts spellings of a UUID that are not canonical.
    if len(uuids) == 16 * len(names) and _lines(uuids) == '\n'.join(names):
        return b'', uuids
    return (
        _dump(field, 'I', map(len, names), len(names)),
        text.encode('utf-8', 'surrogatepass'),
    )


def _load_names(lengths: memoryview, names: memoryview) -> list[str]:
    if not lengths:
        if len(names) % 16:
            raise errors.DamagedSnapshot('a name is cut short')
        return _lines(names).splitlines()
    column = array.array('I')
    if len(lengths) % column.itemsize:
        raise errors.DamagedSnapshot('a length is cut short')
    column.frombytes(lengths)
    text = str(names, 'utf-8', 'surrogatepass')
    borders = list(itertools.accumulate(_little_endian(column), initial=0))
    if borders[-1] != len(text):
        raise errors.DamagedSnapshot('its lengths do not add up')
    return [text[at:end] for at, end in itertools.pairwise(borders)]


def _lines(uuids: bytes | memoryview) -> str:
    """Return UUIDs of 16 bytes each as lines of text.

    Each step writes one digit of all UUIDs, because its loop runs in C.
    """
    digits = uuids.hex().encode()
    lines = bytearray(_UUID * (len(uuids) // 16))
    for number, at in enumerate(_DIGITS):
        lines[at::len(_UUID)] = digits[number::len(_DIGITS)]
    return lines[:-1].decode()
