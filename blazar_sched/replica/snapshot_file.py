# SPDX-License-Identifier: Apache-2.0
"""The snapshot file: the last copy of the ledger, kept on disk.

The file consists of lines of JSON: a header, then the items of a full copy
(see replica.packing), some in each line, then a checksum of all the lines
above, and at the end the time at which the copy was true. That time alone is
overwritten while the ledger does not change; everything else is written to a
new file that is renamed to the path. Any file that is not complete and of this
version is refused.

Beside the snapshot file is the list of the reservable hosts, with a uuid in
each line, and with the number of hosts in the last line, so that a truncated
list is not taken for a cloud with fewer hosts. The list has no version, so
that a worker of any version knows these hosts before it has a copy: for
workers that know no such number, the number has the form of a uuid.
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
import uuid

from oslo_utils import uuidutils

from blazar_sched.domain.settings import Settings
from blazar_sched.domain.settings import UNTOLD
from blazar_sched.replica import files
from blazar_sched.replica import packing
from blazar_sched.replica import record
from blazar_sched.replica import wire

FORMAT = 'blazar-sched snapshot'
# The suffix that is appended to the snapshot file's path.
HOSTS_SUFFIX = '.hosts'
# Items of a line, so that no line holds the GIL for long.
BATCH = 20
_DIGEST_LENGTH = len(hashlib.sha256().hexdigest())
_CHECKSUM = 'sha256 {}\n'
_CHECKSUM_LENGTH = len(_CHECKSUM.format('')) + _DIGEST_LENGTH
# The checksum of this line also covers the checksum line above.
_TRUE_AT = 'true_at {:020d} sha256 {}\n'
_TRUE_AT_LENGTH = len(_TRUE_AT.format(0, '')) + _DIGEST_LENGTH
_BLOCK = 1 << 20


class SnapshotError(ValueError):
    """A file that is truncated, damaged, or not of this version."""


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of the ledger at `revision`, true at `written_at` (epoch).

    `items` are read from the file: only once, and only while it is open.
    """

    ledger: str
    revision: int
    written_at: int
    items: Iterator[packing.Item]
    settings: Settings


def write(
    path: str, ledger: str, revision: int, written_at: int,
    items: Iterable[packing.Item], settings: Settings = UNTOLD,
) -> None:
    """Replace the snapshot file at `path`, and the list of hosts beside it.

    Each file is replaced as a whole or not at all.

    :raises BlockingIOError: if another process is writing the files
    :raises OSError: if a file cannot be written
    """
    hosts: list[str] = []
    checksum = hashlib.sha256()
    with files.locked(path), files.replacing(path) as file:
        for each in itertools.chain(
            [_header(ledger, revision, settings)],
            _batches(_noted(items, hosts)),
        ):
            line = json.dumps(each).encode() + b'\n'
            checksum.update(line)
            file.write(line)
        last = _CHECKSUM.format(checksum.hexdigest()).encode()
        file.write(last)
        file.write(_true_at(last, written_at))
        # The list is renamed before the snapshot file: after a process that
        # is killed here, the next write writes both files again.
        with files.replacing(path + HOSTS_SUFFIX, 0o644) as others:
            others.writelines(f'{h}\n'.encode() for h in sorted(hosts))
            others.write(f'{uuid.UUID(int=len(hosts))}\n'.encode())


def refresh(
    path: str, ledger: str, revision: int, written_at: int,
    settings: Settings = UNTOLD,
) -> bool:
    """Write to the file at `path` that its copy is still true.

    :returns: whether the file is of this revision and of these settings;
        otherwise the file is left unchanged, and has to be written anew
    :raises BlockingIOError: if another process is writing the file
    :raises OSError: if the file cannot be written, or does not exist
    """
    with files.locked(path), files.opened(path, 'r+b') as file:
        try:
            _listed_hosts(path)
            last, _ = _end(file)
            file.seek(0)
            found = json.loads(file.readline())
        except (ValueError, FileNotFoundError):
            return False
        if found != _header(ledger, revision, settings):
            return False
        file.seek(-_TRUE_AT_LENGTH, os.SEEK_END)
        file.write(_true_at(last, written_at))
        return True


@contextlib.contextmanager
def reading(path: str) -> Iterator[Snapshot]:
    """Open the file at `path` for as long as its items are read.

    :raises SnapshotError: if the file cannot be used; while its items are
        read, another ValueError
    :raises UntrustedFileError: if another user may have written the file
    :raises OSError: if the file cannot be read, or does not exist
    """
    with files.opened(path) as file:
        length, written_at = _check(file)
        yield _snapshot(file, length, written_at)


def read_hosts(path: str) -> frozenset[str]:
    """Return the uuids in the list of hosts beside the file at `path`.

    A list of another owner is accepted: a user who can put a list there could
    remove the list as well, and the worker's user may have changed.

    :raises SnapshotError: if the file is not a whole list of uuids
    :raises UntrustedFileError: if the file is not regular, or other users may
        write it
    :raises OSError: if the file cannot be read, or does not exist
    """
    found = _listed_hosts(path)
    for each in found:
        if not uuidutils.is_uuid_like(each):
            raise SnapshotError(f'not a list of uuids: {each[:40]!r}')
    return frozenset(found)


def _listed_hosts(path: str) -> list[str]:
    """Return the lines of the list of hosts, see `read_hosts`."""
    with files.opened(path + HOSTS_SUFFIX, any_owner=True) as file:
        text = file.read().decode(errors='replace')
    *found, count = text.splitlines() or ['']
    if count != str(uuid.UUID(int=len(found))):
        raise SnapshotError('the list is truncated or damaged')
    return found


def _header(ledger: str, revision: int, settings: Settings) -> dict[str, Any]:
    return {
        'format': FORMAT,
        **wire.FORMAT,
        'ledger': ledger,
        'revision': revision,
        'settings': settings.encode(),
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
    """Return the line with the time, for the checksum line `last`."""
    digest = hashlib.sha256(last + str(at).encode()).hexdigest()
    return _TRUE_AT.format(at, digest).encode()


def _end(file: IO[bytes]) -> tuple[bytes, int]:
    """Return the line with the checksum, and the time in the last line.

    :raises SnapshotError: if the end of the file is damaged
    """
    length = _CHECKSUM_LENGTH + _TRUE_AT_LENGTH
    file.seek(max(0, os.fstat(file.fileno()).st_size - length))
    last, true_at = file.read(_CHECKSUM_LENGTH), file.read()
    try:
        at = int(true_at.split()[1])
    except (IndexError, ValueError):
        at = 0
    if true_at != _true_at(last, at):
        raise SnapshotError('the file is truncated or damaged')
    return last, at


def _check(file: IO[bytes]) -> tuple[int, int]:
    """Check the whole file, then go back to its start.

    :returns: the position at which the items end, and the time at which the
        copy was true
    :raises SnapshotError: if the file is damaged
    """
    last, at = _end(file)
    length = file.tell() - _CHECKSUM_LENGTH - _TRUE_AT_LENGTH
    file.seek(0)
    checksum = hashlib.sha256()
    for start in range(0, length, _BLOCK):
        checksum.update(file.read(min(_BLOCK, length - start)))
    if last != _CHECKSUM.format(checksum.hexdigest()).encode():
        raise SnapshotError('the file is truncated or damaged')
    file.seek(0)
    return length, at


def _snapshot(file: IO[bytes], length: int, written_at: int) -> Snapshot:
    header = json.loads(file.readline())
    try:
        if header['format'] != FORMAT:
            raise SnapshotError('the file has another format')
        wire.require_readable(header['version'], header['oldest'])
        return Snapshot(
            str(header['ledger']), int(header['revision']), written_at,
            _items(file, length), wire.read_settings(header),
        )
    except wire.WireVersionError as e:
        raise SnapshotError('the file has another version') from e
    except (KeyError, TypeError) as e:
        raise SnapshotError(f'not a header: {e}') from e


def _items(file: IO[bytes], length: int) -> Iterator[packing.Item]:
    while file.tell() < length:
        for each in json.loads(file.readline()):
            yield wire.item(each)
