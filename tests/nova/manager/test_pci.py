# SPDX-License-Identifier: Apache-2.0
"""PCI devices in Placement: Nova's own tracker, claims and aliases."""

import json
import time

from keystoneauth1 import adapter
from nova import conf as nova_conf
from nova.pci import request as pci_request
from nova.virt import fake
from oslo_config import cfg
import pytest

from blazar_sched.conf import nova as conf_nova
from blazar_sched.domain import pci_alias
from blazar_sched.domain.inventory import Inventory
from blazar_sched.service.clients.nova import Nova
from tests.nova.manager.test_leases import fed
from tests.nova.manager.test_leases import OTHER
from tests.nova.manager.test_leases import OWNER

pytestmark = pytest.mark.more

GPU = 'CUSTOM_PCI_10DE_20B0'
DEVICES = 3
ALIASES = [json.dumps({
    'name': 'a100', 'vendor_id': '10de', 'product_id': '20b0',
    'device_type': 'type-PCI',
})]


@pytest.fixture(scope='module')
def hostnames():
    return ('compute-1',)


@pytest.fixture(scope='module', autouse=True)
def devices():
    """Give the compute GPUs, which Nova reports in Placement."""
    known = fake.FakeDriver.get_available_resource

    def with_devices(self, nodename):
        return known(self, nodename) | {'pci_passthrough_devices': json.dumps([
            {
                'address': f'0000:0{n + 1}:00.0', 'vendor_id': '10de',
                'product_id': '20b0', 'status': 'available',
                'dev_type': 'type-PCI', 'parent_addr': None, 'numa_node': 0,
                'label': 'label_10de_20b0',
            }
            for n in range(DEVICES)
        ])}

    nova_options = nova_conf.CONF
    pci_request.get_alias_from_config.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fake.FakeDriver, 'get_available_resource', with_devices)
        for name, value in {
            'alias': ALIASES, 'report_in_placement': True,
            'device_spec': [
                json.dumps({'vendor_id': '10de', 'product_id': '20b0'})
            ],
        }.items():
            nova_options.set_default(name, value, 'pci')
        nova_options.set_default('pci_in_placement', True, 'filter_scheduler')
        cfg.set_defaults(conf_nova.opts, pci_alias=ALIASES)
        yield
        cfg.set_defaults(conf_nova.opts, pci_alias=[])
        for name in ('alias', 'report_in_placement', 'device_spec'):
            nova_options.clear_default(name, 'pci')
        nova_options.clear_default('pci_in_placement', 'filter_scheduler')
    pci_request.get_alias_from_config.cache_clear()


@pytest.fixture(scope='module')
def nova(cloud):
    return Nova(
        adapter.Adapter(cloud.session(), service_type='compute'),
        aliases=pci_alias.read(ALIASES),
    )


@pytest.mark.row('F94')
def test_from_create_to_end(manager, cloud, wait_for, started, ended):
    host = manager.hosts.create('compute-1', {})
    assert host.inventory[GPU] == Inventory(DEVICES)
    one, two = (
        cloud.flavor(extra_specs={'pci_passthrough:alias': f'a100:{n}'})
        for n in (1, 2)
    )
    manager.flavors.sync()
    now = int(time.time())
    lease = manager.leases.create({
        'name': 'lease', 'project_id': OWNER, 'user_id': 'user',
        'start': now + 300, 'end': now + 900, 'before_end': None,
        'reservations': [{
            'resource_type': 'flavor:instance', 'flavor_id': two, 'amount': 1,
        }],
    })
    [reservation] = lease.reservations
    fed(cloud, manager, wait_for)

    # One GPU is left; the others are only left for a while.
    kept = cloud.boot(one, project_id=OTHER)
    assert kept['status'] == 'ACTIVE'
    manager.instances.sync()
    [record] = manager.ledger.instances()
    assert record.amounts[GPU] == 1
    fed(cloud, manager, wait_for)
    refused = cloud.boot(one, project_id=OTHER)
    assert refused['status'] == 'ERROR'
    short = cloud.boot(two, {'lifetime': '2m'}, project_id=OTHER)
    assert short['status'] == 'ACTIVE'
    cloud.delete(refused, short)
    manager.instances.sync()

    started(lease)
    fed(cloud, manager, wait_for)
    mine = cloud.boot(reservation.id, project_id=OWNER)
    assert mine['status'] == 'ACTIVE'
    assert cloud.boot(one, project_id=OTHER)['status'] == 'ERROR'
    ended(lease)
    assert {s['id'] for s in cloud.servers() if s['status'] == 'ACTIVE'} == {
        kept['id']
    }
