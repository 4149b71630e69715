# SPDX-License-Identifier: Apache-2.0
"""The snapshot file: the last copy of the ledger, kept on disk.

Lines of JSON: a header, then the items of a full copy (see replica.packing),
some in each line, then a checksum of all the lines above, and at the end the
time that the copy was true at. That time alone is overwritten while the
ledger does not change; all else is written beside its place and renamed into
it. Anything but a whole file of this version is refused.

Beside the snapshot file is the list of the reservable hosts, a uuid in each
line: without a version, so that a worker of any version knows these hosts
before it has a copy.
"""

from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import dataclasses
import hashlib
import itertools
import json
import os
from typing import Any
from typing import IO

from oslo_utils import uuidutils

from blazar_sched.replica import files
from blazar_sched.replica import packing
from blazar_sched.replica import record
from blazar_sched.replica import wire

FORMAT = 'blazar-sched snapshot'
# What is appended to the snapshot file's path.
HOSTS_SUFFIX = '.hosts'
# Items of a line, so that none holds the GIL for long.
BATCH = 20
_DIGEST_LENGTH = len(hashlib.sha256().hexdigest())
_CHECKSUM = 'sha256 {}\n'
_CHECKSUM_LENGTH = len(_CHECKSUM.format('')) + _DIGEST_LENGTH
# Its own checksum is of the one above it, too.
_TRUE_AT = 'true_at {:020d} sha256 {}\n'
_TRUE_AT_LENGTH = len(_TRUE_AT.format(0, '')) + _DIGEST_LENGTH
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
    """Replace the file at `path`, and the list of hosts beside it.

    Either all of a file is new or none.

    :raises BlockingIOError: if another process is about it
    :raises OSError: if they cannot be written
    """
    hosts: list[str] = []
    checksum = hashlib.sha256()
    with files.locked(path), files.replacing(path) as file:
        for each in itertools.chain(
            [_header(ledger, revision)], _batches(_noted(items, hosts))
        ):
            line = json.dumps(each).encode() + b'\n'
            checksum.update(line)
            file.write(line)
        last = _CHECKSUM.format(checksum.hexdigest()).encode()
        file.write(last)
        file.write(_true_at(last, written_at))
        # First in its place: what is killed now writes both again.
        with files.replacing(path + HOSTS_SUFFIX, 0o644) as others:
            others.writelines(f'{h}\n'.encode() for h in sorted(hosts))


def refresh(path: str, ledger: str, revision: int, written_at: int) -> bool:
    """Say in the file at `path` that its copy is still true.

    :returns: whether the file is of this revision; otherwise it is left as
        it is, and has to be written anew
    :raises BlockingIOError: if another process is about it
    :raises OSError: if it cannot be written, or is not there
    """
    with files.locked(path), files.opened(path, 'r+b') as file:
        if not os.path.exists(path + HOSTS_SUFFIX):
            return False
        try:
            last, _ = _end(file)
            file.seek(0)
            found = json.loads(file.readline())
        except ValueError:
            return False
        if found != _header(ledger, revision):
            return False
        file.seek(-_TRUE_AT_LENGTH, os.SEEK_END)
        file.write(_true_at(last, written_at))
        return True


@contextlib.contextmanager
def reading(path: str) -> Iterator[Snapshot]:
    """Open the file at `path` for as long as its items are read.

    :raises SnapshotError: if it cannot be used; while its items are read,
        another ValueError
    :raises UntrustedFileError: if another user may have written it
    :raises OSError: if it cannot be read, or is not there
    """
    with files.opened(path) as file:
        length, written_at = _check(file)
        yield _snapshot(file, length, written_at)


def read_hosts(path: str) -> frozenset[str]:
    """Return the uuids in the list of hosts beside the file at `path`.

    A list of another owner will do: whoever can put a list there could take
    it away as well, and the worker's user may have changed.

    :raises SnapshotError: if it is not a list of uuids
    :raises UntrustedFileError: if it is no regular file, or all may write it
    :raises OSError: if it cannot be read, or is not there
    """
    with files.opened(path + HOSTS_SUFFIX, any_owner=True) as file:
        found = frozenset(file.read().decode(errors='replace').split())
    for each in found:
        if not uuidutils.is_uuid_like(each):
            raise SnapshotError(f'it is no list of uuids: {each[:40]!r}')
    return found


def _header(ledger: str, revision: int) -> dict[str, Any]:
    return {
        'format': FORMAT,
        'version': wire.WIRE_VERSION,
        'ledger': ledger,
        'revision': revision,
    }


def _noted(
    items: Iterable[packing.Item], hosts: list[str]
) -> Iterator[packing.Item]:
    """Yield the items, and add the uuids of hosts among them to `hosts`."""
    for each in items:
        if not isinstance(each, str) and each[0] == record.HOST:
            hosts.append(each[1])
        yield each


def _batches(items: Iterable[packing.Item]) -> Iterator[list[packing.Item]]:
    items = iter(items)
    while batch := list(itertools.islice(items, BATCH)):
        yield batch


def _true_at(last: bytes, at: int) -> bytes:
    """Return the line of the time, for a file whose checksum is `last`."""
    digest = hashlib.sha256(last + str(at).encode()).hexdigest()
    return _TRUE_AT.format(at, digest).encode()


def _end(file: IO[bytes]) -> tuple[bytes, int]:
    """Return the line with the checksum, and the time in the last line.

    :raises SnapshotError: if the end is damaged
    """
    length = _CHECKSUM_LENGTH + _TRUE_AT_LENGTH
    file.seek(max(0, os.fstat(file.fileno()).st_size - length))
    last, true_at = file.read(_CHECKSUM_LENGTH), file.read()
    try:
        at = int(true_at.split()[1])
    except (IndexError, ValueError):
        at = 0
    if true_at != _true_at(last, at):
        raise SnapshotError('it is truncated or damaged')
    return last, at


def _check(file: IO[bytes]) -> tuple[int, int]:
    """Go back to the start of a whole file.

    :returns: where its items end, and the time that it was true at
    :raises SnapshotError: if it is damaged
    """
    last, at = _end(file)
    length = file.tell() - _CHECKSUM_LENGTH - _TRUE_AT_LENGTH
    file.seek(0)
    checksum = hashlib.sha256()
    for start in range(0, length, _BLOCK):
        checksum.update(file.read(min(_BLOCK, length - start)))
    if last != _CHECKSUM.format(checksum.hexdigest()).encode():
        raise SnapshotError('it is truncated or damaged')
    file.seek(0)
    return length, at


def _snapshot(file: IO[bytes], length: int, written_at: int) -> Snapshot:
    header = json.loads(file.readline())
    try:
        if (header['format'], header['version']) != (
            FORMAT, wire.WIRE_VERSION
        ):
            raise SnapshotError('it is of another version')
        return Snapshot(
            str(header['ledger']),
            int(header['revision']),
            written_at,
            _items(file, length),
        )
    except (KeyError, TypeError) as e:
        raise SnapshotError(f'not a header: {e}') from e


def _items(file: IO[bytes], length: int) -> Iterator[packing.Item]:
    while file.tell() < length:
        for each in json.loads(file.readline()):
            yield wire.item(each)
