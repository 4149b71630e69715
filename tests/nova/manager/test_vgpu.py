# SPDX-License-Identifier: Apache-2.0
"""The life of servers with virtual GPUs, beside reservations of these.

Each physical GPU is a child provider with the trait of its type of virtual
GPUs, or with a resource class of its own.
"""

import time

from nova.virt import fake
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.provider import Providers
from blazar_sched.domain.provider import Units
from demo import cloud as demo_cloud
from tests.nova import clouds
from tests.nova.manager.conftest import having
from tests.nova.manager.test_leases import fed
from tests.nova.managing import book
from tests.nova.managing import on
from tests.nova.managing import OTHER
from tests.nova.managing import OWNER
from tests.nova.managing import slots_of

pytestmark = pytest.mark.more

VGPU, OWN_CLASS = 'VGPU', 'CUSTOM_VGPU_LARGE'
SMALL, LARGE = 'CUSTOM_TYPE_SMALL', 'CUSTOM_TYPE_LARGE'
# The cards of each host: resource class, trait, and number of virtual GPUs.
CARDS = {
    'compute-1': [(VGPU, SMALL, 1), (VGPU, SMALL, 2)],
    'compute-2': [(VGPU, LARGE, 1), (OWN_CLASS, LARGE, 1)],
    'compute-3': [(VGPU, SMALL, 1), (VGPU, LARGE, 1)],
}
# The computes report the cards from their start on.
CLOUD = clouds.Kind('cards', tuple(CARDS))
ONE = {f'resources:{VGPU}': '1'}
ONE_SMALL = {f'resources_v:{VGPU}': '1', f'trait_v:{SMALL}': 'required'}
ONE_LARGE = {f'resources_v:{VGPU}': '1', f'trait_v:{LARGE}': 'required'}
TWO = {
    f'resources1:{VGPU}': '1', f'resources2:{VGPU}': '1',
    'group_policy': 'none',
}


@pytest.fixture(scope='module', autouse=True)
def driver():
    """Make computes report the cards."""
    report = fake.FakeDriver.update_provider_tree

    def report_cards(self, provider_tree, nodename, allocations=None):
        report(self, provider_tree, nodename, allocations)
        for n, (name, trait, total) in enumerate(CARDS[nodename]):
            card = f'{nodename}_card_{n}'
            if not provider_tree.exists(card):
                provider_tree.new_child(card, nodename)
            provider_tree.update_traits(card, [trait])
            provider_tree.update_inventory(card, {name: {
                'total': total, 'min_unit': 1, 'max_unit': total,
                'step_size': 1, 'allocation_ratio': 1.0, 'reserved': 0,
            }})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fake.FakeDriver, 'update_provider_tree', report_cards)
        yield


@pytest.fixture(scope='module')
def flavor(cloud):
    """flavor(extra specs) -> the id of a flavor of one VCPU."""
    known = {}

    def flavor(extra_specs, **more):
        specs = {**extra_specs, **more}
        key = tuple(sorted(specs.items()))
        if key not in known:
            known[key] = cloud.flavor(extra_specs=specs)
        return known[key]

    return flavor


@pytest.fixture
def site(manager, cloud, wait_for, flavor):
    return Site(manager, cloud, wait_for, flavor)


class Site:
    """A manager whose hosts are the computes of the cloud."""

    def __init__(self, manager, cloud, wait_for, flavor):
        self.manager = manager
        self.cloud = cloud
        self._wait_for = wait_for
        self._flavor = flavor
        cloud.report()
        for name in CARDS:
            manager.hosts.create(name, {})

    def reserve(self, host, amount, extra_specs=ONE, start=300):
        """Reserve instances on a host; return the lease."""
        id_ = self._flavor(extra_specs)
        self.manager.flavors.sync()
        now = int(time.time())
        lease = book(
            self.manager, now + start, now + start + 600,
            slots_of(id_, amount, **on(host)),
        )
        self.look()
        return lease

    def cancel(self, lease):
        self.manager.leases.delete(lease.id, None)
        self.look()

    def boot(self, extra_specs=ONE, hints=None, **values):
        """Boot a server; return the server, None if Nova refuses it."""
        server = self.cloud.boot(
            self._flavor(extra_specs), hints, project_id=OTHER, **values
        )
        self.look()
        if server['status'] == 'ERROR':
            assert 'No valid host' in server['fault']['message']
            self.cloud.delete(server)
            return None
        return server

    def look(self):
        """Have the manager know Nova's servers, and the filters know it."""
        self.manager.instances.sync()
        fed(self.cloud, self.manager, self._wait_for)

    def draw(self, lease):
        """Boot a server of a lease; return whether there was room."""
        [reservation] = lease.reservations
        server = self.cloud.boot(reservation.id, project_id=OWNER)
        return server['status'] == 'ACTIVE'

    def resize(self, server, extra_specs):
        """Resize a server; return its host, None if Nova refuses that."""
        moved = self.cloud.act(
            server, 'resize', 'VERIFY_RESIZE', 'ACTIVE',
            flavorRef=self._flavor(extra_specs),
        )
        if moved['status'] != 'VERIFY_RESIZE':
            return None
        return demo_cloud.host_of(self.cloud.act(moved, 'confirmResize'))

    def unshelve(self, server):
        server = self.cloud.act(
            server, 'unshelve', 'ACTIVE', 'SHELVED_OFFLOADED'
        )
        return demo_cloud.host_of(server)


class TestCards:
    def test_a_type_that_is_exhausted_on_one_card_is_free_on_another(
        self, site, started
    ):
        used = site.boot(ONE_SMALL, host='compute-1')
        assert used
        with pytest.raises(exception.NotEnoughHostsAvailable):
            site.reserve('compute-1', 3, ONE_SMALL)
        lease = site.reserve('compute-1', 2, ONE_SMALL)

        assert site.boot(ONE_SMALL, host='compute-1') is None
        short = site.boot(ONE, {'lifetime': '2m'}, host='compute-1')
        assert short
        site.cloud.delete(short)
        site.look()
        started(lease)
        site.look()
        assert [site.draw(lease) for _ in range(3)] == [True, True, False]

    def test_two_types_of_one_class_cannot_be_promised(self, site):
        with pytest.raises(exception.NotEnoughHostsAvailable):
            site.reserve('compute-3', 1, ONE_LARGE)
        site.reserve('compute-3', 1)
        # Placement tells the types apart at the present.
        assert site.boot(ONE_LARGE, host='compute-3')
        assert site.boot(ONE_SMALL, host='compute-3') is None

    @pytest.mark.row('F94')
    def test_two_virtual_gpus_from_create_to_end(self, site, started, ended):
        [host] = site.manager.ledger.hosts([site.cloud.hosts['compute-1']])
        assert host.inventory[VGPU] == Inventory(3)
        assert host.providers == (
            Providers(1, (SMALL,), {VGPU: Units(1, 1, 1, 1)}),
            Providers(1, (SMALL,), {VGPU: Units(2, 1, 2, 1)}),
        )
        assert site.boot(ONE_SMALL, host='compute-1')
        lease = site.reserve('compute-1', 1, TWO)
        assert site.boot(ONE, host='compute-1') is None
        # A server that leaves before the window may have what is reserved.
        short = site.boot(TWO, {'lifetime': '2m'}, host='compute-1')
        assert short
        site.cloud.delete(short)
        site.look()
        started(lease)
        site.look()
        assert [site.draw(lease) for _ in range(2)] == [True, False]
        ended(lease)
        site.look()
        assert site.boot(TWO, host='compute-1')


class TestMoves:
    """A server without an end, with the only VGPU of compute-2."""

    @pytest.fixture
    def server(self, site):
        return site.boot(ONE, host='compute-2')

    @pytest.fixture
    def booked(self, site):
        """Everything is reserved except two virtual GPUs of compute-1."""
        site.reserve('compute-3', 2)
        return site.reserve('compute-1', 1)

    def test_a_resize_to_more_devices(self, site, server, booked):
        three = TWO | {f'resources3:{VGPU}': '1'}
        assert site.resize(server, three) is None
        assert site.resize(server, TWO) == 'compute-1'
        # The old device is left to others.
        site.look()
        assert site.boot(ONE, host='compute-1') is None
        assert site.boot(ONE, host='compute-2')

    def test_a_resize_of_a_server_that_ends_in_time(self, site, booked):
        server = site.boot(ONE, {'lifetime': '4m'}, host='compute-2')
        three = TWO | {f'resources3:{VGPU}': '1'}
        assert site.resize(server, three) == 'compute-1'

    def test_unshelving(self, site, server, booked):
        more = site.reserve('compute-1', 2)
        site.cloud.act(server, 'shelve', 'SHELVED_OFFLOADED')
        site.look()
        assert site.boot(ONE, host='compute-2')
        assert site.unshelve(server) is None
        site.cancel(more)
        assert site.unshelve(server) == 'compute-1'

    @pytest.fixture
    def failed(self, site, server):
        site.cloud.stop_compute('compute-2')
        yield
        site.cloud.start_compute('compute-2')

    def test_evacuation(self, site, server, booked, failed):
        server = site.cloud.evacuate(server)
        assert demo_cloud.host_of(server) == 'compute-1'
        assert server['status'] == 'SHUTOFF'


class TestVacating:
    def test_only_preemptible_servers_with_the_devices_yield(
        self, site, wait_for
    ):
        preemptible = {'blazar:preemptible': 'true'}
        plain = site.boot(preemptible, host='compute-1')
        with_device = [
            site.boot(ONE | preemptible, host='compute-1') for _ in range(3)
        ]
        assert plain and all(with_device)
        lease = site.reserve('compute-1', 2, start=16)

        def left():
            return {s['id'] for s in site.cloud.servers()}

        wait_for('two servers yield', lambda: len(left()) == 2)
        assert plain['id'] in left()
        assert not any(
            'blazar_vacate_at' in s['metadata'] for s in site.cloud.servers()
        )
        # The lease may have started meanwhile.
        wait_for(
            'lease ACTIVE', lambda: having(site.manager, lease.id, 'ACTIVE')
        )
        site.look()
        assert not site.manager.ledger.lease(lease.id).degraded
        assert site.draw(lease) and site.draw(lease)
