# SPDX-License-Identifier: Apache-2.0
"""Nodes of Ironic in a real Nova, with its driver of Ironic.

Only Ironic itself is a stand-in: it deploys a node at once, and cleans a node
until the test lets the node be.
"""

import types
import uuid

from nova.virt.ironic import driver as ironic_driver
from openstack.baremetal.v1.node import Node
import pytest

from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.way import NOT
from blazar_sched.weighers import base
from blazar_sched.worker import filtering
from tests.nova import clouds
from tests.nova.manager.test_leases import fed
from tests.nova.managing import book
from tests.nova.managing import OTHER
from tests.nova.managing import OWNER

pytestmark = pytest.mark.more

COMPUTE = 'ironic-compute'
GOLD = 'CUSTOM_BAREMETAL_GOLD'
NODE = 'OS-EXT-SRV-ATTR:hypervisor_hostname'
# There are no other hosts.
CLOUD = clouds.Kind('ironic', ())


class Ironic:
    """What Nova's driver calls of the SDK's proxy of Ironic."""

    def __init__(self, count):
        self.stored = {
            id_: Node(
                id=id_, resource_class='baremetal-gold', traits=[],
                properties={'cpu_arch': 'x86_64'}, is_maintenance=False,
                power_state='power off', provision_state='available',
            )
            for id_ in (str(uuid.uuid4()) for _ in range(count))
        }

    def nodes(self, instance_id=None, **query):
        return [
            each for each in self.stored.values()
            if instance_id in (None, each.instance_id)
        ]

    def get_node(self, id_, fields=None):
        return self.stored[id_]

    def update_node(self, node, retry_on_conflict=True, **values):
        self.stored[node.id]._update(**values)

    def patch_node(self, node, patch):
        pass

    def validate_node(self, id_, required=None):
        passed = types.SimpleNamespace(result=True)
        return dict.fromkeys(('deploy', 'power', 'storage'), passed)

    def set_node_provision_state(self, id_, target, config_drive=None):
        if target == 'deleted':
            self.stored[id_]._update(
                provision_state='cleaning', instance_id=None
            )
        else:
            self.stored[id_]._update(provision_state=target)

    def finish_cleaning(self):
        for node in self.stored.values():
            if node.provision_state == 'cleaning':
                node._update(provision_state='available')


@pytest.fixture(scope='module')
def ironic(bare_cloud):
    """Three nodes of one nova-compute."""
    ironic = Ironic(3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ironic_driver.IronicDriver, 'ironic_connection', ironic)
        bare_cloud.configure('DEFAULT', compute_driver='ironic.IronicDriver')
        bare_cloud.configure('ironic', api_retry_interval=0)
        bare_cloud.add_computes(COMPUTE)
        yield ironic


@pytest.fixture
def nodes(manager, cloud, ironic):
    """The nodes, registered one by one."""
    cloud.report()
    yield [manager.hosts.create(name, {}) for name in ironic.stored]
    cloud.delete(*cloud.servers())
    ironic.finish_cleaning()
    cloud.report()


@pytest.fixture(scope='module')
def gold(cloud):
    """A flavor as Ironic's guide tells to make it."""
    return cloud.flavor(16, 65536, 100, extra_specs={
        f'resources:{GOLD}': '1', 'resources:VCPU': '0',
        'resources:MEMORY_MB': '0', 'resources:DISK_GB': '0',
    })


@pytest.fixture
def boot(manager, cloud, gold, wait_for):
    """boot(…) -> the node that a server is on, None if no host was found."""

    def boot(*hints, flavor=gold, project_id=OTHER, **parameters):
        fed(cloud, manager, wait_for)
        server = cloud.boot(flavor, *hints, project_id=project_id,
                            **parameters)
        manager.instances.sync()
        if server['status'] == 'ERROR':
            assert 'No valid host' in server['fault']['message']
            cloud.delete(server)
            return None
        return server[NODE]

    return boot


@pytest.fixture
def look(manager, cloud):
    """Let Nova report the nodes, and the service look at the report."""

    def look():
        cloud.report()
        manager.hosts.sync()
        manager.instances.sync()
        manager.monitor.step()

    return look


def whole(**parameters):
    return {'resource_type': 'physical:host', 'min': 1, 'max': 1, **parameters}


def node_of(manager, lease):
    [(allocation, _)] = manager.ledger.allocations(lease_id=lease.id)
    return manager.ledger.hosts([allocation.host])[0].hypervisor_hostname


class TestHosts:
    def test_each_node_is_a_host(self, manager, cloud, nodes):
        for host in nodes:
            assert host.uuid == host.hypervisor_hostname
            assert host.service_name == COMPUTE
            assert host.hypervisor_type == 'ironic'
            assert host.inventory == {GOLD: Inventory(1)}
            assert host.movable == NOT
        manager.hosts.sync()
        assert manager.ledger.hosts() == nodes


@pytest.mark.row('F113')
class TestFilters:
    @pytest.fixture(autouse=True)
    def no_failure(self, monkeypatch):
        """Neither a filter nor a weigher fails."""

        def fail(*args, **kwargs):
            raise AssertionError(args)

        for module in base, filtering:
            monkeypatch.setattr(module.failure, 'report', fail)

    def test_one_reserved_node_is_refused_to_others(
        self, manager, ironic, nodes, lease, boot
    ):
        mine = lease(whole())
        node = node_of(manager, mine)

        others = [boot() for _ in range(3)]
        assert others.count(None) == 1
        assert {*others, node} == {*ironic.stored, None}
        hint = {'reservation': mine.reservations[0].id}
        assert boot(hint) is None
        assert boot(hint, project_id=OWNER) == node

    def test_server_that_ends_before_the_lease_gets_the_node(
        self, manager, cloud, nodes, boot
    ):
        start = int(manager.clock()) + 1800
        book(manager, start, start + 1800, whole(min=3, max=3))
        cloud.configure(
            lease_gap_weight_multiplier=1.0, device_weight_multiplier=1.0,
            vacate_cost_weight_multiplier=1.0,
        )
        assert boot({'lifetime': '1h'}) is None
        assert boot() is None
        assert boot({'lifetime': '10m'}) is not None

    def test_slots_of_a_flavor(
        self, manager, cloud, gold, nodes, lease, ended, boot
    ):
        manager.flavors.sync()
        mine = lease({
            'resource_type': 'flavor:instance', 'flavor_id': gold, 'amount': 2,
        })
        [reservation] = mine.reservations
        held = {a.host for a, _ in manager.ledger.allocations()}
        own = [boot(flavor=reservation.id, project_id=OWNER) for _ in range(3)]
        assert {*own} == {*held, None}
        assert boot() not in (None, *held)
        ended(mine)
        assert {each[NODE] for each in cloud.servers()}.isdisjoint(held)

    def test_every_node_is_found_where_placement_is_narrowed(
        self, manager, cloud, ironic, nodes, lease, boot
    ):
        """Nova puts one node of a nova-compute into Placement's aggregate."""
        cloud.configure(narrow_placement=True)
        each = [lease(whole()) for _ in nodes]
        assert [
            boot({'reservation': one.reservations[0].id}, project_id=OWNER)
            for one in each
        ] == [node_of(manager, one) for one in each]
        cloud.configure(narrow_placement=False)


@pytest.mark.row('F113')
class TestCleaning:
    def test_from_a_deleted_server_to_the_next(
        self, manager, cloud, ironic, nodes, lease, boot, look
    ):
        mine = lease(whole())
        hint = {'reservation': mine.reservations[0].id}
        node = boot(hint, project_id=OWNER)
        look()
        # The node of a server is reserved in Placement, and held as before.
        assert cloud.inventory(node)[GOLD]['reserved'] == 1
        assert manager.ledger.hosts() == nodes
        assert not manager.ledger.lease(mine.id).degraded

        cloud.delete(*cloud.servers())
        look()
        assert ironic.stored[node].provision_state == 'cleaning'
        assert cloud.inventory(node)[GOLD]['reserved'] == 1
        assert boot(hint, project_id=OWNER) is None
        assert node_of(manager, mine) == node

        ironic.finish_cleaning()
        look()
        assert cloud.inventory(node)[GOLD]['reserved'] == 0
        assert boot(hint, project_id=OWNER) == node

    def test_node_that_does_not_become_ready_is_replaced(
        self, manager, cloud, ironic, nodes, lease, boot, look, monkeypatch
    ):
        mine = lease(whole())
        hint = {'reservation': mine.reservations[0].id}
        node = boot(hint, project_id=OWNER)
        cloud.delete(*cloud.servers())
        look()
        clock = manager.monitor._clock
        monkeypatch.setattr(manager.monitor, '_clock', lambda: clock() + 3600)
        look()
        assert not manager.ledger.hosts([node])[0].reservable
        assert node_of(manager, mine) != node
        assert boot(hint, project_id=OWNER) == node_of(manager, mine)

        ironic.finish_cleaning()
        look()
        assert manager.ledger.hosts([node])[0].reservable
