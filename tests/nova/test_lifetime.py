# SPDX-License-Identifier: Apache-2.0
"""The lifetime of a server, from hints to end: Nova and the whole service.

The clock of the service and of nova-scheduler is set ahead; Nova and the
threads that poll it have the real clock.
"""

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
import pytest

from blazar_sched.domain import duration
from blazar_sched.service.api import server as api_server
from blazar_sched.service.bus import rpc
from blazar_sched.worker import process
from demo.cloud import host_of
from demo.cloud import wait_for
from tests.nova import clouds
from tests.nova import managing
from tests.nova.ahead import Clock
from tests.nova.ahead import wait_for_replica

pytestmark = pytest.mark.more

CLOUD = clouds.PAIR
HOUR = 3600
VERSION = {'OpenStack-API-Version': 'reservation 1.1'}


class LifetimeCloud:
    """A cloud with a whole service; times are in seconds from now."""

    def __init__(self, cloud, manager, port, clock):
        self.cloud = cloud
        self.manager = manager
        self.clock = clock
        self._port = port
        self._flavor = cloud.flavor(vcpus=2)

    def at(self, seconds):
        """Return a time as text, in the format of hints and requests."""
        return duration.format_time(int(self.clock()) + seconds)

    def client(self, project_id):
        endpoint = f'http://127.0.0.1:{self._port}/v1'
        auth = token_endpoint.Token(endpoint, f'user:{project_id}')
        return adapter.Adapter(
            session.Session(auth=auth), service_type='reservation'
        )

    def boot(self, project_id='alice', flavor=None, host=None, **hints):
        # The leases of the previous test are over, and the clock was set
        # ahead.
        self.told()
        placed = {'host': host} if host else {}
        server = self.cloud.boot(
            flavor or self._flavor, hints, project_id=project_id, **placed
        )
        assert server['status'] == 'ACTIVE', server.get('fault')
        return server

    def leases(self, project_id='alice'):
        """Return the project's leases by their servers."""
        answer = self.client(project_id).get('/leases', headers=VERSION)
        return {
            lease['reservations'][0]['instance_id']: lease
            for lease in answer.json()['leases']
        }

    def lease(self, server, status, project_id='alice'):
        """Wait until a server's lease has a status; return the lease."""

        def probe():
            lease = self.leases(project_id).get(server['id'])
            return lease if lease and lease['status'] == status else None

        return wait_for(f'lease {status}', probe)

    def update(self, lease, **values):
        answer = self.client('alice').put(
            f'/leases/{lease["id"]}', json=values, headers=VERSION
        )
        return answer.json()['lease']

    def record(self, server):
        return self.manager.ledger.instance(server['id'])

    def known(self, server):
        """Wait until all replicas have the server's record; return the record.
        """
        found = wait_for('record', lambda: self.record(server))
        self.told()
        return found

    def told(self):
        """Wait until nova-scheduler's replica equals the ledger."""
        wait_for_replica(self.manager.ledger)

    def gone(self, server):
        wait_for(
            'server gone',
            lambda: server['id'] not in {
                s['id'] for s in self.cloud.servers()
            },
        )

    def place(self, lease):
        """Return the name of the host with an allocation of the lease."""
        [(held, _)] = self.manager.ledger.allocations(lease_id=lease['id'])
        names = {uuid: name for name, uuid in self.cloud.hosts.items()}
        return names[held.host]

    def images(self):
        api = self.cloud.client('alice')
        api.microversion = '2.35'
        return api.api_get('/images/detail').body['images']


@pytest.fixture(scope='module')
def clock():
    return Clock()


@pytest.fixture(scope='module')
def cloud(bare_cloud, clock):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, '_clock', clock)
        yield bare_cloud


@pytest.fixture(scope='module')
def site(cloud, clock, tmp_path_factory):
    conf = managing.configured(
        tmp_path_factory.mktemp('lifetime'), sync_interval=1.0,
        vacate_lead_time=0, minutes_before_end_lease=0,
        # On a busy machine a compute may report late.
        enable_polling_monitor=False,
    )
    conf.set_override('port', 0, 'api')
    conf.set_override('auth_strategy', 'noauth', 'api')
    manager = managing.manager_of(cloud, conf, clock)
    manager.start()
    for name in cloud.hosts:
        manager.hosts.create(name, {})
    api = api_server.serve(conf, rpc.Local(manager.endpoint))
    yield LifetimeCloud(cloud, manager, api.port, clock)
    api.stop()
    manager.stop()


@pytest.fixture(autouse=True)
def clear(site):
    yield
    site.cloud.delete(*site.cloud.servers())
    for lease in site.manager.ledger.leases():
        if lease.status == 'TERMINATED' or not lease.is_lifetime:
            site.manager.leases.delete(lease.id, None)
    wait_for('no leases', lambda: site.manager.ledger.leases() == [])
    wait_for('no records', lambda: site.manager.ledger.instances() == [])
    assert site.manager.ledger.check() == []


@pytest.mark.row('C31', 'C41', 'C43', 'F52')
def test_hints_alone_make_a_lease(site):
    end = site.at(2 * HOUR)
    server = site.boot(lease_end=end, lease_name='night')
    lease = site.lease(server, 'ACTIVE')
    assert (lease['name'], lease['project_id']) == ('night', 'alice')
    assert (lease['start_date'], lease['end_date']) == (server['created'], end)
    [reservation] = lease['reservations']
    assert reservation['resource_type'] == 'instance:lifetime'
    assert reservation['resource_id'] == server['id']
    assert reservation['on_end'] == 'delete'
    assert site.leases('bob') == {}
    with pytest.raises(exceptions.NotFound):
        site.client('bob').get(f'/leases/{lease["id"]}')


@pytest.mark.row('C35', 'F54')
def test_shelved_until_its_start_then_back_onto_its_place(site):
    server = site.boot(lease_start=site.at(HOUR), lease_end=site.at(3 * HOUR))
    site.cloud.settled(server, 'SHELVED_OFFLOADED')
    lease = site.lease(server, 'PENDING')
    place = site.place(lease)
    wait_for('no record', lambda: site.record(server) is None)
    # Nova's own weighers would prefer the host with more memory.
    rival = site.boot('bob', host=place, lease_end=site.at(4 * HOUR))
    site.known(rival)
    # An earlier boot finds no host.
    site.cloud.api.post_server_action(server['id'], {'unshelve': None})
    early = site.cloud.settled(server, 'SHELVED_OFFLOADED')
    assert host_of(early) is None
    site.clock.ahead += HOUR
    back = site.cloud.settled(server, 'ACTIVE')
    assert host_of(back) == place
    assert site.lease(server, 'ACTIVE')['id'] == lease['id']
    assert site.known(server).end == int(duration.parse_time(
        lease['end_date'], ''
    ))
    wait_for('its place is given up', lambda: (
        site.manager.ledger.allocations(lease_id=lease['id']) == []
    ))
    site.clock.ahead += 2 * HOUR
    site.gone(server)
    site.lease(server, 'TERMINATED')


class TestEnd:
    def ended(self, site, on_end):
        server = site.boot(lease_end=site.at(HOUR), lease_on_end=on_end)
        site.lease(server, 'ACTIVE')
        site.clock.ahead += HOUR
        site.lease(server, 'TERMINATED')
        return server

    @pytest.mark.row('C35')
    def test_by_delete(self, site):
        site.gone(self.ended(site, 'delete'))

    @pytest.mark.row('C35')
    def test_by_shelve(self, site):
        server = self.ended(site, 'shelve')
        site.cloud.settled(server, 'SHELVED_OFFLOADED')
        # The owner may unshelve the server: it has no end any more.
        back = site.cloud.act(server, 'unshelve')
        assert back['status'] == 'ACTIVE'
        site.known(server)
        site.clock.ahead += HOUR
        assert site.lease(server, 'TERMINATED')
        assert site.cloud.show(server)['status'] == 'ACTIVE'

    @pytest.mark.row('C35')
    def test_by_snapshot(self, site):
        server = self.ended(site, 'snapshot')
        site.gone(server)
        [image] = [
            i for i in site.images()
            if i['name'] == f'lifetime_{server["name"]}'
        ]
        assert image['status'] == 'ACTIVE'
