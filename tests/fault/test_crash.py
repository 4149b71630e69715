# SPDX-License-Identifier: Apache-2.0
"""A manager is killed at any point of a lease; another manager continues.

Whatever was half done in Nova, in Placement and in the ledger is completed in
the end, and done once.
"""

import collections
from concurrent import futures
import contextlib
import signal
import time

import pytest

from blazar_sched.domain import event
from blazar_sched.service import faults
from blazar_sched.service.manager.manager import Manager
from tests.fault.site import Deployment
from tests.fault.site import wait_for
from tests.standins.placement import SLOT_TOTALS
from tests.standins.served import ServedCloud

HOSTS = ('compute-1', 'compute-2', 'compute-3')
# The number of leases at the same time; most of the time they wait.
AT_ONCE = 6
# Seconds in which a manager that wakes up would continue.
AWAKE = 2
PROJECT = 'project'

# What is claimed or finished has just been committed: see COMMIT_POINTS.
EVENT_POINTS = [
    f'{event_type}:{step}'
    for event_type in (
        event.START_LEASE, event.BEFORE_END_LEASE, event.END_LEASE,
    )
    for step in ('stepped', 'worked')
]
# A claim and an outcome for each event: a start, a before_end, a second
# before_end after the end was moved, and an end that is polled twice.
COMMITS = 10
COMMIT_POINTS = [
    f'commit:{when}#{number}'
    for when in ('before', 'after')
    for number in range(1, COMMITS + 1)
]


class Life:
    """A lease from its creation to its end, on a cloud of its own."""

    def __init__(self, site, cloud, processes):
        self.cloud = cloud
        self._file = site.file()
        self._processes = processes
        # This manager only serves clients, and runs no events.
        self._asked = Manager(site.conf())
        self._asked.ledger.upgrade()
        self.ledger = self._asked.ledger
        for name in HOSTS:
            self._asked.hosts.create(name, {})
        cloud.forget()
        self.managers = []

    def live(self, crash_at=None, once_active=lambda: None):
        """Run the lease, with a manager that may be killed and then another.

        :param once_active: called when the lease is active
        """
        self.start(crash_at)
        reservations = [
            {
                'resource_type': 'virtual:instance',
                'vcpus': SLOT_TOTALS['VCPU'],
                'memory_mb': 512,
                'disk_gb': 1,
                'amount': 2,
                'affinity': False,
            },
            {'resource_type': 'physical:host', 'min': 1, 'max': 1},
        ]
        self.id = self._asked.leases.create(
            {
                'name': 'lease',
                'project_id': PROJECT,
                'user_id': 'user',
                'start': 'now',
                'end': int(time.time()) + 3600,
                'before_end': None,
                'reservations': reservations,
            }
        ).id
        self._await(event.START_LEASE)
        for allocation, _ in self.ledger.allocations(lease_id=self.id):
            [host] = [
                name
                for name, id_ in self.cloud.hosts.items()
                if id_ == allocation.host
            ]
            self.cloud.boot(host, PROJECT, allocation.reservation_id)
        once_active()
        self._update(before_end=int(time.time()))
        self._await(event.BEFORE_END_LEASE)
        self._update(end='now')
        self._await(event.END_LEASE)
        self._finish(crash_at)

    def effects(self):
        """Return how often each effect occurred, since the hosts were created.
        """
        return collections.Counter(self.cloud.effects)

    def close(self):
        self.ledger.close()

    def start(self, crash_at=None):
        environment = {faults.VARIABLE: crash_at} if crash_at else {}
        self.managers.append(
            self._processes.start(
                'manager', '--config-file', self._file, **environment
            )
        )

    def _update(self, **values):
        self._asked.leases.update(self.id, PROJECT, values)

    def _await(self, event_type):
        """Wait until an event is done, by whichever manager is alive."""

        def done():
            if len(self.managers) == 1 and not self.managers[0].is_alive:
                self.start()
            lease = self.ledger.lease(self.id)
            assert lease.status != 'ERROR'
            return any(
                e.event_type == event_type and e.status == 'DONE'
                for e in lease.events
            )

        wait_for(event_type, done)

    def _finish(self, crash_at):
        if crash_at:
            assert self.managers[0].wait() == -signal.SIGKILL
        for manager in self.managers[bool(crash_at) :]:
            # A process that has only just started handles no signals yet.
            assert manager.stop() in (0, -signal.SIGTERM)
        lease = self.ledger.lease(self.id)
        assert lease.status == 'TERMINATED'
        assert {e.status for e in lease.events} == {'DONE'}
        assert self.ledger.allocations() == []
        assert self.ledger.check() == []
        assert self.cloud.servers == {}
        assert not any(self.cloud.left())


@pytest.fixture
def new_life(tmp_path, database_on, processes):
    """new_life(name) -> a context with a Life."""

    @contextlib.contextmanager
    def make(name):
        folder = tmp_path / name
        folder.mkdir()
        with ServedCloud(HOSTS) as cloud:
            site = Deployment(folder, database_on('mysql'), cloud=cloud.url)
            life = Life(site, cloud, processes)
            try:
                yield life
            finally:
                life.close()

    return make


@pytest.fixture
def undisturbed(new_life):
    """undisturbed() -> the life if no manager is killed."""

    def live():
        with new_life('undisturbed') as life:
            life.live()
            assert set(life.effects().values()) == {1}
            return life

    return live


@pytest.fixture
def killed_at(new_life):
    """killed_at(points, effects) -> the faults, by point."""

    def run(points, effects):
        def live(point):
            name = point.replace(':', '-').replace('#', '-')
            with new_life(name) as life:
                life.live(point)
                assert life.effects() == effects

        with futures.ThreadPoolExecutor(AT_ONCE) as pool:
            lives = {point: pool.submit(live, point) for point in points}
        return {
            point: repr(life.exception())
            for point, life in lives.items()
            if life.exception()
        }

    return run


@pytest.mark.row('F62')
def test_between_the_steps_of_an_event(undisturbed, killed_at):
    effects = undisturbed().effects()

    assert killed_at(EVENT_POINTS, effects) == {}


@pytest.mark.row('C6', 'F62')
def test_around_a_commit(undisturbed, killed_at):
    """What a killed process leaves in each database is in test_commit."""
    effects = undisturbed().effects()

    assert killed_at(COMMIT_POINTS, effects) == {}


@pytest.mark.row('F62')
def test_after_a_request_that_changed_something(undisturbed, killed_at):
    whole = undisturbed()
    points = [
        f'{service}:asked#{number}'
        for service, number in whole.cloud.changed_at
    ]
    assert len(points) == len(whole.effects())

    assert killed_at(points, whole.effects()) == {}


def test_suspended_manager_does_no_more_work(new_life):
    """A manager is suspended in a step; another takes over; the first resumes.
    """
    asked = []

    def stop_the_first(method, path):
        asked.append((method, path))
        if asked.count(('POST', '/flavors')) == 1 == len(life.managers):
            life.managers[0].signal(signal.SIGSTOP)
            life.start()

    def wake_it():
        known = len(asked)
        life.managers[0].signal(signal.SIGCONT)
        time.sleep(AWAKE)
        # Either manager may list the servers, as after every event.
        assert [a for a in asked[known:] if a[0] != 'GET'] == []

    with new_life('stopped') as life:
        life.cloud.before = stop_the_first
        life.live(once_active=wake_it)
        assert set(life.effects().values()) == {1}
