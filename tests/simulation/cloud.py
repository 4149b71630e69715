# SPDX-License-Identifier: Apache-2.0
"""Nova and Placement as the clients see them, failing before or after."""

import dataclasses
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
        # By flavor of a reservation, who may use it.
        self.projects = {}
        # By name an aggregate, and the id of a server group.
        self.aggregates = {}
        self.server_groups = {}
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

    def set_up(self, name, up):
        self.nodes[name] = dataclasses.replace(self.nodes[name], up=up)
        self._tell(f'{name} {"is up" if up else "fails"}')

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
        return [
            *self.projects, *self.aggregates, *self.server_groups,
            *self.classes, *self.slots, *bound,
        ]

    # Nova

    def hypervisor(self, name):
        self._call()
        if name not in self.nodes:
            raise exception.HostNotFound(f'no hypervisor {name}')
        return self.nodes[name]

    def hypervisors(self):
        self._call()
        return iter(list(self.nodes.values()))

    def servers(self, host=None, project_id=None):
        self._call()
        found = [
            s for s in self.servers_.values()
            if host in (None, s.node) and project_id in (None, s.project_id)
        ]
        return iter(sorted(found, key=lambda s: s.uuid))

    def server(self, uuid):
        self._call()
        return self.servers_.get(uuid)

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

    def shelve_servers(self, servers):
        for server in servers:
            self._call(
                lambda s=server: self._change(
                    s, node=None, status='SHELVED_OFFLOADED'
                ),
                f'server {server.uuid} is shelved',
            )

    def migrate_server(self, server):
        """Try it: the hosts are as good as full."""
        self._call()
        return self.trouble > 0

    def set_server_metadata(self, server, metadata):
        self._call(
            lambda: self._change(
                server, metadata={**server.metadata, **metadata}
            )
        )

    def _change(self, server, **values):
        known = self.servers_.get(server.uuid)
        if known is not None:
            self.servers_[server.uuid] = dataclasses.replace(known, **values)

    def flavors(self):
        self._call()
        return []

    def create_flavor(self, flavor):
        self._call(
            lambda: self.projects.setdefault(flavor.id, set()),
            f'flavor {flavor.id} is made',
        )

    def add_flavor_access(self, flavor_id, project_id):
        self._call(
            lambda: self.projects[flavor_id].add(project_id),
            f'flavor {flavor_id} is for {project_id}',
        )

    def remove_flavor_access(self, flavor_id, project_id):
        self._call(
            lambda: self.projects.get(flavor_id, set()).discard(project_id),
            f'flavor {flavor_id} is no longer for {project_id}',
        )

    def delete_flavor(self, flavor_id):
        self._call(
            lambda: self.projects.pop(flavor_id, None),
            f'flavor {flavor_id} is deleted',
        )

    def aggregate(self, name):
        self._call()
        return self.aggregates.get(name)

    def create_aggregate(self, name, metadata):
        def work():
            known = self.aggregates.get(name) or nova.Aggregate(
                len(self.aggregates) + 1, name, (), {}
            )
            self.aggregates[name] = dataclasses.replace(
                known, metadata={**known.metadata, **metadata}
            )

        self._call(work, f'aggregate {name} is made')
        return self.aggregates[name]

    def set_aggregate_metadata(self, aggregate, metadata):
        self._call()

    def add_to_aggregate(self, aggregate, host):
        self._call(
            lambda: self._set_members(aggregate, lambda h: h | {host}),
            f'{host} is in aggregate {aggregate.name}',
        )

    def remove_from_aggregate(self, aggregate, host):
        self._call(
            lambda: self._set_members(aggregate, lambda h: h - {host}),
            f'{host} is not in aggregate {aggregate.name}',
        )

    def _set_members(self, aggregate, change):
        known = self.aggregates.get(aggregate.name)
        if known is not None:
            hosts = tuple(sorted(change(set(known.hosts))))
            self.aggregates[known.name] = dataclasses.replace(
                known, hosts=hosts
            )

    def delete_aggregate(self, name):
        self._call(
            lambda: self.aggregates.pop(name, None),
            f'aggregate {name} is deleted',
        )

    def create_server_group(self, name, policy):
        made = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
        self._call(
            lambda: self.server_groups.setdefault(name, made),
            f'server group {name} is made',
        )
        return made

    def delete_server_group(self, name):
        self._call(
            lambda: self.server_groups.pop(name, None),
            f'server group {name} is deleted',
        )

    # Placement

    def inventories(self, provider):
        self._call()
        return {
            inventory.VCPU: inventory.Inventory(VCPUS),
            inventory.MEMORY_MB: inventory.Inventory(VCPUS * 1024),
            inventory.DISK_GB: inventory.Inventory(VCPUS * 10),
        }

    def traits(self, provider):
        self._call()
        return ()

    def generations(self):
        self._call()
        return {node.uuid: 0 for node in self.nodes.values()}

    def create_child(self, parent, hostname):
        self._call()

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

    def release_inventory(self, hostname, name):
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
