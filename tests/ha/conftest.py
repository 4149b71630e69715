# SPDX-License-Identifier: Apache-2.0
"""A service before clusters of databases and brokers."""

import pathlib
import time

import pytest

from tests import serving
from tests.fault.fleet import Fleet
from tests.fault.processes import Processes
from tests.fault.site import wait_for
from tests.ha import cluster
from tests.ha import network
from tests.ha.load import Found
from tests.ha.load import Load
from tests.standins.served import ServedCloud

HOSTS = [f'compute-{n}' for n in range(20)]
CLIENTS, MANAGERS, APIS, WORKERS = 24, 3, 2, 2
URL = f'http://{network.VIRTUAL}:1234'
# Seconds.
DURATION = 60
ROWS = pytest.StashKey[list]()


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(pathlib.Path(__file__).parent):
            item.add_marker('ha')
            if not network.exists():
                item.add_marker(
                    pytest.mark.skip('no network of machines: `make test-ha`')
                )


def pytest_terminal_summary(terminalreporter):
    """Print what was measured, as a table."""
    for report in terminalreporter.getreports(''):
        for name, value in getattr(report, 'user_properties', ()):
            terminalreporter.write_line(f'{name}: {value}')


@pytest.fixture(scope='session')
def broker():
    with cluster.RabbitMQCluster('mq') as broker:
        yield broker


@pytest.fixture(scope='session')
def galera():
    with cluster.GaleraCluster('db') as galera:
        yield galera


@pytest.fixture(scope='session')
def postgresql():
    with cluster.PostgreSQLCluster('db') as postgresql:
        yield postgresql


class Scene:
    """A load on a service, with faults, and what is found afterwards."""

    def __init__(self, load):
        self._load = load
        self._began = time.monotonic()
        self._faults = []

    def wait(self, seconds):
        time.sleep(seconds)

    def is_over(self):
        return time.monotonic() - self._began > DURATION

    def note(self, fault):
        """Note that a fault begins now."""
        self._faults.append((fault, time.monotonic()))

    def until_answered(self):
        at = self._faults[-1][1]
        wait_for(
            'a lease', lambda: self._load.answers_after(at) < float('inf')
        )

    def row(self, found):
        load = self._load
        seconds = time.monotonic() - self._began
        faults = ', '.join(
            f'{fault}: {load.answers_after(at):.1f} s'
            for fault, at in self._faults
        )
        return (
            f'{len(load.waits)} answers in {seconds:.0f} s '
            f'({len(load.waits) / seconds:.0f} a second) '
            f'{dict(sorted(load.statuses.items()))}, the longest wait '
            f'{max(end - began for began, end in load.waits):.1f} s; '
            f'{len(load.made)} leases, {len(found.lost)} lost, '
            f'{len(found.doubled)} doubled, {len(found.over)} over capacity; '
            f'until a create was answered after each fault: {faults}'
        )


@pytest.fixture
def play(tmp_path, broker, record_property):
    """play(name, database, faults, …): run clients while faults happen.

    `faults` is called with a `Scene`; `more` as in Fleet.
    """
    def play(name, database, faults, more=None):
        ports = serving.free_ports(APIS)
        processes = Processes(tmp_path)
        shared = cluster.PAGES / 'blazar-sched.conf'
        fleet = None
        with ServedCloud(HOSTS) as cloud, cluster.HAProxy(ports) as proxy:
            try:
                url = proxy.new_database(database)
                fleet = Fleet(
                    tmp_path, processes, url, 'rabbit://', cloud,
                    managers=MANAGERS, workers=WORKERS, ports=ports,
                    more=lambda process: [
                        shared, *(more or {}).get(process, ())
                    ],
                    event_claim_seconds=10,
                )
                wait_for('HAProxy', lambda: cluster.answers(URL))
                with Load(URL, CLIENTS) as load:
                    scene = Scene(load)
                    faults(scene)
                fleet.settle()
                found = Found(url, load)
                record_property(name, scene.row(found))
                assert not found.lost, found.lost
                assert not found.doubled, found.doubled
                assert not found.over, found.over
                fleet.check(load)
                check = processes.start(
                    'db', 'check', '--config-file', tmp_path / 'manager-0.conf'
                )
                assert check.wait() == 0
            finally:
                if fleet is not None:
                    fleet.close()
                processes.end()

    return play
