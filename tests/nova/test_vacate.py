# SPDX-License-Identifier: Apache-2.0
"""Vacating in a real Nova: notice, migration, shelving, deletion, return.

The manager is the real one. The tests set its clock ahead and run the events
that are due, while Nova takes its own time.
"""

import time
import types

import pytest

from blazar_sched.domain import duration
from blazar_sched.domain.settings import Settings
from blazar_sched.service.ledger.ledger import Ledger
from demo.cloud import host_of
from demo.cloud import wait_for
from tests.nova import ahead
from tests.nova import managing

pytestmark = pytest.mark.more

HOSTS = ('c1', 'c2', 'c3', 'c4')
VCPUS = 8
LEAD, NOTICE, AHEAD = 600, 120, 1000


class Clock(ahead.Clock):
    def monotonic(self):
        return time.monotonic() + self.ahead


class VacatedCloud:
    """A cloud; `lab` is the scheduler's side, `manager` is the service."""

    def __init__(self, lab, conf):
        self.lab = lab
        self.cloud = lab.cloud
        self.clock = Clock()
        self.manager = managing.manager_of(
            self.cloud, conf, self.clock, self.clock.monotonic
        )
        for name in HOSTS:
            self.manager.hosts.create(name, {})

    @property
    def now(self):
        return int(self.clock())

    def book(self, name, vcpus=0):
        """Reserve a host, or an instance on it, AHEAD; return the lease."""
        asked = managing.slots(1, vcpus) if vcpus else managing.hosts()
        lease = managing.book(
            self.manager, self.now + AHEAD, self.now + 2 * AHEAD,
            asked | managing.on(name),
        )
        self.lab.sync()
        return lease

    def force(self, name, vcpus=1):
        """Boot a server on a host on which no filter admits it."""
        server = self.lab.boot(
            self.lab.flavor(vcpus), availability_zone=f'nova:{name}'
        )
        assert host_of(server) == name
        return server

    def run(self):
        """Run the events that are due, until each one waits."""
        ledger = self.manager.ledger
        while any(
            self.manager.runner.run(event, claim)
            for event, claim in ledger.due_events(self.now)
        ):
            pass

    def set(self, at):
        """Set the clock to `at` and run the events that are due."""
        self.clock.ahead += at - self.now
        self.run()

    def run_until(self, what, probe):
        """Run the events that are due until Nova has reached a state."""

        def probe_again():
            self.clock.ahead += 1
            self.run()
            return probe()

        return wait_for(what, probe_again)

    def told(self, server):
        return self.cloud.show(server)['metadata'].get('blazar_vacate_at')

    def restore(self):
        """Run the restorer, a while later."""
        self.clock.ahead += 120
        self.manager.restorer.step()

    def begins(self, lease):
        """Start a lease; return whether it has all of its host."""
        self.set(lease.start)
        kept = self.manager.ledger.lease(lease.id)
        assert kept.status == 'ACTIVE'
        return not kept.degraded


@pytest.fixture(scope='module')
def conf(tmp_path_factory):
    return managing.configured(
        tmp_path_factory.mktemp('ledger'), vacate_lead_time=LEAD,
        vacate_notice=NOTICE,
    )


@pytest.fixture(scope='module')
def end_point(conf):
    """The end point of the scheduler's replica: the manager's ledger."""
    ledger = Ledger(conf.database.connection)
    ledger.upgrade()
    yield types.SimpleNamespace(
        ledger=ledger, answer=None, settings=Settings(),
        changes=lambda ctxt, since, limit: ledger.changes(since, limit),
        snapshot=lambda ctxt, after, limit: ledger.snapshot(after, limit),
    )
    ledger.close()


@pytest.fixture
def site(lab, conf):
    site = VacatedCloud(lab, conf)
    yield site
    site.manager.ledger.close()


@pytest.mark.row('F44', 'F56', 'F57')
def test_a_forced_server_is_told_and_moved_to_another_host(site):
    lease = site.book('c1')
    server = site.force('c1')
    site.set(lease.start - LEAD)
    # The clock advances during the request to Nova.
    told = duration.parse_time(site.told(server), '')
    assert lease.start - LEAD <= told - NOTICE <= site.now
    site.set(lease.start - LEAD + NOTICE + 5)
    site.run_until(
        'live migration', lambda: host_of(site.cloud.show(server)) != 'c1'
    )
    moved = site.cloud.settled(server)
    assert moved['status'] == 'ACTIVE'
    assert host_of(moved) in HOSTS
    assert site.begins(lease)
    site.restore()
    assert site.cloud.show(server)['metadata'] == {}


@pytest.mark.row('F56', 'F57')
def test_server_without_another_host_is_shelved_and_comes_back(site):
    lease = site.book('c1')
    server = site.force('c1', vcpus=4)
    others = [
        site.lab.boot(site.lab.flavor(VCPUS), host=name)
        for name in HOSTS[1:]
    ]
    site.set(lease.start - LEAD)
    site.set(lease.start - LEAD + NOTICE + 5)
    site.run_until(
        'shelving',
        lambda: site.cloud.show(server)['status'] == 'SHELVED_OFFLOADED',
    )
    assert site.begins(lease)
    # There is no room yet: nova-scheduler refuses, and the server stays
    # shelved.
    site.restore()
    asleep = site.cloud.settled(server, 'SHELVED_OFFLOADED')
    assert asleep['status'] == 'SHELVED_OFFLOADED'
    site.cloud.delete(others[0])
    site.restore()
    site.restore()
    back = site.cloud.settled(server)
    assert (back['status'], host_of(back)) == ('ACTIVE', 'c2')
    site.restore()
    assert site.cloud.show(server)['metadata'] == {}


@pytest.mark.row('F56')
def test_server_that_can_only_be_deleted_is_deleted(site):
    lease = site.book('c1')
    server = site.force('c1')
    site.cloud.api.post_server_action(
        server['id'], {'os-resetState': {'state': 'error'}}
    )
    site.set(lease.start - LEAD)
    site.set(lease.start - LEAD + NOTICE + 5)
    site.run_until('deletion', lambda: site.cloud.servers() == [])
    assert site.begins(lease)


@pytest.mark.row('C17', 'F55')
def test_preemptible_servers_fill_reservations_until_these_start(site):
    whole, slot = site.book('c1'), site.book('c2', vcpus=4)
    flavor = site.lab.flavor(4, preemptible='true')
    on_whole = [site.lab.boot(flavor, host='c1') for _ in range(2)]
    on_slot = [site.lab.boot(flavor, host='c2') for _ in range(2)]
    site.set(whole.start - LEAD + 5)
    assert all(map(site.told, on_whole))
    # One of these is enough.
    [left] = [server for server in on_slot if not site.told(server)]
    site.set(whole.start - LEAD + NOTICE + 10)
    site.run_until(
        'deletions',
        lambda: [s['id'] for s in site.cloud.servers()] == [left['id']],
    )
    assert site.begins(whole)
    assert site.begins(slot)


@pytest.mark.row('F56')
def test_a_lease_starts_on_time_and_says_what_is_in_its_way(site):
    lease = site.book('c1')
    # The server boots in the last minute, and is not seen until the start.
    site.set(lease.start - LEAD)
    server = site.force('c1')
    assert not site.begins(lease)
    [reservation] = site.manager.ledger.lease(lease.id).reservations
    assert reservation.made['in_the_way'] == [server['id']]
