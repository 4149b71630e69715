# SPDX-License-Identifier: Apache-2.0
"""PCI devices in Placement: Nova's own tracker, claims and aliases."""

import time

import pytest

from blazar_sched.domain.inventory import Inventory
from demo.cloud import host_of
from tests.nova import clouds
from tests.nova.manager.test_leases import fed
from tests.nova.managing import book
from tests.nova.managing import on
from tests.nova.managing import OTHER
from tests.nova.managing import OWNER
from tests.nova.managing import slots_of

pytestmark = pytest.mark.more

CLOUD = clouds.SMALL


@pytest.fixture
def conf(conf):
    conf.set_override('pci_alias', clouds.ALIASES, 'nova')
    conf.set_override('vacate_notice', 1, 'manager')
    # Managers live-migrate preemptible servers first.
    conf.set_override(
        'vacate_preemptible_order', ['live-migrate', 'shelve'], 'manager'
    )
    return conf


@pytest.mark.row('F94')
def test_from_create_to_end(manager, cloud, wait_for, started, ended):
    host = manager.hosts.create('c1', {})
    assert host.inventory[clouds.GPU] == Inventory(clouds.DEVICES)
    one, two = (
        cloud.flavor(extra_specs={'pci_passthrough:alias': f'a100:{n}'})
        for n in (1, 2)
    )
    manager.flavors.sync()
    now = int(time.time())
    lease = book(manager, now + 300, now + 900, slots_of(two, 1))
    [reservation] = lease.reservations
    fed(cloud, manager, wait_for)

    # One GPU is left; the others are only left for a while.
    kept = cloud.boot(one, host='c1', project_id=OTHER)
    assert kept['status'] == 'ACTIVE'
    manager.instances.sync()
    [record] = manager.ledger.instances()
    assert record.amounts[clouds.GPU] == 1
    fed(cloud, manager, wait_for)
    refused = cloud.boot(one, host='c1', project_id=OTHER)
    assert refused['status'] == 'ERROR'
    short = cloud.boot(two, {'lifetime': '2m'}, host='c1', project_id=OTHER)
    assert short['status'] == 'ACTIVE'
    cloud.delete(refused, short)
    manager.instances.sync()

    started(lease)
    fed(cloud, manager, wait_for)
    mine = cloud.boot(reservation.id, project_id=OWNER)
    assert mine['status'] == 'ACTIVE'
    refused = cloud.boot(one, host='c1', project_id=OTHER)
    assert refused['status'] == 'ERROR'
    ended(lease)
    assert {s['id'] for s in cloud.servers() if s['status'] == 'ACTIVE'} == {
        kept['id']
    }


def test_a_server_that_cannot_be_live_migrated_is_shelved(
    manager, cloud, wait_for, started, caplog
):
    for name in ('c1', 'c2'):
        manager.hosts.create(name, {})
    preemptible, plain, gpu = (
        cloud.flavor(extra_specs=specs) for specs in (
            {'pci_passthrough:alias': 'a100:1', 'blazar:preemptible': 'true'},
            {'blazar:preemptible': 'true'},
            {'pci_passthrough:alias': 'a100:1'},
        )
    )
    manager.flavors.sync()
    with_device, without = (
        cloud.boot(each, project_id=OTHER, host='c1')
        for each in (preemptible, plain)
    )
    assert with_device['status'] == without['status'] == 'ACTIVE'
    manager.instances.sync()
    now = int(time.time())
    lease = book(
        manager, now + 30, now + 900,
        slots_of(gpu, clouds.DEVICES, **on('c1')),
    )
    fed(cloud, manager, wait_for)

    # The other host has free devices, but Nova cannot move one.
    wait_for(
        'the server is shelved',
        lambda: cloud.show(with_device)['status'] == 'SHELVED_OFFLOADED',
    )
    actions = [
        line for line in caplog.messages
        if line.startswith(f'Vacating server {with_device["id"]}')
    ]
    assert [line.rpartition(' ')[2] for line in actions] == [
        'live-migrate', 'shelve',
    ]
    started(lease)
    assert not manager.ledger.lease(lease.id).degraded
    # The server without a device was in nobody's way.
    assert host_of(cloud.show(without)) == 'c1'
    fed(cloud, manager, wait_for)
    [reservation] = lease.reservations
    for _ in range(clouds.DEVICES):
        mine = cloud.boot(reservation.id, project_id=OWNER)
        assert mine['status'] == 'ACTIVE', mine['fault']
