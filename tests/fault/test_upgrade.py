# SPDX-License-Identifier: Apache-2.0
"""Managers, APIs and schedulers of two releases side by side."""

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest
import requests

from tests import released
from tests import serving
from tests.fault import processes as fault_processes
from tests.fault.fleet import last_line
from tests.fault.site import wait_for
from tests.standins.served import ServedCloud

ROOT = fault_processes.ROOT
HOSTS = tuple(f'compute-{n}' for n in range(1, 6))
# Requests that are answered between two restarts.
TURNS = 10
# A release that adds to all that processes exchange: (file, before, after).
NEXT = (
    ('replica/wire.py',
     '\nWIRE_VERSION = {wire}\n', '\nWIRE_VERSION = {wire} + 1\n'),
    ('replica/record.py',
     "    on_end: str = reservation.DELETE\n",
     "    on_end: str = reservation.DELETE\n    colour: str = 'none'\n"),
    ('service/ledger/reservation.py',
     '        leavable=tuple(reserved.made.get(LEAVABLE, ())),\n',
     '        leavable=tuple(reserved.made.get(LEAVABLE, ())),\n'
     "        colour='red',\n"),
    ('service/ledger/models.py',
     '    made: orm.Mapped[dict[str, Any]]\n',
     '    made: orm.Mapped[dict[str, Any]]\n'
     '    colour: orm.Mapped[str | None]\n'),
    ('service/bus/rpc.py',
     '        def call(number: int) -> object:\n',
     "        kwargs.setdefault('colour', None)\n\n"
     '        def call(number: int) -> object:\n'),
)
MIGRATION = '''
from alembic import op
import sqlalchemy as sa

revision = '{number:04}_{oldest:04}_next'
down_revision = '{head}'


def upgrade():
    op.add_column('reservation', sa.Column('colour', sa.Text()))
    op.create_table('paint', sa.Column('id', sa.Integer(), primary_key=True))
'''


@pytest.fixture(scope='module')
def last_release(tmp_path_factory):
    """The directory with the wheel of the last release."""
    commit = released.RELEASE['commit']
    archive = subprocess.run(
        ['git', 'archive', commit], cwd=ROOT, capture_output=True, check=False
    )
    if archive.returncode:
        pytest.skip(f'this clone lacks {commit}: {archive.stderr.decode()}')
    folder = tmp_path_factory.mktemp('release')
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder / 'source', filter='data')
    subprocess.run(
        [sys.executable, '-m', 'pip', 'wheel', '--quiet', '--no-deps',
         '--no-build-isolation', '--wheel-dir', folder / 'dist',
         folder / 'source'],
        # The index of the release is plain Python.
        check=True, capture_output=True,
        env={
            **os.environ, 'BLAZAR_SCHED_NO_EXTENSION': '1',
            'BLAZAR_SCHED_REQUIRE_EXTENSION': '',
        },
    )
    [wheel] = (folder / 'dist').iterdir()
    with zipfile.ZipFile(wheel) as files:
        files.extractall(folder / 'installed')
    return folder / 'installed'


@pytest.fixture(scope='module')
def next_release(tmp_path_factory):
    """The directory with this version and the additions of `NEXT`."""
    from blazar_sched.replica import wire
    from blazar_sched.service.ledger import migrations

    folder = tmp_path_factory.mktemp('next')
    package = folder / 'blazar_sched'
    shutil.copytree(ROOT / 'blazar_sched', package)
    for name, before, after in NEXT:
        text = (package / name).read_text()
        before = before.format(wire=wire.WIRE_VERSION)
        assert text.count(before) == 1, (name, before)
        (package / name).write_text(text.replace(
            before, after.format(wire=wire.WIRE_VERSION)
        ))
    head = migrations._known()[0]
    number = migrations.number(head)
    text = MIGRATION.format(number=number + 1, oldest=number, head=head)
    (package / 'service/ledger/migrations/versions/next.py').write_text(text)
    return folder


@pytest.fixture
def cloud():
    with ServedCloud(HOSTS) as cloud:
        yield cloud


class Decider:
    """A nova-scheduler, and the decisions of each process in turn."""

    def __init__(self, folder, processes):
        self._file, self._folder = folder / 'decisions', folder
        self._processes = processes
        self._process = None

    def restart(self, root):
        if self._process is not None:
            self._process.kill()
        before = self._text()
        self._process = self._processes.spawn(
            'tests.fault.decider', self._folder / 'nova.conf', self._file,
            *HOSTS, root=root,
        )
        wait_for('a decision', lambda: self._text() != before)

    def present(self):
        return last_line(self._text())

    def decisions(self):
        lines = self._text().splitlines(True)
        return [json.loads(x) for x in lines if x.endswith('\n')]

    def _text(self):
        return self._file.read_text() if self._file.exists() else ''


class Upgrade:
    """A service whose processes are restarted in other versions."""

    def __init__(self, fleet, decider, traffic):
        self.fleet, self.decider, self._traffic = fleet, decider, traffic

    def restart(self, name, root):
        if name == 'decider':
            self.decider.restart(root)
        elif name == 'scheduler':
            self.fleet.schedulers.master.stop()
            self.fleet.schedulers.start(root)
        else:
            self.fleet.running[name].stop()
            self.fleet.start(name, root)
            wait_for('a start', self.fleet.has_started)
        before = sum(self._traffic.statuses.values())
        wait_for('answers', lambda: (
            sum(self._traffic.statuses.values()) > before + TURNS
        ))
        before = len(self._traffic.made)
        wait_for('leases', lambda: len(self._traffic.made) > before)
        # Each scheduler follows: a replica becomes stale only much later.
        newest = self.fleet.ledger.newest()[1]
        wait_for('replicas', lambda: min(self._revisions()) >= newest)

    def _revisions(self):
        present = self.fleet.schedulers.present()
        return [
            each.get('revision') or 0
            for each in (self.decider.present(), *(present or [{}]))
        ]


# The numbers are those of Fleet.running: two managers, then two APIs.
ORDERS = {
    'managers-first': [0, 2, 1, 'decider', 3, 'scheduler'],
    'schedulers-first': ['scheduler', 'decider', 3, 2, 1, 0],
}


def promise(fleet):
    """Reserve a whole host; return the name of the host, and the lease."""
    answer = requests.post(
        f'http://127.0.0.1:{fleet.ports[0]}/v1/leases',
        json={
            'name': 'promised', 'start_date': '2031-01-01 10:00',
            'end_date': '2031-12-01 10:00', 'reservations': [{
                'resource_type': 'physical:host', 'min': 1, 'max': 1,
                'hypervisor_properties': '', 'resource_properties': '',
            }],
        },
        headers=serving.ADMIN, timeout=60,
    )
    assert answer.status_code == 201, answer.text
    [(held, _)] = fleet.ledger.allocations(
        lease_id=answer.json()['lease']['id']
    )
    return next(
        h.hypervisor_hostname for h in fleet.ledger.hosts()
        if h.uuid == held.host
    ), answer.json()['lease']


@pytest.mark.timeout(900)
@pytest.mark.parametrize(('pair', 'order'), [
    ('last', 'managers-first'), ('next', 'schedulers-first'),
])
def test_two_releases_work_side_by_side(
    request, bus, database_on, new_fleet, processes, tmp_path, pair, order
):
    """Each process is upgraded while all others work, and taken back.

    The processes are taken back in the same order, so either order has each
    kind of process newer than the others once, and older once.
    """
    old, new = (
        (request.getfixturevalue('last_release'), None) if pair == 'last'
        else (None, request.getfixturevalue('next_release'))
    )
    fleet = new_fleet(
        database_on('mysql'), bus, managers=2, apis=2, workers=1, root=old
    )
    promised, lease = promise(fleet)
    decider = Decider(tmp_path, processes)
    decider.restart(old)
    with fleet.at_work() as traffic:
        traffic.made[lease['id']] = lease
        upgrade = Upgrade(fleet, decider, traffic)
        tables = processes.spawn(
            'tests.fault.command', 'db', 'upgrade', '--config-file',
            tmp_path / 'manager-0.conf', root=new,
        )
        assert tables.wait() == 0
        for root in (new, old):
            for name in ORDERS[order]:
                upgrade.restart(name, root)
    assert not {s for s in traffic.statuses if s.split()[-1] == '500'}
    decisions = decider.decisions()
    assert len(decisions) > 1
    for each in decisions:
        assert not each['stale']
        assert promised not in each['unbounded']
        assert each['unbounded'], 'every host is closed'
        # Servers that end before the promise may fill the promised host.
        assert set(each['unbounded']) <= set(each['short'])
    for pid in fleet.schedulers.pids():
        assert not any(line['stale'] for line in fleet.schedulers.learned(pid))
