# SPDX-License-Identifier: Apache-2.0
"""Nova and Placement at the level of the clients' methods, in memory.

For tests of a whole manager over many steps, where no request can fail half
way. The classes do what the docstrings of `service.clients` promise; the
clients themselves meet the real services in tests/nova/manager.
"""

from collections import Counter
from collections import defaultdict
import dataclasses
import uuid

from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain.inventory import Inventory
from blazar_sched.service.clients.nova import Aggregate
from blazar_sched.service.clients.nova import Hypervisor


class Nova:
    """Servers go when they have been asked to `slowness` + 1 times."""

    def __init__(self):
        self.nodes = {}
        self.stored = {}
        # When servers have moved to their host, by uuid.
        self.moved = {}
        # Everybody's, and by id those of reservations.
        self.known_flavors = []
        self.made_flavors = {}
        self.access = set()
        # By name: a Aggregate, and (id, policy).
        self.aggregates = {}
        self.server_groups = {}
        # (server, name, metadata); complete once it is asked for again
        self.images = []
        # Where the scheduler has room for who is unshelved.
        self.lands_on = None
        self.asked = Counter()
        self.slowness = 0
        # How many requests fail, and whether Nova refuses these requests or
        # can do nothing now.
        self.failures = 0
        self.refuses = False

    def _fail(self):
        if self.failures:
            self.failures -= 1
            raise exception.Unavailable(
                'compute answered 500', service='compute', refused=self.refuses
            )

    def hypervisor(self, name):
        self._fail()
        if name not in self.nodes:
            raise exception.HostNotFound(name, field='name')
        return self.nodes[name]

    def hypervisors(self):
        self._fail()
        return iter(list(self.nodes.values()))

    def servers(self, host=None, project_id=None, status=None):
        self._fail()
        return [
            s
            for s in self.stored.values()
            if host in (None, self._service(s.node))
            and project_id in (None, s.project_id)
            and status in (None, s.status)
        ]

    def _service(self, node):
        known = self.nodes.get(node)
        return node if known is None else known.host

    def server(self, uuid):
        self._fail()
        return self.stored.get(uuid)

    def has_moved(self, server, since):
        self._fail()
        return self.moved.get(server.uuid, -1) >= since

    def migrate_server(self, server, service_name=None, way='live'):
        """Move a server at once, to a named host only."""
        self._fail()
        self.asked[server.uuid] += 1
        if service_name is None or self.asked[server.uuid] <= self.slowness:
            return True
        known = self.stored[server.uuid]
        if known.status == 'VERIFY_RESIZE':
            return False
        self.stored[server.uuid] = dataclasses.replace(
            known, node=service_name,
            status='VERIFY_RESIZE' if way == 'cold' else known.status,
        )
        return True

    def confirm_migration(self, server):
        self._fail()
        known = self.stored[server.uuid]
        if known.status == 'VERIFY_RESIZE':
            self.stored[server.uuid] = dataclasses.replace(
                known, status='ACTIVE'
            )

    def set_server_metadata(self, server, metadata):
        self._fail()
        known = self.stored[server.uuid]
        both = {**known.metadata, **metadata}
        self.stored[server.uuid] = dataclasses.replace(known, metadata={
            name: value for name, value in both.items() if value is not None
        })

    def delete_servers(self, servers):
        none = True
        for server in list(servers):
            none = False
            self.asked[server.uuid] += 1
            if self.asked[server.uuid] > self.slowness:
                self.stored.pop(server.uuid, None)
        return none

    def shelve_servers(self, servers):
        none = True
        for server in list(servers):
            if server.node is None and server.status != 'BUILD':
                continue
            none = False
            self.asked[server.uuid] += 1
            if self.asked[server.uuid] > self.slowness:
                self.stored[server.uuid] = dataclasses.replace(
                    server, node=None, status='SHELVED_OFFLOADED'
                )
        return none

    def unshelve_server(self, server):
        self._fail()
        self.asked[server.uuid] += 1
        if self.asked[server.uuid] > self.slowness and self.lands_on:
            self.stored[server.uuid] = dataclasses.replace(
                server, node=self.lands_on, status='ACTIVE'
            )

    def create_image(self, server, name, metadata):
        self._fail()
        image = server.uuid, name, dict(metadata)
        if image in self.images:
            return True
        self.images.append(image)
        return False

    def create_flavor(self, flavor):
        self._fail()
        self.made_flavors[flavor.id] = flavor

    def add_flavor_access(self, flavor_id, project_id):
        self._fail()
        self.access.add((flavor_id, project_id))

    def remove_flavor_access(self, flavor_id, project_id):
        self._fail()
        self.access.discard((flavor_id, project_id))

    def delete_flavor(self, flavor_id):
        self._fail()
        self.made_flavors.pop(flavor_id, None)

    def flavor(self, flavor_id):
        self._fail()
        return {f.id: f for f in self.known_flavors}.get(flavor_id)

    def flavors(self):
        self._fail()
        return list(self.known_flavors)

    def aggregate(self, name):
        self._fail()
        return self.aggregates.get(name)

    def create_aggregate(self, name, metadata, known=None):
        self._fail()
        known = self.aggregates.get(name) or Aggregate(
            len(self.aggregates) + 1, name, (), {}, f'uuid of {name}'
        )
        self.aggregates[name] = dataclasses.replace(
            known, metadata={**known.metadata, **metadata}
        )
        return self.aggregates[name]

    def set_aggregate_metadata(self, aggregate, metadata):
        self._fail()
        if known := self.aggregates.get(aggregate.name):
            both = {**known.metadata, **metadata}
            left = {k: v for k, v in both.items() if v is not None}
            self.aggregates[known.name] = dataclasses.replace(
                known, metadata=left
            )

    def add_to_aggregate(self, aggregate, host):
        self._set_members(aggregate, lambda hosts: hosts | {host})

    def remove_from_aggregate(self, aggregate, host):
        self._set_members(aggregate, lambda hosts: hosts - {host})

    def _set_members(self, aggregate, change):
        self._fail()
        if known := self.aggregates.get(aggregate.name):
            self.aggregates[known.name] = dataclasses.replace(
                known, hosts=tuple(sorted(change(set(known.hosts))))
            )

    def delete_aggregate(self, name):
        self._fail()
        self.aggregates.pop(name, None)

    def create_server_group(self, name, policy):
        self._fail()
        made = str(uuid.uuid5(uuid.NAMESPACE_DNS, name)), policy
        return self.server_groups.setdefault(name, made)[0]

    def delete_server_group(self, name):
        self._fail()
        self.server_groups.pop(name, None)


class Placement:
    def __init__(self):
        self.providers = {}
        # By child provider of a host, the host and the inventory.
        self.below = {}
        self.classes = set()
        # (hostname, resource class) to total, and to what servers use.
        self.children = {}
        self.used = Counter()
        # By provider, what it has beside inventories.
        self.traits_ = defaultdict(tuple)
        self.generations_ = Counter()
        self.looks = Counter()
        # Hosts that have a child provider.
        self.marked = set()
        self.failures = 0

    def _fail(self):
        if self.failures:
            self.failures -= 1
            raise exception.Unavailable(
                'placement answered 500', service='placement'
            )

    def inventories(self, provider):
        self._fail()
        self.looks[provider] += 1
        if provider not in self.providers:
            raise exception.HostNotFound(provider)
        return self.providers[provider]

    def traits(self, provider):
        self._fail()
        return self.traits_[provider]

    def units(self, provider):
        self._fail()
        self.looks[provider] += 1
        if provider not in self.below:
            raise exception.HostNotFound(provider)
        return self.below[provider][1]

    def trees(self, provider=None):
        self._fail()
        trees = {id_: {id_: self.generations_[id_]} for id_ in self.providers}
        for id_, (root, _) in self.below.items():
            trees[root][id_] = self.generations_[id_]
        return trees if provider is None else {
            id_: tree for id_, tree in trees.items() if id_ == provider
        }

    def put_below(self, root, id_, units, traits=()):
        """Add or change a child provider; without units, remove it."""
        if units:
            self.below[id_] = root, units
            self.traits_[id_] = traits
            self.generations_[id_] += 1
        else:
            del self.below[id_]

    def change(self, provider, inventories, traits=()):
        """Have a resource provider changed by others."""
        self.providers[provider] = inventories
        self.traits_[provider] = traits
        self.generations_[provider] += 1

    def create_child(self, parent, hostname):
        self._fail()
        self.marked.add(hostname)

    def create_resource_class(self, name):
        self._fail()
        self.classes.add(name)

    def delete_resource_class(self, name):
        self._fail()
        self.classes.discard(name)

    def set_inventory(self, parent, hostname, name, total):
        self._fail()
        assert parent in self.providers
        self.children[hostname, name] = total

    def remove_inventory(self, hostname, name):
        self._fail()
        if self.used[hostname, name]:
            return False
        self.children.pop((hostname, name), None)
        return True

    def count_used(self, hostname, name):
        self._fail()
        used = self.used[hostname, name]
        return {'server': used} if used else {}

    def cut_inventory(self, hostname, name, total, beside=0):
        self._fail()
        left = max(total, self.used[hostname, name] + beside)
        held = self.children.pop((hostname, name), 0)
        if held and left:
            self.children[hostname, name] = min(left, held)
        return left

    def release_inventory(self, hostname, name, only=None):
        self._fail()
        self.used[hostname, name] = 0


def add_compute_node(nova, placement, name, vcpus, memory_mb, disk_gb):
    """Add a compute node to Nova and Placement; return the node's uuid."""
    id_ = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
    nova.nodes[name] = Hypervisor(
        id_, name, name, 'QEMU', 8002000, '{}', 'nova'
    )
    placement.providers[id_] = {
        inventory.VCPU: Inventory(vcpus),
        inventory.MEMORY_MB: Inventory(memory_mb),
        inventory.DISK_GB: Inventory(disk_gb),
    }
    return id_
