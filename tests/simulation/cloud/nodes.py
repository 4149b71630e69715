# SPDX-License-Identifier: Apache-2.0
"""Compute nodes, and their inventories in Placement."""

import dataclasses
import uuid

from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain.inventory import Inventory
from blazar_sched.service.clients import nova
from tests.simulation.cloud import base

VCPUS = 8
SIZE = {
    inventory.VCPU: Inventory(VCPUS),
    inventory.MEMORY_MB: Inventory(VCPUS * 1024),
    inventory.DISK_GB: Inventory(VCPUS * 10),
}
# Like 400 TB of Ceph with a disk_allocation_ratio of 9999: far more than
# 2**31.
LARGE = Inventory(400_000, 0, 9999.0)


class Nodes(base.Calls):
    """The compute nodes, by hostname; `sizes` has their inventories."""

    def __init__(self, *args):
        super().__init__(*args)
        self.nodes = {}
        self.sizes = {}
        self._generations = {}

    def add_node(self, name):
        id_ = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
        self.nodes[name] = nova.Hypervisor(
            id_, name, name, 'QEMU', 8000, '{}', 'nova'
        )
        self.resize(name, {})

    def set_up(self, name, up):
        self.nodes[name] = dataclasses.replace(self.nodes[name], up=up)
        self._tell(f'{name} {"is up" if up else "fails"}')

    def resize(self, name, other):
        """Set the inventories of a node to the usual ones, except for `other`.
        """
        self.sizes[name] = {**SIZE, **other}
        self._generations[name] = self._generations.get(name, 0) + 1

    def name_of(self, uuid_):
        """Return the hostname of the node with a uuid."""
        return next(n.hostname for n in self.nodes.values() if n.uuid == uuid_)

    # Nova

    def hypervisor(self, name):
        self._call()
        if name not in self.nodes:
            raise exception.HostNotFound(f'no hypervisor {name}')
        return self.nodes[name]

    def hypervisors(self):
        self._call()
        return iter(list(self.nodes.values()))

    # Placement

    def inventories(self, provider):
        self._call()
        return dict(self.sizes[self.name_of(provider)])

    def traits(self, provider):
        self._call()
        return ()

    def units(self, provider):
        # No node has devices.
        self._call()
        raise exception.HostNotFound(provider)

    def trees(self, provider=None):
        self._call()
        return {
            node.uuid: {node.uuid: self._generations[name]}
            for name, node in self.nodes.items()
            if provider in (None, node.uuid)
        }
