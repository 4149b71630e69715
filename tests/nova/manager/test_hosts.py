# SPDX-License-Identifier: Apache-2.0
"""Hosts in Nova and Placement: dedicated, failed and recovered."""

import time

from keystoneauth1 import adapter
import pytest

from blazar_sched.service.clients.nova.server import IMAGE_MICROVERSION

pytestmark = pytest.mark.more

OWNER = 'owner'


@pytest.fixture
def lease(manager, wait_for):
    """lease(values, **parameters) -> an ACTIVE lease of a whole host."""

    def create(values=None, **parameters):
        now = int(time.time())
        created = manager.leases.create(
            {
                'name': 'lease',
                'project_id': OWNER,
                'user_id': 'user',
                'start': 'now',
                'end': now + 600,
                'before_end': None,
                'reservations': [
                    {
                        'resource_type': 'physical:host',
                        'min': 1,
                        'max': 1,
                        **parameters,
                    }
                ],
                **(values or {}),
            }
        )
        return settled(manager, wait_for, created, 'ACTIVE')

    return create


@pytest.fixture
def ended(manager, wait_for, settle):
    def end(lease):
        settle()
        manager.leases.update(lease.id, None, {'end': 'now'})
        return settled(manager, wait_for, lease, 'TERMINATED')

    return end


def settled(manager, wait_for, lease, status):
    """Wait until a lease is as expected, with no event in progress."""

    def probe():
        shown = manager.ledger.lease(lease.id)
        started = shown.events[0].status == 'DONE'
        return shown if shown.status == status and started else None

    return wait_for(f'lease {status}', probe)


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
    mine = lease()
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
    manager, cloud, nova, lease, ended, wait_for
):
    for name in cloud.hosts:
        manager.hosts.create(name, {})
    mine = lease()
    [failed] = held_by(manager, mine)
    [other] = set(cloud.hosts) - {failed}
    cloud.stop_compute(failed)
    try:
        manager.monitor.notice()
        wait_for('moved', lambda: held_by(manager, mine) == {other})
        mine = settled(manager, wait_for, mine, 'ACTIVE')
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
        {'before_end': before_end}, before_end='snapshot', on_end=on_end
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
        'delete': {},
        'shelve': {server['id']: 'SHELVED_OFFLOADED'},
        'keep': {server['id']: 'ACTIVE'},
    }[on_end]
