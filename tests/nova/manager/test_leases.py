# SPDX-License-Identifier: Apache-2.0
"""Objects of leases in Nova and Placement, from start to end."""

import time

import pytest

from blazar_sched.domain import exception
from blazar_sched.service.clients.placement import resource_class
from blazar_sched.worker import process
from tests.nova import clouds
from tests.nova.managing import hosts
from tests.nova.managing import OTHER
from tests.nova.managing import OWNER
from tests.nova.managing import slots
from tests.nova.managing import slots_of

pytestmark = pytest.mark.more

CLOUD = clouds.PAIR


@pytest.fixture
def delete(manager, settle):
    def delete(lease):
        settle()
        manager.leases.delete(lease.id, OWNER)

    return delete


def fed(cloud, manager, wait_for):
    """Wait until the filters know this ledger, not that of the last test."""
    newest = manager.ledger.changes(0)['newest']

    def probe():
        copy = process.ensure_started().puller.copy
        return (
            copy is not None
            and copy.ledger == manager.ledger.id
            and copy.replica.revision >= newest
        )

    wait_for('the filters are fed', probe)


def flavors(cloud):
    return {
        f['id']
        for f in cloud.api.api_get('/flavors?is_public=None').body['flavors']
    }


def reserved(placement_api, cloud):
    """Return the totals of reservations by (host name, class)."""
    found = {}
    for name, uuid in cloud.hosts.items():
        providers = placement_api.get(
            f'/resource_providers?in_tree={uuid}', microversion='1.29'
        ).json()['resource_providers']
        for provider in providers:
            held = placement_api.get(
                f'/resource_providers/{provider["uuid"]}/inventories'
            ).json()['inventories']
            for class_, inventory in held.items():
                if class_.startswith('CUSTOM_RESERVATION_'):
                    found[name, class_] = inventory['total']
    return found


def classes(placement_api):
    answer = placement_api.get('/resource_classes', microversion='1.29')
    return {
        c['name']
        for c in answer.json()['resource_classes']
        if c['name'].startswith('CUSTOM_RESERVATION_')
    }


class TestInstances:
    @pytest.mark.row('C12', 'C15', 'C27', 'C44', 'F2')
    def test_in_the_window_and_after_it(
        self, manager, cloud, placement_api, both, lease, ended, wait_for
    ):
        before = flavors(cloud)
        mine = lease(slots(3, vcpus=3))
        id_ = mine.reservations[0].id
        class_ = resource_class(id_)
        assert flavors(cloud) == before | {id_}
        assert classes(placement_api) == {class_}
        assert sorted(reserved(placement_api, cloud).values()) == [1, 2]
        answer = cloud.api.api_get(f'/flavors/{id_}/os-flavor-access')
        [access] = answer.body['flavor_access']
        assert access['tenant_id'] == OWNER
        fed(cloud, manager, wait_for)

        booted = cloud.boot_many(3, id_, project_id=OWNER)
        assert {s['status'] for s in booted} == {'ACTIVE'}
        refused = cloud.boot(id_, project_id=OWNER)
        assert refused['status'] == 'ERROR'
        foreign = cloud.boot(cloud.flavor(vcpus=1), project_id=OTHER)
        assert foreign['status'] == 'ACTIVE'

        wait_for(
            'the records are bound',
            lambda: {
                i.uuid for i in manager.ledger.instances() if i.reservation_id
            }
            == {s['id'] for s in booted},
        )
        ended(mine)
        left = {s['id'] for s in cloud.servers()}
        assert left == {foreign['id']}
        assert flavors(cloud) >= before
        assert id_ not in flavors(cloud)
        assert classes(placement_api) == set()
        assert reserved(placement_api, cloud) == {}
        assert manager.ledger.allocations() == []

    def test_the_end_empties_the_hosts_of_a_cloud_that_deletes_softly(
        self, cloud, both, lease, ended, manager, wait_for, placement_api
    ):
        cloud.configure('DEFAULT', reclaim_instance_interval=3600)
        mine = lease(slots(2, vcpus=8))
        fed(cloud, manager, wait_for)
        booted = cloud.boot_many(2, mine.reservations[0].id, project_id=OWNER)
        ended(mine)
        for server in booted:
            held = placement_api.get(f'/allocations/{server["id"]}').json()
            assert held['allocations'] == {}
        assert not lease(hosts(2)).degraded

    @pytest.mark.row('F65')
    def test_active_slots_grow(
        self, manager, cloud, placement_api, both, lease, wait_for, delete
    ):
        mine = lease(slots(1, vcpus=8))
        id_ = mine.reservations[0].id
        manager.leases.update(
            mine.id, OWNER, {'reservations': [{'id': id_, 'amount': 2}]}
        )
        wait_for(
            'one slot on each host',
            lambda: list(reserved(placement_api, cloud).values()) == [1, 1],
        )
        fed(cloud, manager, wait_for)
        booted = cloud.boot_many(2, id_, project_id=OWNER)
        assert {s['status'] for s in booted} == {'ACTIVE'}
        delete(mine)
        assert reserved(placement_api, cloud) == {}

    @pytest.mark.row('F65')
    def test_active_slots_shrink_to_the_slots_in_use(
        self, manager, cloud, placement_api, both, lease, wait_for, delete,
        settle,
    ):
        mine = lease(slots(4, vcpus=4))
        id_ = mine.reservations[0].id
        fed(cloud, manager, wait_for)
        booted = cloud.boot_many(2, id_, project_id=OWNER)
        assert {s['status'] for s in booted} == {'ACTIVE'}
        with pytest.raises(
            exception.CantUpdateParameter, match=' 2 instances in use'
        ):
            manager.leases.update(
                mine.id, OWNER, {'reservations': [{'id': id_, 'amount': 1}]}
            )
        settle()
        assert sum(reserved(placement_api, cloud).values()) == 4
        manager.leases.update(
            mine.id, OWNER, {'reservations': [{'id': id_, 'amount': 2}]}
        )
        assert sum(reserved(placement_api, cloud).values()) == 2
        refused = cloud.boot(id_, project_id=OWNER)
        assert refused['status'] == 'ERROR'
        assert {cloud.show(s)['status'] for s in booted} == {'ACTIVE'}
        assert manager.ledger.check() == []
        delete(mine)
        assert reserved(placement_api, cloud) == {}

    @pytest.mark.row('F66')
    def test_a_reservation_comes_and_goes_in_an_active_lease(
        self, manager, cloud, placement_api, both, lease, wait_for, delete,
        settle,
    ):
        mine = lease(slots(1))
        kept = mine.reservations[0].id
        new = manager.leases.update(
            mine.id, OWNER, {'reservations': [slots(2, vcpus=1)]}
        )
        added = new.reservations[1].id
        wait_for(
            'it is open',
            lambda: [
                r.status for r in manager.ledger.lease(mine.id).reservations
            ]
            == ['active', 'active'],
        )
        fed(cloud, manager, wait_for)
        stays, goes = (
            cloud.boot(id_, project_id=OWNER) for id_ in (kept, added)
        )
        assert (stays['status'], goes['status']) == ('ACTIVE', 'ACTIVE')
        settle()
        manager.leases.update(
            mine.id, OWNER, {'reservations': [{'id': added, 'remove': True}]}
        )
        wait_for('it is gone', lambda: len(manager.ledger.leases()) == 1)
        assert {s['id'] for s in cloud.servers()} == {stays['id']}
        assert added not in flavors(cloud)
        assert classes(placement_api) == {resource_class(kept)}
        assert list(reserved(placement_api, cloud).values()) == [1]
        assert manager.ledger.check() == []
        delete(mine)

    def test_delete_undoes_it(
        self, manager, cloud, placement_api, both, lease, wait_for, delete
    ):
        mine = lease(slots(1), slots(2, affinity=False))
        fed(cloud, manager, wait_for)
        for reservation in mine.reservations:
            server = cloud.boot(reservation.id, project_id=OWNER)
            assert server['status'] == 'ACTIVE'
        delete(mine)
        assert cloud.servers() == []
        assert classes(placement_api) == set()
        assert reserved(placement_api, cloud) == {}
        with pytest.raises(exception.LeaseNotFound):
            manager.ledger.lease(mine.id)

    @pytest.mark.row('F83')
    def test_a_project_that_it_is_shared_with_uses_it(
        self, manager, cloud, nova, both, lease, ended, wait_for
    ):
        mine = lease(slots(2, vcpus=8, projects=[OTHER]))
        id_ = mine.reservations[0].id
        shown = nova.aggregate(id_)
        assert set(shown.hosts) == set(cloud.hosts)
        assert shown.metadata == {
            'blazar:owner': OWNER, 'reservation': id_, OTHER: 'blazar:project'
        }
        fed(cloud, manager, wait_for)
        server = cloud.boot(id_, project_id=OTHER)
        assert server['status'] == 'ACTIVE'
        ended(mine)
        assert cloud.servers() == []
        assert nova.aggregate(id_) is None

    @pytest.mark.row('C26', 'F15')
    def test_affinity_has_a_server_group(
        self, manager, cloud, both, lease, ended, wait_for, host_of
    ):
        # Without trusts the group belongs to the service's own project.
        mine = lease(slots(2, affinity=False, projects=[cloud.project_id]))
        [reservation] = mine.reservations
        fed(cloud, manager, wait_for)
        hints = {'group': reservation.made['server_group_id']}
        booted = [cloud.boot(reservation.id, hints) for _ in range(2)]
        [shown] = cloud.api.api_get('/os-server-groups').body['server_groups']
        assert shown['name'] == f'reservation:{reservation.id}'
        assert set(shown['members']) == {s['id'] for s in booted}
        assert set(map(host_of, booted)) == set(cloud.hosts)
        ended(mine)
        shown = cloud.api.api_get('/os-server-groups').body
        assert shown == {'server_groups': []}

    def test_kept_server_is_an_ordinary_server(
        self, manager, cloud, placement_api, both, lease, ended, wait_for
    ):
        mine, another = lease(slots(1, on_end='keep')), cloud.flavor()
        fed(cloud, manager, wait_for)
        server = cloud.boot(mine.reservations[0].id, project_id=OWNER)
        assert server['status'] == 'ACTIVE'
        ended(mine)
        assert cloud.show(server)['status'] == 'ACTIVE'
        assert classes(placement_api) == set()
        assert reserved(placement_api, cloud) == {}
        held = placement_api.get(f'/allocations/{server["id"]}').json()
        [used] = held['allocations'].values()
        assert used['resources'] == {'VCPU': 2, 'MEMORY_MB': 512, 'DISK_GB': 1}
        manager.instances.sync()
        fed(cloud, manager, wait_for)
        # Moves with the flavor of the reservation are in test_outlived.py.
        resized = cloud.act(
            server, 'resize', 'VERIFY_RESIZE', flavorRef=another
        )
        assert resized['status'] == 'VERIFY_RESIZE'

    def test_steps_of_start_and_end_can_be_repeated(
        self, manager, cloud, placement_api, both, lease, delete
    ):
        """Each step of a start and an end can be repeated, also by itself."""
        mine = lease(slots(1))
        once = reserved(placement_api, cloud), flavors(cloud)
        parts = manager.runner._parts(mine)
        for driver, part in parts:
            driver.start(part, int(time.time()))
        assert (reserved(placement_api, cloud), flavors(cloud)) == once
        cloud.api.delete_flavor(mine.reservations[0].id)
        for _ in range(2):
            for driver, part in parts:
                assert driver.end(part)
        assert reserved(placement_api, cloud) == {}
        delete(mine)


class TestFlavors:
    @pytest.mark.row('F3')
    def test_in_the_window_and_after_it(
        self, manager, cloud, placement_api, both, lease, ended, wait_for
    ):
        traits = {'trait:COMPUTE_NODE': 'required'}
        source = cloud.flavor(3, 256, 2, traits)
        manager.flavors.sync()
        before = flavors(cloud)
        mine = lease(slots_of(source, 3))
        id_ = mine.reservations[0].id
        shown = cloud.api.get_flavor(id_)
        assert (shown['vcpus'], shown['ram'], shown['disk']) == (3, 256, 2)
        assert traits.items() < shown['extra_specs'].items()
        assert sorted(reserved(placement_api, cloud).values()) == [1, 2]
        fed(cloud, manager, wait_for)
        booted = cloud.boot_many(3, id_, project_id=OWNER)
        assert {s['status'] for s in booted} == {'ACTIVE'}
        refused = cloud.boot(id_, project_id=OWNER)
        assert refused['status'] == 'ERROR'
        ended(mine)
        assert cloud.servers() == []
        assert flavors(cloud) == before
        assert classes(placement_api) == set()

    @pytest.mark.row('F3')
    def test_a_trait_that_no_host_has(self, manager, cloud, both, lease):
        source = cloud.flavor(extra_specs={'trait:CUSTOM_GOLD': 'required'})
        manager.flavors.sync()
        with pytest.raises(exception.NotEnoughHostsAvailable):
            lease(slots_of(source, 1))


class TestHosts:
    @pytest.mark.row('C11', 'C25', 'F1')
    def test_in_the_window_and_after_it(
        self, manager, cloud, both, lease, ended, wait_for, host_of
    ):
        yielding = cloud.boot(
            cloud.flavor(extra_specs={'blazar:preemptible': 'true'})
        )
        manager.instances.sync()
        [held] = [h for h in both if h.uuid == cloud.hosts[host_of(yielding)]]
        requirement = (
            f'["==", "$hypervisor_hostname", "{held.hypervisor_hostname}"]'
        )
        mine = lease(hosts(hypervisor_properties=requirement))
        assert not mine.degraded
        id_ = mine.reservations[0].id
        wait_for('what yields is gone', lambda: not cloud.servers())
        fed(cloud, manager, wait_for)

        inside = cloud.boot(
            cloud.flavor(), {'reservation': id_}, project_id=OWNER
        )
        assert host_of(inside) == held.hypervisor_hostname
        outside = [
            cloud.boot(cloud.flavor(), project_id=OTHER) for _ in range(2)
        ]
        assert held.hypervisor_hostname not in map(host_of, outside)
        ended(mine)
        assert {s['id'] for s in cloud.servers()} == {s['id'] for s in outside}

    def test_server_forced_onto_a_host_degrades_the_lease(
        self, manager, cloud, both, lease, delete
    ):
        """A forced host skips Nova's filters, and so those of blazar-sched."""
        forced = [
            cloud.boot(cloud.flavor(), availability_zone=f'nova:{name}')
            for name in cloud.hosts
        ]
        # The lease is placed as if the ledger had no record of the server yet.
        with manager.instances._lock:
            for known in manager.ledger.instances():
                manager.ledger.commit(
                    lambda tx, uuid=known.uuid: tx.delete_instances([uuid])
                )
            mine = lease(hosts())
        assert mine.degraded
        assert {s['id'] for s in cloud.servers()} == {s['id'] for s in forced}
        delete(mine)


class TestRegister:
    def test_servers_of_a_new_host_have_records_at_once(
        self, manager, cloud, host_of
    ):
        server = cloud.boot(cloud.flavor(vcpus=3), {'lifetime': '1h'})
        host = manager.hosts.create(host_of(server), {'gpu': 'no'})
        [record] = manager.ledger.instances()
        assert record.uuid == server['id']
        assert record.host == host.uuid == cloud.hosts[host_of(server)]
        assert record.amounts['VCPU'] == 3
        assert 3500 < record.end - time.time() <= 3600
        assert host.availability_zone == 'nova'
        assert host.amounts() == (8, 16384, 1000)

    def test_records_follow(self, manager, cloud, both, wait_for, host_of):
        server = cloud.boot(cloud.flavor(vcpus=3))

        def recorded():
            found = manager.ledger.instances()
            return found and found[0].host

        wait_for('recorded', recorded)
        assert recorded() == cloud.hosts[host_of(server)]
        moved = cloud.act(
            server, 'os-migrateLive', host=None, block_migration='auto'
        )
        assert host_of(moved) != host_of(server)
        wait_for('moved', lambda: recorded() == cloud.hosts[host_of(moved)])
        cloud.delete(server)
        wait_for('gone', lambda: not manager.ledger.instances())

    @pytest.mark.row('C14')
    def test_given_up_it_leaves_an_empty_child(
        self, manager, placement, placement_api, both, lease, delete
    ):
        """Without the child provider nova-compute could not build a server."""
        mine = lease(slots(2, vcpus=8))
        delete(mine)
        for host in both:
            manager.hosts.delete(host.id)
            found = placement_api.get(
                f'/resource_providers?in_tree={host.uuid}', microversion='1.29'
            ).json()['resource_providers']
            (child,) = {p['uuid'] for p in found} - {host.uuid}
            assert placement.inventories(child) == {}
