# SPDX-License-Identifier: Apache-2.0
"""What Blazar cannot have is refused or noted, by name."""

import dataclasses

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.domain.reservation import SHELVE
from tests.parts.blazar import conftest
from tests.parts.blazar import database
from tests.parts.blazar import test_export as exporting

# The fixtures of the tests of what is exported.
imported, book = exporting.imported, exporting.book


@pytest.fixture
def change(site):
    """change(lease_id, **fields): change a lease in the ledger."""

    def change(lease_id, of_reservations=None, demand=None, **fields):
        ledger = site.manager().ledger
        lease = ledger.lease(lease_id)
        fields['reservations'] = tuple(
            dataclasses.replace(
                each, **(of_reservations or {}),
                demand=dataclasses.replace(each.demand, **(demand or {})),
            )
            for each in lease.reservations
        )
        new = dataclasses.replace(lease, **fields)
        ledger.commit(lambda tx: tx.put_lease(new))

    return change


def reasons(exporter, blazar):
    """Return the reason for each refused id."""
    return {e.id: e.reason for e in exporter.plan(blazar.url).refused}


@pytest.mark.parametrize(('fields', 'reason'), [
    ({'name': 'x' * 81}, 'more than 80 characters'),
    ({'status': 'UPDATING'}, 'start a manager and wait'),
    ({'status': 'CREATING'}, 'held offer'),
    ({'end': window.FOREVER}, 'no end'),
    ({'of_reservations': {'on_end': SHELVE}}, 'delete the servers'),
    ({'trust_id': None}, 'no trust'),
    (
        {'demand': {'resource_properties': '["in", "$vcpus", "4"]'}},
        'cannot read the requirement',
    ),
    (
        {'demand': {'resource_properties': '["==", "$trait:A", "true"]'}},
        'cannot read the requirement',
    ),
    ({'demand': {'before_end': 'snapshot'}}, "before_end of reservation"),
    ({'demand': {'on_start': 'orchestration:x'}}, 'on_start of reserv'),
    (
        {'of_reservations': {'status': 'error'}},
        'cannot be imported from Blazar',
    ),
])
def test_a_lease_that_blazar_cannot_have(
    blazar, exporter, imported, change, fields, reason
):
    lease = imported['gone']
    change(lease, **fields)
    assert reason in reasons(exporter, blazar)[lease]
    # The other leases are exported, and Blazar does not keep the old state.
    plan = exporter.plan(blazar.url)
    exporter.write(blazar.url, plan)
    assert set(blazar.rows('leases')) == {*imported.values()} - {lease}
    assert exporter.compare(blazar.url, plan) == []
    assert {e.id for e in exporter.compare(blazar.url)} == {lease}


def test_what_is_lost_of_a_lease_is_noted(blazar, exporter, imported, change):
    change(
        imported['to come'], {'projects': ('other',), 'magnetic': True},
        labels={'team': 'a'},
    )  # fmt: skip
    plan = exporter.plan(blazar.url)
    assert plan.refused == []
    [note] = [n for n in plan.notes if imported['to come'] in n]
    assert note.endswith('lost are projects, magnetic, labels')


def test_lease_that_the_import_has_refused_is_left(blazar, importer, exporter):
    number = blazar.host('compute-1')
    blazar.lease(name='taken')
    left = blazar.lease('STARTING', name='half')
    held = blazar.hosts(left, number)
    plan = importer.plan(blazar.url)
    assert [each.id for each in plan.refused] == [left]
    importer.write(plan)
    before = blazar.all_rows()
    plan = exporter.plan(blazar.url)
    assert plan.refused == []
    assert any(left in note for note in plan.notes)
    exporter.write(blazar.url, plan)
    after = blazar.all_rows()
    assert after == before
    assert held in after['reservations']


def test_a_newer_lease_of_blazar_is_not_deleted(
    blazar, importer, exporter, imported
):
    new = blazar.lease(name='made later')
    plan = exporter.plan(blazar.url)
    [refused] = plan.refused
    assert (refused.id, refused.name) == (new, 'made later')
    exporter.write(blazar.url, plan)
    assert new in blazar.rows('leases')


def test_an_older_ledger_is_not_exported(blazar, exporter, imported):
    blazar.set(
        'leases', imported['active'], updated_at=database.NOW
    )  # fmt: skip
    with pytest.raises(exception.Conflict, match='active'):
        exporter.plan(blazar.url)


def test_the_database_of_another_cloud_is_not_overwritten(
    tmp_path, exporter, imported
):
    other = database.Database(f'sqlite:///{tmp_path}/other.sqlite')
    other.host('compute-9')
    lease = other.lease()
    with pytest.raises(exception.Conflict, match='check the URLs'):
        exporter.plan(other.url)
    assert lease in other.rows('leases')


def test_an_empty_ledger_is_not_exported(blazar, exporter):
    blazar.lease()
    with pytest.raises(exception.Conflict, match='the ledger is empty'):
        exporter.plan(blazar.url)


def test_a_database_without_tables_is_not_written(
    tmp_path, exporter, imported
):
    file = tmp_path / 'empty.sqlite'
    file.touch()
    with pytest.raises(exception.InvalidInput, match='no table leases'):
        exporter.plan(f'sqlite:///{file}')
    with pytest.raises(exception.Unavailable, match='cannot be read'):
        exporter.plan(f'sqlite:///{tmp_path}/missing.sqlite')
    assert not (tmp_path / 'missing.sqlite').exists()


def test_an_empty_database_of_blazar_gets_everything(
    tmp_path, exporter, imported
):
    """A part of the leases, or none, may be there."""
    empty = database.Database(f'sqlite:///{tmp_path}/new.sqlite')
    plan = exporter.plan(empty.url)
    assert plan.refused == []
    exporter.write(empty.url, plan)
    assert set(empty.rows('leases')) == set(imported.values())
    assert len(empty.rows('computehosts')) == 3
    assert len(empty.rows('computehost_resource_inventory')) >= 9
    for table in ('instance_reservations', 'computehost_reservations'):
        owned = {r['resource_id'] for r in empty.rows('reservations').values()}
        assert set(empty.rows(table)) <= owned
    assert exporter.compare(empty.url, plan) == []


def test_hosts_and_floating_ips_follow_the_ledger(
    blazar, exporter, imported, serve, site
):
    """A new host, a deleted host, a capability and a deleted address."""
    url = serve()
    admin = conftest.client(url)
    admin.host.create('compute-4', gpu='no', rack='7')
    admin.lease.delete(imported['failed'])
    admin.host.delete('3')
    admin.host.set_property('rack', True)
    admin.host.update('2', values={'gpu': 'two'})
    [address] = admin.floatingip.list()
    admin.lease.delete(imported['to come'])
    admin.lease.delete(imported['active'])
    admin.floatingip.delete(address['id'])
    plan = exporter.plan(blazar.url)
    assert any('(203.0.113.5) is deleted' in note for note in plan.notes)
    exporter.write(blazar.url, plan)
    hosts = {
        row['hypervisor_hostname']: row
        for row in blazar.rows('computehosts').values()
    }
    assert sorted(hosts) == ['compute-1', 'compute-2', 'compute-4']
    assert hosts['compute-4']['vcpus'] == 8
    assert hosts['compute-4']['trust_id'] == 'trust'
    names = {
        id_: (row['property_name'], row['private'])
        for id_, row in blazar.rows('resource_properties').items()
    }
    assert {
        (row['computehost_id'], *names[row['property_id']],
         row['capability_value'])
        for row in blazar.rows('computehost_extra_capabilities').values()
    } == {
        ('1', 'gpu', False, 'yes'), ('2', 'gpu', False, 'two'),
        (hosts['compute-4']['id'], 'gpu', False, 'no'),
        (hosts['compute-4']['id'], 'rack', True, '7'),
    }
    assert blazar.rows('floatingips') == {}
    assert exporter.compare(blazar.url) == []
