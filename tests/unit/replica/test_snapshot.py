# SPDX-License-Identifier: Apache-2.0
"""The file comes back whole or not at all."""

import hashlib
import json
import os
import signal

import pytest

from blazar_sched.replica import record
from blazar_sched.replica import snapshot

LEDGER = '5bb0ef43-3d64-4a4a-9b5c-6a6d3b1d7c35'
WRITTEN_AT = 1_900_000_000


@pytest.fixture
def items(make, as_items):
    return list(as_items([
        ('host', 'h1', {'uuid': 'h1', 'hypervisor_hostname': 'nodé\n1'}),
        record.encode(make.allocation('a1', 'h1', end=2**63 - 1)),
    ]))


@pytest.fixture
def path(tmp_path, items):
    path = str(tmp_path / 'snapshot')
    snapshot.write(path, LEDGER, 5, WRITTEN_AT, items)
    return path


def read(path):
    with snapshot.reading(path) as kept:
        return (
            kept.ledger, kept.revision, kept.written_at, list(kept.items)
        )


def test_comes_back_as_written(path, items):
    assert read(path) == (LEDGER, 5, WRITTEN_AT, items)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read(str(tmp_path / 'none'))


def test_replaces_the_one_before(path):
    snapshot.write(path, LEDGER, 6, WRITTEN_AT + 1, [])

    assert read(path)[1] == 6
    assert not os.path.exists(path + '.new')


def test_truncated_anywhere_is_refused(path):
    with open(path, 'rb') as file:
        whole = file.read()

    for length in range(len(whole)):
        with open(path, 'wb') as file:
            file.write(whole[:length])
        with pytest.raises(snapshot.SnapshotError):
            read(path)


def test_damaged_anywhere_is_refused(path):
    with open(path, 'rb') as file:
        whole = file.read()

    for at in range(len(whole)):
        with open(path, 'wb') as file:
            file.write(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        with pytest.raises(snapshot.SnapshotError):
            read(path)


def test_another_version_is_refused(path, monkeypatch):
    monkeypatch.setattr(snapshot.wire, 'WIRE_VERSION', 1)

    with pytest.raises(snapshot.SnapshotError, match='version'):
        read(path)


@pytest.mark.parametrize(
    'header', [b'[]', b'7', b'{}', b'"x"', b'{"format": 1, "version": []}']
)
def test_a_header_of_something_else_is_refused(tmp_path, header):
    path = tmp_path / 'snapshot'
    lines = header + b'\n'
    digest = hashlib.sha256(lines).hexdigest()
    path.write_bytes(lines + f'sha256 {digest}\n'.encode())

    with pytest.raises(snapshot.SnapshotError):
        read(str(path))


def test_failed_write_leaves_the_one_before(path, items):
    def failing():
        yield items[0]
        raise OSError('no space left on device')

    with pytest.raises(OSError):
        snapshot.write(path, LEDGER, 6, WRITTEN_AT, failing())

    assert read(path)[1] == 5
    assert not os.path.exists(path + '.new')


def test_two_do_not_write_at_once(path, items):
    def slow():
        yield items[0]
        with pytest.raises(BlockingIOError):
            snapshot.write(path, LEDGER, 7, WRITTEN_AT, items)
        yield from items[1:]

    snapshot.write(path, LEDGER, 6, WRITTEN_AT, slow())

    assert read(path)[1] == 6
    snapshot.write(path, LEDGER, 7, WRITTEN_AT, items)
    assert read(path)[1] == 7


def test_who_is_killed_while_writing_leaves_no_more_than_one_file(
    path, items
):
    def killed():
        yield items[0]
        os.kill(os.getpid(), signal.SIGKILL)

    for _ in range(2):
        child = os.fork()
        if child == 0:
            snapshot.write(path, LEDGER, 6, WRITTEN_AT, killed())
        assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert read(path)[1] == 5
    assert sorted(os.listdir(os.path.dirname(path))) == [
        'snapshot', 'snapshot.lock', 'snapshot.new',
    ]

    snapshot.write(path, LEDGER, 7, WRITTEN_AT, items)

    assert read(path)[1] == 7
    assert not os.path.exists(path + '.new')


def test_only_its_owner_may_read_it(path):
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_file_is_readable_by_people(path):
    with open(path) as file:
        header = json.loads(file.readline())

    assert header['ledger'] == LEDGER
    assert header['revision'] == 5
