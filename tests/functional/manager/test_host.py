# SPDX-License-Identifier: Apache-2.0
"""Hosts: registered from Nova and Placement, updated and deleted."""

import dataclasses

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.inventory import Inventory
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.placement import Placement
from blazar_sched.service.manager.manager import Manager
from tests.functional.manager.conftest import at
from tests.functional.manager.conftest import hosts
from tests.functional.manager.conftest import instances
from tests.functional.manager.conftest import refused
from tests.functional.manager.managed_cloud import NotifyingCloud

FOREVER = window.FOREVER


class TestCreate:
    def test_new_host_has_the_figures_of_nova_and_placement(self, world):
        uuid = world.add_host('a', vcpus=4, gpu='yes')
        [host] = world.ledger.hosts()
        assert host.uuid == uuid
        assert host.id.isdigit()
        assert host.hypervisor_hostname == 'a'
        assert host.service_name == 'a'
        assert host.hypervisor_type == 'QEMU'
        assert host.availability_zone == 'nova'
        assert host.inventory[inventory.VCPU] == Inventory(4)
        assert host.capabilities == {'gpu': 'yes'}
        assert (host.hold, host.unbounded) == ('shared', None)
        assert host.reservable
        assert host.created_at == world.now

    def test_host_is_registered_with_its_own_policy(self, world):
        world.add_host('a', hold='dedicated', unbounded='assume:2h')
        [host] = world.ledger.hosts()
        assert (host.hold, host.unbounded) == ('dedicated', 'assume:2h')
        assert host.capabilities == {}

    @pytest.mark.row('C14')
    def test_marked_in_placement_and_with_its_traits(self, world, conf):
        conf.set_override('region_name', 'west', 'nova')
        manager = world.begin(conf)
        uuid = world.add_host('a', register=False)
        world.placement.traits_[uuid] = ('HW_NUMA_ROOT', 'CUSTOM_FAST')
        host = manager.hosts.create('a', {})
        assert host.traits == ('HW_NUMA_ROOT', 'CUSTOM_FAST')
        assert host.region == 'west'
        assert world.placement.marked == {'a'}

    @pytest.mark.row('C18', 'C19', 'C20', 'F14')
    @pytest.mark.parametrize('requirement, found', [
        ('["==", "$trait:CUSTOM_FAST", "true"]', ['a']),
        ('["not", ["==", "$trait:CUSTOM_FAST", "true"]]', ['b']),
        ('["==", "$region", "west"]', ['a', 'b']),
        ('["==", "$region", "east"]', []),
        ('["==", "$availability_zone", "nova"]', ['a', 'b']),
        ('["==", "$capabilities:gpu", "yes"]', ['b']),
    ])
    def test_leases_can_require_what_it_is(
        self, world, whole, conf, requirement, found
    ):
        conf.set_override('region_name', 'west', 'nova')
        world.begin(conf)
        uuid = world.add_host('a', register=False)
        world.placement.traits_[uuid] = ('CUSTOM_FAST',)
        world.hosts.create('a', {})
        world.add_host('b', gpu='yes')
        leases = [
            world.create(whole(resource_properties=requirement)) for _ in found
        ]
        held = {host for lease in leases for _, host, _ in world.held(lease)}
        assert held == {world.host(name).uuid for name in found}
        world.refuse(whole(resource_properties=requirement))

    @pytest.mark.row('C21', 'C22', 'C23', 'F13')
    @pytest.mark.parametrize('requirement', [
        '[">=", "$vcpus", "10"]', '[">", "$memory_mb", "10000"]',
        '[">=", "$local_gb", "100"]',
    ])
    def test_leases_can_require_how_much_there_is(
        self, world, whole, requirement
    ):
        """Amounts are compared as numbers, not as text."""
        world.add_host('a')
        large = world.add_host('b', vcpus=16)
        asked = whole(hypervisor_properties=requirement)
        [(_, held, _)] = world.held(world.create(asked))
        assert held == large
        world.refuse(asked)

    @pytest.mark.row('F25', 'F84')
    @pytest.mark.parametrize('name, value, registered', [
        *(
            ('disabled', value, True)
            for value in ('true', 'True', '1', 'yes', True)
        ),
        *(
            ('disabled', value, False)
            for value in ('false', '0', '', False, None)
        ),
        ('projects', 'p1', ('p1',)),
        ('projects', 'p1, p2,p1', ('p1', 'p2')),
        ('projects', '["p1", "p2"]', ('p1', 'p2')),
        ('projects', ['p1', 'p2'], ('p1', 'p2')),
        *(('projects', value, ()) for value in ('', '[]', None)),
        *(('cleaning_time', value, 90) for value in ('90', 90)),
        *(('cleaning_time', value, 0) for value in ('0', 0)),
        ('cleaning_time', '007', 7),
        ('cleaning_time', None, None),
    ])
    def test_setting_of_a_host_is_read(self, world, name, value, registered):
        world.add_host('a', **{name: value})
        [host] = world.ledger.hosts()
        assert getattr(host, name) == registered
        assert type(getattr(host, name)) is type(registered)
        assert host.capabilities == {}

    def test_servers_there_are_known_at_once(self, world):
        uuid = world.add_host('a', register=False)
        here = world.add_server('a', end=world.now + 50)
        world.add_server('b')
        world.hosts.create('a', {})
        [instance] = world.ledger.instances()
        assert (instance.uuid, instance.host) == (here.uuid, uuid)
        assert instance.end == here.end
        world.check()

    def test_host_is_registered_once(self, world):
        world.add_host('a')
        with pytest.raises(exception.HostExists) as refusal:
            world.hosts.create('a', {})
        assert refusal.value.status == 409
        assert len(world.ledger.hosts()) == 1

    def test_host_that_nova_does_not_know_is_refused(self, world):
        with pytest.raises(exception.HostNotFound):
            world.hosts.create('no-such-host', {})

    @pytest.mark.parametrize('name, value', [
        ('hold', 'both'),
        ('hold', ''),
        ('unbounded', 'sometimes'),
        ('unbounded', 'assume:'),
        ('gpu', 1),
        ('x' * 65, 'y'),
        ('', 'y'),
        ('memory_mb', '100'),
        ('hypervisor_hostname', 'b'),
        ('region', 'west'),
        ('trait:CUSTOM_FAST', 'true'),
        ('disabled', 'perhaps'),
        ('projects', ','),
        ('projects', '["p1"'),
        ('projects', '[["p1"]]'),
        ('projects', '[' * 4000),
        ('projects', ['p1', 7]),
        ('projects', ['']),
        ('projects', ['p' * 65]),
        ('projects', [f'p{n}' for n in range(51)]),
        *(
            ('cleaning_time', value)
            for value in (
                '', '-1', -1, '1.5', 1.5, True, '1h', '٣', ' 5', [], '9' * 9,
                '9' * 5000,
            )
        ),
    ])
    def test_bad_value_is_named(self, world, name, value):
        with refused(exception.InvalidInput, name[:64]):
            world.add_host('a', **{name: value})
        assert world.ledger.hosts() == []

    def test_no_answer_registers_nothing(self, world):
        world.nova.failures = 1
        with pytest.raises(exception.Unavailable):
            world.add_host('a')
        assert world.ledger.hosts() == []

    def test_without_a_cloud_nothing_pretends(self, conf):
        manager = Manager(conf)
        with pytest.raises(exception.Unavailable) as refusal:
            manager.hosts.create('a', {})
        assert 'no compute service is configured' in str(refusal.value)
        with pytest.raises(exception.Unavailable):
            Placement(None).inventories('a')
        with pytest.raises(exception.Unavailable):
            list(Nova(None).servers())
        assert manager.ledger.hosts() == []
        manager.ledger.close()


class TestUpdate:
    @pytest.fixture
    def host(self, world):
        world.add_host('a', gpu='yes', rack='1', hold='dedicated')
        return world.ledger.hosts()[0]

    def test_change_add_remove(self, world, host):
        new = world.hosts.update(
            host.id, {'rack': '2', 'gpu': None, 'fast': 'very'}
        )
        assert new.capabilities == {'rack': '2', 'fast': 'very'}
        assert new.hold == 'dedicated'
        assert new.updated_at == world.now
        assert world.ledger.host(host.id) == new

    def test_settings(self, world, host):
        new = world.hosts.update(host.id, {'unbounded': 'never'})
        assert (new.hold, new.unbounded) == ('dedicated', 'never')
        new = world.hosts.update(host.id, {'hold': None, 'unbounded': None})
        assert (new.hold, new.unbounded) == ('shared', None)
        new = world.hosts.update(host.id, {'cleaning_time': '30'})
        assert new.cleaning_time == 30
        new = world.hosts.update(host.id, {'cleaning_time': None})
        assert new.cleaning_time is None
        assert new.capabilities == host.capabilities

    def test_replicas_learn_of_it(self, world, host):
        world.hosts.update(host.id, {'hold': 'shared'})
        records = world.ledger.changes(0)['records']
        assert records[-1][0] == 'host'
        assert records[-1][2]['hold'] == 'shared'

    @pytest.mark.row('C20')
    @pytest.mark.parametrize('asked', ['fast', 'capabilities:fast'])
    def test_a_scoped_name_is_the_same_property(
        self, world, host, whole, asked
    ):
        world.hosts.update(host.id, {'capabilities:fast': 'yes'})
        world.create(whole(resource_properties=f'["==","${asked}","yes"]'))
        with refused(exception.CantAddExtraCapability, 'fast'):
            world.hosts.update(host.id, {'capabilities:fast': 'no'})

    @pytest.mark.parametrize('value', ['no', None])
    def test_property_that_a_reservation_needs_cannot_change(
        self, world, host, whole, value
    ):
        world.create(
            whole(resource_properties='["and",["==","$gpu","yes"]]'),
            start='now',
        )
        with refused(exception.CantAddExtraCapability, 'gpu'):
            world.hosts.update(host.id, {'rack': '2', 'gpu': value})
        assert world.ledger.host(host.id) == host
        world.hosts.update(host.id, {'rack': '2', 'gpu': 'yes'})
        world.run(200)
        world.hosts.update(host.id, {'gpu': value})


class TestDedicated:
    """A dedicated host is in the freepool while no lease has it whole."""

    def pool(self, world):
        pool = world.nova.aggregates.get('freepool')
        return pool and pool.hosts

    def test_dedicated_host_is_in_the_pool_until_it_is_deleted(self, world):
        world.add_host('s')
        assert self.pool(world) is None
        world.add_hosts('a', 'b', hold='dedicated')
        assert self.pool(world) == ('a', 'b')
        world.hosts.delete(world.host('a').id)
        assert self.pool(world) == ('b',)

    def test_by_default(self, world, conf):
        conf.set_override('default_hold', 'dedicated', 'manager')
        conf.set_override('freepool_aggregate_name', 'lake', 'manager')
        world.begin(conf)
        world.add_host('a')
        world.add_host('s', hold='shared')
        assert world.host('a').hold == 'dedicated'
        assert world.nova.aggregates['lake'].hosts == ('a',)

    def test_host_with_servers_cannot_become_dedicated(self, world):
        world.add_host('a', register=False)
        world.add_server('a')
        with pytest.raises(exception.HostHavingServers) as refusal:
            world.hosts.create('a', {'hold': 'dedicated'})
        assert refusal.value.status == 409
        assert self.pool(world) is None
        assert world.ledger.hosts() == []
        world.hosts.create('a', {})

    def test_a_second_registration_leaves_the_pool_alone(self, world):
        world.add_host('a')
        with pytest.raises(exception.HostExists):
            world.hosts.create('a', {'hold': 'dedicated'})
        assert self.pool(world) is None

    def test_host_can_become_dedicated_and_shared_again(self, world):
        world.add_host('a')
        id_ = world.host('a').id
        world.hosts.update(id_, {'hold': 'dedicated'})
        assert self.pool(world) == ('a',)
        world.hosts.update(id_, {'rack': '1'})
        assert self.pool(world) == ('a',)
        world.hosts.update(id_, {'hold': None})
        assert self.pool(world) == ()

    def test_a_refused_change_leaves_the_pool_alone(self, world, whole):
        world.add_host('a', gpu='yes')
        world.create(whole(resource_properties='["==", "$gpu", "yes"]'))
        with pytest.raises(exception.CantAddExtraCapability):
            world.hosts.update(
                world.host('a').id, {'hold': 'dedicated', 'gpu': None}
            )
        assert self.pool(world) is None

    def test_failed_change_of_hold_is_completed_by_a_repetition(self, world):
        world.add_host('a')
        id_ = world.host('a').id
        for hold, pool in [('dedicated', ('a',)), ('shared', ())]:
            for failures in range(1, 4):
                world.nova.failures = failures
                while True:
                    try:
                        world.hosts.update(id_, {'hold': hold})
                    except exception.Unavailable:
                        continue
                    break
                assert self.pool(world) == pool
                assert world.host('a').hold == hold

    def test_out_of_the_pool_while_reserved_whole(self, world, slots):
        world.add_host('a', hold='dedicated')
        lease = world.create()
        id_ = lease.reservations[0].id
        assert self.pool(world) == ('a',)
        world.run(100)
        assert self.pool(world) == ()
        assert world.nova.aggregates[id_].hosts == ('a',)
        world.run(100)
        assert self.pool(world) == ('a',)
        assert id_ not in world.nova.aggregates
        world.start_lease(slots())
        assert self.pool(world) == ('a',)

    def test_stays_in_the_pool_if_it_cannot_be_deleted_after_all(
        self, world, monkeypatch
    ):
        """The host is allocated while it leaves the freepool."""
        world.add_host('a', hold='dedicated')
        leave = world.nova.remove_from_aggregate

        def remove_from_aggregate(*args):
            world.create()
            leave(*args)

        monkeypatch.setattr(
            world.nova, 'remove_from_aggregate', remove_from_aggregate
        )
        with pytest.raises(exception.CantDeleteHost):
            world.hosts.delete(world.host('a').id)
        assert self.pool(world) == ('a',)

    def test_dedicated_in_the_midst_of_a_reservation(self, world):
        world.add_host('a')
        world.start_lease()
        world.hosts.update(world.host('a').id, {'hold': 'dedicated'})
        assert not self.pool(world)
        world.run(200)
        assert self.pool(world) == ('a',)


class TestSync:
    def test_changed_hosts_are_written(self, world):
        uuid = world.add_host('a', gpu='yes', disabled='true')
        before = world.host('a')
        world.nova.nodes['a'] = dataclasses.replace(
            world.nova.nodes['a'], host='c1', version=9000,
            availability_zone='west', movable='cold', type='X', cpu_info='new',
        )
        world.placement.change(
            uuid, {inventory.VCPU: Inventory(16, 2, 4.0)}, ('T',)
        )
        world.clock.now += 7
        world.hosts.sync()
        assert world.host('a') == dataclasses.replace(
            before, service_name='c1', hypervisor_version=9000,
            availability_zone='west', movable='cold', hypervisor_type='X',
            cpu_info='new', inventory={inventory.VCPU: Inventory(16, 2, 4.0)},
            traits=('T',), updated_at=world.now,
        )
        world.check()

    @pytest.mark.parametrize('said, movable', [
        ([], 'live'), (['cold'], 'cold'), (['cold', 'false'], ''),
        (['live', 'perhaps'], 'live'),
    ])
    def test_aggregates_say_how_servers_are_moved(
        self, conf, world, said, movable
    ):
        site = NotifyingCloud(conf, world.clock, 'a', 'b')
        site.cloud.aggregates = {
            n: {
                'id': n, 'uuid': str(n), 'name': str(n), 'hosts': ['a'],
                'metadata': {'blazar:movable': text},
            }
            for n, text in enumerate(said)
        }
        site.manager.hosts.sync()
        assert {
            host.hypervisor_hostname: host.movable
            for host in site.ledger.hosts()
        } == {'a': movable, 'b': 'live'}
        site.ledger.close()

    def test_unchanged_hosts_are_not_written(self, world):
        world.add_host('a')
        revision = world.ledger.changes(0)['revision']
        for _ in range(2):
            world.hosts.sync()
        assert world.ledger.changes(0)['revision'] == revision

    def test_only_providers_with_a_new_generation_are_queried(self, world):
        world.add_host('a')
        b = world.add_host('b')
        world.hosts.sync()
        world.placement.looks.clear()
        world.hosts.sync()
        assert not world.placement.looks
        world.placement.change(b, world.placement.providers[b], ('T',))
        world.hosts.sync()
        assert dict(world.placement.looks) == {b: 1}
        assert world.host('b').traits == ('T',)

    def test_shrunk_host_keeps_its_leases_and_is_logged(
        self, world, slots, caplog
    ):
        uuid = world.add_host('a', vcpus=8)
        world.add_host('b', vcpus=8)
        lease = world.create(slots(4, vcpus=2, affinity=True))
        held = world.held(lease)
        [[_, on, _]] = held
        small = {
            c: dataclasses.replace(i, total=i.total // 2)
            for c, i in world.placement.providers[on].items()
        }
        world.placement.change(on, small)
        world.hosts.sync()
        assert world.held(lease) == held
        name = 'a' if on == uuid else 'b'
        assert f'{name} has less capacity than is reserved' in caplog.text
        caplog.clear()
        world.hosts.sync()
        assert 'less capacity' not in caplog.text

    def test_host_that_lost_a_resource_class_is_logged(self, world, caplog):
        uuid = world.add_host('a')
        whole = world.placement.providers[uuid]
        with_gpus = {**whole, 'CUSTOM_GPU': Inventory(4)}
        world.placement.change(uuid, with_gpus)
        world.hosts.sync()
        flavor = Flavor(
            'gpu', 'gpu', 1, 512, 1, extra_specs={'resources:CUSTOM_GPU': '4'}
        )
        world.ledger.commit(lambda tx: tx.put_flavors([flavor]))
        world.create({
            'resource_type': 'flavor:instance', 'flavor_id': 'gpu',
            'amount': 1,
        })
        world.placement.change(uuid, whole)
        world.hosts.sync()
        assert 'a has less capacity than is reserved' in caplog.text

    def test_class_that_the_host_has_no_inventory_of_is_not_promised(
        self, world, caplog
    ):
        """A resource provider below the host's own has the resource."""
        uuid = world.add_host('a')
        world.add_server('a', amounts={'VCPU': 1, 'VGPU': 1})
        world.manager.instances.sync()
        world.placement.change(uuid, {
            c: dataclasses.replace(i, total=i.total - 1)
            for c, i in world.placement.providers[uuid].items()
        })
        world.hosts.sync()
        assert world.host('a').updated_at == world.now
        assert 'less capacity' not in caplog.text

    def test_a_host_that_nova_or_placement_lost_stays_as_it_was(self, world):
        uuid = world.add_host('a')
        before = world.host('a')
        del world.nova.nodes['a']
        del world.placement.providers[uuid]
        world.hosts.sync()
        assert world.host('a') == before


class TestDelete:
    def test_host_is_deleted_with_its_instance_records(self, world):
        world.add_host('a', register=False)
        world.add_server('a')
        world.hosts.create('a', {})
        [host] = world.ledger.hosts()
        world.hosts.delete(host.id)
        assert world.ledger.hosts() == []
        assert world.ledger.instances() == []
        world.check()
        world.hosts.create('a', {})

    def test_allocated_host_cannot_be_deleted(self, world):
        world.add_host('a')
        [host] = world.ledger.hosts()
        lease = world.create(start='now', end=100)
        with pytest.raises(exception.CantDeleteHost):
            world.hosts.delete(host.id)
        # The lease is over, but not ended: its servers may still exist.
        world.run()
        world.clock.now += 100
        with pytest.raises(exception.CantDeleteHost):
            world.hosts.delete(host.id)
        world.run()
        assert world.lease(lease).status == 'TERMINATED'
        world.hosts.delete(host.id)
        assert world.ledger.hosts() == []


class TestAllocations:
    def test_of_each_host(self, world, slots):
        world.add_host('a')
        first, second = world.create(slots()), world.create(slots())
        world.add_host('b')
        [a, b] = world.ledger.hosts()

        def shown(lease):
            return {
                'id': lease.reservations[0].id, 'lease_id': lease.id,
                'start': lease.start, 'end': lease.end,
            }

        answer, following = world.hosts.allocations(None, None, None)
        assert following is None
        assert [held['host_id'] for held in answer] == [a.id, b.id]
        assert answer[1]['reservations'] == []
        key = 'lease_id'
        assert sorted(
            answer[0]['reservations'], key=lambda r: r[key]
        ) == sorted([shown(first), shown(second)], key=lambda r: r[key])
        assert world.hosts.allocations(a.id, first.id, None) == (
            [{'host_id': a.id, 'reservations': [shown(first)]}], None
        )
        id_ = second.reservations[0].id
        assert world.hosts.allocations(a.id, None, id_) == (
            [{'host_id': a.id, 'reservations': [shown(second)]}], None
        )

    def test_reservations_that_are_over_are_listed_only_by_id(self, world):
        world.add_host('a')
        lease = world.create(start='now')
        world.clock.now += 200
        [answer], _ = world.hosts.allocations(None, None, None)
        assert answer['reservations'] == []
        [answer], _ = world.hosts.allocations(None, lease.id, None)
        assert len(answer['reservations']) == 1

    @pytest.mark.parametrize('request_', [hosts(), instances(1, 2)])
    def test_past_allocations_of_a_host_are_listed(self, world, request_):
        world.add_host('a')
        lease = world.create(request_, start='now', end=400)
        start = world.now
        world.run()

        def had():
            """Return the windows, from the start on, by host."""
            names = {h.id: h.hypervisor_hostname for h in world.ledger.hosts()}
            page, _ = world.hosts.allocations(None, lease.id, None)
            found = sorted(
                (each['start'] - start, each['end'] - start,
                 names[of['host_id']])
                for of in page for each in of['reservations']
            )
            # The timeline shows the same.
            uses = world.ledger.uses(window.Window(start, start + 1000), 100)
            assert [(use.allocation.start - start) for use in uses] == [
                since for since, _, _ in found
            ]
            return found

        # An active lease that is prolonged has had its host before.
        world.run(50)
        world.update_lease(lease, end=start + 600)
        assert had() == [(0, 600, 'a')]
        world.run(50)
        world.add_host('b')
        world.fail('a')
        assert had() == [(0, 100, 'a'), (100, 600, 'b')]
        world.run(100)
        world.set_up('a')
        world.fail('b')
        ever = [(0, 100, 'a'), (100, 200, 'b'), (200, 600, 'a')]
        assert had() == ever
        world.run(500)
        assert world.lease(lease).status == 'TERMINATED'
        assert world.ledger.allocations() == []
        assert had() == ever
        world.check()
        world.leases.delete(lease.id, None)
        assert had() == []


class TestCleaning:
    """A host is left idle for some time between two reservations."""

    @pytest.fixture(autouse=True)
    def ten_minutes(self, conf):
        conf.set_override('cleaning_time', 10, 'manager')

    def test_an_extension_comes_no_closer(self, world, slots):
        world.add_host('a')
        for asked in ([], [slots(4, vcpus=2)]):
            lease = world.start_lease(*asked, end=1000)
            next_ = world.create(start=2000, end=3000)
            with pytest.raises(exception.NotEnoughHostsAvailable):
                world.update_lease(lease, end=world.now + 1401)
            world.update_lease(lease, end=world.now + 1400)
            for each in (lease, next_):
                world.leases.delete(each.id, None)

    def test_a_server_counts_beside_its_reservation_only_after_the_end(
        self, world, slots
    ):
        world.add_host('a')
        lease = world.start_lease(slots(2, vcpus=2), end=1000)
        world.add_own_server(lease, vcpus=2, end=lease.end)
        world.manager.instances.sync()
        # Nova does not delete the server.
        world.nova.slowness = 1000
        world.run(1001)
        world.manager.instances.sync()
        # 8 VCPUs: until the end 4 were reserved, from then on 2 are in use.
        world.refuse(slots(1, vcpus=5), start='now', end=60)
        world.create(slots(1, vcpus=4), start='now', end=60)

    @pytest.mark.row('F25')
    @pytest.mark.parametrize('own, by_type, minutes', [
        (None, [], 10),
        (None, ['physical:host=5', 'virtual:instance=7'], (5, 7)),
        (None, ['virtual:instance=0'], (10, 0)),
        (20, [], 20),
        (0, ['physical:host=5', 'virtual:instance=7'], 0),
    ])
    @pytest.mark.parametrize('asked', ['hosts', 'instances'])
    def test_the_hosts_own_time_goes_before_its_types(
        self, world, whole, slots, conf, own, by_type, minutes, asked
    ):
        conf.set_override('cleaning_times', by_type, 'manager')
        world.add_host('a', cleaning_time=own)
        wanted = whole() if asked == 'hosts' else slots(4, vcpus=2)
        if isinstance(minutes, tuple):
            minutes = minutes[asked == 'instances']
        world.create(start=10_000, end=20_000)
        for start, end in (
            (20_000 + 60 * minutes, 30_000), (5000, 10_000 - 60 * minutes)
        ):
            for near in (1, 0):
                late, early = (near, 0) if end < 10_001 else (0, near)
                if near:
                    world.refuse(wanted, start=start - early, end=end + late)
                else:
                    world.create(wanted, start=start, end=end)
        world.check()

    @pytest.mark.row('F25')
    def test_hosts_that_need_less_go_first(self, world, whole):
        long = world.add_host('long', cleaning_time=60)
        short = world.add_host('short', cleaning_time=1)
        usual = world.add_host('usual')
        world.create(
            whole(hypervisor_properties=at('short')),
            start=10_000, end=20_000,
        )
        lease = world.create(whole(2, 2), start=20_060, end=30_000)
        assert {h for _, h, _ in world.held(lease)} == {short, usual}
        lease = world.create(whole(1, 3), start=40_000, end=50_000)
        assert {h for _, h, _ in world.held(lease)} == {short, usual, long}

    @pytest.mark.row('F25')
    def test_leases_keep_their_host_when_the_cleaning_time_grows(
        self, world, whole
    ):
        world.add_host('a')
        first, second = (
            world.create(start=start, end=start + 1000)
            for start in (1000, 3000)
        )
        before = world.held(first), world.held(second)
        world.hosts.update(world.host('a').id, {'cleaning_time': '600'})
        for lease in (first, second):
            world.update_lease(lease, name='other')
            world.update_lease(lease, end=lease.end - 100)
        assert (world.held(first), world.held(second)) == before
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.update_lease(first, end=first.end)

    @pytest.mark.row('F25')
    def test_a_failed_hosts_reservations_keep_the_others_time(
        self, world, whole
    ):
        world.add_host('a')
        first = world.create(start=1000, end=2000)
        world.add_host('b', cleaning_time=60)
        close = world.create(
            whole(hypervisor_properties=at('b')), start=2000 + 3599, end=9000
        )
        world.fail('a')
        assert world.held(first) == []
        world.leases.delete(close.id, None)
        world.monitor.step()
        [(_, host, _)] = world.held(first)
        assert host == world.host('b').uuid


class TestProperties:
    def test_values_of_all_hosts(self, world):
        world.add_host('a', gpu='yes', rack='1')
        world.add_host('b', rack='2')
        world.add_host('c', rack='1')
        assert world.hosts.properties() == [
            {'property': 'gpu', 'private': False, 'values': ['yes']},
            {'property': 'rack', 'private': False, 'values': ['1', '2']},
        ]

    def test_property_can_become_private_and_public_again(self, world):
        world.add_host('a', gpu='yes')
        for private in (True, False):
            answer = world.hosts.update_property('gpu', private)
            assert answer == {'property': 'gpu', 'private': private}
            assert world.hosts.properties()[0]['private'] is private
