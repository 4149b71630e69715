# SPDX-License-Identifier: Apache-2.0
"""Without a fresh replica, the operator's option decides."""

import logging
import time

import pytest

from blazar_sched.replica import snapshot_file
from blazar_sched.replica import wire
from blazar_sched.worker import filtering
from blazar_sched.worker import process
from demo import cloud
from tests.nova.conftest import lasting

pytestmark = pytest.mark.more

HOUR = 3600


class Setting:
    """One reservable host with an open reservation, and an ordinary host."""

    def __init__(self, lab):
        self.lab = lab
        lab.register('c1')
        self.reservation_id = lab.reserve('c1', start=-60, vcpus=4)

    def passing(self):
        """Return the (request, host) pairs that pass."""
        bound = {'reservation': self.reservation_id}
        return {
            (who, name)
            for who, hints in (('ordinary', lasting(60)), ('bound', bound))
            for name in ('c1', 'c3')
            if self.lab.passes(name, hints=hints)
        }


CLOSED = {('ordinary', 'c3')}
# The ledger does not name c1 as reservable.
UNKNOWN = {('ordinary', 'c1'), ('ordinary', 'c3')}
OPEN = {
    ('ordinary', 'c1'), ('ordinary', 'c3'), ('bound', 'c1'), ('bound', 'c3'),
}
FRESH = {('ordinary', 'c1'), ('ordinary', 'c3'), ('bound', 'c1')}


@pytest.fixture
def setting(lab):
    return Setting(lab)


@pytest.fixture
def restart(lab):
    """Restart the worker, and wait for the state of its replica."""

    def restart(probe):
        process.stop()
        process.ensure_started()
        cloud.wait_for('worker', probe)

    yield restart
    process.stop()
    lab.end_point.answer = None
    process.ensure_started()


def silence():
    raise ConnectionError('nobody is there')


def other_version():
    page = wire.changes_page('x', 0, 0, [], 0)
    return page | {'oldest': wire.WIRE_VERSION + 1}


def is_stale():
    return process.current()[1]


def test_fresh_replica_decides(setting):
    assert setting.passing() == FRESH


@pytest.mark.row('F46')
@pytest.mark.parametrize(
    'on_stale, passing', [('closed', CLOSED), ('open', OPEN)]
)
class TestStale:
    def test_by_its_age(self, lab, setting, on_stale, passing):
        lab.end_point.answer = silence
        lab.cloud.configure(on_stale=on_stale, max_age=1)
        cloud.wait_for('stale', is_stale)

        assert setting.passing() == passing

    def test_by_another_wire_version(self, lab, setting, on_stale, passing):
        """F14: an old scheduler with a new manager is stale, and not wrong."""
        lab.cloud.configure(on_stale=on_stale, max_age=1)
        lab.end_point.answer = other_version
        cloud.wait_for('stale', is_stale)

        assert setting.passing() == passing

    def test_by_an_old_snapshot_file(
        self, lab, setting, restart, tmp_path, on_stale, passing
    ):
        _kept(lab, tmp_path, restart, age=HOUR)
        lab.end_point.answer = silence
        lab.cloud.configure(on_stale=on_stale)

        restart(lambda: process.current()[0] is not None)

        assert setting.passing() == passing


@pytest.mark.parametrize(
    'on_stale, on_unknown_hosts, passing',
    [
        ('closed', 'open', UNKNOWN), ('closed', 'closed', set()),
        ('open', 'closed', OPEN),
    ],
)
def test_never_a_copy(
    lab, setting, restart, tmp_path, on_stale, on_unknown_hosts, passing
):
    """A new cloud admits all servers, unless its operator closes it."""
    # The worker before would write a snapshot of what it already has.
    process.stop()
    lab.cloud.configure(
        on_stale=on_stale, on_unknown_hosts=on_unknown_hosts,
        snapshot_path=str(tmp_path / 'snapshot'),
    )
    lab.end_point.answer = silence

    restart(lambda: process.current() == (None, True))

    assert setting.passing() == passing


def damage(path, monkeypatch):
    path.write_bytes(path.read_bytes()[:-20])


def become_another_version(path, monkeypatch):
    monkeypatch.setattr(wire, 'OLDEST_WIRE_VERSION', wire.WIRE_VERSION + 1)


def lose(path, monkeypatch):
    path.unlink()


@pytest.mark.parametrize('happens', [damage, become_another_version, lose])
def test_without_a_copy_closed_is_closed(
    lab, setting, restart, tmp_path, monkeypatch, happens
):
    path = _kept(lab, tmp_path, restart)
    lab.end_point.answer = silence
    with monkeypatch.context() as patched:
        happens(path, patched)

        restart(lambda: process.current() == (None, True))

        assert setting.passing() == CLOSED


def test_control_without_the_list_of_hosts_they_are_open(
    lab, setting, restart, tmp_path
):
    """The control of the test above."""
    path = _kept(lab, tmp_path, restart)
    lab.end_point.answer = silence
    path.unlink()
    path.with_name('snapshot.hosts').unlink()

    restart(lambda: process.current() == (None, True))

    assert setting.passing() == UNKNOWN


@pytest.mark.row('C16')
def test_a_request_at_the_start_waits_for_the_file(
    lab, setting, restart, tmp_path, monkeypatch
):
    """A restart admits nothing, however long reading the file takes."""
    _kept(lab, tmp_path, restart)
    lab.end_point.answer = silence
    reading = snapshot_file.reading

    def slowly(path):
        time.sleep(0.3)
        return reading(path)

    monkeypatch.setattr(snapshot_file, 'reading', slowly)
    process.stop()
    process.ensure_started()

    assert setting.passing() == FRESH


@pytest.mark.row('C16', 'F46')
def test_good_snapshot_file_decides(lab, setting, restart, tmp_path):
    """nova-scheduler can start while no manager runs."""
    _kept(lab, tmp_path, restart)
    lab.end_point.answer = silence

    restart(lambda: not process.current()[1])

    assert setting.passing() == FRESH


class Broken:
    """An index whose every method but `advance` fails."""

    def advance(self, now):
        pass

    def __getattr__(self, name):
        raise RuntimeError('broken index')


@pytest.mark.parametrize('on_stale', ['closed', 'open'])
def test_error_of_our_own_fails_no_request(
    lab, setting, monkeypatch, on_stale
):
    """F11: reservable hosts are refused, and one log line a minute says why.

    A request that makes the filter fail must not open the hosts of others.
    """
    lab.cloud.configure(on_stale=on_stale)
    replica, _ = process.current()
    monkeypatch.setattr(replica.indexes, 'main', Broken())
    monkeypatch.setattr(filtering.failure, '_logged_at', {})
    told = _warnings(monkeypatch)
    before = filtering.failure.count

    assert setting.passing() == CLOSED

    assert filtering.failure.count - before >= 2
    assert len(told) == 1
    assert 'broken index' in told[0]


@pytest.mark.parametrize(
    'on_stale, passing', [('closed', CLOSED), ('open', OPEN)]
)
def test_error_of_the_worker_fails_no_request(
    lab, setting, monkeypatch, on_stale, passing
):
    """Hosts that were known to be reservable still are."""

    def broken():
        raise RuntimeError('broken worker')

    lab.cloud.configure(on_stale=on_stale)
    monkeypatch.setattr(process, 'current', broken)

    assert setting.passing() == passing


def test_stale_is_told_of_once_a_minute(lab, setting, monkeypatch):
    lab.cloud.configure(max_age=1)
    lab.end_point.answer = other_version
    cloud.wait_for('stale', is_stale)
    monkeypatch.setattr(filtering.stale_replica, '_logged_at', {})
    told = _warnings(monkeypatch)

    for _ in range(3):
        assert not lab.passes('c1')

    assert len(told) == 1
    assert 'stale' in told[0]


def _kept(lab, tmp_path, restart, age=0):
    """Have a worker write a snapshot file, and stop it; return the path.

    :param age: the apparent age of the file, in seconds
    """
    path = tmp_path / 'snapshot'
    lab.cloud.configure(snapshot_path=str(path))
    restart(path.exists)
    process.stop()
    with snapshot_file.reading(str(path)) as kept:
        snapshot_file.write(
            str(path), kept.ledger, kept.revision, kept.written_at - age,
            kept.items,
        )
    return path


def _warnings(monkeypatch):
    """Collect the warnings of the filters; Nova has the root logger here."""
    told = []

    class Handler(logging.Handler):
        def emit(self, record):
            told.append(record.getMessage())

    logger = logging.getLogger(filtering.__name__)
    monkeypatch.setattr(logger, 'handlers', [Handler(level=logging.WARNING)])
    return told
