# SPDX-License-Identifier: Apache-2.0
"""Managers of the tests: their configuration, and how a test makes one."""

from keystoneauth1 import adapter

from blazar_sched.conf import service as service_conf
from blazar_sched.domain import pci_alias
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.placement import Placement
from blazar_sched.service.manager.manager import Manager
from tests.nova import clouds

# The project that has the leases, and another one.
OWNER, OTHER = 'owner', 'somebody-else'


def slots(amount, vcpus=2, **fields):
    """Return a request for a reservation of instances."""
    return {
        'resource_type': 'virtual:instance', 'vcpus': vcpus, 'memory_mb': 512,
        'disk_gb': 1, 'amount': amount, **fields,
    }


def slots_of(flavor_id, amount, **fields):
    """Return a request for a reservation of instances of a flavor."""
    return {
        'resource_type': 'flavor:instance', 'flavor_id': flavor_id,
        'amount': amount, **fields,
    }


def hosts(number=1, **fields):
    """Return a request for a reservation of hosts."""
    return {
        'resource_type': 'physical:host', 'min': number, 'max': number,
        **fields,
    }


def on(name):
    """Return the field of a request that names its host."""
    return {'resource_properties': f'["==", "$hypervisor_hostname", "{name}"]'}


def book(manager, start, end, *asked, project_id=OWNER, before_end=None):
    """Create a lease; times are in seconds since the epoch."""
    return manager.leases.create({
        'name': 'lease', 'project_id': project_id, 'user_id': 'user',
        'start': start, 'end': end, 'before_end': before_end,
        'reservations': list(asked),
    })


def configured(folder, **options):
    """Return a configuration, with a ledger in a folder and without limits.

    :param options: of the group ``[manager]``
    """
    conf = service_conf.load(files=[])
    conf.set_override(
        'connection', f'sqlite:///{folder}/ledger.sqlite', 'database'
    )
    conf.set_override('transport_url', 'fake:/')
    conf.set_override('enabled_filters', [], 'enforcement')
    for name, value in {
        # Tests of relocation set what they are about.
        'relocate_instances': False, 'unbounded': 'forever', **options,
    }.items():
        conf.set_override(name, value, 'manager')
    return conf


def nova_of(cloud):
    """Return the Nova client of a manager of a cloud."""
    return Nova(
        adapter.Adapter(cloud.session(), service_type='compute'),
        aliases=pci_alias.read(clouds.ALIASES),
    )


def manager_of(cloud, conf, *clocks):
    """Return a manager of a cloud, not started, whose ledger has tables.

    :param clocks: the clock, and the monotonic one
    """
    placement = adapter.Adapter(cloud.session(), service_type='placement')
    manager = Manager(conf, nova_of(cloud), Placement(placement), *clocks)
    manager.ledger.upgrade()
    return manager
