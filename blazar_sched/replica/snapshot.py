# SPDX-License-Identifier: Apache-2.0
"""The snapshot file: the last copy of the ledger, kept on disk.

Lines of JSON, so that writing one never holds the GIL for long: a header, a
line for each record or for some thousand allocations (see replica.packing),
and at the end a checksum of all the lines above. It is written beside its
place and renamed into it. Anything but a whole file of this version is
refused.
"""

from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import dataclasses
import hashlib
import json
import os
import tempfile
from typing import Any
from typing import IO

from blazar_sched.replica import packing
from blazar_sched.replica import record
from blazar_sched.replica import wire

FORMAT = 'blazar-sched snapshot'
_CHECKSUM = b'sha256 '


class SnapshotError(ValueError):
    """The file is truncated, damaged, or not of this version."""


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of the ledger at `revision`, true at `written_at` (epoch)."""

    ledger: str
    revision: int
    written_at: int
    records: list[record.Record]


def write(
    path: str,
    ledger: str,
    revision: int,
    written_at: int,
    records: Iterable[record.Record],
) -> None:
    """Replace the file at `path`; either all of it is new or none.

    :raises OSError: if it cannot be written
    """
    header = {
        'format': FORMAT,
        'version': wire.WIRE_VERSION,
        'ledger': ledger,
        'revision': revision,
        'written_at': written_at,
    }
    with _replacing(path) as file:
        checksum = hashlib.sha256()
        for line in _lines(header, records):
            checksum.update(line)
            file.write(line)
        file.write(_CHECKSUM + checksum.hexdigest().encode() + b'\n')


def read(path: str) -> Snapshot | None:
    """Return what the file at `path` holds, None if there is no file.

    :raises SnapshotError: if it cannot be used
    :raises OSError: if it cannot be read
    """
    try:
        with open(path, 'rb') as file:
            return _parse(file)
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[IO[bytes]]:
    directory = os.path.dirname(os.path.abspath(path))
    handle, name = tempfile.mkstemp(
        dir=directory, prefix=os.path.basename(path) + '.'
    )
    try:
        with open(handle, 'wb') as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _lines(
    header: dict[str, Any], records: Iterable[record.Record]
) -> Iterator[bytes]:
    yield json.dumps(header).encode() + b'\n'
    for each in packing.compact(records):
        yield json.dumps(each).encode() + b'\n'


def _parse(file: IO[bytes]) -> Snapshot:
    checksum = hashlib.sha256()
    lines = []
    for line in file:
        if line.startswith(_CHECKSUM):
            if line != _CHECKSUM + checksum.hexdigest().encode() + b'\n':
                raise SnapshotError('the checksum does not match')
            break
        checksum.update(line)
        lines.append(line)
    else:
        raise SnapshotError('it is truncated')
    try:
        return _snapshot([json.loads(line) for line in lines])
    except (ValueError, KeyError, TypeError, IndexError) as e:
        raise SnapshotError(str(e)) from e


def _snapshot(lines: list[Any]) -> Snapshot:
    header = lines[0]
    if header['format'] != FORMAT or header['version'] != wire.WIRE_VERSION:
        raise SnapshotError('it is of another version')
    page = wire.parse_snapshot(
        {**header, 'records': lines[1:], 'next': None}
    )
    return Snapshot(
        page.ledger, page.revision, int(header['written_at']), page.records
    )
