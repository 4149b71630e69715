# SPDX-License-Identifier: Apache-2.0
"""The limits on amounts of resource classes, and on their weight."""

import json
import threading

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.provider import Units
from blazar_sched.domain.window import FOREVER
from blazar_sched.parts.limit.exception import MaxWeight
from blazar_sched.parts.limit.exception import MaxWeightHours
from blazar_sched.parts.offer.manager import Offers
from blazar_sched.service.enforcement import base
from blazar_sched.service.enforcement.resources import MaxResourcesFilter
from tests.functional.manager import test_resource_limits
from tests.functional.manager.test_resource_limits import refused

on = test_resource_limits.on

HOUR, DAY = 3600, 86400
GPU = 'CUSTOM_PCI_10DE_20B0'
ALIAS = json.dumps({
    'name': 'a100', 'vendor_id': '10de', 'product_id': '20b0',
    'device_type': 'type-PF',
})


def gpus(amount):
    return {
        'resource_type': 'flavor:instance', 'flavor_id': 'one',
        'amount': amount,
    }


@pytest.fixture
def conf(conf):
    conf.set_override('pci_alias', [ALIAS], 'nova')
    conf.set_override('enabled_filters', ['MaxResourcesFilter'], 'enforcement')
    return conf


@pytest.fixture
def world(world):
    """A cloud with hosts of 8 VCPUs, which have 2, 4, no and 1 GPU."""
    world.nova.known_flavors = [Flavor(
        'one', 'one', 1, 512, 1,
        extra_specs={'pci_passthrough:alias': 'a100:1'},
    )]
    world.manager.flavors.sync()
    for name, count in (('a', 2), ('b', 4), ('c', 0), ('d', 1)):
        id_ = world.add_host(name, register=False)
        for n in range(count):
            world.placement.put_below(
                id_, f'{name}-{n}', {GPU: Units(1, 1, 1, 1)}, ()
            )
        world.hosts.create(name, {'rack': name})
    return world


class TestAmounts:
    @pytest.mark.parametrize('whose', ['lease', 'project'])
    def test_instances_count_with_the_devices_of_their_flavor(
        self, world, limit, whose
    ):
        limit(**{f'max_resources_per_{whose}': {GPU: 3}})
        with refused(exception.MaxResources, '3', GPU) as e:
            world.create(gpus(2), gpus(2))
        assert (e.value.status, e.value.field) == (400, 'reservations')
        assert world.ledger.leases() == []
        world.create(gpus(2), gpus(1))
        world.check()

    def test_each_class_has_its_own_limit(self, world, limit, slots):
        limit(max_resources_per_lease={'VCPU': 4, GPU: 1})
        world.create(slots(2, vcpus=2))
        with refused(exception.MaxResources, '4', 'VCPU'):
            world.create(slots(2, vcpus=2), gpus(1))
        with refused(exception.MaxResources, '1', GPU):
            world.create(gpus(2))
        # What is not limited.
        world.create(slots(2, vcpus=2, memory_mb=2048))

    def test_a_class_without_any_is_forbidden(self, world, limit, on):
        limit(max_resources_per_lease={GPU: 0})
        for wanted in (gpus(1), on('a')):
            with refused(exception.MaxResources, '0', GPU):
                world.create(wanted)
        world.create(on('c'))

    def test_whole_hosts_count_with_their_inventory(self, world, limit, on):
        limit(max_resources_per_lease={GPU: 5})
        world.create(on('b'), on('c'))
        with refused(exception.MaxResources, '5', GPU):
            world.create(on('a', 'b'), start=300, end=400)
        world.create(on('a'), start=300, end=400)

    def test_the_hosts_count_that_a_lease_is_given(self, world, limit, on):
        """A lease may get fewer hosts than the most that it asks for."""
        limit(max_resources_per_lease={GPU: 5})
        with refused(exception.MaxResources, '5', GPU):
            world.create(on('a', 'b', minimum=1))
        other = world.create(on('a'), project_id='other')
        lease = world.create(on('a', 'b', minimum=1))
        assert len(world.held(lease)) == 1
        world.leases.delete(other.id, None)

    def test_amounts_count_with_the_allocation_ratio(self, world, limit, on):
        vcpus = world.host('c').capacity('VCPU')
        limit(max_resources_per_lease={'VCPU': vcpus - 1})
        with refused(exception.MaxResources, 'VCPU'):
            world.create(on('c'))
        limit(max_resources_per_lease={'VCPU': vcpus})
        world.create(on('c'))

    def test_all_leases_of_a_project_count(self, world, limit, on):
        limit(max_resources_per_project={GPU: 5})
        world.create(on('b'))
        # Also at other times, and of other types.
        for wanted in (gpus(2), on('a')):
            with refused(exception.MaxResources, 'project', '5', GPU):
                world.create(wanted, start=300, end=400)
        world.create(gpus(1), start=300, end=400)
        world.create(on('b'), start=500, end=600, project_id='other')

    def test_lease_that_is_over_does_not_count(self, world, limit, on):
        limit(max_resources_per_project={GPU: 4})
        world.create(on('b'), start='now', end=100)
        world.run()
        with pytest.raises(exception.MaxResources):
            world.create(gpus(1))
        world.run(101)
        lease = world.create(on('b'))
        world.leases.delete(lease.id, None)
        world.create(on('b'))

    def test_projects_can_be_exempt(self, world, limit, on):
        limit(
            max_resources_per_lease={GPU: 0},
            max_resources_exempt_project_ids=['big', 'own'],
        )
        world.create(on('b'), project_id='own')
        with pytest.raises(exception.MaxResources):
            world.create(on('a'), project_id='small')

    def test_a_dry_run_is_refused_alike(self, world, limit, on):
        limit(max_resources_per_project={GPU: 4})
        values = {
            'name': 'lease', 'project_id': 'project', 'user_id': 'user',
            'start': world.now + 100, 'end': world.now + 200,
            'before_end': None, 'reservations': [on('a', 'b')],
        }
        with refused(exception.MaxResources, '4', GPU):
            world.leases.create(values, dry_run=True)
        world.leases.create(
            {**values, 'reservations': [on('b')]}, dry_run=True
        )
        assert world.ledger.leases() == []


class TestWeight:
    @pytest.fixture(autouse=True)
    def weights(self, limit):
        limit(resource_weights={GPU: 10.0, 'VCPU': 0.1})

    @pytest.mark.parametrize('whose', ['lease', 'project'])
    def test_weight_is_a_sum_over_classes(self, world, limit, slots, whose):
        limit(**{f'max_weight_per_{whose}': 31})
        # 3 GPUs with 1 VCPU each, and 7 VCPUs: exactly 31.
        world.create(gpus(3), slots(7, vcpus=1))
        for lease in world.ledger.leases():
            world.leases.delete(lease.id, None)
        with refused(MaxWeight, '31') as e:
            world.create(gpus(3), slots(8, vcpus=1))
        assert (e.value.status, e.value.field) == (400, 'reservations')

    def test_whole_hosts_weigh_as_much_as_their_inventory(
        self, world, limit, on
    ):
        limit(max_weight_per_lease=39, resource_weights={GPU: 10.0})
        with refused(MaxWeight, '39'):
            world.create(on('b'))
        limit(max_weight_per_lease=40)
        world.create(on('b'))

    def test_gpu_time_has_a_limit(self, world, limit):
        limit(max_weight_hours_per_project=100, resource_weights={GPU: 10})
        world.create(gpus(2), start=HOUR, end=5 * HOUR)
        with refused(MaxWeightHours, '100') as e:
            world.create(gpus(1), start=9 * HOUR, end=11 * HOUR + 1)
        assert (e.value.status, e.value.field) == (400, 'reservations')
        world.create(gpus(1), start=9 * HOUR, end=11 * HOUR)
        with refused(MaxWeightHours, '100'):
            world.create(gpus(1), start=20 * HOUR, end=20 * HOUR + 1)
        world.create(gpus(1), start=20 * HOUR, end=21 * HOUR, project_id='x')

    def test_without_an_end_there_is_no_limit_of_it(self, world, limit, slots):
        limit(max_weight_hours_per_project=100, resource_weights={GPU: 10})
        with pytest.raises(MaxWeightHours):
            world.create(gpus(1), end=FOREVER)
        world.create(slots(1), end=FOREVER)


class TestUpdate:
    @pytest.fixture
    def lease(self, world, on):
        """A lease of 6 GPUs for 2 hours."""
        return world.create(on('a', 'b', minimum=1), start=100, end=7300)

    @pytest.mark.parametrize('options', [
        {'max_resources_per_lease': {GPU: 1}},
        {'max_resources_per_project': {GPU: 1}},
        {'max_weight_per_lease': 1},
        {'max_weight_per_project': 1},
        {'max_weight_hours_per_project': 1},
    ])
    def test_a_lease_beyond_the_limit_shrinks_but_does_not_grow(
        self, world, limit, lease, options
    ):
        limit(resource_weights={GPU: 1}, **options)
        with pytest.raises(exception.LimitExceeded):
            self.change(world, lease, reservations=[gpus(1)])
        assert world.lease(lease) == lease
        world.check()
        [reservation] = lease.reservations
        fewer = {'id': reservation.id, 'max': 1}
        smaller = self.change(world, lease, reservations=[fewer])
        assert len(world.held(smaller)) == 1
        self.change(world, lease, name='other')
        self.change(world, lease, end=world.now + 200)
        self.change(world, lease, start=world.now + 101)

    def test_more_time_counts_in_weight_hours(self, world, limit, lease):
        limit(resource_weights={GPU: 1}, max_weight_hours_per_project=18)
        self.change(world, lease, end=lease.start + 3 * HOUR)
        with pytest.raises(MaxWeightHours):
            self.change(world, lease, end=lease.start + 3 * HOUR + 1)

    def test_other_hosts_count_after_a_change(self, world, limit, on):
        lease = world.create(on('a'))
        limit(max_resources_per_lease={GPU: 3})
        [reservation] = lease.reservations
        other = {
            'id': reservation.id,
            'resource_properties': on('b')['resource_properties'],
        }
        with refused(exception.MaxResources, '3', GPU):
            self.change(world, lease, reservations=[other])
        limit(max_resources_per_lease={GPU: 4})
        self.change(world, lease, reservations=[other])
        world.check()

    def test_a_running_lease_grows_up_to_the_limit(self, world, limit, on):
        limit(max_resources_per_lease={GPU: 4})
        lease = world.create(on('b'), start='now', end=7200)
        world.run()
        with refused(exception.MaxResources, '4', GPU):
            self.change(world, lease, reservations=[gpus(1)])
        self.change(world, lease, reservations=[on('c')])
        world.run()
        assert len(world.held(lease)) == 2

    @staticmethod
    def change(world, lease, **values):
        return world.leases.update(lease.id, None, values)


def test_healing_is_not_refused(world, limit, whole):
    """A lost host is replaced by a host that exceeds the limit."""
    lease = world.create(whole(1, 1))
    limit(max_resources_per_project={GPU: 0, 'VCPU': 0})
    [(_, lost, _)] = world.held(lease)
    world.fail(next(
        host.hypervisor_hostname for host in world.ledger.hosts()
        if host.uuid == lost
    ))
    [(_, got, _)] = world.held(lease)
    assert got != lost


class TestElsewhere:
    """What makes leases beside a request for one."""

    def test_an_offer_tells_of_the_limit_and_keeps_to_it(
        self, world, limit, on
    ):
        limit(max_resources_per_project={GPU: 4})
        offers = Offers(world.manager)
        wanted = {
            'project_id': 'project', 'user_id': 'user',
            'start': world.now + 100, 'latest_start': None,
            'latest_end': None, 'duration': 100, 'max_duration': None,
            'align': None, 'best': 'earliest', 'limit': 1, 'distance': 1,
        }
        too_much = {**wanted, 'alternatives': [[on('a', 'b')]]}
        [offer] = offers.search(too_much)['offers']
        assert offer['limited_by'] == 'policy'
        with pytest.raises(exception.MaxResources):
            offers.hold(too_much, 60)

        fits = {**wanted, 'alternatives': [[on('b')]]}
        [held] = offers.hold(fits, 60)['offers']
        with pytest.raises(exception.MaxResources):
            world.create(gpus(1))
        values = {
            'name': 'lease', 'project_id': 'project', 'user_id': 'user',
            'offer': held['id'], 'before_end': None,
        }
        limit(max_resources_per_project={GPU: 3})
        with pytest.raises(exception.MaxResources):
            offers.accept(values, 'key')
        limit(max_resources_per_project={GPU: 4})
        assert offers.accept(values, 'key').id == held['id']

    def test_an_extension_ends_at_the_limit(self, world, limit):
        lease = world.create(gpus(1), start=100, end=100 + HOUR)
        limit(resource_weights={GPU: 1}, max_weight_hours_per_project=3)
        found = world.manager.extensions.get(lease.id, None, FOREVER)
        assert found['end'] == lease.start + 3 * HOUR
        assert found['limited_by'] == 'policy'


class TestAtOnce:
    """Two creates of 2 GPUs each, where the limit is 3."""

    def test_concurrent_leases_do_not_exceed_a_limit_together(
        self, world, conf, limit, monkeypatch
    ):
        limit(max_resources_per_project={GPU: 3})
        both = threading.Barrier(2)
        check = MaxResourcesFilter.check

        def checked(*args):
            check(*args)
            # The other one would pass here, too, if it could come this far.
            try:
                both.wait(0.5)
            except threading.BrokenBarrierError:
                both.reset()

        monkeypatch.setattr(MaxResourcesFilter, 'check', checked)
        assert self.race(world, conf) == ['MaxResources', 'PENDING']
        assert len(world.ledger.leases()) == 1

    def test_without_the_commit_they_do(self, world, conf, limit, monkeypatch):
        """The control: what a project has is read ahead of the commit."""
        limit(max_resources_per_project={GPU: 3})
        both = threading.Barrier(2)
        ahead = threading.local()
        project = base.Project

        def read_ahead():
            ahead.project = project(world.ledger, 'project')
            ahead.project.others(Lease('', '', '', '', 0, 1, 'PENDING'))
            both.wait(30)

        monkeypatch.setattr(base, 'Project', lambda *args: ahead.project)
        assert self.race(world, conf, read_ahead) == ['PENDING', 'PENDING']
        assert len(world.ledger.leases()) == 2

    @staticmethod
    def race(world, conf, first=lambda: None):
        """Let two managers create a lease each; return what became of them."""
        outcomes = []

        def create(manager):
            first()
            try:
                lease = manager.leases.create({
                    'name': 'lease', 'project_id': 'project',
                    'user_id': 'user', 'start': world.now + 100,
                    'end': world.now + 200, 'before_end': None,
                    'reservations': [gpus(2)],
                })
                outcomes.append(lease.status)
            except exception.MaxResources as e:
                outcomes.append(type(e).__name__)

        threads = [
            threading.Thread(target=create, args=(manager,))
            for manager in (world.manager, world.another(conf))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        return sorted(outcomes)
