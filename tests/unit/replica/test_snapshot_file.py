# SPDX-License-Identifier: Apache-2.0
"""The snapshot file is restored exactly, or refused."""

import contextlib
import hashlib
import json
import os
import signal
import uuid

import pytest

from blazar_sched.domain.relocation import Rules
from blazar_sched.domain.settings import Settings
from blazar_sched.replica import files
from blazar_sched.replica import record
from blazar_sched.replica import snapshot_file
from blazar_sched.replica import wire

LEDGER = '5bb0ef43-3d64-4a4a-9b5c-6a6d3b1d7c35'
WRITTEN_AT = 1_900_000_000


@pytest.fixture
def items(make, as_items):
    return list(as_items([
        ('reservation', 'r1', {'id': 'r1', 'project_id': 'nodé\n1'}),
        record.encode(make.allocation('a1', 'h1', end=2**63 - 1)),
    ]))


@pytest.fixture
def path(tmp_path, items):
    path = str(tmp_path / 'snapshot')
    snapshot_file.write(path, LEDGER, 5, WRITTEN_AT, items)
    return path


def read(path):
    with snapshot_file.reading(path) as kept:
        return (kept.ledger, kept.revision, kept.written_at, list(kept.items))


def test_comes_back_as_written(path, items):
    assert read(path) == (LEDGER, 5, WRITTEN_AT, items)


def test_keeps_what_managers_have_told(path):
    settings = Settings('relocate', 'never', True, Rules(ways={'cpu': 'cold'}))
    assert not snapshot_file.refresh(path, LEDGER, 5, WRITTEN_AT, settings)
    snapshot_file.write(path, LEDGER, 5, WRITTEN_AT, [], settings)
    assert snapshot_file.refresh(path, LEDGER, 5, WRITTEN_AT + 1, settings)
    with snapshot_file.reading(path) as kept:
        assert kept.settings == settings


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read(str(tmp_path / 'none'))


def test_replaces_the_one_before(path):
    snapshot_file.write(path, LEDGER, 6, WRITTEN_AT + 1, [])
    assert read(path)[1] == 6
    assert not os.path.exists(path + '.new')


def test_truncated_anywhere_is_refused(path):
    with open(path, 'rb') as file:
        whole = file.read()
    for length in range(len(whole)):
        with open(path, 'wb') as file:
            file.write(whole[:length])
        with pytest.raises(snapshot_file.SnapshotError):
            read(path)


def test_damaged_anywhere_is_refused(path):
    with open(path, 'rb') as file:
        whole = file.read()
    for at in range(len(whole)):
        with open(path, 'wb') as file:
            file.write(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        with pytest.raises(snapshot_file.SnapshotError):
            read(path)


@pytest.mark.parametrize('version', [
    {'version': wire.WIRE_VERSION + 1, 'oldest': wire.WIRE_VERSION},
    {'version': wire.OLDEST_WIRE_VERSION, 'oldest': 1},
])
def test_a_version_that_this_version_reads_is_read(
    path, items, monkeypatch, version
):
    monkeypatch.setattr(snapshot_file.wire, 'FORMAT', version)
    snapshot_file.write(path, LEDGER, 5, WRITTEN_AT, items)
    assert read(path)[:2] == (LEDGER, 5)


def test_another_version_is_refused(path, monkeypatch):
    monkeypatch.setattr(snapshot_file.wire, 'WIRE_VERSION', 1)
    with pytest.raises(snapshot_file.SnapshotError, match='version'):
        read(path)


@pytest.mark.parametrize(
    'header', [b'[]', b'7', b'{}', b'"x"', b'{"format": 1, "version": []}']
)
def test_a_header_of_something_else_is_refused(tmp_path, header):
    path = tmp_path / 'snapshot'
    lines = header + b'\n'
    last = f'sha256 {hashlib.sha256(lines).hexdigest()}\n'.encode()
    digest = hashlib.sha256(last + b'7').hexdigest()
    true_at = f'true_at {7:020d} sha256 {digest}\n'.encode()
    path.write_bytes(lines + last + true_at)
    with pytest.raises(snapshot_file.SnapshotError):
        read(str(path))


def test_failed_write_leaves_the_one_before(path, items):
    def failing():
        yield items[0]
        raise OSError('no space left on device')

    with pytest.raises(OSError):
        snapshot_file.write(path, LEDGER, 6, WRITTEN_AT, failing())
    assert read(path)[1] == 5
    assert not os.path.exists(path + '.new')


def test_two_do_not_write_at_once(path, items):
    def slow():
        yield items[0]
        with pytest.raises(BlockingIOError):
            snapshot_file.write(path, LEDGER, 7, WRITTEN_AT, items)
        yield from items[1:]

    snapshot_file.write(path, LEDGER, 6, WRITTEN_AT, slow())
    assert read(path)[1] == 6
    snapshot_file.write(path, LEDGER, 7, WRITTEN_AT, items)
    assert read(path)[1] == 7


def test_who_is_killed_while_writing_leaves_no_more_than_one_file(path, items):
    def killed():
        yield items[0]
        os.kill(os.getpid(), signal.SIGKILL)

    for _ in range(2):
        child = os.fork()
        if child == 0:
            snapshot_file.write(path, LEDGER, 6, WRITTEN_AT, killed())
        assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert read(path)[1] == 5
    assert sorted(os.listdir(os.path.dirname(path))) == [
        'snapshot', 'snapshot.hosts', 'snapshot.lock', 'snapshot.new',
    ]
    snapshot_file.write(path, LEDGER, 7, WRITTEN_AT, items)
    assert read(path)[1] == 7
    assert not os.path.exists(path + '.new')


class TestRefresh:
    """Unchanged content is not written again."""

    def test_only_the_time_is_new(self, path, items):
        inode = os.stat(path).st_ino
        assert snapshot_file.refresh(path, LEDGER, 5, WRITTEN_AT + 60)
        assert read(path) == (LEDGER, 5, WRITTEN_AT + 60, items)
        assert os.stat(path).st_ino == inode

    @pytest.mark.parametrize('ledger, revision', [(LEDGER, 6), ('another', 5)])
    def test_another_revision_is_left_alone(self, path, ledger, revision):
        assert not snapshot_file.refresh(
            path, ledger, revision, WRITTEN_AT + 60
        )
        assert read(path)[2] == WRITTEN_AT

    def test_another_version_is_left_alone(self, path, monkeypatch):
        monkeypatch.setattr(snapshot_file.wire, 'FORMAT', {'version': 1})
        assert not snapshot_file.refresh(path, LEDGER, 5, WRITTEN_AT + 60)

    @pytest.mark.parametrize('cut', [1, 10, 100, 150])
    def test_one_that_is_cut_off_is_left_alone(self, path, cut):
        os.truncate(path, os.stat(path).st_size - cut)
        assert not snapshot_file.refresh(path, LEDGER, 5, WRITTEN_AT + 60)

    def test_one_without_the_list_of_hosts_is_left_alone(self, path):
        os.unlink(path + '.hosts')
        assert not snapshot_file.refresh(path, LEDGER, 5, WRITTEN_AT + 60)

    def test_not_while_another_writes(self, path, items):
        def slow():
            yield items[0]
            with pytest.raises(BlockingIOError):
                snapshot_file.refresh(path, LEDGER, 5, WRITTEN_AT + 60)

        snapshot_file.write(path, LEDGER, 5, WRITTEN_AT, slow())


class TestHosts:
    """The reservable hosts can be read whatever version wrote the file."""

    UUIDS = frozenset(str(uuid.uuid4()) for _ in range(3))

    @pytest.fixture
    def path(self, tmp_path):
        path = str(tmp_path / 'snapshot')
        items = [('host', each, {'uuid': each}) for each in self.UUIDS]
        snapshot_file.write(path, LEDGER, 5, WRITTEN_AT, items)
        return path

    def test_come_back_by_another_version(self, path, monkeypatch):
        monkeypatch.setattr(snapshot_file.wire, 'WIRE_VERSION', 1)
        assert snapshot_file.read_hosts(path) == self.UUIDS

    def test_file_of_hosts_has_a_uuid_in_each_line(self, path):
        """The last line is their number, as a uuid for earlier versions."""
        with open(path + '.hosts') as file:
            *hosts, number = file.read().splitlines()
        assert set(hosts) == self.UUIDS
        assert uuid.UUID(number).int == 3

    def test_none_is_a_list_too(self, path):
        snapshot_file.write(path, LEDGER, 6, WRITTEN_AT, [])
        assert snapshot_file.read_hosts(path) == frozenset()

    def test_no_list(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            snapshot_file.read_hosts(str(tmp_path / 'none'))

    @pytest.mark.parametrize('left', [
        0, 7, 36, 37, 2 * 37, 3 * 37 - 2, 3 * 37, 3 * 37 + 20
    ])
    def test_a_list_that_is_cut_off_is_refused(self, path, left):
        """An empty file is no cloud without reservable hosts."""
        os.truncate(path + '.hosts', left)
        with pytest.raises(snapshot_file.SnapshotError):
            snapshot_file.read_hosts(path)
        assert not snapshot_file.refresh(path, LEDGER, 5, WRITTEN_AT + 60)

    @pytest.mark.parametrize('content', [b'\xff\xfe', b'[]', b'\x00' * 9])
    def test_something_else_is_refused(self, path, content):
        with open(path + '.hosts', 'wb') as file:
            file.write(content)
        with pytest.raises(snapshot_file.SnapshotError):
            snapshot_file.read_hosts(path)


def links(path):
    """The file names beside the snapshot file that could be links."""
    return [path + suffix for suffix in (
        '', '.new', '.lock', '.hosts', '.hosts.new'
    )]


class TestUntrustedFolder:
    """A user who can write the folder can neither overwrite nor block files.
    """

    @pytest.mark.parametrize('which', range(5))
    def test_no_link_is_followed(self, path, items, tmp_path, which):
        victim = tmp_path / 'victim'
        victim.write_text('precious')
        link = links(path)[which]
        if os.path.exists(link):
            os.unlink(link)
        os.symlink(victim, link)
        for write in (
            lambda: snapshot_file.refresh(path, LEDGER, 5, WRITTEN_AT),
            lambda: snapshot_file.write(path, LEDGER, 6, WRITTEN_AT, items),
        ):
            with contextlib.suppress(OSError):
                write()
        assert victim.read_text() == 'precious'

    def test_a_link_is_not_read(self, path, tmp_path):
        link = str(tmp_path / 'link')
        os.symlink(path, link)
        with pytest.raises(OSError):
            read(link)

    @pytest.mark.parametrize(
        'kind, refusal',
        [(os.mkfifo, files.UntrustedFileError), (os.mkdir, OSError)],
    )
    def test_only_a_regular_file_is_read(self, path, kind, refusal):
        for name in (path, path + '.hosts'):
            os.unlink(name)
            kind(name)
        with pytest.raises(refusal):
            read(path)
        with pytest.raises(refusal):
            snapshot_file.read_hosts(path)

    @pytest.mark.parametrize('mode', [0o620, 0o602])
    def test_what_others_may_write_is_not_read(self, path, mode):
        os.chmod(path, mode)
        os.chmod(path + '.hosts', mode)
        with pytest.raises(files.UntrustedFileError, match='can write'):
            read(path)
        with pytest.raises(files.UntrustedFileError, match='can write'):
            snapshot_file.read_hosts(path)

    def test_another_users_copy_is_not_read_but_the_list_is(
        self, path, monkeypatch
    ):
        monkeypatch.setattr(os, 'geteuid', lambda: os.getuid() + 1)
        monkeypatch.setattr(files, '_ROOT', -1)
        with pytest.raises(files.UntrustedFileError, match='owns the file'):
            read(path)
        assert snapshot_file.read_hosts(path) == frozenset()


def test_only_its_owner_may_read_it(path):
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_file_is_readable_by_people(path):
    with open(path) as file:
        header = json.loads(file.readline())
    assert header['ledger'] == LEDGER
    assert header['revision'] == 5
