# SPDX-License-Identifier: Apache-2.0
"""All objects that Blazar has made in other services are removed."""

import pytest

from blazar_sched.domain import states
from blazar_sched.parts.blazar.importing import cleanup
from tests.parts.blazar import database
from tests.standins.neutron import NETWORK

HOUR = database.HOUR
PROJECT = 'project'
ADDRESS = '203.0.113.5'


class Made:
    """The objects that Blazar makes for a reservation, with Blazar's names."""

    def __init__(self, site):
        self._cloud = site.cloud
        self._neutron = site.neutron
        services = site.manager().services
        self._nova, self._placement = services.nova, services.placement

    def aggregate(self, id_, *hosts, **metadata):
        made = self._nova.create_aggregate(
            id_, {'blazar:owner': PROJECT, **metadata}
        )
        for host in hosts:
            self._nova.add_to_aggregate(made, host)

    def slots(self, id_, *hosts):
        self.aggregate(id_, *hosts, reservation=id_, filter_tenant_id=PROJECT)
        class_ = f'CUSTOM_RESERVATION_{id_.upper().replace("-", "_")}'
        self._placement.create_resource_class(class_)
        self._cloud.flavors[id_] = {'specs': {}}
        for host in hosts:
            self._cloud.access.add((id_, PROJECT))
            self._placement.set_inventory(
                self._cloud.uuid(host), host, class_, 1
            )

    def floating_ip(self, id_):
        self._neutron.stored['made'] = {
            'id': 'made', 'floating_ip_address': ADDRESS,
            'floating_network_id': NETWORK,
            'project_id': PROJECT, 'description': '',
            'tags': ['blazar', f'reservation:{id_}'], 'port_id': None,
        }  # fmt: skip


@pytest.fixture
def made(site):
    return Made(site)


@pytest.fixture
def manager(blazar, importer, site):
    """manager() -> a manager over the imported ledger, not started."""

    def manager():
        plan = importer.plan(blazar.url)
        assert plan.refused == []
        importer.write(plan)
        return site.manager()

    return manager


def test_an_active_lease_leaves_nothing(blazar, made, manager, site):
    one, two = blazar.host('compute-1'), blazar.host('compute-2', '2')
    lease = blazar.lease('ACTIVE', -HOUR)
    whole = blazar.hosts(lease, one, status='active')
    slots = blazar.instances(lease, two, status='active')
    address = blazar.floating_ip(NETWORK, ADDRESS)
    floating = blazar.floating_ips(lease, NETWORK, address, status='active')
    made.aggregate('freepool', 'compute-2')
    made.aggregate(whole, 'compute-1')
    made.slots(slots, 'compute-2')
    made.floating_ip(floating)
    server = site.cloud.add_server('compute-1', PROJECT, reservation=whole)
    manager().leases.delete(lease, None)
    assert server not in site.cloud.servers
    assert site.cloud.flavors == {}
    assert site.cloud.classes == set()
    assert {
        a['name']: sorted(a['hosts']) for a in site.cloud.aggregates.values()
    } == {'freepool': ['compute-1', 'compute-2']}
    assert site.neutron.stored == {}


def test_tidied_leases_to_come_have_nothing_ahead(blazar, made, manager, site):
    one, two = blazar.host('compute-1'), blazar.host('compute-2', '2')
    lease = blazar.lease()
    whole, slots = blazar.hosts(lease, one), blazar.instances(lease, two)
    made.aggregate(whole)
    made.slots(slots)
    running = manager()
    [_, shown] = running.ledger.lease(lease).reservations
    assert shown.made['aggregate_id'] == 1
    start = running.ledger.lease(lease).start
    soon = cleanup.clean_up(running.services, start - 10)
    assert soon.left == [lease]
    assert site.cloud.flavors
    tidied = cleanup.clean_up(running.services, start - cleanup.MARGIN)
    assert (tidied.count, tidied.left) == (1, [])
    assert site.cloud.flavors == site.cloud.aggregates == {}
    assert site.cloud.classes == set()
    assert [r.made for r in running.ledger.lease(lease).reservations] == [
        {}, {},
    ]  # fmt: skip


def test_lease_that_starts_during_the_cleanup_keeps_its_objects(
    blazar, made, manager, site
):
    lease = blazar.lease()
    slots = blazar.instances(lease, blazar.host('compute-1'))
    made.slots(slots)
    running = manager()
    start = running.ledger.lease(lease).start
    tidied = cleanup.clean_up(
        running.services, start - cleanup.MARGIN - 60, iter([0, 61]).__next__
    )
    assert (tidied.count, tidied.left) == (0, [lease])
    assert slots in site.cloud.flavors


@pytest.mark.parametrize('deleted', [False, True])
def test_lease_that_changed_since_the_list_keeps_its_objects(
    blazar, made, manager, site, monkeypatch, deleted
):
    """A started lease keeps its own objects; a deleted one keeps all."""
    lease = blazar.lease()
    slots = blazar.instances(lease, blazar.host('compute-1'))
    made.slots(slots)
    running = manager()
    listed = running.ledger.leases()

    def change(tx):
        if deleted:
            tx.delete_lease(lease)
        else:
            tx.set_lease_status(lease, states.LEASE_ACTIVE, 1)

    running.ledger.commit(change)
    monkeypatch.setattr(running.ledger, 'leases', lambda **which: listed)
    tidied = cleanup.clean_up(running.services, 0)
    assert tidied.left == ([] if deleted else [lease])
    assert (slots in site.cloud.flavors) is not deleted


def test_an_open_lease_is_not_tidied(blazar, made, manager, site):
    lease = blazar.lease('ACTIVE', -HOUR)
    slots = blazar.instances(lease, blazar.host('compute-1'), status='active')
    made.slots(slots, 'compute-1')
    running = manager()
    assert cleanup.clean_up(running.services, 0).count == 0
    assert slots in site.cloud.flavors
    assert running.ledger.lease(lease).status == states.LEASE_ACTIVE
