# SPDX-License-Identifier: Apache-2.0
"""The instance records follow Nova's servers, whatever Nova does.

The manager receives Nova's own versioned notifications over the bus in memory.
These alone, without a sync of all servers, keep the records correct; where
notifications are lost, one sync corrects the records.
"""

import itertools
import random
import time

from keystoneauth1 import adapter
from oslo_messaging.notify import _impl_test
import pytest

from blazar_sched.service.bus.nova_notifications import Listener
from demo import cloud as demo_cloud
from demo.cloud import wait_for
from tests.nova import managing
from tests.nova.clouds import OTHER_IMAGE

pytestmark = pytest.mark.more

# The fourth host of the cloud is not reservable.
HOSTS = ('c1', 'c2', 'c3')
HOUR = 3600


class RecordedCloud:
    """A cloud, and a manager whose threads that poll servers run."""

    def __init__(self, cloud, conf):
        self.cloud = cloud
        self.manager = managing.manager_of(cloud, conf)
        self.flavors = [cloud.flavor(vcpus) for vcpus in (1, 2)]
        for name in HOSTS:
            self.manager.hosts.create(name, {})

    def boot(self, size=0, hints=None, **parameters):
        server = self.cloud.boot(self.flavors[size], hints, **parameters)
        assert server['status'] == 'ACTIVE', server.get('fault')
        return server

    def truth(self):
        """Return Nova's servers on the reservable hosts, by uuid."""
        return {
            server['id']: (
                self.cloud.hosts[demo_cloud.host_of(server)],
                server['flavor']['vcpus'],
                server['tenant_id'],
            )
            for server in self.cloud.servers()
            if demo_cloud.host_of(server) in HOSTS
        }

    def records(self):
        return {
            noun.uuid: (noun.host, noun.amounts['VCPU'], noun.project_id)
            for noun in self.manager.ledger.instances()
        }

    def figures(self, name):
        """Return Nova's usage of a host, with the fields of HostState."""
        # The last version that shows the usage.
        compute = adapter.Adapter(
            self.cloud.session(), service_type='compute',
            default_microversion='2.87',
        )
        shown = compute.get(
            f'/os-hypervisors/{self.cloud.hosts[name]}'
        ).json()['hypervisor']
        return {
            'VCPU': shown['vcpus_used'], 'MEMORY_MB': shown['memory_mb_used'],
            'DISK_GB': shown['local_gb_used'],
        }

    def follows(self):
        """Wait until the records equal Nova's servers; return the records."""
        wait_for('true records', lambda: self.records() == self.truth())
        return self.records()

    def host_of(self, server):
        """Return the host of a server in the records, once they are correct.

        The result is the name of the host, None for a host that is not
        reservable.
        """
        names = {uuid: name for name, uuid in self.cloud.hosts.items()}
        host, *_ = self.follows().get(server['id'], (None,))
        return names.get(host)

    # Actions in Nova.

    def resize(self, server, size):
        """Resize a server to another host, before the confirmation."""
        return self.cloud.act(
            server, 'resize', 'VERIFY_RESIZE', flavorRef=self.flavors[size]
        )

    def migrate(self, server):
        self.cloud.act(server, 'migrate', 'VERIFY_RESIZE')
        return self.cloud.act(server, 'confirmResize')

    def live_migrate(self, server, host=None):
        return self.cloud.act(
            server, 'os-migrateLive', host=host, block_migration='auto'
        )

    def evacuate(self, server):
        """Evacuate a server from a host that fails and then recovers."""
        name = demo_cloud.host_of(server)
        self.cloud.stop_compute(name)
        server = self.cloud.evacuate(server)
        self.cloud.start_compute(name)
        return server

    def shelve(self, server):
        return self.cloud.act(server, 'shelve', 'SHELVED_OFFLOADED')

    def unshelve(self, server):
        return self.cloud.act(server, 'unshelve')

    def rebuild(self, server):
        return self.cloud.act(server, 'rebuild', imageRef=OTHER_IMAGE)


@pytest.fixture(scope='module')
def conf(tmp_path_factory):
    conf = managing.configured(
        tmp_path_factory.mktemp('manager'),
        # After the first sync of all servers there is no other one.
        sync_interval=10.0 * HOUR,
    )
    conf.set_override('driver', ['test'], 'oslo_messaging_notifications')
    return conf


@pytest.fixture(scope='class')
def listening(site, conf, nova_notifies):
    """The manager receives Nova's notifications."""
    conf.set_override('notification_exchange', nova_notifies, 'manager')
    listener = Listener(
        conf, site.manager.monitor.notice, site.manager.instances.notice
    )
    parts = (site.manager.instances, listener)
    for part in parts:
        part.start()
    yield
    for part in reversed(parts):
        part.stop()


@pytest.fixture(scope='module')
def site(cloud, conf):
    site = RecordedCloud(cloud, conf)
    yield site
    site.manager.ledger.close()


@pytest.fixture(autouse=True)
def clear(site):
    yield
    site.cloud.delete(*site.cloud.servers())
    # Without the remains of moves.
    site.cloud.report()


@pytest.fixture
def reclaimed(site):
    """Nova deletes servers softly at first."""
    site.cloud.configure('DEFAULT', reclaim_instance_interval=HOUR)
    yield
    site.cloud.configure('DEFAULT', reclaim_instance_interval=0)


@pytest.mark.row('F44')
@pytest.mark.usefixtures('listening')
class TestHeard:
    def test_boot_and_delete(self, site):
        server = site.boot(host='c1')
        assert site.host_of(server) == 'c1'
        site.boot(host='c4')
        assert site.follows().keys() == {server['id']}
        site.cloud.delete(server)
        assert site.follows() == {}

    def test_several_in_one_request(self, site):
        site.cloud.boot_many(6, site.flavors[0])
        assert site.follows()

    def test_server_without_host_has_no_record(self, site):
        """The server has no host, and is later deleted."""
        server = site.cloud.boot(site.cloud.flavor(vcpus=99))
        assert server['status'] == 'ERROR'
        assert site.follows() == {}

    def test_resize(self, site):
        """The server is on its new host before the confirmation."""
        server = site.boot(host='c1')
        site.resize(server, 1)
        assert site.host_of(server) != 'c1'
        site.cloud.act(server, 'revertResize')
        assert site.host_of(server) == 'c1'
        site.resize(server, 1)
        site.cloud.act(server, 'confirmResize')
        assert site.host_of(server) != 'c1'

    def test_cold_migration(self, site):
        server = site.boot(host='c1')
        assert site.host_of(server) == 'c1'
        site.migrate(server)
        assert site.host_of(server) != 'c1'

    @pytest.mark.parametrize('host, known', [('c2', 'c2'), ('c4', None)])
    def test_live_migration(self, site, host, known):
        server = site.boot(host='c1')
        assert site.host_of(server) == 'c1'
        site.live_migrate(server, host)
        assert site.host_of(server) == known

    def test_evacuation(self, site):
        server = site.boot(host='c3')
        assert site.host_of(server) == 'c3'
        server = site.evacuate(server)
        assert site.host_of(server) != 'c3'

    def test_shelve_and_unshelve(self, site):
        server = site.boot(host='c1')
        site.shelve(server)
        assert site.follows() == {}
        server = site.unshelve(server)
        assert demo_cloud.host_of(server) is not None
        site.follows()

    def test_rebuild(self, site):
        server = site.boot(host='c1')
        before = site.follows()
        site.rebuild(server)
        assert site.follows() == before

    def test_soft_delete(self, site, reclaimed):
        """Nova no longer lists the server, but keeps its allocation."""
        server = site.boot(host='c1')
        known = site.follows()
        site.cloud.api.delete_server(server['id'])
        site.cloud.settled(server, 'SOFT_DELETED')
        site.manager.instances.sync()
        assert site.truth() == {}
        assert site.records() == known
        site.cloud.api.post_server_action(server['id'], {'forceDelete': None})
        wait_for('no record', lambda: not site.records())

    def test_record_has_the_declared_end_of_its_lease(self, site):
        server = site.boot(hints={'lifetime': '2h'}, host='c1')
        site.follows()
        [lease] = site.manager.ledger.leases()
        known = site.manager.ledger.instance(server['id'])
        assert known.end == lease.end == lease.start + 2 * HOUR
        site.cloud.delete(server)
        site.follows()
        assert site.manager.ledger.leases() == []

    def test_server_in_the_way_of_a_lease_is_notified(self, site):
        """A server is forced onto a host that is reserved for tomorrow."""
        _impl_test.reset()
        now = int(time.time())
        lease = managing.book(
            site.manager, now + 24 * HOUR, now + 48 * HOUR, managing.hosts(3)
        )
        server = site.boot(availability_zone='nova:c2')
        assert site.host_of(server) == 'c2'

        def told():
            site.manager.notifier.step()
            return [
                message['payload']
                for _, message, *_ in _impl_test.NOTIFICATIONS
                if message['event_type'] == 'instance.misplaced'
            ]

        wait_for('the notification', told)
        assert [(p['instance_id'], p['lease_ids']) for p in told()] == [
            (server['id'], [lease.id])
        ]
        site.manager.leases.delete(lease.id, None)


@pytest.mark.row('F44')
def test_changes_without_notification_are_found_by_one_sync(site):
    """Nova performs all its actions while the manager does not listen."""
    hosts = itertools.cycle(site.cloud.hosts)
    hints = itertools.cycle([None, {'lifetime': '2h'}, None])

    def boot():
        return site.boot(hints=next(hints), host=next(hosts))

    def to_be_confirmed(server):
        site.resize(server, 1)

    def taken_back(server):
        to_be_confirmed(server)
        site.cloud.act(server, 'revertResize')

    def shelved_and_back(server):
        site.unshelve(site.shelve(server))

    done = [
        site.cloud.delete, site.cloud.delete, site.shelve, shelved_and_back,
        to_be_confirmed, taken_back, site.migrate, site.live_migrate,
        site.evacuate, site.rebuild,
    ]
    servers = [boot() for _ in done]
    site.manager.instances.sync()
    before = site.records()
    assert before == site.truth()
    random.Random(1).shuffle(done)
    for do, server in zip(done, servers, strict=True):
        do(server)
    for _ in range(3):
        boot()
    assert site.records() == before != site.truth()

    site.manager.instances.sync()

    assert site.records() == site.truth()
    assert site.manager.ledger.check() == []


def test_records_have_what_nova_counts_in_the_figures_of_a_host(site):
    """The amounts of the flavor, where Placement uses the extra specs."""
    flavor_id = site.cloud.api.post_flavor({'flavor': {
        'name': 'overrides', 'vcpus': 2, 'ram': 1024, 'disk': 3,
        'OS-FLV-EXT-DATA:ephemeral': 2, 'swap': 1536,
    }})['id']
    site.cloud.api.post_extra_spec(flavor_id, {'extra_specs': {
        'resources:VCPU': '1', 'resources:MEMORY_MB': '700',
    }})
    before = site.figures('c1')
    server = site.cloud.boot(flavor_id, host='c1')

    site.cloud.report()
    site.manager.instances.sync()

    [noun] = [
        noun for noun in site.manager.ledger.instances()
        if noun.uuid == server['id']
    ]
    assert noun.amounts == {'VCPU': 1, 'MEMORY_MB': 700, 'DISK_GB': 7}
    after = site.figures('c1')
    assert noun.countable_use() == {
        name: int(after[name] - before[name]) for name in before
    }
