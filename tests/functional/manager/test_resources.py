# SPDX-License-Identifier: Apache-2.0
"""The effects of a lease's start and end in Nova and Placement."""

import dataclasses

import pytest

from blazar_sched.domain import event
from blazar_sched.domain import exception
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.inventory import Inventory
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.placement import resource_class
from tests.functional.manager.conftest import refused
from tests.standins.rest import answer
from tests.standins.rest import Service


@pytest.fixture
def host(world):
    """A host without servers at its registration."""
    return world.add_host('a')


def assert_nothing_left(world):
    nova, placement = world.nova, world.placement
    assert not nova.made_flavors
    assert not nova.access
    assert not nova.aggregates
    assert not nova.server_groups
    assert not placement.classes
    assert not placement.children


class TestHost:
    def start(self, world, **values):
        lease = world.start_lease(**values)
        return world.lease(lease)

    def test_yielding_servers_are_deleted_at_the_start(self, world, host):
        preemptible = world.add_server('a', preemptible=True)
        overdue = world.add_server('a', end=world.now)
        elsewhere = world.add_server('b', preemptible=True)
        lease = self.start(world)
        assert not lease.degraded
        assert list(world.nova.stored) == [elsewhere.uuid]
        assert set(world.nova.asked) == {preemptible.uuid, overdue.uuid}

    @pytest.mark.parametrize('values', [
        {}, {'project_id': 'project'}, {'end': 'later'},
        {'reservation_id': 'of-another-lease'},
    ])
    def test_server_that_stays_degrades_the_lease(self, world, host, values):
        if 'end' in values:
            values = {'end': world.now + 1}
        server = world.add_server('a', **values)
        lease = self.start(world)
        assert (lease.status, lease.degraded) == ('ACTIVE', True)
        assert list(world.nova.stored) == [server.uuid]

    def test_bound_servers_stay_at_the_start(self, world, host):
        lease = world.create(start='now')
        mine = world.add_own_server(lease, preemptible=True)
        world.run()
        assert list(world.nova.stored) == [mine.uuid]
        assert not world.lease(lease).degraded

    def test_a_claim_of_another_project_is_not_bound(self, world, host):
        lease = world.create(start='now')
        world.add_own_server(lease, 'a', 'thief')
        world.run()
        assert world.lease(lease).degraded

    @pytest.mark.row('F60')
    def test_the_end_deletes_the_projects_servers(self, world, host):
        lease = self.start(world)
        world.add_own_server(lease)
        world.add_server('a', 'project')
        world.add_own_server(lease, 'moved')
        world.add_own_server(lease, None)
        kept = {
            world.add_server('a', 'other').uuid,
            world.add_server('b', 'project').uuid,
            world.add_server('a', 'project', reservation_id='another').uuid,
        }
        world.run(200)
        world.run(1)
        assert set(world.nova.stored) == kept
        assert world.lease(lease).status == 'TERMINATED'

    def test_the_end_deletes_a_server_of_its_label_without_a_record(
        self, world, whole
    ):
        """The record of a server that was created shortly before is late."""
        world.add_hosts('a', 'b')
        world.create(whole(labels={'run': '7'}), start='now')
        world.create(
            whole(labels={'run': '7', 'long': '1'}), start=50, end=900
        )
        world.run()

        def add(label, project_id='project', created=0):
            return world.add_server(
                'a', project_id, reservation_id=f'label:{label}',
                created=world.now + created,
            ).uuid

        add('run=7')
        kept = {add('run=8'), add('run=7', 'other'), add('run=7', created=-1)}
        world.run(50)
        kept |= {add('run=7'), add('long=1')}
        world.run(150)
        world.run(1)
        assert set(world.nova.stored) == kept

    def test_an_aggregate_has_the_hosts_in_the_window_only(self, world, whole):
        world.add_hosts('a', 'b', 'c')
        lease = world.create(whole(2, 2, projects=['friend']))
        assert not world.nova.aggregates
        world.run(100)
        [reservation] = world.lease(lease).reservations
        aggregate = world.nova.aggregates[reservation.id]
        held = {host for _, host, _ in world.held(lease)}
        assert aggregate.hosts == tuple(sorted(
            h.service_name for h in world.ledger.hosts() if h.uuid in held
        ))
        assert aggregate.metadata == {
            'blazar:owner': 'project', 'reservation': reservation.id,
            'friend': 'blazar:project',
        }
        assert reservation.made['aggregate_id'] == aggregate.id
        # nova-scheduler may query Placement by this trait.
        replica = world.ledger.commit(lambda tx: tx.replica)
        known = replica.reservations[reservation.id]
        assert known.aggregate == aggregate.uuid
        world.run(100)
        assert_nothing_left(world)

    def test_servers_of_a_shared_project_are_bound_and_ended(
        self, world, whole, host
    ):
        lease = world.create(whole(projects=['friend']), start='now')
        [reservation] = lease.reservations
        shared = world.add_own_server(lease, 'a', 'friend', preemptible=True)
        world.run()
        assert list(world.nova.stored) == [shared.uuid]
        assert not world.lease(lease).degraded
        world.run(200)
        world.run(1)
        assert not world.nova.stored

    @pytest.mark.row('F60')
    def test_the_end_can_shelve(self, world, whole, host):
        lease = world.start_lease(whole(on_end='shelve'))
        server = world.add_own_server(lease)
        world.nova.slowness = 1
        world.run(200)
        assert world.lease(lease).status == 'TERMINATING'
        for _ in range(3):
            world.run(2)
        assert world.lease(lease).status == 'TERMINATED'
        [left] = world.nova.stored.values()
        assert (left.uuid, left.node) == (server.uuid, None)
        assert left.status == 'SHELVED_OFFLOADED'

    def test_a_server_on_its_way_to_the_host_is_waited_for(
        self, world, whole, host
    ):
        lease = world.start_lease(whole(on_end='shelve'))
        world.add_own_server(lease, None, status='BUILD')
        world.nova.slowness = 1
        world.run(200)
        assert world.lease(lease).status == 'TERMINATING'

    def test_before_the_end_each_bound_server_is_copied_once(
        self, world, whole, host
    ):
        lease = world.start_lease(
            whole(before_end='snapshot', projects=['friend']),
            before_end=world.now + 100,
        )
        id_ = lease.reservations[0].id
        mine = [
            world.add_own_server(lease, 'a', who, name=f'of {who}')
            for who in ('friend', 'project')
        ]
        # The end deletes this server, too.
        mine.append(world.add_server('a', 'project'))
        world.add_own_server(lease, status='ERROR')
        world.add_own_server(lease, 'a', 'thief')
        world.run(100)
        copied = [
            (
                s.uuid, f'reserved_{s.name}',
                {'blazar:reservation': id_, 'blazar:ending': lease.ending},
            )
            for s in mine
        ]
        assert world.nova.images == copied
        # An attempt that waits for images is repeated from its beginning.
        world.run(10)
        assert world.nova.images == copied


class TestImage:
    """Nova's images, at the level of HTTP."""

    @pytest.fixture
    def images(self):
        return []

    @pytest.fixture
    def nova(self, images):
        """Nova with the images in `images`."""

        def found(server, name):
            return answer(200, {'images': [
                i for i in images
                if i['name'] == name
                and i['metadata'].get('instance_uuid') == server
            ]})

        def make(id_, body):
            images.append({'status': 'ACTIVE', **body['createImage']})
            return answer(202, {'image_id': 'of-the-server'})

        return Nova(Service(
            ('GET', '/images/detail', found),
            ('POST', '/servers/([^/]+)/action', make)
        ))

    def test_of_a_server_on_a_volume_there_is_one(self, world, nova, images):
        for server in (world.add_server('a'), world.add_server('a')):
            made = [
                nova.create_image(server, 'name', {'by': 'us'})
                for _ in range(3)
            ]
            assert made == [False, True, True]
        assert len(images) == 2

    def test_a_name_that_is_too_long_is_cut_off(self, world, nova, images):
        server = world.add_server('a')
        name = 250 * 'x' + '    ' + 9 * 'y'
        for _ in range(2):
            nova.create_image(server, name, {})
        assert [i['name'] for i in images] == [250 * 'x' + '    y']
        nova.create_image(server, 255 * ' x', {})
        assert images[-1]['name'] == 127 * ' x'


class TestInstance:
    @pytest.mark.row('C12', 'C15')
    def test_flavor_and_inventory_in_the_window_only(self, world, slots):
        world.add_hosts('a', 'b', vcpus=4)
        lease = world.create(slots(
            3, vcpus=2, ephemeral_gb=3, extra_specs={'hw:rng': 'x'}
        ))
        id_ = lease.reservations[0].id
        class_ = resource_class(id_)
        assert class_ == 'CUSTOM_RESERVATION_' + id_.upper().replace('-', '_')
        assert not world.nova.made_flavors
        assert not world.nova.aggregates
        assert not world.placement.classes
        world.run(100)
        assert world.nova.made_flavors == {
            id_: Flavor(
                id=id_, name=f'reservation:{id_}', vcpus=2, memory_mb=512,
                disk_gb=1, ephemeral_gb=3,
                extra_specs={
                    'blazar:reservation': id_, f'resources:{class_}': '1',
                    'hw:rng': 'x',
                },
            )
        }
        assert world.nova.access == {(id_, 'project')}
        aggregate = world.nova.aggregates[id_]
        assert aggregate.hosts == ('a', 'b')
        assert aggregate.metadata == {
            'blazar:owner': 'project', 'reservation': id_
        }
        assert world.placement.classes == {class_}
        assert sorted(world.placement.children.values()) == [1, 2]
        assert {name for _, name in world.placement.children} == {class_}
        [reservation] = world.lease(lease).reservations
        assert reservation.made['aggregate_id'] == aggregate.id
        assert reservation.made['server_group_id'] is None
        world.run(100)
        assert_nothing_left(world)

    @pytest.mark.parametrize(
        'affinity, policy', [(True, 'affinity'), (False, 'anti-affinity')]
    )
    def test_affinity_is_kept_by_a_server_group(
        self, world, slots, affinity, policy
    ):
        world.add_host('a')
        lease = world.create(slots(1, affinity=affinity))
        assert not world.nova.server_groups
        world.run(100)
        [reservation] = world.lease(lease).reservations
        name = f'reservation:{reservation.id}'
        assert world.nova.server_groups == {
            name: (reservation.made['server_group_id'], policy)
        }
        world.run(100)
        assert_nothing_left(world)

    def test_flavor_is_open_to_the_projects_of_a_shared_reservation(
        self, world, slots
    ):
        world.add_host('a')
        lease = world.create(slots(3, projects=['friend', 'guest']))
        id_ = lease.reservations[0].id
        world.run(100)
        assert world.nova.access == {
            (id_, project) for project in ('project', 'friend', 'guest')
        }
        assert world.nova.aggregates[id_].metadata['guest'] == 'blazar:project'
        for project in ('friend', 'guest'):
            world.add_own_server(lease, 'a', project)
        kept = world.add_server('a', 'friend')
        change = {'id': id_, 'projects': ['friend']}
        world.leases.update(lease.id, 'project', {'reservations': [change]})
        world.run()
        assert world.nova.access == {(id_, 'project'), (id_, 'friend')}
        assert 'guest' not in world.nova.aggregates[id_].metadata
        # A project that may not boot any more still has a server.
        world.run(100)
        world.run(1)
        assert list(world.nova.stored) == [kept.uuid]
        assert_nothing_left(world)

    def test_kept_server_gives_its_slot_back(self, world, slots):
        world.add_host('a')
        lease = world.start_lease(slots(2, on_end='keep'))
        id_ = lease.reservations[0].id
        server = world.add_own_server(lease)
        world.placement.used['a', resource_class(id_)] = 1
        world.run(200)
        assert list(world.nova.stored) == [server.uuid]
        assert world.lease(lease).status == 'TERMINATED'
        assert_nothing_left(world)

    def test_a_server_in_error_is_kept_instead_of_being_shelved(
        self, world, slots, host
    ):
        lease = world.start_lease(slots(2, on_end='shelve'))
        id_ = lease.reservations[0].id
        failed, other = (
            world.add_own_server(lease, status=status)
            for status in ('ERROR', 'ACTIVE')
        )
        world.placement.used['a', resource_class(id_)] = 1
        world.run(200)
        world.run(10)
        assert world.lease(lease).status == 'TERMINATED'
        assert world.nova.stored[failed.uuid] == failed
        assert world.nova.stored[other.uuid].node is None
        assert_nothing_left(world)

    def test_end_waits_for_servers_that_are_being_shelved(self, world, slots):
        world.add_host('a')
        lease = world.start_lease(slots(2, on_end='shelve'))
        server = world.add_own_server(lease)
        world.run(200)
        assert world.lease(lease).status == 'TERMINATING'
        assert world.nova.made_flavors
        world.run(1)
        assert world.nova.stored[server.uuid].status == 'SHELVED_OFFLOADED'
        assert world.lease(lease).status == 'TERMINATED'
        assert_nothing_left(world)

    @pytest.mark.parametrize('in_use', [False, True])
    def test_a_host_that_it_has_no_more_is_given_up(
        self, world, slots, in_use
    ):
        """The host is given up at once, or at the end if a server uses it."""
        first, second = world.add_host('a'), world.add_host('b')
        lease = world.start_lease(slots(2))
        id_ = lease.reservations[0].id
        class_ = resource_class(id_)
        [held] = [a for a, _ in world.ledger.allocations(lease_id=lease.id)]
        before, after = ('a', 'b') if held.host == first else ('b', 'a')
        moved = dataclasses.replace(
            held, host=second if before == 'a' else first
        )
        world.placement.used[before, class_] = in_use

        def move(tx):
            tx.put_allocations(id_, [moved])
            old = tx.lease(lease.id)
            tx.put_lease(
                dataclasses.replace(old, events=event.start_again(old.events))
            )

        world.ledger.commit(move)
        world.run()
        hosts = {after, before} if in_use else {after}
        assert set(world.nova.aggregates[id_].hosts) == hosts
        assert world.placement.children == {(h, class_): 2 for h in hosts}
        world.placement.used.clear()
        world.run(200)
        assert world.lease(lease).status == 'TERMINATED'
        assert_nothing_left(world)

    def test_a_create_waits_for_its_server_group(self, world, slots):
        """The response has the group's id, if the start is done in time."""
        world.add_host('a')
        waited = world.leases._wait

        def wait(seconds):
            waited(seconds)
            world.run()

        world.leases._wait = wait
        lease = world.create(slots(1, affinity=True), start='now')
        assert lease.status == 'ACTIVE'
        [(id_, _)] = world.nova.server_groups.values()
        assert lease.reservations[0].made['server_group_id'] == id_

    def test_a_create_does_not_wait_for_ever(self, world, slots):
        world.add_host('a')
        lease = world.create(slots(1, affinity=True), start='now')
        assert lease.status == 'PENDING'
        assert 4 < world.waited < 6

    @pytest.mark.parametrize('values', [{}, {'affinity': None}])
    def test_lease_without_a_server_group_waits_for_none(
        self, world, slots, values
    ):
        world.add_host('a')
        world.create(slots(1, **values), start='now')
        world.create(slots(1, affinity=True))
        assert world.waited == 0

    def test_end_touches_no_other_server(self, world, slots):
        world.add_host('a')
        lease = world.start_lease(slots())
        world.add_own_server(lease)
        kept = {
            world.add_server('a', 'project', preemptible=True).uuid,
            world.add_own_server(lease, 'a', 'thief').uuid,
            world.add_server('a', 'project', reservation_id='another').uuid,
        }
        world.run(200)
        world.run(1)
        assert set(world.nova.stored) == kept

    @pytest.mark.parametrize('in_use', ['a', 'b'])
    def test_inventory_in_use_on_one_of_its_hosts_is_waited_for(
        self, world, slots, monkeypatch, in_use
    ):
        """Placement releases a deleted server's allocation with a delay."""
        world.add_hosts('a', 'b', vcpus=2)
        lease = world.start_lease(slots(2, vcpus=2))
        used = {in_use}
        remove = world.placement.remove_inventory
        monkeypatch.setattr(
            world.placement, 'remove_inventory',
            lambda name, class_: name not in used and remove(name, class_),
        )
        world.run(200)
        assert world.placement.classes
        assert world.nova.aggregates
        assert world.lease(lease).status == 'TERMINATING'
        used.clear()
        world.run(10)
        assert world.lease(lease).status == 'TERMINATED'
        assert_nothing_left(world)


SOURCE = Flavor(
    id='gold', name='Gold', vcpus=2, memory_mb=1024, disk_gb=10,
    ephemeral_gb=5, swap_mb=1025,
    extra_specs={
        'hw:numa_nodes': '1', 'trait:HW_CPU_X86_AVX2': 'required',
        'blazar:lifetime': '1h',
    }
)


def flavor(amount=1, **parameters):
    return {
        'resource_type': 'flavor:instance', 'flavor_id': 'gold',
        'amount': amount, **parameters,
    }


@pytest.fixture
def know(world):
    """know(flavors) -> Nova has the flavors, and the ledger copies them."""

    def make(*flavors):
        world.nova.known_flavors = list(flavors)
        world.manager.flavors.sync()

    make(SOURCE)
    return make


class TestFlavor:
    def host(self, world, name, *traits, **values):
        """Register a host with these traits."""
        world.placement.traits_[world.add_host(name, register=False)] = traits
        return world.hosts.create(name, values)

    def test_a_flavor_of_its_own_in_the_window(self, world, know):
        self.host(world, 'a', 'HW_CPU_X86_AVX2')
        lease = world.create(flavor(2))
        assert not world.nova.made_flavors
        world.run(100)
        id_ = lease.reservations[0].id
        class_ = resource_class(id_)
        assert world.nova.made_flavors[id_] == dataclasses.replace(
            SOURCE, id=id_, name=f'reservation:{id_}',
            extra_specs={
                'hw:numa_nodes': '1', 'trait:HW_CPU_X86_AVX2': 'required',
                'blazar:reservation': id_, f'resources:{class_}': '1',
            }
        )
        assert world.placement.children == {('a', class_): 2}
        world.run(100)
        assert_nothing_left(world)

    def test_all_its_disks_are_reserved(self, world, know):
        """Root, ephemeral and swap disks: 17 GB of the host's 80."""
        self.host(world, 'a', 'HW_CPU_X86_AVX2')
        world.create(flavor(3))
        world.refuse(flavor(2))
        world.create(flavor(1))

    @pytest.mark.row('F3')
    def test_traits_of_the_flavor_select_the_hosts(self, world, know):
        self.host(world, 'plain')
        self.host(world, 'noisy', 'HW_CPU_X86_AVX2', 'CUSTOM_NOISY')
        good = self.host(world, 'good', 'HW_CPU_X86_AVX2', 'CUSTOM_X')
        specs = {**SOURCE.extra_specs, 'trait:CUSTOM_NOISY': 'forbidden'}
        know(dataclasses.replace(SOURCE, extra_specs=specs))
        lease = world.create(flavor(4))
        assert {host for _, host, _ in world.held(lease)} == {good.uuid}
        world.refuse(flavor(1))

    @pytest.mark.parametrize('specs, fits', [
        ({'capabilities:hypervisor_type': 'QEMU'}, True),
        ({'capabilities:hypervisor_type': 's== ironic'}, False),
        ({'capabilities:hypervisor_type': 's!= ironic'}, True),
        ({'capabilities:hypervisor_version': '>= 8002000'}, True),
        ({'capabilities:hypervisor_version': '= 8002001'}, False),
        # This is left to Nova.
        ({'capabilities:hypervisor_type': '<in> iron'}, True),
        ({'capabilities:rack': '7'}, True),
    ])
    def test_capabilities_of_the_flavor_select_the_hosts(
        self, world, know, specs, fits
    ):
        self.host(world, 'a')
        know(dataclasses.replace(SOURCE, extra_specs=specs))
        if fits:
            world.create(flavor())
        else:
            world.refuse(flavor())

    def test_so_do_the_properties_that_are_asked_for(self, world, know):
        self.host(world, 'a', 'HW_CPU_X86_AVX2', rack='1')
        wanted = self.host(world, 'b', 'HW_CPU_X86_AVX2', rack='2')
        properties = '["==", "$rack", "2"]'
        lease = world.create(flavor(resource_properties=properties))
        assert [host for _, host, _ in world.held(lease)] == [wanted.uuid]

    @pytest.mark.row('F3')
    def test_custom_resources_of_the_flavor_are_counted(self, world, know):
        specs = {'resources:CUSTOM_GPU': '2', 'hw:cpu_policy': 'dedicated'}
        know(dataclasses.replace(SOURCE, extra_specs=specs))
        id_ = world.add_host('a', vcpus=32, register=False)
        del world.placement.providers[id_]['VCPU']
        world.placement.providers[id_] |= {
            'CUSTOM_GPU': Inventory(4), 'PCPU': Inventory(32),
        }
        world.hosts.create('a', {})
        for amount in (3, 2):
            if amount == 3:
                world.refuse(flavor(amount))
            else:
                world.create(flavor(amount))
        world.refuse(flavor(1))

    def test_reservation_outlives_the_flavor(self, world, know):
        self.host(world, 'a', 'HW_CPU_X86_AVX2')
        lease = world.create(flavor(1))
        know(dataclasses.replace(SOURCE, id='other', vcpus=8))
        world.change_reservation(lease, amount=2)
        world.run(100)
        [made] = world.nova.made_flavors.values()
        assert (made.vcpus, made.swap_mb) == (2, 1025)

    @pytest.mark.parametrize('id_', ['platinum', 'gold ', '', None, 7, '\0'])
    def test_an_unknown_flavor_is_refused(self, world, know, id_):
        self.host(world, 'a', 'HW_CPU_X86_AVX2')
        with refused(exception.InvalidInput, 'flavor_id'):
            world.create(flavor(flavor_id=id_))

    def test_a_private_flavor_is_for_its_projects(self, world, know):
        self.host(world, 'a', 'HW_CPU_X86_AVX2')
        know(dataclasses.replace(SOURCE, projects=('friend',)))
        with refused(exception.InvalidInput, 'flavor_id'):
            world.create(flavor())
        world.create(flavor(), project_id='friend')

    @pytest.mark.parametrize('specs', [
        {f'resources:{c}': '0' for c in ('VCPU', 'MEMORY_MB', 'DISK_GB')},
        {'resources:CUSTOM_X': str(2**31)},
    ])
    def test_a_flavor_that_cannot_be_counted_is_refused(
        self, world, know, specs
    ):
        self.host(world, 'a')
        know(dataclasses.replace(SOURCE, extra_specs=specs))
        with refused(exception.InvalidInput, 'flavor_id'):
            world.create(flavor())

    @pytest.mark.parametrize('field, value', [
        ('amount', 0),
        ('amount', '1'),
        ('affinity', 'True'),
        ('resource_properties', '["=="]'),
        ('resource_properties', None),
        ('vcpus', 1),
    ])
    def test_a_bad_value_is_named(self, world, know, field, value):
        self.host(world, 'a', 'HW_CPU_X86_AVX2')
        with refused(exception.InvalidInput, field):
            world.create(flavor(**{field: value}))

    def update(self, world, lease, **changes):
        new = world.change_reservation(lease, **changes)
        world.run()
        return new.reservations[0].demand.encode()

    def test_flavor_of_a_pending_reservation_can_change(self, world, know):
        silver = dataclasses.replace(
            SOURCE, id='silver', vcpus=1, extra_specs={'trait:X': 'required'}
        )
        know(SOURCE, silver)
        properties = '["==", "$rack", "1"]'
        self.host(world, 'a', 'HW_CPU_X86_AVX2', 'X', rack='1')
        wanted = self.host(world, 'b', 'X', rack='1')
        lease = world.create(flavor(2, resource_properties=properties))
        asked = self.update(world, lease, amount=1, affinity=True)
        assert (asked['amount'], asked['affinity']) == (1, True)
        asked = self.update(
            world, lease, flavor_id='silver', amount=5, affinity=None
        )
        # The new flavor's traits, and the other requested properties.
        assert {host for _, host, _ in world.held(lease)} >= {wanted.uuid}
        assert asked['asked_properties'] == properties
        assert asked['resource_properties'] == (
            '["and", ["==", "$trait:X", "true"], ["==", "$rack", "1"]]'
        )
        with refused(exception.InvalidInput, 'flavor_id'):
            self.update(world, lease, flavor_id='platinum')
        same = self.update(world, lease, amount=5)
        assert same == asked

    def test_once_active_only_the_amount(self, world, know):
        know(SOURCE, dataclasses.replace(SOURCE, id='silver'))
        self.host(world, 'a', 'HW_CPU_X86_AVX2')
        lease = world.start_lease(flavor(2))
        self.update(world, lease, amount=3)
        assert list(world.placement.children.values()) == [3]
        for field, value in (
            ('affinity', True), ('flavor_id', 'silver'),
            ('resource_properties', '["==", "$x", "1"]'),
        ):
            with refused(exception.CantUpdateParameter, field):
                self.update(world, lease, **{field: value})
