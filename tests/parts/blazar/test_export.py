# SPDX-License-Identifier: Apache-2.0
"""What the export writes into Blazar's tables, and into other services."""

import datetime

import pytest
import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.service import faults
from tests.parts.blazar import conftest
from tests.parts.blazar import database
from tests.standins.neutron import NETWORK

HOUR = database.HOUR
NOW = datetime.datetime.now(datetime.UTC).replace(
    second=0, microsecond=0, tzinfo=None
)
AHEAD = NOW - database.NOW
INSTANCES = {
    'resource_type': 'virtual:instance', 'vcpus': 2, 'memory_mb': 512,
    'disk_gb': 1, 'amount': 3, 'affinity': None, 'resource_properties': '',
}  # fmt: skip
HOST = {
    'resource_type': 'physical:host', 'min': 1, 'max': 1,
    'hypervisor_properties': '', 'resource_properties': '',
}  # fmt: skip


def at(hours):
    when = NOW + hours * HOUR
    return when.strftime('%Y-%m-%d %H:%M')


def fill(blazar):
    """Add leases of each type and status, from now on; return their ids."""
    one = blazar.host('compute-1', '1', gpu='yes')
    two = blazar.host('compute-2', '2')
    blazar.host('compute-3', '3')
    address = blazar.floating_ip(NETWORK, '203.0.113.5')

    def lease(status, start, end, **values):
        return blazar.lease(
            status, AHEAD + start * HOUR, AHEAD + end * HOUR, **values
        )

    over = lease('TERMINATED', -9, -8, name='over')
    blazar.hosts(over, status='deleted')
    active = lease('ACTIVE', -1, 9, name='active')
    blazar.hosts(active, one, status='active', aggregate_id=70)
    blazar.instances(active, two, two, status='active', aggregate_id=71)
    blazar.floating_ips(active, NETWORK, address, status='active')
    failed = lease('ERROR', -2, 9, name='failed')
    blazar.hosts(failed, '3', status='error', aggregate_id=72)
    to_come = lease('PENDING', 20, 22, name='to come')
    blazar.hosts(
        to_come, one, resource_properties='["==", "$gpu", "yes"]',
        aggregate_id=73,
    )  # fmt: skip
    blazar.flavor(to_come, two, two)
    blazar.event(to_come, 'coffee', NOW)
    blazar.floating_ips(to_come, NETWORK, address, required=['203.0.113.5'])
    gone = lease('PENDING', 30, 32, name='gone')
    blazar.instances(gone, two, affinity=True, server_group_id='group')
    return {
        'over': over, 'active': active, 'failed': failed,
        'to come': to_come, 'gone': gone,
    }  # fmt: skip


@pytest.fixture
def imported(blazar, importer):
    """The ids of leases of Blazar, by name, which are in the ledger."""
    ids = fill(blazar)
    plan = importer.plan(blazar.url)
    assert plan.refused == []
    importer.write(plan)
    return ids


@pytest.fixture
def book(serve, ledger_url):
    """book(name, reservation, …) -> a new lease of the ledger.

    Without Keystone there are no trusts, so the ledger is given one.
    """
    amy = conftest.client(serve(), 'user:project')

    def book(name, *reservations):
        made = amy.lease.create(
            name, at(40), at(43), [dict(r) for r in reservations], []
        )
        engine = sa.create_engine(ledger_url)
        with engine.begin() as connection:
            connection.exec_driver_sql(
                "UPDATE lease SET trust_id = 'trust' WHERE trust_id IS NULL"
            )
        engine.dispose()
        return made

    return book


def export(exporter, url):
    plan = exporter.plan(url)
    assert plan.refused == []
    notes = exporter.write(url, plan)
    assert exporter.compare(url, plan) == []
    return plan, notes


def ids_of_objects(tables):
    """Remove the ids of objects in other services from tables; return them."""
    return {
        row['reservation_id']: (
            row.pop('aggregate_id'), row.pop('server_group_id', None)
        )
        for name in ('computehost_reservations', 'instance_reservations')
        for row in tables[name].values()
    }


def test_nothing_changes_if_nothing_was_changed(blazar, exporter, imported):
    before = blazar.all_rows()
    export(exporter, blazar.url)
    after = blazar.all_rows()
    assert ids_of_objects(before).keys() == ids_of_objects(after).keys()
    assert after == before


def test_lease_that_was_made_moved_or_deleted_here(
    blazar, exporter, imported, serve, book
):
    amy = conftest.client(serve(), 'user:project')
    before = blazar.all_rows()
    name = 'für später 🚀'
    new = book(name, INSTANCES, HOST)
    amy.lease.update(imported['to come'], prolong_for='2h', defer_by='1h')
    amy.lease.delete(imported['gone'])
    plan, _ = export(exporter, blazar.url)
    assert [k.lease.id for k in plan.deleted] == [imported['gone']]
    after = blazar.all_rows()
    assert set(after['leases']) == {
        *before['leases'], new['id']
    } - {imported['gone']}
    row = after['leases'][new['id']]
    assert row['name'] == name
    assert row['status'] == 'PENDING'
    assert row['start_date'] == NOW + 40 * HOUR
    moved = after['leases'][imported['to come']]
    assert moved['start_date'] == NOW + 21 * HOUR
    assert moved['end_date'] == NOW + 24 * HOUR
    times = {
        e['event_type']: e['time']
        for e in after['events'].values()
        if e['lease_id'] == imported['to come']
    }
    assert times['start_lease'] == moved['start_date']
    assert times['end_lease'] == moved['end_date']
    assert times['coffee'] == NOW
    of_new = {
        r['resource_type']: r
        for r in after['reservations'].values()
        if r['lease_id'] == new['id']
    }
    slots = of_new['virtual:instance']
    own = after['instance_reservations'][slots['resource_id']]
    assert (own['amount'], own['vcpus'], own['flavor_id']) == (
        3, 2, slots['id'],
    )  # fmt: skip
    held = [
        a['compute_host_id']
        for a in after['computehost_allocations'].values()
        if a['reservation_id'] == slots['id']
    ]
    assert len(held) == 3
    assert set(held) <= {'1', '2', '3'}
    own = after['computehost_reservations'][
        of_new['physical:host']['resource_id']
    ]
    assert own['count_range'] == '1-1'
    for name in ('events', 'reservations'):
        assert imported['gone'] not in {
            row['lease_id'] for row in after[name].values()
        }


def test_a_second_export_changes_nothing(blazar, exporter, imported, book):
    book('new', INSTANCES, HOST)
    export(exporter, blazar.url)
    before = blazar.all_rows()
    export(exporter, blazar.url)
    assert blazar.all_rows() == before


def test_objects_are_as_blazar_makes_them(
    blazar, exporter, imported, book, site
):
    new = book('new', {**INSTANCES, 'amount': 2, 'affinity': False}, HOST)
    slots, whole = new['reservations']
    export(exporter, blazar.url)
    assert site.cloud.flavors[slots['id']]['specs'][
        'aggregate_instance_extra_specs:reservation'
    ] == slots['id']
    named = {a['name']: a for a in site.cloud.aggregates.values()}
    assert named[whole['id']]['metadata']['availability_zone'] == (
        f'blazar_{whole["id"]}'
    )
    assert named[whole['id']]['hosts'] == []
    assert named[slots['id']]['metadata']['filter_tenant_id'] == 'project'
    rows = blazar.all_rows()
    made = ids_of_objects(rows)
    assert made[whole['id']] == (named[whole['id']]['id'], None)
    aggregate_id, group_id = made[slots['id']]
    assert aggregate_id == named[slots['id']]['id']
    assert named[slots['id']]['metadata']['affinity_id'] == group_id
    # The hosts of open reservations of whole hosts stay out of the freepool.
    assert named['freepool']['hosts'] == ['compute-2']


def test_a_zone_that_nova_refuses_is_noted(blazar, exporter, imported, site):
    """Nova does not change the zone of a host with servers."""
    whole = next(
        id_ for id_, row in blazar.rows('reservations').items()
        if row['lease_id'] == imported['active']
        and row['resource_type'] == 'physical:host'
    )  # fmt: skip
    nova = site.manager().services.nova
    nova.add_to_aggregate(nova.create_aggregate(whole, {}), 'compute-1')
    server = site.cloud.add_server('compute-1', 'project', reservation=whole)
    before = dict(site.cloud.servers[server])
    _, notes = export(exporter, blazar.url)
    assert any(imported['active'] in n and 'zone' in n for n in notes)
    assert site.cloud.servers[server] == before
    assert 'availability_zone' not in nova.aggregate(whole).metadata


@pytest.mark.parametrize(
    'point', ['export:created', 'export:removed', 'blazar:before']
)
def test_a_failure_before_the_commit_leaves_the_tables(
    blazar, exporter, imported, serve, book, point
):
    amy = conftest.client(serve(), 'user:project')
    book('new', INSTANCES, HOST)
    amy.lease.delete(imported['gone'])
    before = blazar.all_rows()
    plan = exporter.plan(blazar.url)

    def end(name):
        if name == point:
            raise KeyboardInterrupt

    faults.arm(end)
    try:
        with pytest.raises(KeyboardInterrupt):
            exporter.write(blazar.url, plan)
    finally:
        faults.arm(None)
    assert blazar.all_rows() == before
    export(exporter, blazar.url)


def test_a_change_of_either_side_since_the_plan_is_noticed(
    blazar, exporter, imported, serve
):
    plan = exporter.plan(blazar.url)
    blazar.set('leases', imported['over'], name='other')
    with pytest.raises(exception.Conflict, match='changed since it was read'):
        exporter.write(blazar.url, plan)
    plan = exporter.plan(blazar.url)
    amy = conftest.client(serve(), 'user:project')
    amy.lease.update(imported['gone'], name='renamed')
    before = blazar.all_rows()
    with pytest.raises(exception.Conflict, match='stop all managers'):
        exporter.write(blazar.url, plan)
    assert blazar.all_rows() == before
