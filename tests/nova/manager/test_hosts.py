# SPDX-License-Identifier: Apache-2.0
"""Hosts in Nova and Placement: dedicated, failed and recovered."""

import time

from keystoneauth1 import adapter
import pytest

from blazar_sched.service.clients.nova.server import IMAGE_MICROVERSION
from tests.nova import clouds
from tests.nova.manager.conftest import having
from tests.nova.managing import hosts
from tests.nova.managing import OWNER

pytestmark = pytest.mark.more

CLOUD = clouds.PAIR


def members(nova, name):
    found = nova.aggregate(name)
    return None if found is None else set(found.hosts)


def held_by(manager, lease):
    names = {h.uuid: h.hypervisor_hostname for h in manager.ledger.hosts()}
    return {
        names[a.host]
        for a, _ in manager.ledger.allocations(lease_id=lease.id)
    }


def test_hosts_are_registered_as_nova_and_placement_have_them(
    manager, cloud, placement
):
    for name, uuid in cloud.hosts.items():
        host = manager.hosts.create(name, {})
        assert host.traits == placement.traits(uuid)
        assert 'COMPUTE_NODE' in host.traits
        assert host.inventory == placement.inventories(uuid)
    manager.hosts.sync()
    assert {h.updated_at for h in manager.ledger.hosts()} == {None}


@pytest.mark.row('C11')
def test_dedicated_hosts_are_in_freepool(manager, cloud, nova, lease, ended):
    for name in cloud.hosts:
        host = manager.hosts.create(name, {'hold': 'dedicated'})
    assert members(nova, 'freepool') == set(cloud.hosts)
    mine = lease(hosts())
    held = held_by(manager, mine)
    assert members(nova, 'freepool') == set(cloud.hosts) - held
    assert members(nova, mine.reservations[0].id) == held
    ended(mine)
    assert members(nova, 'freepool') == set(cloud.hosts)
    assert members(nova, mine.reservations[0].id) is None
    manager.hosts.update(host.id, {'hold': 'shared'})
    assert members(nova, 'freepool') == set(cloud.hosts) - {
        host.hypervisor_hostname
    }
    for host in manager.ledger.hosts():
        manager.hosts.delete(host.id)
    assert members(nova, 'freepool') == set()


@pytest.mark.row('F70')
def test_a_lease_leaves_the_host_that_fails(
    manager, cloud, nova, lease, ended, settle, wait_for
):
    for name in cloud.hosts:
        manager.hosts.create(name, {})
    mine = lease(hosts())
    settle()
    [failed] = held_by(manager, mine)
    [other] = set(cloud.hosts) - {failed}
    cloud.stop_compute(failed)
    try:
        manager.monitor.notice()
        wait_for('moved', lambda: held_by(manager, mine) == {other})
        settle()
        mine = having(manager, mine.id, 'ACTIVE')
        assert mine.reservations[0].resources_changed
        assert not mine.degraded
        assert members(nova, mine.reservations[0].id) == {other}
    finally:
        cloud.start_compute(failed)
    manager.monitor.notice()
    wait_for('back', lambda: all(h.reservable for h in manager.ledger.hosts()))
    ended(mine)
    assert manager.ledger.check() == []


@pytest.mark.parametrize('on_end', ['delete', 'shelve', 'keep'])
def test_server_is_copied_before_the_end_and_deleted(
    manager, cloud, nova, lease, ended, wait_for, on_end
):
    [name, _] = cloud.hosts
    manager.hosts.create(name, {})
    before_end = int(time.time()) + 20
    mine = lease(
        hosts(before_end='snapshot', on_end=on_end), before_end=before_end
    )
    id_ = mine.reservations[0].id
    # The server names its host, so that no filter needs a replica.
    server = cloud.boot(
        cloud.flavor(), {'reservation': id_}, project_id=OWNER,
        availability_zone=f'nova:{name}',
    )
    assert server['status'] == 'ACTIVE'
    manager.leases.update(mine.id, None, {'before_end': int(time.time()) + 1})
    compute = adapter.Adapter(cloud.session(), service_type='compute')

    def copied():
        images = compute.get(
            '/images/detail', microversion=IMAGE_MICROVERSION
        ).json()['images']
        return [
            i['name'] for i in images
            if i['metadata'].get('blazar:reservation') == id_
        ]

    wait_for('copied', copied)
    assert copied() == [f'reserved_{server["name"]}']
    ended(mine)
    left = {s['id']: s['status'] for s in cloud.servers()}
    assert left == {
        'delete': {}, 'shelve': {server['id']: 'SHELVED_OFFLOADED'},
        'keep': {server['id']: 'ACTIVE'},
    }[on_end]
