# SPDX-License-Identifier: Apache-2.0
"""The clients against real services, one step at a time and each twice."""

import threading
import uuid

from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
import pytest

from blazar_sched.conf import service as conf_
from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain import lifetime
from blazar_sched.domain import window
from blazar_sched.service.clients import nova as nova_
from blazar_sched.service.clients import placement as placement_
from blazar_sched.service.clients import rest

HOST = 'compute-1'
SLOT = {'VCPU': 2, 'MEMORY_MB': 256, 'DISK_GB': 3}


class TestNova:
    def test_hypervisor(self, cloud, nova):
        found = nova.hypervisor(HOST)
        assert found.uuid == cloud.hosts[HOST]
        assert (found.hostname, found.host) == (HOST, HOST)
        assert (found.type, found.version) == ('fake', 1000)
        assert 'x86_64' in found.cpu_info
        assert found.availability_zone == 'nova'

    @pytest.mark.parametrize('name', ['compute', 'compute-11', 'x&y=1', '%'])
    def test_no_hypervisor_of_exactly_that_name(self, nova, name):
        with pytest.raises(exception.HostNotFound):
            nova.hypervisor(name)

    def test_flavor(self, cloud, nova):
        id_ = str(uuid.uuid4())
        for _ in range(2):
            nova.create_flavor(id_, 'mine', SLOT, {'blazar:reservation': id_})
            nova.add_flavor_access(id_, 'project')
        shown = cloud.api.get_flavor(id_)
        assert (shown['vcpus'], shown['ram'], shown['disk']) == (2, 256, 3)
        assert shown['extra_specs'] == {'blazar:reservation': id_}
        assert not shown['os-flavor-access:is_public']
        assert access(cloud, id_) == ['project']
        for _ in range(2):
            nova.remove_flavor_access(id_, 'project')
        assert access(cloud, id_) == []
        for _ in range(2):
            nova.delete_flavor(id_)
            nova.remove_flavor_access(id_, 'project')
        assert id_ not in {
            f['id'] for f in cloud.api.get_flavors(detail=False)
        }

    def test_servers(self, cloud, nova, wait_for):
        flavor = cloud.flavor(
            2, 256, 3, {'blazar:lifetime': '1h', 'blazar:preemptible': 'yes'}
        )
        plain = cloud.boot(cloud.flavor())
        hinted = cloud.boot(
            flavor,
            {'lifetime': '2h', 'reservation': 'no-such'},
            project_id='another',
            host=HOST,
        )
        found = {s.uuid: s for s in nova.servers()}
        assert set(found) == {plain['id'], hinted['id']}
        assert found[plain['id']].end == window.FOREVER
        assert found[plain['id']].reservation_id is None
        assert not found[plain['id']].preemptible
        # A reservation that nobody has lets no server in: it is on no host.
        assert hinted['status'] == 'ERROR'
        shown = found[hinted['id']]
        assert shown.node is None
        assert shown.project_id == 'another'
        assert shown.amounts == SLOT
        assert shown.reservation_id == 'no-such'
        assert shown.preemptible
        assert shown.end == created(hinted) + 7200
        assert [s.uuid for s in nova.servers(project_id='another')] == [
            hinted['id']
        ]
        on = nova.hypervisor(found[plain['id']].node).host
        assert [s.uuid for s in nova.servers(host=on)] == [plain['id']]
        servers = list(nova.servers())
        assert not nova.delete_servers(servers)
        wait_for('all gone', lambda: not cloud.servers())
        assert not nova.delete_servers(servers)
        assert nova.delete_servers(nova.servers())

    def test_servers_in_pages(self, cloud, nova):
        booted = cloud.boot_many(5, cloud.flavor())
        cloud.configure('api', max_limit=2)
        assert sorted(s.uuid for s in nova.servers()) == sorted(
            s['id'] for s in booted
        )
        cloud.configure('api', max_limit=1000)
        cloud.delete(*booted)

    @pytest.mark.parametrize(
        'hints, specs, end',
        [
            ({}, {'blazar:lifetime': '60'}, 60),
            ({'lifetime': '90s'}, {'blazar:lifetime': '60'}, 90),
            ({'lifetime': ['1m']}, {}, 60),
            ({'lease_end': '2030-01-01 00:00'}, {}, 1893456000),
            (
                {'lease_end': '2030-01-01 00:00', 'lifetime': '1'},
                {},
                1893456000,
            ),
            ({'lifetime': 'long'}, {'blazar:lifetime': '60'}, None),
            ({'lifetime': ['1', '2']}, {}, None),
            ({'lease_end': 'soon'}, {}, None),
            ({}, {}, None),
        ],
    )
    def test_end(self, hints, specs, end):
        """As /servers/detail shows them; unclear is unbounded."""
        shown = {
            'id': 'x',
            'tenant_id': 'p',
            'created': '2026-01-01T00:00:00Z',
            'image': '',
            'flavor': {
                'vcpus': 1,
                'ram': 2,
                'disk': 10,
                'ephemeral': 4,
                'swap': 1025,
                'extra_specs': specs,
            },
            'scheduler_hints': hints,
        }
        server = nova_._server(shown)
        if end is None:
            end = window.FOREVER
        elif end < 1e9:
            end += 1767225600
        assert server.end == end
        # From a volume: no root disk; swap is rounded up.
        assert server.amounts['DISK_GB'] == 6


def created(server):
    return lifetime.parse_time(server['created'], 'created')


def access(cloud, flavor_id):
    answer = cloud.api.api_get(f'/flavors/{flavor_id}/os-flavor-access')
    return [a['tenant_id'] for a in answer.body['flavor_access']]


class Meddler:
    """An adapter that lets another one in before each PUT, `times` times."""

    def __init__(self, api, meddle, times):
        self.api, self.meddle, self.times = api, meddle, times

    def request(self, url, method, **kwargs):
        if method == 'PUT' and url.endswith('/inventories') and self.times:
            self.times -= 1
            self.meddle()
        return self.api.request(url, method, **kwargs)


class TestPlacement:
    @pytest.fixture
    def provider(self, cloud):
        return cloud.hosts[HOST]

    @pytest.fixture
    def class_(self, placement, provider):
        name = placement_.resource_class(str(uuid.uuid4()))
        placement.create_resource_class(name)
        yield name
        assert placement.remove_inventory(HOST, name)
        placement.delete_resource_class(name)
        placement.delete_child(HOST)

    def children(self, placement_api, provider):
        found = placement_api.get(
            f'/resource_providers?in_tree={provider}', microversion='1.29'
        ).json()['resource_providers']
        return {p['name']: p['uuid'] for p in found if p['uuid'] != provider}

    def test_inventories(self, placement, provider):
        found = placement.inventories(provider)
        assert found['VCPU'] == inventory.Inventory(8, 0, 1.0)
        assert found['MEMORY_MB'] == inventory.Inventory(16896, 512, 1.0)
        assert found['DISK_GB'] == inventory.Inventory(1000, 0, 1.0)

    def test_unknown_provider(self, placement):
        with pytest.raises(exception.HostNotFound):
            placement.inventories(str(uuid.uuid4()))

    def test_child_and_inventory(
        self, placement, placement_api, provider, class_
    ):
        for total in (3, 3, 4):
            placement.create_resource_class(class_)
            placement.set_inventory(provider, HOST, class_, total)
            [(name, child)] = self.children(placement_api, provider).items()
            assert name == f'blazar_{HOST}'
            assert placement.inventories(child) == {
                class_: inventory.Inventory(total)
            }
        for _ in range(2):
            assert placement.remove_inventory(HOST, class_)
            assert placement.inventories(child) == {}
            placement.delete_resource_class(class_)
        for _ in range(2):
            placement.delete_child(HOST)
            assert self.children(placement_api, provider) == {}
        assert placement.remove_inventory(HOST, class_)

    def test_generation_conflicts_are_retried(
        self, placement, placement_api, provider, class_
    ):
        """Another lease changes the same host's inventories meanwhile."""
        other = placement_.resource_class(str(uuid.uuid4()))
        placement.create_resource_class(other)
        totals = iter(range(1, 100))

        def meddle():
            placement.set_inventory(provider, HOST, other, next(totals))

        meddled = placement_.Placement(Meddler(placement_api, meddle, 3))
        meddled.set_inventory(provider, HOST, class_, 7)
        child = self.children(placement_api, provider)[f'blazar_{HOST}']
        assert placement.inventories(child) == {
            class_: inventory.Inventory(7),
            other: inventory.Inventory(3),
        }
        hopeless = Meddler(placement_api, meddle, 1000)
        with pytest.raises(exception.Unavailable):
            placement_.Placement(hopeless).set_inventory(
                provider, HOST, class_, 8
            )
        assert 1000 - hopeless.times == placement_.MAX_TRIES
        assert placement.remove_inventory(HOST, other)
        placement.delete_resource_class(other)

    def test_two_at_once_make_one_child(
        self, placement, placement_api, provider, class_
    ):
        barrier = threading.Barrier(4)
        names = [
            placement_.resource_class(str(uuid.uuid4())) for _ in range(4)
        ]
        failures = []

        def work(name):
            barrier.wait()
            try:
                placement.create_resource_class(name)
                placement.set_inventory(provider, HOST, name, 1)
            except Exception as e:
                failures.append(e)

        threads = [threading.Thread(target=work, args=(n,)) for n in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        [child] = self.children(placement_api, provider).values()
        assert set(placement.inventories(child)) == set(names)
        for name in names:
            assert placement.remove_inventory(HOST, name)
            placement.delete_resource_class(name)

    def test_in_use(self, placement, placement_api, provider, class_):
        """Not an error: the server that uses it is still going."""
        placement.set_inventory(provider, HOST, class_, 1)
        [child] = self.children(placement_api, provider).values()
        consumer = str(uuid.uuid4())
        answer = placement_api.put(
            f'/allocations/{consumer}',
            json={
                'allocations': {child: {'resources': {class_: 1}}},
                'project_id': 'p',
                'user_id': 'u',
                'consumer_generation': None,
            },
            microversion='1.29',
        )
        assert answer.status_code == 204
        assert not placement.remove_inventory(HOST, class_)
        placement_api.delete(f'/allocations/{consumer}', microversion='1.29')
        assert placement.remove_inventory(HOST, class_)


class Broken:
    """An adapter of a service in trouble."""

    def __init__(self, status_code):
        self.status_code, self.ok, self.text = status_code, False, 'trouble'

    def request(self, url, method, **kwargs):
        return self


@pytest.mark.parametrize('status', [401, 403, 500, 503])
def test_trouble_is_unavailable(status):
    for ask in (
        lambda api: nova_.Nova(api).hypervisor('a'),
        lambda api: list(nova_.Nova(api).servers()),
        lambda api: nova_.Nova(api).delete_flavor('a'),
        lambda api: placement_.Placement(api).inventories('a'),
        lambda api: placement_.Placement(api).remove_inventory('a', 'b'),
    ):
        with pytest.raises(exception.Unavailable) as failure:
            ask(Broken(status))
        assert str(status) in str(failure.value)


def test_configured_by_a_file(cloud, placement_api, tmp_path):
    """keystoneauth's own options, in our own groups."""
    file = tmp_path / 'blazar-sched.conf'
    endpoint = placement_api.get_endpoint()
    file.write_text(
        '[placement]\nauth_type = admin_token\ntoken = admin\n'
        f'endpoint = {endpoint}\n'
    )
    conf = conf_.load(files=[str(file)])
    assert rest.load_adapter(conf, 'nova') is None
    api = rest.load_adapter(conf, 'placement')
    assert api.session.timeout == rest.TIMEOUT
    found = placement_.Placement(api).inventories(cloud.hosts[HOST])
    assert found['VCPU'].total == 8


def test_nobody_there():
    auth = token_endpoint.Token('http://127.0.0.1:1', 'token')
    api = adapter.Adapter(session.Session(auth=auth), connect_retries=0)
    with pytest.raises(exception.Unavailable):
        nova_.Nova(api).hypervisor('a')
