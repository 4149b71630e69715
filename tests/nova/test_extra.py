# SPDX-License-Identifier: Apache-2.0
"""A resource class that HostState does not have, in a real Nova."""

from nova.virt import fake
import pytest

from demo.cloud import host_of
from tests.nova.conftest import lasting

pytestmark = pytest.mark.more

HOUR = 3600
SOON = 900
GPUS = {'c1': 4, 'c2': 1}


@pytest.fixture(scope='module', autouse=True)
def driver(bare_cloud):
    """Make computes report GPUs, as a provider configuration file does."""
    report = fake.FakeDriver.update_provider_tree

    def report_gpus(self, provider_tree, nodename, allocations=None):
        report(self, provider_tree, nodename, allocations)
        total = GPUS.get(nodename)
        if total:
            held = dict(provider_tree.data(nodename).inventory)
            held['CUSTOM_GPU'] = {
                'total': total, 'min_unit': 1, 'max_unit': total,
                'step_size': 1, 'allocation_ratio': 1.0, 'reserved': 0,
            }
            provider_tree.update_inventory(nodename, held)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fake.FakeDriver, 'update_provider_tree', report_gpus)
        bare_cloud.report()
        yield
    # The report at the end of the module has no GPUs.


@pytest.fixture(scope='module')
def gpu_flavor(cloud):
    return {
        gpus: cloud.flavor(1, extra_specs={'resources:CUSTOM_GPU': str(gpus)})
        for gpus in (1, 2, 3, 4)
    }


class TestLifetime:
    def test_bounded_server_has_devices_until_they_are_reserved(
        self, lab, gpu_flavor
    ):
        lab.register('c1', 'c2')
        lab.reserve('c1', vcpus=1, gpus=3)

        assert lab.passes('c1', gpu_flavor[4], lasting(SOON - 120))
        assert not lab.passes('c1', gpu_flavor[2], lasting(SOON + 120))
        assert lab.passing(gpu_flavor[1], lasting(SOON + 120)) == ['c1', 'c2']
        assert lab.passing(gpu_flavor[1]) == ['c1', 'c2']

    def test_of_a_multi_create_each_one_counts(self, lab, gpu_flavor):
        lab.register('c1')
        lab.reserve('c1', vcpus=1, gpus=3)
        servers = lab.cloud.boot_many(2, gpu_flavor[1], host='c1')
        assert {s['status'] for s in servers} == {'ERROR'}
        lab.cloud.delete(*servers)

        # Another host has room for another server.
        servers = lab.cloud.boot_many(2, gpu_flavor[1])
        assert sorted(map(host_of, servers)) == ['c1', 'c2']


class TestReservation:
    """Slots of a ``flavor:instance`` reservation."""

    def test_servers_get_the_remaining_gpus_of_the_reservation(
        self, lab, gpu_flavor
    ):
        lab.register('c1', 'c2')
        mine = lab.reserve('c1', start=-60, vcpus=4, gpus=2)
        hint = {'reservation': mine}

        assert lab.passing(gpu_flavor[2], hint) == ['c1']
        assert not lab.passes('c1', gpu_flavor[3], hint)
        server = lab.boot(gpu_flavor[1], hint)
        lab.know(server, end=HOUR, reservation_id=mine)
        assert lab.passes('c1', gpu_flavor[1], hint)
        assert not lab.passes('c1', gpu_flavor[2], hint)
        # As many vCPUs are left as were requested.
        assert lab.passes('c1', lab.flavor(3), hint)
        assert not lab.passes('c1', lab.flavor(4), hint)


@pytest.mark.parametrize('hours, host', [(1, 'c1'), (3, 'c2')])
def test_the_weigher_sees_its_gaps(lab, gpu_flavor, hours, host):
    # The remains of a resize would affect the weights too.
    lab.cloud.report()
    lab.register('c1', 'c2')
    for name, start in (('c1', 2), ('c2', 20)):
        lab.reserve(
            name, start=start * HOUR, end=48 * HOUR, vcpus=1, gpus=GPUS[name]
        )

    server = lab.boot(gpu_flavor[1], lasting(hours * HOUR))

    assert host_of(server) == host


class TestDevices:
    """Servers without a GPU leave the hosts with free GPUs to others."""

    @pytest.fixture(autouse=True)
    def weighed(self, lab):
        lab.cloud.configure(
            device_weight_multiplier=10.0, lease_gap_weight_multiplier=0.0
        )
        lab.register('c1', 'c2', 'c3')

    @staticmethod
    def goes_to(lab, flavor=None, seconds=SOON - 60, among=('c1', 'c2', 'c3')):
        """Return where servers of the same life go, one after the other."""
        return [host_of(lab.boot(flavor, lasting(seconds))) for _ in among]

    def test_a_server_goes_where_no_device_is_free(self, lab):
        assert set(self.goes_to(lab)) <= {'c3', 'c4'}

    def test_a_reserved_device_is_not_kept_free(self, lab):
        """No other server could use the device while the server is there."""
        lab.reserve('c2', vcpus=1, gpus=1, start=0, end=SOON)
        found = self.goes_to(lab, among=range(6))
        assert 'c2' in found
        assert 'c1' not in found

    def test_a_device_that_is_free_for_a_while_is_kept(self, lab):
        lab.reserve('c2', vcpus=1, gpus=1, start=SOON, end=2 * SOON)
        assert set(self.goes_to(lab)) <= {'c3', 'c4'}
