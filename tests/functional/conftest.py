# SPDX-License-Identifier: Apache-2.0
"""The whole service in one process, over SQLite and an in-memory bus.

Only other services are not the real ones: `Cloud` stands for Nova and
Placement at the clients' edge, and Neutron is there at its HTTP edge.
"""

from types import SimpleNamespace
import uuid

import pytest

from blazar_sched.conf import service as service_conf
from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.inventory import Inventory
from blazar_sched.service.api import deploy
from blazar_sched.service.bus import rpc
from blazar_sched.service.clients import neutron
from blazar_sched.service.clients import nova
from blazar_sched.service.manager.manager import Manager
from tests import loopback
from tests.unit import neutron as neutron_edge

FLAVOR = {
    'id': 'm1.small',
    'name': 'small',
    'vcpus': 2,
    'memory_mb': 2048,
    'disk_gb': 20,
}
SERVER_GROUP = 'b5b1f2e4-7b7b-4d3e-9d2b-000000000001'


class Cloud:
    """Hosts of 16 VCPUs, without servers."""

    def __init__(self, hosts):
        self.hosts = hosts

    def hypervisor(self, name):
        if name not in self.hosts:
            raise exception.HostNotFound(f'no hypervisor {name}')
        return nova.Hypervisor(
            uuid=str(uuid.uuid5(uuid.NAMESPACE_DNS, name)),
            hostname=name,
            host=name,
            type='QEMU',
            version=8002000,
            cpu_info='{}',
            availability_zone='nova',
        )

    def inventories(self, provider):
        return {
            inventory.VCPU: Inventory(16),
            inventory.MEMORY_MB: Inventory(65536),
            inventory.DISK_GB: Inventory(1000),
        }

    def traits(self, provider):
        return ()

    def generations(self):
        return {}

    def hypervisors(self):
        return map(self.hypervisor, self.hosts)

    def services(self):
        return ()

    def servers(self, **filters):
        return iter(())

    def delete_servers(self, servers):
        return not list(servers)

    shelve_servers = delete_servers

    def remove_inventory(self, hostname, name):
        return True

    def _done(self, *args):
        pass

    def flavors(self):
        return [Flavor(**FLAVOR)]

    def create_aggregate(self, name, metadata):
        return nova.Aggregate(1, name, (), metadata)

    def create_server_group(self, name, policy):
        return SERVER_GROUP

    def aggregate(self, name):
        return None

    create_flavor = delete_flavor = _done
    add_flavor_access = remove_flavor_access = _done
    add_to_aggregate = delete_aggregate = delete_server_group = _done
    create_resource_class = delete_resource_class = _done
    set_inventory = create_child = _done

    def count_used(self, hostname, name):
        return {}

    def cut_inventory(self, hostname, name, total, beside=0):
        return max(total, beside)


@pytest.fixture
def service(tmp_path):
    """A running service: `.conf`, `.manager`, `.bus` and `.api`."""
    file = tmp_path / 'blazar-sched.conf'
    file.write_text(
        '[DEFAULT]\ntransport_url = fake://\nrpc_response_timeout = 30\n'
        f'[database]\nconnection = sqlite:///{tmp_path}/ledger.sqlite\n'
        '[api]\nauth_strategy = noauth\nport = 0\n'
    )
    conf = service_conf.load(files=[str(file)])
    cloud = Cloud([f'compute-{n}' for n in range(1, 5)])
    manager = Manager(
        conf,
        nova=cloud,
        placement=cloud,
        neutron=neutron.Neutron(neutron_edge.Neutron()),
    )
    manager.ledger.upgrade()
    manager.start()
    bus = rpc.Client(rpc.transport(conf))
    api = loopback.client(deploy.deploy(conf, bus))
    yield SimpleNamespace(conf=conf, manager=manager, bus=bus, api=api)
    manager.stop()
