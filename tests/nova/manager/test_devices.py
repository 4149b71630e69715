# SPDX-License-Identifier: Apache-2.0
"""GPUs in child providers, in a real Nova, from a lease's create to its end.
"""

import time

from nova.virt import fake
import pytest

from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.provider import Providers
from blazar_sched.domain.provider import Units
from tests.nova.manager.test_leases import fed
from tests.nova.manager.test_leases import OTHER
from tests.nova.manager.test_leases import OWNER

pytestmark = pytest.mark.more

GPU = 'CUSTOM_GPU'
GPUS = {'compute-1': 3, 'compute-2': 1}
FAST = 'CUSTOM_FAST'


@pytest.fixture(scope='module', autouse=True)
def driver():
    """Make computes report each GPU in a child provider."""
    report = fake.FakeDriver.update_provider_tree

    def report_gpus(self, provider_tree, nodename, allocations=None):
        report(self, provider_tree, nodename, allocations)
        for n in range(GPUS[nodename]):
            name = f'{nodename}_gpu_{n}'
            if not provider_tree.exists(name):
                provider_tree.new_child(name, nodename)
            provider_tree.update_traits(name, [FAST])
            provider_tree.update_inventory(name, {GPU: {
                'total': 1, 'min_unit': 1, 'max_unit': 1, 'step_size': 1,
                'allocation_ratio': 1.0, 'reserved': 0,
            }})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fake.FakeDriver, 'update_provider_tree', report_gpus)
        yield


@pytest.fixture
def both(manager, cloud):
    return [manager.hosts.create(name, {}) for name in cloud.hosts]


def asking(count):
    """Return extra specs of so many GPUs, each in a group of its own."""
    specs = {'group_policy': 'isolate'} if count > 1 else {}
    for n in range(1, count + 1):
        specs |= {f'resources{n}:{GPU}': '1', f'trait{n}:{FAST}': 'required'}
    return specs


def used(placement_api, cloud):
    """Return how many GPUs are in use by the name of the host."""
    found = {}
    for name, root in cloud.hosts.items():
        usages = [
            placement_api.get(
                f'/resource_providers/{each["uuid"]}/usages',
                microversion='1.29',
            ).json()['usages'].get(GPU, 0)
            for each in placement_api.get(
                f'/resource_providers?in_tree={root}', microversion='1.29'
            ).json()['resource_providers']
        ]
        found[name] = sum(usages)
    return found


@pytest.mark.row('F94')
def test_from_create_to_end(
    manager, cloud, placement, placement_api, both, wait_for, started, ended,
    host_of,
):
    for host in both:
        count = GPUS[host.hypervisor_hostname]
        assert host.inventory[GPU] == Inventory(count)
        assert host.providers == (
            Providers(count, (FAST,), {GPU: Units(1, 1, 1, 1)}),
        )
    one = cloud.flavor(extra_specs=asking(1))
    two = cloud.flavor(extra_specs=asking(2))
    manager.flavors.sync()

    now = int(time.time())
    lease = manager.leases.create({
        'name': 'lease', 'project_id': OWNER, 'user_id': 'user',
        'start': now + 300, 'end': now + 900, 'before_end': None,
        'reservations': [
            {'resource_type': 'flavor:instance', 'flavor_id': two,
             'amount': 1},
            {'resource_type': 'flavor:instance', 'flavor_id': one,
             'amount': 1},
        ],
    })
    two_gpus, one_gpu = (r.id for r in lease.reservations)
    held = {
        a.reservation_id: (a.host, a.amounts[GPU])
        for a, _ in manager.ledger.allocations(lease_id=lease.id)
    }
    assert held[two_gpus] == (cloud.hosts['compute-1'], 2)
    fed(cloud, manager, wait_for)

    # Two GPUs are left, one of them on a host of one's choice. A server that
    # leaves before the window may have a GPU that is reserved later.
    short = cloud.boot(two, {'lifetime': '2m'}, project_id=OTHER)
    assert (short['status'], host_of(short)) == ('ACTIVE', 'compute-1')
    long = cloud.boot(two, {'lifetime': '2h'}, project_id=OTHER)
    assert long['status'] == 'ERROR'
    assert used(placement_api, cloud) == {'compute-1': 2, 'compute-2': 0}
    cloud.delete(short, long)
    manager.instances.sync()

    started(lease)
    fed(cloud, manager, wait_for)
    booted = [
        cloud.boot(id_, project_id=OWNER) for id_ in (two_gpus, one_gpu)
    ]
    assert {s['status'] for s in booted} == {'ACTIVE'}
    assert host_of(booted[0]) == 'compute-1'
    assert sum(used(placement_api, cloud).values()) == 3
    assert cloud.boot(two_gpus, project_id=OWNER)['status'] == 'ERROR'

    ended(lease)
    assert used(placement_api, cloud) == {'compute-1': 0, 'compute-2': 0}
