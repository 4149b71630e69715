# SPDX-License-Identifier: Apache-2.0
"""The snapshot file: the last copy of the ledger, kept on disk.

Lines of JSON: a header, then the items of a full copy (see replica.packing),
some in each line, and at the end a checksum of all the lines above. It is
written beside its place and renamed into it, and read line by line once the
checksum was found right. Anything but a whole file of this version is refused.
"""

from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import dataclasses
import fcntl
import hashlib
import itertools
import json
import os
from typing import IO

from blazar_sched.replica import packing
from blazar_sched.replica import wire

FORMAT = 'blazar-sched snapshot'
# Items of a line, so that none holds the GIL for long.
BATCH = 20
_CHECKSUM = 'sha256 {}\n'
_CHECKSUM_LENGTH = len(_CHECKSUM.format(hashlib.sha256().hexdigest()))
_BLOCK = 1 << 20


class SnapshotError(ValueError):
    """The file is truncated, damaged, or not of this version."""


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of the ledger at `revision`, true at `written_at` (epoch).

    `items` come from the file, so once, and while it is open.
    """

    ledger: str
    revision: int
    written_at: int
    items: Iterator[packing.Item]


def write(
    path: str,
    ledger: str,
    revision: int,
    written_at: int,
    items: Iterable[packing.Item],
) -> None:
    """Replace the file at `path`; either all of it is new or none.

    :raises BlockingIOError: if another process is about it
    :raises OSError: if it cannot be written
    """
    header = {
        'format': FORMAT,
        'version': wire.WIRE_VERSION,
        'ledger': ledger,
        'revision': revision,
        'written_at': written_at,
    }
    checksum = hashlib.sha256()
    with _replacing(path) as file:
        for each in itertools.chain([header], _batches(items)):
            line = json.dumps(each).encode() + b'\n'
            checksum.update(line)
            file.write(line)
        file.write(_CHECKSUM.format(checksum.hexdigest()).encode())


@contextlib.contextmanager
def reading(path: str) -> Iterator[Snapshot]:
    """Open the file at `path` for as long as its items are read.

    :raises SnapshotError: if it cannot be used; while its items are read,
        another ValueError
    :raises OSError: if it cannot be read, or is not there
    """
    with open(path, 'rb') as file:
        length = _check(file)
        yield _snapshot(file, length)


def _batches(items: Iterable[packing.Item]) -> Iterator[list[packing.Item]]:
    items = iter(items)
    while batch := list(itertools.islice(items, BATCH)):
        yield batch


def _check(file: IO[bytes]) -> int:
    """Go back to the start of a whole file; return where its lines end."""
    length = os.fstat(file.fileno()).st_size - _CHECKSUM_LENGTH
    checksum = hashlib.sha256()
    for at in range(0, length, _BLOCK):
        checksum.update(file.read(min(_BLOCK, length - at)))
    if file.read() != _CHECKSUM.format(checksum.hexdigest()).encode():
        raise SnapshotError('it is truncated or damaged')
    file.seek(0)
    return length


def _snapshot(file: IO[bytes], length: int) -> Snapshot:
    header = json.loads(file.readline())
    try:
        if (header['format'], header['version']) != (
            FORMAT, wire.WIRE_VERSION
        ):
            raise SnapshotError('it is of another version')
        return Snapshot(
            str(header['ledger']),
            int(header['revision']),
            int(header['written_at']),
            _items(file, length),
        )
    except (KeyError, TypeError) as e:
        raise SnapshotError(f'not a header: {e}') from e


def _items(file: IO[bytes], length: int) -> Iterator[packing.Item]:
    while file.tell() < length:
        for each in json.loads(file.readline()):
            yield wire.item(each)


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[IO[bytes]]:
    """Open a file that takes the place of the one at `path` in the end.

    It always has the same name, so that whoever is killed meanwhile leaves
    nothing behind that stays; the lock, which the dead do not hold, keeps it
    to one writer.
    """
    new = f'{path}.new'
    with open(f'{path}.lock', 'wb', opener=_private) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with open(new, 'wb', opener=_private) as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                os.replace(new, path)
            except BaseException:
                os.unlink(new)
                raise


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
