# SPDX-License-Identifier: Apache-2.0
"""The clients against real services; each step is done twice."""

import dataclasses
import json
import threading
import time
import uuid

from keystoneauth1 import adapter
import pytest

from blazar_sched.conf import service as service_conf
from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.inventory import Inventory
from blazar_sched.service.clients import rest
from blazar_sched.service.clients.nova import Aggregate
from blazar_sched.service.clients.nova import server as nova_server
from blazar_sched.service.clients.nova.server import IMAGE_MICROVERSION
from blazar_sched.service.clients.placement import MAX_TRIES
from blazar_sched.service.clients.placement import Placement
from blazar_sched.service.clients.placement import resource_class
from tests.nova import clouds

pytestmark = pytest.mark.more

CLOUD = clouds.PAIR
HOST = 'compute-1'
SLOT = {'VCPU': 2, 'MEMORY_MB': 256, 'DISK_GB': 3}
FLAVOR = Flavor(
    id='', name='mine', vcpus=2, memory_mb=256, disk_gb=3, ephemeral_gb=1,
    swap_mb=64,
)


@pytest.fixture(autouse=True)
def options(cloud):
    with cloud.restoring():
        yield


class TestNova:
    def test_hypervisor(self, cloud, nova):
        found = nova.hypervisor(HOST)
        assert found.uuid == cloud.hosts[HOST]
        assert (found.hostname, found.host) == (HOST, HOST)
        assert (found.type, found.version) == ('fake', 1000)
        assert json.loads(found.cpu_info)['arch'] == 'x86_64'
        assert found.availability_zone == 'nova'

    def test_a_hypervisor_by_its_id(self, cloud, nova):
        assert nova.hypervisor(cloud.hosts[HOST]) == nova.hypervisor(HOST)
        with pytest.raises(exception.HostNotFound):
            nova.hypervisor(str(uuid.uuid4()))

    @pytest.mark.parametrize('name', ['compute', 'compute-11', 'x&y=1', '%'])
    def test_no_hypervisor_of_exactly_that_name(self, nova, name):
        with pytest.raises(exception.HostNotFound):
            nova.hypervisor(name)

    def test_hypervisors(self, cloud, nova):
        cloud.configure('api', max_limit=1)
        found = {h.hostname: h for h in nova.hypervisors()}
        assert found == {name: nova.hypervisor(name) for name in cloud.hosts}
        assert found[HOST].up

    def test_a_service_that_is_down_or_disabled(self, cloud, nova):
        def up():
            return {h.hostname for h in nova.hypervisors() if h.up}

        cloud.stop_compute(HOST)
        assert up() == set(cloud.hosts) - {HOST}
        cloud.start_compute(HOST)
        assert up() == set(cloud.hosts)
        [service] = cloud.api.api_get(
            f'/os-services?binary=nova-compute&host={HOST}'
        ).body['services']
        for status in ('disabled', 'enabled'):
            cloud.api.api_put(
                f'/os-services/{service["id"]}', {'status': status}
            )
            assert (HOST in up()) is (status == 'enabled')

    def test_shelved_servers_leave_their_host(self, cloud, nova, wait_for):
        server = cloud.boot(cloud.flavor())

        def shown():
            [found] = nova.servers()
            return found

        assert shown().name == server['name']
        assert shown().status == 'ACTIVE'
        # Twice is impossible, because a server that is being shelved cannot
        # be.
        for _ in range(2):
            assert not nova.shelve_servers([shown()])
        wait_for('it is shelved', lambda: nova.shelve_servers([shown()]))
        assert (shown().node, shown().status) == (None, 'SHELVED_OFFLOADED')
        cloud.delete(server)
        assert nova.shelve_servers(nova.servers())

    def test_a_server_that_has_come_back_has_moved(
        self, cloud, nova, wait_for
    ):
        server = cloud.boot(cloud.flavor())
        [found] = nova.servers()
        assert not nova.has_moved(found, found.created)
        nova.shelve_servers([found])
        cloud.settled(server, 'SHELVED_OFFLOADED')
        assert not nova.has_moved(found, found.created)
        nova.unshelve_server(found)
        cloud.settled(server, 'ACTIVE')
        assert nova.has_moved(found, found.created)
        assert not nova.has_moved(found, int(time.time()) + 60)
        cloud.delete(server)
        assert not nova.has_moved(found, int(time.time()) + 60)

    def test_each_reservation_has_one_image_of_a_server(
        self, cloud, nova, wait_for
    ):
        server = cloud.boot(cloud.flavor())
        [found] = nova.servers()
        name = f'reserved_{found.name}'
        for id_ in ('first', 'first', 'second'):
            mark = {'blazar:reservation': id_}
            wait_for(
                'it is idle',
                lambda: cloud.show(server)['OS-EXT-STS:task_state'] is None,
            )
            nova.create_image(found, name, mark)
        cloud.delete(server)
        nova.create_image(found, name, {'blazar:reservation': 'third'})
        compute = adapter.Adapter(cloud.session(), service_type='compute')
        images = compute.get(
            '/images/detail', microversion=IMAGE_MICROVERSION
        ).json()['images']
        assert sorted(
            i['metadata']['blazar:reservation']
            for i in images
            if i['name'] == name
        ) == ['first', 'second']

    def test_flavor(self, cloud, nova):
        id_ = str(uuid.uuid4())
        specs = {'blazar:reservation': id_}
        for _ in range(2):
            nova.create_flavor(
                dataclasses.replace(FLAVOR, id=id_, extra_specs=specs)
            )
            nova.add_flavor_access(id_, 'project')
        shown = cloud.api.get_flavor(id_)
        assert (shown['vcpus'], shown['ram'], shown['disk']) == (2, 256, 3)
        assert (shown['OS-FLV-EXT-DATA:ephemeral'], shown['swap']) == (1, 64)
        assert shown['extra_specs'] == specs
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

    def test_flavors_but_those_of_reservations(self, cloud, nova):
        others = {f.id for f in nova.flavors()}
        for id_, specs in (
            ('of mine', {'hw:cpu_policy': 'dedicated'}),
            ('reserved', {'blazar:reservation': str(uuid.uuid4())}),
        ):
            nova.create_flavor(
                dataclasses.replace(
                    FLAVOR, id=id_, name=id_, extra_specs=specs
                )
            )
        for project_id in ('b', 'a'):
            cloud.api.api_post(
                '/flavors/of%20mine/action',
                {'addTenantAccess': {'tenant': project_id}},
            )
        public = cloud.flavor(3, 128, 4, name='public')
        cloud.configure('api', max_limit=2)
        known = nova.flavors()
        found = {f.id: f for f in known if f.id not in others}
        assert len(known) == len(others) + 2
        assert found == {
            'of mine': dataclasses.replace(
                FLAVOR, id='of mine', name='of mine',
                extra_specs={'hw:cpu_policy': 'dedicated'},
                projects=('a', 'b'),
            ),
            public: Flavor(public, 'public', 3, 128, 4),
        }
        for id_ in (*found, 'reserved', 'nothing', 'detail', '..', 'a/b'):
            assert nova.flavor(id_) == found.get(id_)
        for id_ in ('of%20mine', 'reserved', public):
            nova.delete_flavor(id_)

    def test_aggregate(self, cloud, nova):
        assert nova.aggregate('mine') is None
        for _ in range(2):
            made = nova.create_aggregate('mine', {'a': '1', 'b': '2'})
            nova.add_to_aggregate(made, HOST)
        nova.set_aggregate_metadata(made, {'a': None, 'c': '3'})
        assert nova.aggregate('mine') == Aggregate(
            made.id, 'mine', (HOST,), {'b': '2', 'c': '3'}, made.uuid
        )
        nova.remove_from_aggregate(nova.aggregate('mine'), HOST)
        assert nova.aggregate('mine').hosts == ()
        nova.add_to_aggregate(made, HOST)
        assert nova.set_aggregate_zone(made, 'zone')
        assert nova.aggregate('mine').metadata['availability_zone'] == 'zone'
        for _ in range(2):
            nova.delete_aggregate('mine')
        assert nova.aggregate('mine') is None

    def test_server_group(self, cloud, nova):
        """A server group belongs to one project, and serves only it."""
        another = cloud.client('another')
        theirs = another.post_server_groups(
            {'name': 'mine', 'policy': 'affinity'}
        )
        ids = {
            nova.create_server_group('mine', 'anti-affinity')
            for _ in range(2)
        }
        [shown] = cloud.api.api_get('/os-server-groups').body['server_groups']
        assert ids == {shown['id']} != {theirs['id']}
        assert (shown['name'], shown['policy']) == ('mine', 'anti-affinity')
        replaced = nova.create_server_group('mine', 'affinity')
        [shown] = cloud.api.api_get('/os-server-groups').body['server_groups']
        assert (shown['id'], shown['policy']) == (replaced, 'affinity')
        cloud.configure('api', max_limit=1)
        for _ in range(2):
            nova.delete_server_group('mine')
        for api in (cloud.api, another):
            assert api.api_get('/os-server-groups').body == {
                'server_groups': []
            }

    def test_servers(self, cloud, nova, wait_for):
        flavor = cloud.flavor(
            2, 256, 3, {'blazar:lifetime': '1h', 'blazar:preemptible': 'yes'}
        )
        plain = cloud.boot(cloud.flavor())
        hinted = cloud.boot(
            flavor, {'lifetime': '2h', 'reservation': 'no-such'},
            project_id='another', host=HOST,
        )
        found = {s.uuid: s for s in nova.servers()}
        assert set(found) == {plain['id'], hinted['id']}
        assert found[plain['id']].end == window.FOREVER
        assert found[plain['id']].reservation_id is None
        assert not found[plain['id']].preemptible
        # A reservation without hosts admits no server.
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
        cloud.delete(*booted)

    @pytest.mark.parametrize(
        'hints, specs, end',
        [
            ({}, {'blazar:lifetime': '60'}, 60),
            ({'lifetime': '90s'}, {'blazar:lifetime': '60'}, 90),
            ({'lifetime': ['1m']}, {}, 60),
            ({'lease_end': '2030-01-01 00:00'}, {}, 1893456000),
            ({'lease_end': '2030-01-01 00:00', 'lifetime': '1'}, {},
             1893456000),
            ({'lifetime': 'long'}, {'blazar:lifetime': '60'}, None),
            ({'lifetime': ['1', '2']}, {}, None),
            ({'lease_end': 'soon'}, {}, None),
            ({}, {}, None),
        ],
    )
    def test_end_of_a_server_is_read_from_its_details(self, hints, specs, end):
        """The end as /servers/detail shows it; an unclear end is no end."""
        shown = details(
            '', hints, vcpus=1, ram=2, disk=10, ephemeral=4, swap=1025,
            extra_specs=specs,
        )
        server = nova_server._server(shown, {})
        if end is None:
            end = window.FOREVER
        elif end < 1e9:
            end += 1767225600
        assert server.end == end
        # A server booted from a volume has no root disk; swap is rounded up.
        assert server.amounts['DISK_GB'] == 6


def details(image, hints, **flavor):
    """Return a server as /servers/detail shows it."""
    return {
        'id': 'x', 'tenant_id': 'p', 'created': '2026-01-01T00:00:00Z',
        'image': image, 'flavor': flavor, 'scheduler_hints': hints,
    }


def test_amounts_of_every_class():
    """The amounts that the flavor requests, except for the slot."""
    shown = details(
        {'id': 'image'}, {'reservation': ['another']},
        vcpus=4, ram=2, disk=10, ephemeral=0, swap=0,
        extra_specs={
            'hw:cpu_policy': 'dedicated', 'resources:CUSTOM_GPU': '2',
            'blazar:reservation': 'r', f'resources:{resource_class("r")}': '1',
        },
    )
    server = nova_server._server(shown, {})
    assert server.reservation_id == 'r'
    assert server.amounts == {
        'PCPU': 4, 'MEMORY_MB': 2, 'DISK_GB': 10, 'CUSTOM_GPU': 2
    }


def created(server):
    return duration.parse_time(server['created'], 'created')


def access(cloud, flavor_id):
    answer = cloud.api.api_get(f'/flavors/{flavor_id}/os-flavor-access')
    return [a['tenant_id'] for a in answer.body['flavor_access']]


class Meddler(adapter.Adapter):
    """An adapter that runs a function before each PUT, `times` times."""

    def __init__(self, api, meddle, times):
        super().__init__(
            Meddled(auth=api.session.auth), service_type=api.service_type
        )
        self.session.meddler = self
        self.meddle, self.times = meddle, times


class Meddled(rest.Session):
    def request(self, url, method, **kwargs):
        changes = method == 'PUT' and url.endswith('/inventories')
        if changes and self.meddler.times:
            self.meddler.times -= 1
            self.meddler.meddle()
        return super().request(url, method, **kwargs)


def slots(total):
    """Return the inventory of slots: a server takes one of them."""
    return Inventory(total, max_unit=1 if total > 1 else None)


class TestPlacement:
    @pytest.fixture
    def provider(self, cloud):
        return cloud.hosts[HOST]

    @pytest.fixture
    def take(self, placement_api):
        """take({provider: amounts}) -> a consumer that has these amounts."""
        def take(held):
            consumer = str(uuid.uuid4())
            answer = placement_api.put(f'/allocations/{consumer}', json={
                'allocations': {
                    provider: {'resources': amounts}
                    for provider, amounts in held.items()
                },
                'project_id': 'p', 'user_id': 'u', 'consumer_generation': None,
            }, microversion='1.29')
            assert answer.status_code == 204
            return consumer

        return take

    @pytest.fixture
    def class_(self, placement, provider):
        name = resource_class(str(uuid.uuid4()))
        placement.create_resource_class(name)
        yield name
        assert placement.remove_inventory(HOST, name)
        placement.delete_resource_class(name)

    def children(self, placement_api, provider):
        found = placement_api.get(
            f'/resource_providers?in_tree={provider}', microversion='1.29'
        ).json()['resource_providers']
        return {p['name']: p['uuid'] for p in found if p['uuid'] != provider}

    def test_inventories(self, placement, provider):
        found = placement.inventories(provider)
        assert found['VCPU'] == Inventory(8, 0, 1.0)
        assert found['MEMORY_MB'] == Inventory(16896, 512, 1.0)
        assert found['DISK_GB'] == Inventory(1000, 0, 1.0)

    def test_traits(self, placement, placement_api, provider):
        before = placement.traits(provider)
        assert 'COMPUTE_NODE' in before
        assert list(before) == sorted(before)
        placement_api.put('/traits/CUSTOM_FAST', microversion='1.29')
        generation = placement.trees(provider)[provider][provider]
        for traits in ([*before, 'CUSTOM_FAST'], before):
            placement_api.put(
                f'/resource_providers/{provider}/traits',
                json={
                    'resource_provider_generation': generation,
                    'traits': list(traits),
                },
                microversion='1.29',
            )
            assert set(placement.traits(provider)) == set(traits)
            # The change of the generations is noticed.
            generation += 1
            assert placement.trees(provider)[provider][provider] == generation

    def test_unknown_provider(self, placement):
        for ask in (placement.inventories, placement.traits):
            with pytest.raises(exception.HostNotFound):
                ask(str(uuid.uuid4()))

    def test_child_and_inventory(
        self, placement, placement_api, provider, class_
    ):
        for total in (3, 3, 4):
            placement.create_resource_class(class_)
            placement.set_inventory(provider, HOST, class_, total)
            [(name, child)] = self.children(placement_api, provider).items()
            assert name == f'blazar_{HOST}'
            assert placement.inventories(child) == {class_: slots(total)}
        for _ in range(2):
            assert placement.remove_inventory(HOST, class_)
            assert placement.inventories(child) == {}
            placement.delete_resource_class(class_)

    def test_generation_conflicts_are_retried(
        self, placement, placement_api, provider, class_
    ):
        """Another lease changes the inventories of the same host meanwhile."""
        other = resource_class(str(uuid.uuid4()))
        placement.create_resource_class(other)
        totals = iter(range(1, 100))

        def meddle():
            placement.set_inventory(provider, HOST, other, next(totals))

        meddled = Placement(Meddler(placement_api, meddle, 3))
        meddled.set_inventory(provider, HOST, class_, 7)
        child = self.children(placement_api, provider)[f'blazar_{HOST}']
        assert placement.inventories(child) == {
            class_: slots(7),
            other: slots(3),
        }
        hopeless = Meddler(placement_api, meddle, 1000)
        with pytest.raises(exception.Unavailable):
            Placement(hopeless).set_inventory(provider, HOST, class_, 8)
        assert 1000 - hopeless.times == MAX_TRIES
        assert placement.remove_inventory(HOST, other)
        placement.delete_resource_class(other)

    def test_two_at_once_make_one_child(
        self, placement, placement_api, provider, class_
    ):
        barrier = threading.Barrier(4)
        names = [resource_class(str(uuid.uuid4())) for _ in range(4)]
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

    def test_inventory_in_use_is_no_error(
        self, placement, placement_api, provider, class_, take
    ):
        """A slot in use is no error: its server is still being deleted."""
        placement.set_inventory(provider, HOST, class_, 1)
        [child] = self.children(placement_api, provider).values()
        consumer = take({child: {class_: 1}})
        assert not placement.remove_inventory(HOST, class_)
        placement_api.delete(f'/allocations/{consumer}', microversion='1.29')
        assert placement.remove_inventory(HOST, class_)

    @pytest.mark.parametrize('total, left', [(2, 2), (1, 1), (0, 1)])
    def test_cut_while_a_server_boots(
        self, placement, placement_api, provider, class_, total, left, take
    ):
        """A server that boots meanwhile keeps its allocation."""
        placement.set_inventory(provider, HOST, class_, 3)
        child = self.children(placement_api, provider)[f'blazar_{HOST}']
        booted = []
        meddler = Meddler(
            placement_api, lambda: booted.append(take({child: {class_: 1}})), 1
        )
        cutter = Placement(meddler)
        assert cutter.cut_inventory(HOST, class_, total) == left
        [consumer] = booted
        assert placement.inventories(child) == {class_: slots(left)}
        assert placement.count_used(HOST, class_) == {consumer: 1}
        placement_api.delete(f'/allocations/{consumer}', microversion='1.29')
        for _ in range(2):
            assert placement.cut_inventory(HOST, class_, 0) == 0
            assert placement.inventories(child) == {}

    def test_kept_server_gives_up_its_slot_only(
        self, placement, placement_api, provider, class_, take
    ):
        """A server that stays keeps its allocations except for the slot."""
        other = resource_class(str(uuid.uuid4()))
        placement.create_resource_class(other)
        for name in (class_, other):
            placement.set_inventory(provider, HOST, name, 2)
        [child] = self.children(placement_api, provider).values()
        consumers = [take(held) for held in (
            {provider: {'VCPU': 1}, child: {class_: 1}},
            {child: {class_: 1, other: 1}}, {child: {other: 1}},
        )]
        for _ in range(2):
            placement.release_inventory(HOST, class_)
        assert placement.remove_inventory(HOST, class_)
        left = []
        for consumer in consumers:
            held = placement_api.get(
                f'/allocations/{consumer}', microversion='1.29'
            ).json()['allocations']
            left.append({id_: held[id_]['resources'] for id_ in held})
            placement_api.delete(
                f'/allocations/{consumer}', microversion='1.29'
            )
        assert left == [
            {provider: {'VCPU': 1}}, {child: {other: 1}}, {child: {other: 1}},
        ]
        assert placement.remove_inventory(HOST, other)
        placement.delete_resource_class(other)


def test_configured_by_a_file(cloud, placement_api, tmp_path):
    """The options are keystoneauth's own, in groups of blazar-sched."""
    file = tmp_path / 'blazar-sched.conf'
    endpoint = placement_api.get_endpoint()
    file.write_text(
        '[placement]\nauth_type = admin_token\ntoken = admin\n'
        f'endpoint = {endpoint}\n'
    )
    conf = service_conf.load(files=[str(file)])
    assert rest.load_adapter(conf, 'nova') is None
    api = rest.load_adapter(conf, 'placement')
    assert api.session.timeout == rest.TIMEOUT
    found = Placement(api).inventories(cloud.hosts[HOST])
    assert found['VCPU'].total == 8
