# SPDX-License-Identifier: Apache-2.0
"""Nodes of Ironic: several of one nova-compute, without VCPU, to be cleaned.

Inventories are as Nova's driver of Ironic reports them; the driver itself is
in tests/nova/manager/test_bare_metal.py.
"""

import math
import uuid

import pytest

from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.way import NOT
from blazar_sched.service.clients.nova import Hypervisor
from blazar_sched.service.upkeep.monitor import SETTLING
from tests.functional.manager.conftest import at

GOLD = 'CUSTOM_BAREMETAL_GOLD'
FLAVOR = Flavor('gold', 'gold', 32, 131072, 1000, extra_specs={
    f'resources:{GOLD}': '1', 'resources:VCPU': '0',
    'resources:MEMORY_MB': '0', 'resources:DISK_GB': '0',
})
HOUR = 3600


class Ironic:
    """Nodes that are all of the nova-compute "ironic"."""

    def __init__(self, world):
        self._world = world

    def add(self, name, **values):
        """Enroll a node, and register it."""
        self._world.nova.nodes[name] = Hypervisor(
            str(uuid.uuid5(uuid.NAMESPACE_DNS, name)), name, 'ironic',
            'ironic', 1, '', 'nova', movable=NOT,
        )
        self.report(name, reserved=False)
        return self._world.hosts.create(name, values)

    def report(self, name, *, reserved):
        """Have nova-compute report a node to Placement."""
        self._world.placement.change(
            self._world.nova.nodes[name].uuid,
            {GOLD: Inventory(1, reserved=int(reserved))},
        )

    def boot(self, name, **values):
        """Put a server on a node, which Nova reserves from then on."""
        server = self._world.add_server(
            name, **{'amounts': {GOLD: 1}, **values}
        )
        self.report(name, reserved=True)
        self.look()
        return server

    def delete(self, server):
        """Delete a server: Ironic begins to clean the node."""
        self._world.nova.delete_servers([server])
        self.look()

    def look(self):
        """Let the service look at all there is."""
        self._world.hosts.sync()
        self._world.manager.instances.sync()
        self._world.monitor.step()


@pytest.fixture
def ironic(world):
    world.nova.known_flavors.append(FLAVOR)
    world.manager.flavors.sync()
    return Ironic(world)


@pytest.fixture
def nodes(ironic):
    """Three nodes of one nova-compute."""
    return [ironic.add(name) for name in ('n1', 'n2', 'n3')]


def golds(amount=1, **fields):
    return {
        'resource_type': 'flavor:instance', 'flavor_id': 'gold',
        'amount': amount, **fields,
    }


def places(world, lease):
    """Return the nodes that a lease holds."""
    names = world.names()
    return sorted(
        names[a.host] for a, _ in world.ledger.allocations(lease_id=lease.id)
    )


class TestClass:
    """A resource class without VCPU, MEMORY_MB and DISK_GB."""

    def test_each_node_is_one_slot(self, world, nodes):
        assert [h.capacity(GOLD) for h in nodes] == [1, 1, 1]
        lease = world.create(golds(2))
        assert len(places(world, lease)) == 2
        world.create(golds())
        world.refuse(golds())
        world.check()

    def test_whole_nodes_and_slots_exclude_each_other(
        self, world, nodes, whole
    ):
        one = world.create(whole(2, 2))
        other = world.create(golds())
        assert sorted(places(world, one) + places(world, other)) == [
            'n1', 'n2', 'n3',
        ]
        world.refuse(whole())

    def test_a_server_without_end_keeps_its_node(self, world, ironic, whole):
        ironic.add('n1')
        ironic.boot('n1')
        for wanted in whole(), golds():
            world.refuse(wanted)

    def test_nodes_are_no_place_for_slots_of_vcpus(self, world, nodes, slots):
        world.refuse(slots())

    def test_figures_of_a_cloud_of_nodes_alone(self, world, nodes):
        lease = world.start_lease(golds(2), end=HOUR)
        assert world.lease(lease).status == 'ACTIVE'
        [part] = world.manager.capacity.get('project', flavor_id='gold')[
            'parts'
        ]
        assert (part['hosts'], part['instances']) == (1, 1)
        assert [
            (each['resource_class'], each['total'], each['available'])
            for each in part['resources'] if each['total']
        ] == [(GOLD, 3, 1)]
        samples = [
            sample for metric in world.manager.gauges.collect()
            for sample in metric.samples
        ]
        assert samples
        assert all(math.isfinite(each.value) for each in samples)


class TestNodeInUse:
    """Nova reserves a node while a server is on it."""

    def test_own_server_does_not_degrade_the_lease(self, world, ironic, nodes):
        lease = world.start_lease(golds(), end=HOUR)
        [name] = places(world, lease)
        [reservation] = lease.reservations
        ironic.boot(name, project_id='project', reservation_id=reservation.id)
        now = world.lease(lease)
        assert not now.degraded
        assert not now.reservations[0].missing_resources
        assert places(world, lease) == [name]

    @pytest.mark.parametrize('later', [True, False])
    def test_node_can_be_leased_from_the_end_of_its_server(
        self, world, ironic, later
    ):
        ironic.add('n1')
        ironic.boot('n1', end=world.now + HOUR)
        start = HOUR if later else HOUR - 60
        if later:
            world.create(golds(), start=start, end=2 * HOUR)
        else:
            world.refuse(golds(), start=start, end=2 * HOUR)

    def test_lease_that_has_not_started_keeps_its_node(
        self, world, ironic, nodes, told
    ):
        lease = world.create(golds(3), start=2 * HOUR, end=3 * HOUR)
        ironic.boot('n1', end=world.now + HOUR)
        assert places(world, lease) == ['n1', 'n2', 'n3']
        assert 'lease.at_risk' not in dict(told)


@pytest.mark.row('F113')
class TestCleaning:
    """A node that is reserved without a server, as while it is cleaned."""

    @pytest.fixture
    def cleaned(self, world, ironic):
        """The node "n1", which is being cleaned."""
        host = ironic.add('n1', cleaning_time='30')
        ironic.delete(ironic.boot('n1'))
        return host

    def wait(self, world, ironic, seconds):
        world.clock.now += seconds
        ironic.look()

    def test_node_is_kept_for_its_cleaning_time(self, world, ironic, cleaned):
        lease = world.create(start=3000, end=6000)
        self.wait(world, ironic, 1799)
        assert world.host('n1').reservable
        assert not world.lease(lease).degraded

    def test_node_that_is_cleaned_too_long_is_replaced(
        self, world, ironic, cleaned, told
    ):
        lease = world.create(start=2000, end=6000)
        ironic.add('n2')
        self.wait(world, ironic, 1800)
        assert not world.host('n1').reservable
        assert dict(told)['host.failure']['hypervisor_hostname'] == 'n1'
        assert places(world, lease) == ['n2']

    def test_node_without_replacement_degrades_the_lease_until_it_is_ready(
        self, world, ironic, cleaned
    ):
        lease = world.create(start=1800, end=6000)
        self.wait(world, ironic, 1800)
        world.run()
        assert world.lease(lease).status == 'ACTIVE'
        assert world.lease(lease).degraded
        world.refuse(start=7000, end=8000)
        ironic.report('n1', reserved=False)
        ironic.look()
        world.run()
        assert world.host('n1').reservable
        assert places(world, lease) == ['n1']
        assert not world.lease(lease).degraded

    def test_cleaning_while_the_owner_boots_anew_moves_nothing(
        self, world, ironic, told
    ):
        ironic.add('n1', cleaning_time='30')
        ironic.add('n2')
        named = golds(resource_properties=at('n1'))
        lease = world.start_lease(named, end=6000)
        [reservation] = lease.reservations
        own = {'project_id': 'project', 'reservation_id': reservation.id}
        ironic.delete(ironic.boot('n1', **own))
        self.wait(world, ironic, 1200)
        ironic.report('n1', reserved=False)
        ironic.look()
        ironic.boot('n1', **own)
        self.wait(world, ironic, 1800)
        assert places(world, lease) == ['n1']
        assert not world.lease(lease).degraded
        assert 'host.failure' not in dict(told)

    def test_without_cleaning_time_nova_has_some_minutes(self, world, ironic):
        ironic.add('n1')
        ironic.delete(ironic.boot('n1'))
        self.wait(world, ironic, SETTLING - 1)
        assert world.host('n1').reservable
        self.wait(world, ironic, 1)
        assert not world.host('n1').reservable

    def test_server_that_has_no_record_yet_is_in_the_node(self, world, ironic):
        ironic.add('n1')
        ironic.report('n1', reserved=True)
        world.add_server('n1', amounts={GOLD: 1})
        world.hosts.sync()
        for _ in range(2):
            world.clock.now += SETTLING
            world.monitor.step()
        assert world.host('n1').reservable

    def test_manager_that_has_just_begun_does_not_bring_a_node_back(
        self, world, ironic, cleaned, conf
    ):
        self.wait(world, ironic, 1800)
        other = world.another(conf)
        other.monitor.step()
        assert not world.host('n1').reservable
        other.hosts.sync()
        other.monitor.step()
        assert not world.host('n1').reservable
        other.ledger.close()

    def test_reserved_host_of_another_kind_has_not_failed(self, world):
        id_ = world.add_host('c1')
        world.placement.change(id_, {'VCPU': Inventory(8, reserved=8)})
        for _ in range(2):
            world.hosts.sync()
            world.clock.now += SETTLING
            world.monitor.step()
        assert world.host('c1').reservable


class TestVacating:
    """A server on a node can only be deleted."""

    @pytest.fixture(autouse=True)
    def lead_time(self, conf):
        conf.set_override('vacate_lead_time', 600, 'manager')

    @pytest.fixture
    def vacate(self, world, ironic, whole):
        """vacate(wanted, **server) -> a lease, and who was on its node.

        The server came to the node by force.
        """

        def vacate(wanted=None, **values):
            ironic.add('n1')
            lease = world.create(wanted or whole(), start=900, end=HOUR)
            server = ironic.boot('n1', **values)
            for _ in range(12):
                world.run(90)
            assert world.lease(lease).status == 'ACTIVE'
            return world.lease(lease), server

        return vacate

    @pytest.mark.parametrize('wanted', [None, golds()])
    def test_server_is_deleted_without_any_other_request(
        self, world, vacate, wanted
    ):
        lease, server = vacate(wanted)
        assert world.nova.asked == {server.uuid: 1}
        assert world.nova.stored == {}
        assert not lease.degraded

    def test_server_stays_where_no_policy_deletes(
        self, world, vacate, conf, told
    ):
        order = ['live-migrate', 'shelve']
        conf.set_override('vacate_order', order, 'manager')
        lease, server = vacate()
        assert world.nova.asked == {}
        assert lease.degraded
        assert dict(told)['lease.degraded']['in_the_way'] == [server.uuid]

    @pytest.mark.parametrize('order, deletes', [
        (['shelve', 'delete'], True), (['shelve'], False),
    ])
    def test_preemptible_server_whose_flavor_says_shelve(
        self, world, vacate, conf, order, deletes
    ):
        conf.set_override('vacate_preemptible_order', order, 'manager')
        lease, server = vacate(preemptible=True, preempt_policy='shelve')
        assert world.nova.asked == ({server.uuid: 1} if deletes else {})
        assert list(world.nova.stored) == ([] if deletes else [server.uuid])
        assert lease.degraded != deletes

    def test_preemptible_server_is_deleted_at_the_start_at_the_latest(
        self, world, vacate, conf
    ):
        conf.set_override('vacate_preemptible_order', ['shelve'], 'manager')
        lease, server = vacate(preemptible=True)
        assert world.nova.stored == {}
        assert not lease.degraded

    def test_server_of_another_node_is_left_alone(self, world, ironic, vacate):
        ironic.add('n2')
        other = ironic.boot('n2')
        vacate()
        assert list(world.nova.stored) == [other.uuid]


class TestAggregates:
    """An aggregate of Nova has the nova-compute, so all of its nodes."""

    def test_leases_of_two_nodes_end_one_by_one(self, world, nodes, whole):
        one = world.create(whole(), start='now', end=HOUR)
        other = world.start_lease(whole(), end=2 * HOUR)
        assert places(world, one) != places(world, other)

        def having():
            return {
                name for name, each in world.nova.aggregates.items()
                if each.hosts == ('ironic',)
            }

        first, second = (e.reservations[0].id for e in (one, other))
        assert having() == {first, second}
        world.run(HOUR)
        assert having() == {second}
        world.run(HOUR)
        assert having() == set()

    @pytest.mark.parametrize('on_end', ['delete', 'keep'])
    def test_slots_leave_a_node_for_another_of_the_nova_compute(
        self, world, ironic, on_end
    ):
        ironic.add('n1')
        lease = world.start_lease(golds() | {'on_end': on_end}, end=HOUR)
        ironic.add('n2')
        # The node fails in the hands of the owner.
        world.nova.nodes.pop('n1')
        world.monitor.step()
        world.run()
        assert places(world, lease) == ['n2']
        assert [name for name, _ in world.placement.children] == ['n2']
        world.run(HOUR)
        assert world.lease(lease).status == 'TERMINATED'
        assert world.placement.children == {}
        assert world.placement.classes == set()

    def test_slots_in_use_leave_their_node_at_the_end(self, world, ironic):
        ironic.add('n1')
        lease = world.start_lease(golds(), end=HOUR)
        [(_, slots)] = world.placement.children
        world.placement.used['n1', slots] = 1
        ironic.add('n2')
        world.nova.nodes.pop('n1')
        world.monitor.step()
        world.run()
        assert sorted(n for n, _ in world.placement.children) == ['n1', 'n2']
        world.placement.used['n1', slots] = 0
        world.run(HOUR)
        assert world.lease(lease).status == 'TERMINATED'
        assert world.placement.children == {}
