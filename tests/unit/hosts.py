# SPDX-License-Identifier: Apache-2.0
"""The hosts of a small cloud, in a real index."""

from blazar_sched import ext
from blazar_sched.domain import inventory
from blazar_sched.domain import requirements
from blazar_sched.domain.host import Host
from blazar_sched.domain.inventory import Inventory
from blazar_sched.replica.catalog import Catalog


def make_host(uuid, vcpus=8, memory_mb=16, gpus=0, **kwargs):
    gpu = {'CUSTOM_GPU': Inventory(gpus)} if gpus else {}
    return Host(
        uuid=uuid, id='1', hypervisor_hostname=f'{uuid}.example.org',
        inventory={
            'VCPU': Inventory(vcpus), 'MEMORY_MB': Inventory(memory_mb),
            'DISK_GB': Inventory(100), **gpu,
        },
        **kwargs
    )


def make_index(hosts, *entries):
    """Return an index of (owner, host, start, end, amounts or None)."""
    index = ext.TimelineIndex(inventory.RESOURCE_CLASSES)
    index.apply([('capacity', h.uuid, h.amounts()) for h in hosts.values()])
    index.apply([add(n, *entry) for n, entry in enumerate(entries)])
    return index


def add(id, owner, on, start, end, amounts):
    whole = amounts is None
    return ('add', str(id), owner, on, start, end, amounts or (0, 0, 0), whole)


def by_uuid(*hosts):
    return {h.uuid: h for h in hosts}


def these(index, hosts):
    """Return all hosts as candidates."""
    return Catalog(index, hosts).meeting(requirements.all_of(), 'p')


HOSTS = by_uuid(*(make_host(uuid) for uuid in 'abcd'))
