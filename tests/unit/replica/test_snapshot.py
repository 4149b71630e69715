# SPDX-License-Identifier: Apache-2.0
"""The file comes back whole or not at all."""

import json
import os
import uuid

import pytest

from blazar_sched.replica import record
from blazar_sched.replica import snapshot

LEDGER = '5bb0ef43-3d64-4a4a-9b5c-6a6d3b1d7c35'
WRITTEN_AT = 1_900_000_000


@pytest.fixture
def records(make):
    return [
        ('host', 'h1', {'uuid': 'h1', 'hypervisor_hostname': 'nodé\n1'}),
        record.encode(make.allocation('a1', 'h1', end=2**63 - 1)),
    ]


@pytest.fixture
def path(tmp_path, records):
    path = str(tmp_path / 'snapshot')
    snapshot.write(path, LEDGER, 5, WRITTEN_AT, records)
    return path


def test_comes_back_as_written(path, records):
    assert snapshot.read(path) == snapshot.Snapshot(
        LEDGER, 5, WRITTEN_AT, records
    )


def test_many_allocations_take_little_room(tmp_path, make):
    path = str(tmp_path / 'snapshot')
    hosts = [str(uuid.uuid4()) for _ in range(100)]
    records = [
        record.encode(
            make.allocation(str(uuid.uuid4()), host, start, vcpus=4, end=9999)
        )
        for host in hosts for start in range(100)
    ]

    snapshot.write(path, LEDGER, 5, WRITTEN_AT, records)

    assert snapshot.read(path).records == records
    assert os.path.getsize(path) < 40 * len(records)


def test_no_file_is_no_error(tmp_path):
    assert snapshot.read(str(tmp_path / 'none')) is None


def test_replaces_the_one_before(path):
    snapshot.write(path, LEDGER, 6, WRITTEN_AT + 1, [])

    assert snapshot.read(path).revision == 6
    assert os.listdir(os.path.dirname(path)) == ['snapshot']


def test_truncated_anywhere_is_refused(path):
    with open(path, 'rb') as file:
        whole = file.read()

    for length in range(len(whole)):
        with open(path, 'wb') as file:
            file.write(whole[:length])
        with pytest.raises(snapshot.SnapshotError):
            snapshot.read(path)


def test_damaged_anywhere_is_refused(path):
    with open(path, 'rb') as file:
        whole = file.read()

    for at in range(len(whole)):
        with open(path, 'wb') as file:
            file.write(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        with pytest.raises(snapshot.SnapshotError):
            snapshot.read(path)


def test_another_version_is_refused(path, monkeypatch):
    monkeypatch.setattr(snapshot.wire, 'WIRE_VERSION', 1)

    with pytest.raises(snapshot.SnapshotError, match='version'):
        snapshot.read(path)


def test_failed_write_leaves_the_one_before(path, records):
    def failing():
        yield records[0]
        raise OSError('no space left on device')

    with pytest.raises(OSError):
        snapshot.write(path, LEDGER, 6, WRITTEN_AT, failing())

    assert snapshot.read(path).revision == 5
    assert os.listdir(os.path.dirname(path)) == ['snapshot']


def test_file_is_readable_by_people(path):
    with open(path) as file:
        header = json.loads(file.readline())

    assert header['ledger'] == LEDGER
    assert header['revision'] == 5
