# SPDX-License-Identifier: Apache-2.0
"""GPUs and other devices, which child resource providers of hosts have."""

import dataclasses
import datetime
import json

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.provider import Providers
from blazar_sched.domain.provider import Units
from blazar_sched.placing import overload
from blazar_sched.service.upkeep import replanning
from tests.told import notified

GPU = 'CUSTOM_PCI_10DE_20B0'
ALIASES = [
    json.dumps({
        'name': 'a100', 'vendor_id': '10de', 'product_id': '20b0',
        'device_type': 'type-PF',
    }),
    json.dumps({
        'name': 'h100', 'resource_class': 'h100',
        'traits': 'fast,HW_NIC_SRIOV',
    }),
]
ONE = Units(1, 1, 1, 1)
DEAD = Units(0, 1, 1, 1)
FAST = 'CUSTOM_FAST'


def gpus(amount=1, flavor_id='one'):
    return {
        'resource_type': 'flavor:instance', 'flavor_id': flavor_id,
        'amount': amount,
    }


@pytest.fixture
def world(conf, world):
    conf.set_override('pci_alias', ALIASES, 'nova')
    world.begin(conf)
    return world


@pytest.fixture
def flavors(world):
    """flavors(name={extra specs}, ...) -> Nova and the ledger have these."""

    def make(**specs):
        world.nova.known_flavors = [
            Flavor(name, name, 1, 512, 1, extra_specs=each)
            for name, each in specs.items()
        ]
        world.manager.flavors.sync()

    make(
        one={'pci_passthrough:alias': 'a100:1'},
        two={'pci_passthrough:alias': 'a100:2'},
    )
    return make


@pytest.fixture
def add(world):
    """add(name, count) -> a registered host, each GPU in a provider."""

    def make(name, count, traits=()):
        id_ = world.add_host(name, register=False)
        for n in range(count):
            world.placement.put_below(id_, f'{name}-{n}', {GPU: ONE}, traits)
        return world.hosts.create(name, {})

    return make


@pytest.fixture
def looks(monkeypatch):
    """Return the ids of the leases that are compared with their hosts."""
    found = []
    unsuited_allocations = overload.unsuited_allocations

    def counted(replica, lease):
        found.append(lease.id)
        return unsuited_allocations(replica, lease)

    monkeypatch.setattr(overload, 'unsuited_allocations', counted)
    return found


@pytest.fixture
def told(world, monkeypatch):
    """The notifications of leases: (type, id of the lease)."""
    return notified(
        world.manager, monkeypatch,
        lambda event_type, payload: (event_type, payload['lease_id']),
    )


def places(world, lease):
    """Return how many GPUs a lease holds, by the name of the host."""
    names = world.names()
    return {
        names[a.host]: a.amounts.get(GPU)
        for a, _ in world.ledger.allocations(lease_id=lease.id)
    }


class TestHost:
    def test_inventory_of_a_host_includes_child_providers(self, world, add):
        host = add('a', 3)
        assert host.inventory[GPU] == Inventory(3)
        assert host.providers == (Providers(3, (), {GPU: ONE}),)
        assert world.host('a') == host

    def test_host_with_devices_is_shown_over_the_bus(self, world, add):
        host = add('a', 3)
        shown = json.loads(json.dumps(
            world.manager.endpoint.get_host({}, host_id=host.id)
        ))
        assert shown['inventory'][GPU]['total'] == 3
        [providers] = shown['providers']
        assert providers['count'] == 3

    def test_classes_that_flavors_do_not_show_are_not_counted(
        self, world, add
    ):
        id_ = world.add_host('a', register=False)
        world.placement.put_below(id_, 'bridge', {
            'NET_BW_EGR_KILOBIT_PER_SEC': Units(1000, 1, 1000, 1),
            'CUSTOM_RESERVATION_X': ONE, 'VCPU': ONE,
        })
        host = world.hosts.create('a', {})
        assert host.providers == ()
        assert set(host.inventory) == {'VCPU', 'MEMORY_MB', 'DISK_GB'}

    def test_only_providers_that_have_changed_are_queried(self, world, add):
        add('a', 3)
        world.hosts.sync()
        looks = world.placement.looks.copy()
        revision = world.ledger.replica.revision
        # An allocation changes nothing but the generation.
        world.placement.generations_['a-1'] += 1
        world.hosts.sync()
        assert world.placement.looks - looks == {'a-1': 1}
        assert world.ledger.replica.revision == revision

    def test_devices_come_and_go(self, world, add):
        host = add('a', 2)
        world.placement.put_below(host.uuid, 'new', {GPU: ONE})
        world.hosts.sync()
        assert world.host('a').capacity(GPU) == 3
        for id_ in ('a-0', 'a-1', 'new'):
            world.placement.put_below(host.uuid, id_, None)
        world.hosts.sync()
        assert GPU not in world.host('a').inventory
        assert world.ledger.check() == []


class TestReservation:
    def test_devices_are_reserved_in_the_window(self, world, add, flavors):
        add('a', 3)
        add('b', 1)
        lease = world.create(gpus(3))
        assert sum(places(world, lease).values()) == 3
        world.refuse(gpus(2))
        world.create(gpus(1))
        world.create(gpus(4), start=200, end=300)
        world.check()

    def test_all_devices_of_a_server_are_on_its_host(
        self, world, add, flavors
    ):
        add('a', 3)
        add('b', 1)
        assert places(world, world.create(gpus(1, 'two'))) == {'a': 2}
        world.refuse(gpus(1, 'two'))

    def test_servers_that_have_devices_count(self, world, add, flavors):
        add('a', 2)
        amounts = {'VCPU': 1, 'MEMORY_MB': 512, 'DISK_GB': 1, GPU: 1}
        world.add_server('a', amounts=amounts)
        world.add_server('a', amounts=amounts, end=world.now + 150)
        world.manager.instances.sync()
        world.refuse(gpus(1))
        world.create(gpus(1), start=150)
        world.refuse(gpus(1), start=150)
        world.check()

    def test_a_whole_host_includes_its_devices(self, world, add, flavors):
        add('a', 2)
        world.create()
        world.refuse(gpus(1))

    def test_flavor_of_the_reservation_requests_the_same_devices(
        self, world, add, flavors
    ):
        add('a', 2)
        lease = world.create(gpus(2))
        world.run(100)
        [made] = world.nova.made_flavors.values()
        assert made.extra_specs['pci_passthrough:alias'] == 'a100:1'
        assert not any(name.startswith('resources_') for name in
                       made.extra_specs)
        [slots] = world.placement.children.values()
        assert slots == 2
        world.run(100)
        assert not world.placement.children
        assert places(world, lease) == {}

    def test_an_alias_has_its_class_and_traits(self, world, add, flavors):
        flavors(fast={'pci_passthrough:alias': 'h100:1'})
        id_ = world.add_host('a', register=False)
        world.placement.put_below(
            id_, 'gpu', {'CUSTOM_H100': ONE}, ('CUSTOM_FAST',)
        )
        world.hosts.create('a', {})
        world.refuse(gpus(1, 'fast'))
        world.placement.put_below(
            id_, 'gpu', {'CUSTOM_H100': ONE}, ('CUSTOM_FAST', 'HW_NIC_SRIOV')
        )
        world.hosts.sync()
        world.create(gpus(1, 'fast'))

    def test_an_unknown_alias_is_refused(self, world, add, flavors):
        flavors(old={'pci_passthrough:alias': 'k80:1'})
        add('a', 2)
        with pytest.raises(exception.InvalidInput, match='k80') as refused:
            world.create(gpus(1, 'old'))
        assert refused.value.field == 'flavor_id'

    def test_reservation_outlives_the_pci_alias(
        self, world, add, flavors, conf
    ):
        add('a', 3)
        lease = world.create(gpus(1))
        world.run(100)
        other = ALIASES[1].replace('h100', 'k80')
        conf.set_override('pci_alias', [other], 'nova')
        world.begin(conf)
        world.change_reservation(lease, amount=2)
        assert places(world, lease) == {'a': 2}

    def test_a_lease_from_before_the_upgrade_can_grow(
        self, world, add, flavors
    ):
        """Its reservation has no groups, and the traits as a requirement."""
        flavors(old={f'resources:{GPU}': '1', 'trait:CUSTOM_FAST': 'required'})
        id_ = world.add_host('a', register=False)
        world.placement.providers[id_][GPU] = Inventory(3)
        world.placement.traits_[id_] = ('CUSTOM_FAST',)
        world.hosts.create('a', {})
        lease = world.create(gpus(1, 'old'))
        [reservation] = lease.reservations
        demand = dataclasses.replace(
            reservation.demand, groups=None, resource_properties=(
                '["and", ["==", "$trait:CUSTOM_FAST", "true"]]'
            ),
        )
        old = dataclasses.replace(lease, reservations=(
            dataclasses.replace(reservation, demand=demand),
        ))
        world.ledger.commit(lambda tx: tx.put_lease(old))
        world.run(100)
        change = {'id': reservation.id, 'amount': 2}
        world.leases.update(lease.id, 'project', {'reservations': [change]})
        assert places(world, lease) == {'a': 2}

    def test_a_host_of_unlike_devices_is_not_promised(
        self, world, add, flavors
    ):
        """A server without the trait could have either of the devices."""
        flavors(
            any={f'resources:{GPU}': '1'},
            fast={f'resources:{GPU}': '1', 'trait:CUSTOM_FAST': 'required'},
        )
        host = add('a', 1, ('CUSTOM_FAST',))
        world.placement.put_below(host.uuid, 'slow', {GPU: ONE})
        world.hosts.sync()
        world.refuse(gpus(1, 'fast'))
        world.create(gpus(2, 'any'))
        # On a host whose devices are alike, the trait of the devices counts.
        add('b', 2, ('CUSTOM_FAST',))
        assert places(world, world.create(gpus(2, 'fast'))) == {'b': 2}

    def test_a_device_that_fails_is_healed(self, world, add, flavors):
        host = add('a', 2)
        lease = world.create(gpus(2))
        assert places(world, lease) == {'a': 2}
        add('b', 2)
        world.placement.put_below(host.uuid, 'a-0', {GPU: DEAD})
        world.hosts.sync()
        world.monitor.step()
        assert places(world, lease) == {'b': 2}

    def test_a_device_that_fails_in_the_window_is_missing(
        self, world, add, flavors
    ):
        add('a', 3)
        add('b', 3)
        lease = world.start_lease(gpus(3), end=200)
        [on] = places(world, lease)
        card = f'{on}-0'
        host = world.host(on)
        for fails in (True, False):
            world.placement.put_below(
                host.uuid, card, {GPU: DEAD} if fails else {GPU: ONE}
            )
            world.hosts.sync()
            world.monitor.step()
            # The servers of the lease are on the host, so the lease stays.
            assert places(world, lease) == {on: 3}
            [reservation] = world.lease(lease).reservations
            assert reservation.missing_resources == fails
            assert world.lease(lease).degraded == fails
            world.run()

    @pytest.mark.parametrize('start', ['now', 100])
    @pytest.mark.parametrize('fails, amount, left', [
        ('a', 5, {'a': 2, 'b': 3}), ('b', 5, {'a': 3, 'b': 2}),
        ('a', 3, {'b': 3}), ('b', 3, {'a': 3}), ('a', 2, {'b': 2}),
    ])
    def test_fewer_devices_are_those_that_work(
        self, world, add, flavors, start, fails, amount, left
    ):
        hosts = {name: add(name, 3) for name in ('a', 'b')}
        lease = world.create(gpus(6), start=start, end=200)
        world.run()
        world.placement.put_below(hosts[fails].uuid, f'{fails}-0', {GPU: DEAD})
        world.hosts.sync()
        world.monitor.step()
        change = {'id': lease.reservations[0].id, 'amount': amount}
        for dry_run in (True, False):
            world.leases.update(
                lease.id, 'project', {'reservations': [change]}, dry_run
            )
        assert places(world, lease) == left
        world.run()
        world.monitor.step()
        assert not world.lease(lease).degraded
        assert world.ledger.check() == []

    def test_fewer_devices_are_had_even_if_too_few_are_left(
        self, world, add, flavors
    ):
        """Asking for less is never refused for lack of capacity."""
        host = add('a', 4)
        lease = world.create(gpus(4))
        for n in range(2):
            world.placement.put_below(host.uuid, f'a-{n}', {GPU: DEAD})
        world.hosts.sync()
        world.monitor.step()

        def change(amount, end):
            change = {'id': lease.reservations[0].id, 'amount': amount}
            world.leases.update(
                lease.id, 'project', {'end': end, 'reservations': [change]}
            )
            return places(world, lease)

        assert change(3, lease.end) == {'a': 3}
        with pytest.raises(exception.NotEnoughHostsAvailable):
            change(3, lease.end + 60)
        assert change(2, lease.end + 60) == {'a': 2}
        assert change(1, lease.end) == {'a': 1}

    def test_devices_that_become_unlike_are_healed(
        self, world, add, flavors, told
    ):
        flavors(**BOTH)
        host = add('a', 2, ('CUSTOM_FAST',))
        fast, any_ = (world.create(gpus(1, name)) for name in ('fast', 'any'))
        # Either device may be in use by others: the fast one, too.
        world.placement.put_below(host.uuid, 'a-0', {GPU: ONE})
        world.hosts.sync()
        told.clear()
        world.monitor.step()
        world.monitor.step()
        assert told == [('lease.at_risk', fast.id)]
        assert places(world, fast) == {'a': 1}
        add('b', 2, ('CUSTOM_FAST',))
        world.monitor.step()
        assert told[1:] == [('lease.healed', fast.id)]
        assert places(world, fast) == {'b': 1}
        assert places(world, any_) == {'a': 1}
        world.check()

    def test_devices_that_become_unlike_in_the_window_are_told_of_once(
        self, world, add, flavors, told
    ):
        flavors(
            fast={f'resources:{GPU}': '1', 'trait:CUSTOM_FAST': 'required'}
        )
        host = add('a', 2, ('CUSTOM_FAST',))
        lease = world.start_lease(gpus(1, 'fast'), end=900)
        told.clear()
        world.placement.put_below(host.uuid, 'a-0', {GPU: ONE})
        add('b', 2, ('CUSTOM_FAST',))
        for _ in range(3):
            world.hosts.sync()
            world.monitor.step()
        assert told == [('lease.at_risk', lease.id)]
        assert places(world, lease) == {'a': 1}
        # The lease is well in between.
        for traits in (('CUSTOM_FAST',), ()):
            world.placement.put_below(host.uuid, 'a-0', {GPU: ONE}, traits)
            world.hosts.sync()
            world.monitor.step()
        assert told == [('lease.at_risk', lease.id)] * 2

    @pytest.mark.parametrize('wanted, place, reservation', [
        (f'[">=", "$resources:{GPU}", "2"]', 'device', 'physical:host'),
        ('["==", "$device_trait:CUSTOM_FAST", "true"]', 'device',
         'physical:host'),
        ('["==", "$trait:CUSTOM_NEAR", "true"]', 'host', 'physical:host'),
        ('["==", "$trait:CUSTOM_NEAR", "true"]', 'host', 'virtual:instance'),
    ])
    def test_a_lease_leaves_a_host_that_no_longer_meets_its_requirement(
        self, world, add, told, wanted, place, reservation
    ):
        def near(name):
            host = add(name, 2, ('CUSTOM_FAST',))
            world.placement.traits_[host.uuid] = ('CUSTOM_NEAR',)
            world.placement.generations_[host.uuid] += 1
            world.hosts.sync()
            return host

        host = near('a')
        asked = {
            'physical:host': {
                'min': 1, 'max': 1, 'hypervisor_properties': wanted,
                'resource_properties': '',
            },
            'virtual:instance': {
                'amount': 1, 'vcpus': 1, 'memory_mb': 1, 'disk_gb': 1,
                'resource_properties': wanted,
            },
        }[reservation]
        lease, started = (
            world.create(
                {'resource_type': reservation, **asked}, start=start, end=end
            ) for start, end in ((300, 400), ('now', 200))
        )
        world.run()
        told.clear()
        if place == 'host':
            world.placement.traits_[host.uuid] = ()
            world.placement.generations_[host.uuid] += 1
        else:
            for n in range(2):
                world.placement.put_below(host.uuid, f'a-{n}', None)
        for _ in range(2):
            world.hosts.sync()
            world.monitor.step()
        assert sorted(told) == sorted(
            ('lease.at_risk', each.id) for each in (lease, started)
        )
        assert list(places(world, lease)) == ['a']
        told.clear()
        near('b')
        world.monitor.step()
        assert told == [('lease.healed', lease.id)]
        assert list(places(world, lease)) == ['b']
        assert list(places(world, started)) == ['a']
        world.check()

    def test_only_changed_devices_are_compared_with_leases(
        self, world, add, flavors, looks
    ):
        host = add('a', 1)
        add('b', 1)
        leases = [world.create(gpus(1)) for _ in range(2)]
        world.monitor.step()
        assert sorted(looks) == sorted(each.id for each in leases)
        world.monitor.step()
        assert len(looks) == 2
        world.placement.put_below(host.uuid, 'a-0', {GPU: ONE}, ('CUSTOM_X',))
        world.hosts.sync()
        world.monitor.step()
        assert len(looks) == 3

    def test_few_hosts_are_compared_at_a_time_after_a_start(
        self, world, add, flavors, looks, monkeypatch
    ):
        hosts = [add(name, 1) for name in 'abcde']
        leases = [world.create(gpus(1)) for _ in hosts]
        monkeypatch.setattr(replanning, 'MAX_NEW_HOSTS', 2)
        for compared in (2, 4, 5, 5):
            world.monitor.step()
            assert len(looks) == len(set(looks)) == compared
        assert set(looks) == {each.id for each in leases}
        # All hosts that have changed are compared.
        for host in hosts:
            world.placement.put_below(
                host.uuid, f'{host.hypervisor_hostname}-0', {GPU: ONE},
                ('CUSTOM_X',),
            )
        world.hosts.sync()
        world.monitor.step()
        assert len(looks) == 10

    def test_a_second_provider_is_no_use_to_a_group_of_two(
        self, world, add, flavors
    ):
        """Others may leave one free unit of each provider."""
        flavors(pair={'resources:VGPU': '2'})
        id_ = world.add_host('a', register=False)
        card = {'VGPU': Units(2, 1, 2, 1)}
        world.placement.put_below(id_, 'card-1', card)
        world.hosts.create('a', {})
        lease = world.create(gpus(1, 'pair'))
        world.placement.put_below(id_, 'card-2', card)
        other = world.add_host('b', register=False)
        world.placement.put_below(other, 'card-3', card)
        world.hosts.create('b', {})
        world.hosts.sync()
        world.monitor.step()
        [allocation] = [
            a for a, _ in world.ledger.allocations(lease_id=lease.id)
        ]
        assert allocation.host == other


BOTH = {
    'any': {f'resources:{GPU}': '1'},
    'fast': {f'resources:{GPU}': '1', f'trait:{FAST}': 'required'},
}
WITH_FAST = f'["==", "$device_trait:{FAST}", "true"]'


def change_device(world, name, number, units, traits=()):
    world.placement.put_below(
        world.host(name).uuid, f'{name}-{number}', {GPU: units}, traits
    )


def look(world):
    world.hosts.sync()
    world.monitor.step()


class TestSeveralReasons:
    """A host that changes in several ways, or for several reservations."""

    def test_a_lease_that_leaves_in_any_case_leaves_first(
        self, world, add, flavors
    ):
        flavors(**BOTH)
        add('a', 3, (FAST,))
        fast = world.create(gpus(1, 'fast'))
        others = [world.create(gpus(1, 'any')) for _ in range(2)]
        change_device(world, 'a', 0, ONE)
        change_device(world, 'a', 1, DEAD, (FAST,))
        add('b', 1, (FAST,))
        look(world)
        assert places(world, fast) == {'b': 1}
        assert [places(world, each) for each in others] == [{'a': 1}] * 2

    def test_only_the_slots_in_excess_leave_if_not_all_find_room(
        self, world, add, flavors
    ):
        add('a', 4)
        lease = world.create(gpus(4))
        add('b', 1)
        change_device(world, 'a', 0, DEAD)
        look(world)
        assert places(world, lease) == {'a': 3, 'b': 1}
        assert not world.lease(lease).degraded
        change_device(world, 'a', 1, DEAD)
        look(world)
        assert places(world, lease) == {'a': 3, 'b': 1}
        add('c', 3)
        look(world)
        # All that is on the host leaves, if possible.
        assert places(world, lease) == {'b': 1, 'c': 3}
        world.check()

    @pytest.mark.parametrize('asked', [('any', 'fast'), ('fast', 'any')])
    def test_reservations_leave_in_an_order_in_which_all_find_room(
        self, world, add, flavors, asked
    ):
        flavors(**BOTH)
        add('a', 2, (FAST,))
        lease = world.create(*(gpus(1, name) for name in asked))
        add('b', 1, (FAST,))
        add('c', 1)
        world.fail('a')
        assert not world.lease(lease).degraded
        assert places(world, lease) == {'b': 1, 'c': 1}

    @pytest.mark.parametrize('start', [100, 'now'])
    def test_fewer_hosts_are_had_even_if_none_suits(
        self, world, add, whole, start
    ):
        for name in 'ab':
            add(name, 1, (FAST,))
        lease = world.create(
            whole(2, 2, hypervisor_properties=WITH_FAST), start=start, end=300
        )
        world.run()
        for name in 'ab':
            change_device(world, name, 0, ONE)
        look(world)
        world.change_reservation(lease, min=1)
        assert len(places(world, lease)) == 2
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.change_reservation(lease, min=3, max=3)

    def test_an_active_lease_goes_on_on_a_host_that_does_not_suit(
        self, world, add, whole
    ):
        add('a', 1, (FAST,))
        lease = world.start_lease(
            whole(hypervisor_properties=WITH_FAST), end=300,
        )
        change_device(world, 'a', 0, ONE)
        look(world)
        end = lease.end + 100
        assert world.manager.extensions.get(lease.id, None, end)['end'] == end
        world.update_lease(lease, end=end)
        assert places(world, lease) == {'a': None}

    def test_an_active_lease_on_a_host_that_goes_away_is_at_risk(
        self, world, add, flavors, told
    ):
        host = add('a', 2)
        lease = world.start_lease(gpus(2), end=300)
        told.clear()
        for minutes, times in ((2, 1), (3, 1), (20, 1), (2, 2)):
            until = datetime.datetime.fromtimestamp(
                world.now + 60 * minutes, datetime.UTC
            )
            world.hosts.update(
                host.id, {'available_until': f'{until:%Y-%m-%d %H:%M}'}
            )
            look(world)
            assert told == [('lease.at_risk', lease.id)] * times

    def test_a_provider_that_is_made_again_is_read_again(self, world, add):
        host = add('a', 0)
        held = world.placement.providers.pop(host.uuid)
        world.hosts.sync()
        world.placement.providers[host.uuid] = {**held, 'VCPU': Inventory(2)}
        world.hosts.sync()
        assert world.host('a').capacity('VCPU') == 2


class TestLargeInstances:
    @pytest.mark.parametrize('limits', [{'min_unit': 4}, {'step_size': 2}])
    def test_a_host_gives_one_instance_what_placement_gives(
        self, world, slots, limits
    ):
        id_ = world.add_host('a', register=False)
        world.placement.providers[id_]['VCPU'] = Inventory(8, **limits)
        world.hosts.create('a', {})
        world.refuse(slots(1, 3))
        assert list(places(world, world.create(slots(1, 4)))) == ['a']

    def test_a_host_gives_one_instance_no_more_than_placement(
        self, world, slots
    ):
        """The ratio allows many small instances, not one large instance."""

        def inventory(total, ratio):
            return {
                'VCPU': Inventory(total, 0, ratio, max_unit=total),
                'MEMORY_MB': Inventory(65536), 'DISK_GB': Inventory(1000),
            }

        id_ = world.add_host('a', register=False)
        world.placement.providers[id_] = inventory(8, 16.0)
        world.hosts.create('a', {})
        world.refuse(slots(1, 9))
        lease = world.create(slots(16, 8))
        world.check()
        # The host is exchanged for a smaller host with the same capacity.
        world.placement.change(id_, inventory(4, 32.0))
        world.hosts.sync()
        assert world.ledger.replica.hosts[id_].inventory['VCPU'].max_unit == 4
        other = world.add_host('b', register=False)
        world.placement.providers[other] = inventory(8, 16.0)
        world.hosts.create('b', {})
        world.monitor.step()
        assert list(places(world, lease)) == ['b']
        assert world.ledger.check() == []


class TestCapacity:
    def test_devices_are_counted_by_class(self, world, add, flavors):
        add('a', 2)
        add('b', 1)
        world.create(gpus(2))

        def get(**values):
            [part] = world.manager.capacity.get(
                'project', world.now + 100, world.now + 200, **values
            )['parts']
            return part

        [held] = [r for r in get()['resources'] if r['resource_class'] == GPU]
        assert (held['total'], held['reserved'], held['available']) == (
            3, 2, 1
        )
        assert get(flavor_id='one')['instances'] == 1

    def test_hosts_are_selected_by_their_devices(self, world, add, flavors):
        add('a', 2, ('CUSTOM_FAST',))
        add('b', 4)
        world.add_host('c')
        for asked, names in {
            f'[">=", "$resources:{GPU}", "2"]': {'a', 'b'},
            f'[">=", "$resources:{GPU}", "3"]': {'b'},
            '["==", "$device_trait:CUSTOM_FAST", "true"]': {'a'},
            '["==", "$trait:CUSTOM_FAST", "true"]': set(),
        }.items():
            found = world.manager.capacity.get(
                'project', world.now + 100, world.now + 200,
                resource_properties=asked,
            )
            assert found['hosts'] == len(names), asked
        lease = world.create({
            'resource_type': 'physical:host', 'min': 1, 'max': 3,
            'hypervisor_properties': f'[">=", "$resources:{GPU}", "1"]',
            'resource_properties': '',
        })
        assert len(places(world, lease)) == 2

    def test_properties_of_devices_are_listed(self, world, add):
        add('a', 2, ('CUSTOM_FAST',))
        add('b', 4)
        found = world.hosts.public_properties('project')['properties']
        values = {each['property']: each['values'] for each in found}
        assert values[f'resources:{GPU}'] == ['2', '4']
        assert values['device_trait:CUSTOM_FAST'] == ['true']

    def test_no_property_is_left_out_where_there_is_no_host(self, world):
        assert world.hosts.public_properties('project') == {
            'zones': [], 'properties': [], 'properties_left_out': 0,
        }

    def test_the_names_of_devices_are_no_capabilities(self, world, add):
        host = add('a', 1)
        for name in (f'resources:{GPU}', 'device_trait:X'):
            with pytest.raises(exception.InvalidInput) as refusal:
                world.hosts.update(host.id, {name: '8'})
            assert refusal.value.field == name
