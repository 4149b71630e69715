# SPDX-License-Identifier: Apache-2.0
"""Imported objects equal those that the API would have created."""

import calendar

import pytest

from blazar_sched.domain import event
from blazar_sched.domain import host
from blazar_sched.domain import inventory
from blazar_sched.parts.blazar.importing.importer import Importer
from tests.parts.blazar import database
from tests.standins.cloud import CloudApi
from tests.standins.neutron import NETWORK

NOW = calendar.timegm(database.NOW.timetuple())


@pytest.fixture
def taken(blazar, importer, site):
    """taken() -> the ledger with all objects of Blazar."""

    def taken():
        plan = importer.plan(blazar.url)
        assert plan.refused == []
        importer.write(plan)
        ledger = site.manager().ledger
        assert ledger.check() == []
        return ledger

    return taken


def test_a_host_keeps_its_number_and_is_dedicated(blazar, taken):
    blazar.host('compute-2', '7', gpu='a100')
    [kept] = taken().hosts()
    assert kept.id == '7'
    assert kept.uuid == CloudApi.uuid('compute-2')
    assert kept.hold == host.DEDICATED
    assert kept.capabilities == {'gpu': 'a100'}
    assert kept.capacity(inventory.VCPU) == 8


def test_a_host_that_was_named_by_a_uuid_gets_a_number_no_other_has(
    blazar, importer, site
):
    uuid = CloudApi.uuid('compute-1')
    blazar.host('compute-1', uuid)
    blazar.host('compute-2', '7')
    plan = importer.plan(blazar.url)
    importer.write(plan)
    kept = site.manager().ledger.host(uuid)
    assert kept.hypervisor_hostname == 'compute-1'
    assert int(kept.id) > 7
    assert uuid in plan.notes[0]


@pytest.mark.parametrize('number', ['007', '0', '12345678901'])
def test_a_host_whose_number_ours_cannot_have_gets_another(
    blazar, taken, number
):
    blazar.host('compute-1', '7')
    blazar.host('compute-2', number)
    assert {h.hypervisor_hostname: h.id for h in taken().hosts()} == {
        'compute-1': '7', 'compute-2': '8',
    }  # fmt: skip


def test_nova_is_not_asked_for_aggregates_by_lease_or_host(
    blazar, site, importer
):
    """Once for the hosts, once for the reservations."""
    for name, number in (('compute-1', '1'), ('compute-2', '2')):
        lease = blazar.lease('ACTIVE', -database.HOUR)
        blazar.hosts(lease, blazar.host(name, number), status='active')
    importer.plan(blazar.url)
    assert site.cloud.asked.count(('GET', '/os-aggregates')) == 2


def test_a_property_stays_private(blazar, taken):
    blazar.add(
        'resource_properties', resource_type='physical:host',
        property_name='rack', private=True,
    )  # fmt: skip
    assert taken().properties() == {'rack': True}


def test_slots_on_a_host_are_one_allocation(blazar, taken):
    number = blazar.host('compute-1')
    reservation = blazar.instances(blazar.lease(), number, number)
    [(allocation, _)] = taken().allocations(reservation_id=reservation)
    assert allocation.amounts == {
        'VCPU': 4, 'MEMORY_MB': 1024, 'DISK_GB': 2,
    }  # fmt: skip
    assert not allocation.whole


def test_a_flavor_is_what_blazar_has_kept_of_it(blazar, taken):
    number = blazar.host('compute-1')
    reservation = blazar.flavor(
        blazar.lease(), number, ram=1024, swap=512,
        extra_specs={'trait:CUSTOM_FAST': 'required'},
    )  # fmt: skip
    ledger = taken()
    [(allocation, lease_id)] = ledger.allocations(reservation_id=reservation)
    assert allocation.amounts == {
        'VCPU': 2, 'MEMORY_MB': 1024, 'DISK_GB': 2,
    }  # fmt: skip
    [kept] = ledger.lease(lease_id).reservations
    assert kept.demand.flavor.id == 'm1.small'
    assert 'CUSTOM_FAST' in kept.demand.resource_properties


def test_a_lease_to_come_is_vacated_ahead_as_ours_are(blazar, site):
    number = blazar.host('compute-1')
    lease = blazar.lease()
    blazar.hosts(lease, number)
    importer = Importer(site.conf, site.manager().services, clock=lambda: NOW)
    importer.write(importer.plan(blazar.url))
    kept = site.manager().ledger.lease(lease)
    lead_time = site.conf.manager.vacate_lead_time
    assert kept.vacate == kept.start - lead_time == NOW + 3600 - lead_time
    assert kept.before_end == kept.end - 3600
    assert [e.event_type for e in kept.events] == [
        event.START_LEASE, event.VACATE_HOSTS, event.BEFORE_END_LEASE,
        event.END_LEASE,
    ]  # fmt: skip


def test_imported_lease_that_is_over_holds_no_resources(blazar, taken):
    lease = blazar.lease('TERMINATED', -5 * database.HOUR, -database.HOUR)
    address = blazar.floating_ip(NETWORK, '203.0.113.5')
    reservation = blazar.floating_ips(
        lease, NETWORK, address, status='deleted'
    )
    ledger = taken()
    assert ledger.lease(lease).status == 'TERMINATED'
    assert ledger.off_hosts('virtual:floatingip', reservation) == []
    kept = ledger.off_hosts('virtual:floatingip')
    assert [each['id'] for each in kept] == [address]


def test_lease_that_ended_in_its_first_minute_lasted_a_second(blazar, taken):
    lease = blazar.lease('TERMINATED', -database.HOUR, -database.HOUR)
    kept = taken().lease(lease)
    assert kept.end == kept.start + 1


def test_an_event_that_nobody_ever_does_is_left_out(blazar, importer):
    lease = blazar.lease()
    blazar.event(lease, 'coffee', database.NOW)
    plan = importer.plan(blazar.url)
    [kept] = plan.leases
    assert 'coffee' not in {e.event_type for e in kept.lease.events}
    assert any('coffee' in note for note in plan.notes)


def test_failed_start_of_an_imported_lease_is_not_tried_again(blazar, taken):
    lease = blazar.lease('ERROR')
    blazar.hosts(lease, blazar.host('compute-1'), status='error')
    statuses = {e.event_type: e.status for e in taken().lease(lease).events}
    assert statuses[event.START_LEASE] == 'ERROR'
    assert statuses[event.END_LEASE] == 'UNDONE'


def test_the_trust_is_kept(blazar, taken):
    lease = blazar.lease(trust_id='trust-of-amy')
    assert taken().lease(lease).trust_id == 'trust-of-amy'


def test_servers_are_known_from_the_first_moment(blazar, site, taken):
    number = blazar.host('compute-1')
    lease = blazar.lease('ACTIVE', -database.HOUR)
    reservation = blazar.hosts(lease, number, status='active')
    bound = site.cloud.add_server(
        'compute-1', 'project', reservation=reservation
    )
    stray = site.cloud.add_server('compute-1', 'other')
    site.cloud.add_server('compute-3', 'other')
    held = {i.uuid: i.reservation_id for i in taken().instances()}
    assert held == {bound: reservation, stray: None}
