# SPDX-License-Identifier: Apache-2.0
"""The file comes back whole or not at all."""

import json
import os

import pytest

from blazar_sched.replica import snapshot

LEDGER = '5bb0ef43-3d64-4a4a-9b5c-6a6d3b1d7c35'
RECORDS = [
    ('host', 'h1', {'uuid': 'h1', 'hypervisor_hostname': 'nodé\n1'}),
    ('allocation', 'a1', {'id': 'a1', 'end': 2**63 - 1}),
]
WRITTEN_AT = 1_900_000_000


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / 'snapshot')
    snapshot.write(path, LEDGER, 5, WRITTEN_AT, RECORDS)
    return path


def test_comes_back_as_written(path):
    assert snapshot.read(path) == snapshot.Snapshot(
        LEDGER, 5, WRITTEN_AT, RECORDS
    )


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
    monkeypatch.setattr(snapshot.wire, 'WIRE_VERSION', 2)

    with pytest.raises(snapshot.SnapshotError, match='version'):
        snapshot.read(path)


def test_failed_write_leaves_the_one_before(path):
    def records():
        yield RECORDS[0]
        raise OSError('no space left on device')

    with pytest.raises(OSError):
        snapshot.write(path, LEDGER, 6, WRITTEN_AT, records())

    assert snapshot.read(path).revision == 5
    assert os.listdir(os.path.dirname(path)) == ['snapshot']


def test_file_is_readable_by_people(path):
    with open(path) as file:
        header = json.loads(file.readline())

    assert header['ledger'] == LEDGER
    assert header['revision'] == 5
