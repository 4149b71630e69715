# SPDX-License-Identifier: Apache-2.0
"""Nova and Placement as the clients see them, failing before or after."""

import uuid

from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.service.clients import nova

VCPUS = 8
# Seconds that Nova takes to delete a server.
DELETES_IN = 3


class Cloud:
    """All that there is in Nova and Placement.

    :param random: decides which calls fail
    :param clock: returns the true time
    :param tell: is told of each change
    """

    def __init__(self, random, clock, tell):
        self.trouble = 0.0
        self.nodes = {}
        self.servers_ = {}
        self.deleting = {}
        # By flavor the projects that may use it.
        self.flavors = {}
        self.classes = set()
        self.slots = {}
        self._random = random
        self._clock = clock
        self._tell = tell

    def add_node(self, name):
        id_ = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
        self.nodes[name] = nova.Hypervisor(
            id_, name, name, 'QEMU', 8000, '{}', 'nova'
        )

    def boot(self, node, project_id, reservation_id=None, end=window.FOREVER):
        id_ = str(uuid.UUID(int=self._random.getrandbits(128)))
        self.servers_[id_] = nova.Server(
            uuid=id_,
            node=node,
            project_id=project_id,
            amounts={'VCPU': 1, 'MEMORY_MB': 512, 'DISK_GB': 1},
            end=end,
            reservation_id=reservation_id,
            preemptible=False,
        )

    def settle(self):
        """Let Nova finish what takes it time."""
        for id_, since in list(self.deleting.items()):
            if self._clock() >= since + DELETES_IN:
                del self.deleting[id_]
                self.servers_.pop(id_, None)

    def leftovers(self):
        """Return all that reservations have made here."""
        bound = [
            s.uuid for s in self.servers_.values() if s.reservation_id
        ]
        return [*self.flavors, *self.classes, *self.slots, *bound]

    # Nova

    def hypervisor(self, name):
        self._call()
        if name not in self.nodes:
            raise exception.HostNotFound(f'no hypervisor {name}')
        return self.nodes[name]

    def servers(self, host=None, project_id=None):
        self._call()
        found = [
            s for s in self.servers_.values()
            if host in (None, s.node) and project_id in (None, s.project_id)
        ]
        return iter(sorted(found, key=lambda s: s.uuid))

    def delete_servers(self, servers):
        none = True
        for server in servers:
            none = False
            self._call(
                lambda id_=server.uuid: self.deleting.setdefault(
                    id_, self._clock()
                ),
                f'server {server.uuid} is deleted',
            )
        return none

    def create_flavor(self, flavor_id, name, slot, extra_specs):
        self._call(
            lambda: self.flavors.setdefault(flavor_id, set()),
            f'flavor {flavor_id} is made',
        )

    def add_flavor_access(self, flavor_id, project_id):
        self._call(
            lambda: self.flavors[flavor_id].add(project_id),
            f'flavor {flavor_id} is for {project_id}',
        )

    def remove_flavor_access(self, flavor_id, project_id):
        self._call(
            lambda: self.flavors.get(flavor_id, set()).discard(project_id),
            f'flavor {flavor_id} is no longer for {project_id}',
        )

    def delete_flavor(self, flavor_id):
        self._call(
            lambda: self.flavors.pop(flavor_id, None),
            f'flavor {flavor_id} is deleted',
        )

    # Placement

    def inventories(self, provider):
        self._call()
        return {
            inventory.VCPU: inventory.Inventory(VCPUS),
            inventory.MEMORY_MB: inventory.Inventory(VCPUS * 1024),
            inventory.DISK_GB: inventory.Inventory(VCPUS * 10),
        }

    def create_resource_class(self, name):
        self._call(lambda: self.classes.add(name), f'{name} is made')

    def delete_resource_class(self, name):
        self._call(lambda: self.classes.discard(name), f'{name} is deleted')

    def set_inventory(self, parent, hostname, name, total):
        def work():
            self.slots[hostname, name] = total

        self._call(work, f'{total} of {name} on {hostname}')

    def remove_inventory(self, hostname, name):
        self._call(
            lambda: self.slots.pop((hostname, name), None),
            f'no {name} on {hostname}',
        )
        return True

    def delete_child(self, hostname):
        self._call()

    def _call(self, work=lambda: None, what=None):
        """Do what was asked for; now and then not, or without an answer."""
        draw = self._random.random()
        if draw < self.trouble / 2:
            raise exception.Unavailable('nova answered 500')
        work()
        if what:
            self._tell(what)
        if draw < self.trouble:
            raise exception.Unavailable('nova did not answer in time')
