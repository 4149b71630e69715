# SPDX-License-Identifier: Apache-2.0
"""Servers with PCI devices make room for a reservation of the devices."""

import time

from oslo_config import cfg
import pytest

from blazar_sched.conf import manager as conf_manager
from demo.cloud import host_of
from tests.nova.manager.test_leases import fed
from tests.nova.manager.test_leases import OTHER
from tests.nova.manager.test_leases import OWNER
from tests.nova.manager.test_pci import DEVICES

# Fixtures, which pytest finds by their names.
from tests.nova.manager.test_pci import devices  # noqa: F401
from tests.nova.manager.test_pci import nova  # noqa: F401

pytestmark = pytest.mark.more


@pytest.fixture(scope='module')
def hostnames():
    return 'compute-1', 'compute-2'


@pytest.fixture(autouse=True)
def order():
    """Let the manager try to live-migrate preemptible servers first."""
    known = {
        each.dest: each.default for each in conf_manager.opts
        if each.dest in ('vacate_preemptible_order', 'vacate_notice')
    }
    cfg.set_defaults(
        conf_manager.opts, vacate_notice=1,
        vacate_preemptible_order=['live-migrate', 'shelve'],
    )
    yield
    cfg.set_defaults(conf_manager.opts, **known)


def test_a_server_that_cannot_be_live_migrated_is_shelved(
    manager, cloud, wait_for, caplog
):
    for name in ('compute-1', 'compute-2'):
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
        cloud.boot(each, project_id=OTHER, host='compute-1')
        for each in (preemptible, plain)
    )
    assert with_device['status'] == without['status'] == 'ACTIVE'
    manager.instances.sync()
    now = int(time.time())
    lease = manager.leases.create({
        'name': 'lease', 'project_id': OWNER, 'user_id': 'user',
        'start': now + 30, 'end': now + 900, 'before_end': None,
        'reservations': [{
            'resource_type': 'flavor:instance', 'flavor_id': gpu,
            'amount': DEVICES,
            'resource_properties':
                '["==", "$hypervisor_hostname", "compute-1"]',
        }],
    })
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
    wait_for(
        'lease ACTIVE',
        lambda: manager.ledger.lease(lease.id).status == 'ACTIVE',
    )
    assert not manager.ledger.lease(lease.id).degraded
    # The server without a device was in nobody's way.
    assert host_of(cloud.show(without)) == 'compute-1'
    fed(cloud, manager, wait_for)
    [reservation] = lease.reservations
    mine = [
        cloud.boot(reservation.id, project_id=OWNER) for _ in range(DEVICES)
    ]
    assert {s['status'] for s in mine} == {'ACTIVE'}
