# SPDX-License-Identifier: Apache-2.0
"""Unbounded servers on hosts that are reserved later: Nova and a manager.

The clock of the manager and of nova-scheduler is set ahead; Nova and the
threads that poll it have the real clock.
"""

import json
import threading

from keystoneauth1 import adapter
from nova.scheduler import manager as scheduler
from nova.virt import fake
import pytest

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain.window import FOREVER
from blazar_sched.replica import puller
from blazar_sched.service.manager import endpoint
from blazar_sched.service.upkeep import relocation
from blazar_sched.service.upkeep.relocation import MOVE_AT
from blazar_sched.service.upkeep.relocation import PAUSE
from blazar_sched.worker import paths
from blazar_sched.worker import process
from blazar_sched.worker.pending import Pending
from demo.cloud import host_of
from demo.cloud import wait_for
from tests.nova import clouds
from tests.nova import managing
from tests.nova.ahead import Clock
from tests.nova.ahead import wait_for_replica

pytestmark = pytest.mark.more

CLOUD = clouds.SMALL
HOSTS, VCPUS = CLOUD.hosts, CLOUD.vcpus
HOUR, DAY = 3600, 86400
LEAD = 600
# Seconds until a time of move that an owner chooses.
CHOSEN = 300
# The flavors' disks are on the hosts.
RELOCATION = {
    'relocation_lead': LEAD, 'relocation_cold_notice': LEAD,
    'relocation_ways': {'disk': 'live', 'device': 'cold'},
    'relocation_headroom': 0.0, 'relocation_host_headroom': 0.0,
    'relocate_instances': True, 'unbounded': 'relocate',
}


class RelocationCloud:
    """A cloud with a manager; times are in seconds from now."""

    def __init__(self, cloud, manager, clock):
        self.cloud = cloud
        self.manager = manager
        self.clock = clock
        self.flavors = {
            vcpus: cloud.flavor(vcpus) for vcpus in range(1, VCPUS + 1)
        }
        self.names = {uuid: name for name, uuid in cloud.hosts.items()}

    def boot(self, vcpus=1, flavor=None, **fields):
        self.told()
        hints = {name: fields.pop(name) for name in ('lifetime', 'group')
                 if name in fields}
        server = self.cloud.boot(
            flavor or self.flavors[vcpus], hints, **fields
        )
        if server['status'] == 'ACTIVE':
            wait_for('record', lambda: self.record(server))
        return server

    def record(self, server):
        return self.manager.ledger.instance(server['id'])

    def path(self, server):
        """Return the hosts of a server's path, by name."""
        return [self.names[stay.host] for stay in self.record(server).path]

    def reserve(self, *names, start=DAY, length=HOUR):
        """Reserve whole hosts; without names any one host."""
        named = ['in', '$hypervisor_hostname', *names]
        count = len(names) or 1
        start += int(self.clock())
        return managing.book(
            self.manager, start, start + length, managing.hosts(
                count, resource_properties=json.dumps(named) if names else '',
            ),
        )

    def hosts_of(self, lease):
        return {
            self.names[held.host]
            for held, _ in self.manager.ledger.allocations(lease_id=lease.id)
        }

    def told(self):
        """Wait until nova-scheduler's replica equals the ledger."""
        wait_for_replica(self.manager.ledger)

    def host_of(self, server):
        return host_of(self.cloud.show(server))

    def gpus_used(self, name):
        """Return the GPUs of a host that are allocated in Placement."""
        api = adapter.Adapter(
            self.cloud.session(), service_type='placement',
            default_microversion='1.14',
        )
        tree = api.get(
            f'/resource_providers?in_tree={self.cloud.hosts[name]}'
        ).json()['resource_providers']
        return sum(
            api.get(
                f'/resource_providers/{each["uuid"]}/usages'
            ).json()['usages'].get(clouds.GPU, 0)
            for each in tree
        )


_changes = endpoint.Endpoint.changes


def _telling_never(self, since, limit):
    page = _changes(self, since, limit)
    return {**page, 'settings': {**page['settings'], 'unbounded': 'never'}}


def _wait_for_policy(policy):
    wait_for(
        'the policy', lambda: process.current()[0].settings.unbounded == policy
    )


def requests(site):
    """Return how many moves the manager has requested."""
    return site.manager.metrics.registry.get_sample_value(
        'blazar_sched_manager_moves_total', {'outcome': 'accepted'}
    ) or 0


@pytest.fixture(scope='module')
def clock():
    return Clock()


@pytest.fixture(scope='module')
def cloud(bare_cloud, clock):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, '_clock', clock)
        patch.setattr(relocation, 'INTERVAL', 0.2)
        yield bare_cloud


@pytest.fixture(scope='module')
def module_site(cloud, clock, tmp_path_factory):
    conf = managing.configured(
        tmp_path_factory.mktemp('ledger'), sync_interval=1.0,
        vacate_lead_time=0,
        # On a busy machine a compute may report late.
        enable_polling_monitor=False,
        **RELOCATION,
    )
    manager = managing.manager_of(cloud, conf, clock)
    manager.start()
    for name in HOSTS:
        manager.hosts.create(name, {})
    yield RelocationCloud(cloud, manager, clock)
    manager.stop()


@pytest.fixture
def site(module_site):
    """The cloud without servers and leases; the hosts have no settings."""
    ledger = module_site.manager.ledger
    hosts = ledger.hosts()
    yield module_site
    cloud = module_site.cloud
    cloud.delete(*cloud.servers())
    wait_for('no records', lambda: not ledger.instances())

    def work(tx):
        for lease in tx.leases():
            tx.delete_lease(lease.id)
        for host in hosts:
            tx.put_host(host)

    ledger.commit(work)


@pytest.mark.row('F95')
def test_an_unbounded_server_runs_where_its_place_afterwards_is_booked(site):
    lease = site.reserve('c1')

    server = site.boot(host='c1')

    assert server['status'] == 'ACTIVE', server.get('fault')
    path = site.record(server).path
    assert path[0].end == lease.start
    assert path[1].start == lease.start - LEAD
    assert path[-1].end == FOREVER
    assert site.path(server)[1] != 'c1'


@pytest.mark.row('F95')
def test_a_lease_takes_a_host_that_a_server_can_leave(site):
    servers = [site.boot(host=name) for name in HOSTS]

    lease = site.reserve()

    [host] = site.hosts_of(lease)
    displaced = servers[HOSTS.index(host)]
    path = site.record(displaced).path
    assert (path[0].end, path[-1].end) == (lease.start, FOREVER)
    others = [each for each in servers if each is not displaced]
    assert all(not site.record(each).path for each in others)


def test_the_server_is_moved_to_the_booked_host_in_time(site, clock):
    site.reserve('c3', start=2 * HOUR, length=10 * DAY)
    server = site.boot(VCPUS, host='c1')
    lease = site.reserve('c1')
    assert site.path(server) == ['c1', 'c2']

    clock.ahead += DAY - LEAD + 1
    wait_for('move', lambda: site.host_of(server) == 'c2')
    wait_for('record', lambda: site.path(server) == [])
    moved = site.cloud.settled(server)
    assert moved['status'] == 'ACTIVE'

    clock.ahead += LEAD
    wait_for('start', lambda: (
        site.manager.ledger.lease(lease.id).status == 'ACTIVE'
    ))
    assert site.manager.ledger.lease(lease.id).degraded is False
    assert site.host_of(server) == 'c2'


def test_a_server_that_outlives_its_reservation_is_moved_in_time(site, clock):
    """The flavor of the server asks for a slot that no host has any more."""
    now = int(clock())
    lease = managing.book(
        site.manager, 'now', now + HOUR, managing.slots(1, 1, on_end='keep'),
        project_id=site.cloud.project_id,
    )

    def status():
        return site.manager.ledger.lease(lease.id).status

    wait_for('start', lambda: status() == 'ACTIVE')
    server = site.boot(flavor=lease.reservations[0].id)
    assert server['status'] == 'ACTIVE', server.get('fault')
    wait_for('claim', lambda: site.record(server).claim)
    site.manager.leases.update(lease.id, None, {'end': 'now'})
    wait_for('end', lambda: status() == 'TERMINATED')
    site.manager.instances.sync()
    before = site.host_of(server)

    site.reserve(before)
    assert len(site.path(server)) == 2
    clock.ahead += DAY - LEAD + 1

    wait_for('move', lambda: site.host_of(server) != before)
    assert site.cloud.settled(server)['status'] == 'ACTIVE'


def test_preemptible_servers_make_room_for_the_move(site, clock):
    preemptible = site.cloud.flavor(
        VCPUS, extra_specs={'blazar:preemptible': 'true'}
    )
    site.reserve('c3', start=2 * HOUR, length=10 * DAY)
    server = site.boot(VCPUS, host='c1')
    site.reserve('c1')
    there = site.boot(flavor=preemptible, host='c2')
    assert there['status'] == 'ACTIVE', there.get('fault')

    clock.ahead += DAY - LEAD + 1

    wait_for('move', lambda: site.host_of(server) == 'c2')
    assert there['id'] not in {s['id'] for s in site.cloud.servers()}


def test_a_server_that_is_not_movable_goes_where_it_can_stay(site):
    flavor = site.cloud.flavor(1, extra_specs={'blazar:movable': 'false'})
    site.reserve('c1')

    assert site.boot(flavor=flavor, host='c1')['status'] == 'ERROR'
    assert site.path(site.boot(flavor=flavor, host='c2')) == []


def test_a_server_stays_if_the_reservation_is_gone(site, clock):
    server = site.boot(host='c1')
    lease = site.reserve('c1')
    assert site.path(server)[0] == 'c1'
    site.manager.leases.delete(lease.id, None)

    clock.ahead += DAY - LEAD + 1

    wait_for('no path', lambda: site.path(server) == [])
    assert site.host_of(server) == 'c1'


@pytest.fixture
def decided(monkeypatch):
    """decided(function): call a function between a decision and its booking.
    """
    decide = scheduler.SchedulerManager._get_sorted_hosts

    def set_(function):
        def decide_then(self, *args, **kwargs):
            hosts = decide(self, *args, **kwargs)
            function()
            return hosts

        monkeypatch.setattr(
            scheduler.SchedulerManager, '_get_sorted_hosts', decide_then
        )

    return set_


@pytest.fixture
def room_for_one(site, monkeypatch):
    """Servers leave c1 for the three VCPUs of c2, and no record arrives.

    While the fixture is used, nova-scheduler pulls no changes.
    """
    site.cloud.configure(pending_ttl=60)
    site.reserve('c1')
    site.reserve('c3', start=2 * HOUR, length=10 * DAY)
    site.boot(host='c2')
    site.told()
    monkeypatch.setattr(puller.Puller, 'pull', lambda self, now: None)
    monkeypatch.setattr(process.ensure_started(), 'pending', Pending())
    yield site
    monkeypatch.undo()
    site.cloud.configure(pending_ttl=0)


def boot_two(site, vcpus):
    return site.cloud.boot_many(2, site.flavors[vcpus], host='c1')


def test_each_server_of_one_request_has_a_later_place(room_for_one):
    servers = boot_two(room_for_one, 1)

    for each in servers:
        wait_for('record', lambda each=each: room_for_one.record(each))
        assert room_for_one.path(each) == ['c1', 'c2']


def test_no_server_of_a_request_is_admitted_without_a_later_place(
    room_for_one
):
    servers = boot_two(room_for_one, 2)

    assert {server['status'] for server in servers} == {'ERROR'}


def test_control_without_the_later_places_both_are_admitted(
    room_for_one, monkeypatch
):
    monkeypatch.setattr(paths.Paths, 'of_placed', lambda self, host: ())

    servers = boot_two(room_for_one, 2)

    assert {server['status'] for server in servers} == {'ACTIVE'}


def test_a_move_that_nova_does_not_make_goes_to_another_host(
    site, clock, monkeypatch
):
    monkeypatch.setattr(relocation, 'MAX_REQUESTS', 1)
    group = site.cloud.api.post_server_groups(
        {'name': 'apart', 'policy': 'anti-affinity'}
    )
    other, server = (
        site.boot(host=name, group=group['id']) for name in ('c2', 'c1')
    )
    site.reserve('c1')
    # Nova does not tell the manager that the two must be apart.
    assert site.path(server) == ['c1', 'c2']

    asked = requests(site)
    clock.ahead += DAY - LEAD + 1
    wait_for('request', lambda: requests(site) > asked)
    site.cloud.settled(server)
    clock.ahead += PAUSE

    wait_for('move', lambda: site.host_of(server) == 'c3')
    assert site.host_of(other) == 'c2'


def test_the_booked_host_admits_the_server_whatever_the_policy_is(
    site, clock, monkeypatch
):
    """Servers are relocated from one host; the others admit nobody."""
    host = site.manager.ledger.host(site.cloud.hosts['c1'])
    site.manager.hosts.update(host.id, {'unbounded': 'relocate'})
    monkeypatch.setattr(endpoint.Endpoint, 'changes', _telling_never)
    _wait_for_policy('never')
    server = site.boot(host='c1')
    site.reserve('c1')
    clock.ahead += DAY - LEAD + 1

    wait_for('move', lambda: site.host_of(server) != 'c1')
    monkeypatch.undo()
    _wait_for_policy('relocate')


@pytest.mark.row('F95')
def test_the_owner_chooses_when_a_server_with_a_device_is_moved(site, clock):
    """Nova moves it only while it is stopped."""
    site.reserve('c3', start=2 * HOUR, length=10 * DAY)
    flavor = site.cloud.flavor(
        1, extra_specs={'pci_passthrough:alias': 'a100:1'}
    )
    server = site.boot(flavor=flavor, host='c1')
    assert server['status'] == 'ACTIVE', server.get('fault')
    lease = site.reserve('c1')
    assert site.record(server).movable == 'cold'
    assert site.record(server).amounts[clouds.GPU] == 1
    assert site.path(server) == ['c1', 'c2']

    def metadata():
        return site.cloud.show(server)['metadata']

    clock.ahead += DAY - 2 * LEAD + 1
    wait_for('notice', lambda: MOVE_AT in metadata())
    assert metadata()[MOVE_AT] == duration.format_time(lease.start - LEAD)
    chosen = int(clock()) + CHOSEN
    nova = managing.nova_of(site.cloud)
    nova.set_server_metadata(
        nova.server(server['id']), {MOVE_AT: duration.format_time(chosen)}
    )
    assert site.host_of(server) == 'c1'

    clock.ahead += CHOSEN + PAUSE
    wait_for('move', lambda: site.host_of(server) == 'c2')
    wait_for('confirmation', lambda: (
        site.cloud.show(server)['status'] == 'ACTIVE' and not metadata()
    ))
    wait_for('record', lambda: site.path(server) == [])
    # Nova gives up the device on the host that the server has left. On the
    # other host the server keeps the device that the scheduler has allocated
    # beside another one that the compute has claimed: Nova 34 does this in
    # any cold migration, also without this service.
    wait_for('free device', lambda: site.gpus_used('c1') == 0)
    assert site.gpus_used('c2') > 0

    clock.ahead += lease.start - int(clock())
    wait_for('start', lambda: (
        site.manager.ledger.lease(lease.id).status == 'ACTIVE'
    ))
    assert not site.manager.ledger.lease(lease.id).degraded


def test_a_server_deleted_while_nova_migrates_it_leaves_no_place_behind(
    site, clock, monkeypatch
):
    migrate = fake.FakeDriver.live_migration
    begun, go_on = threading.Event(), threading.Event()

    def live_migration(*args, **kwargs):
        begun.set()
        assert go_on.wait(60)
        migrate(*args, **kwargs)

    monkeypatch.setattr(fake.FakeDriver, 'live_migration', live_migration)
    site.reserve('c1')
    server = site.boot(VCPUS, host='c1')
    site.reserve('c3', start=2 * HOUR, length=10 * DAY)
    assert site.path(server) == ['c1', 'c2']

    clock.ahead += DAY - LEAD + 1
    assert begun.wait(60)
    try:
        with pytest.raises(exception.NotEnoughHostsAvailable):
            site.reserve('c2', start=60)
        site.cloud.delete(server)
    finally:
        go_on.set()

    wait_for('no record', lambda: site.record(server) is None)
    site.reserve('c2', start=60)
    # Nova leaves an allocation on the source behind.
    site.cloud.clear()
