# SPDX-License-Identifier: Apache-2.0
"""A manager over a real ledger, with Nova, Placement and time in memory.

Only the two clients are stood in for, with what their docstrings promise;
the clients themselves meet the real services in tests/nova/manager.
"""

from collections import Counter
from collections import defaultdict
import contextlib
import dataclasses
import shutil
import uuid

import pytest

from blazar_sched.conf import service as service_conf
from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.domain.inventory import Inventory
from blazar_sched.replica import accounting
from blazar_sched.service import faults
from blazar_sched.service.clients.neutron import Neutron
from blazar_sched.service.clients.nova import Aggregate
from blazar_sched.service.clients.nova import Hypervisor
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.manager.manager import Manager
from tests.unit import neutron as neutron_edge

START = 1_800_000_000


class Clock:
    """`now` is the wall's; it can be set, `step`ped or passed with time."""

    def __init__(self):
        self.now = START
        self.steps = 0

    def __call__(self):
        return float(self.now)

    def step(self, seconds):
        """Set the wall's clock without that any time passes."""
        self.now += seconds
        self.steps += seconds

    def monotonic(self):
        return float(self.now - self.steps - START)


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
        self.failures = 0

    def _fail(self):
        if self.failures:
            self.failures -= 1
            raise exception.Unavailable('compute answered 500')

    def hypervisor(self, name):
        self._fail()
        if name not in self.nodes:
            raise exception.HostNotFound(name, field='name')
        return self.nodes[name]

    def hypervisors(self):
        self._fail()
        return iter(list(self.nodes.values()))

    def servers(self, host=None, project_id=None):
        self._fail()
        return [
            s
            for s in self.stored.values()
            if host in (None, s.node) and project_id in (None, s.project_id)
        ]

    def server(self, uuid):
        self._fail()
        return self.stored.get(uuid)

    def has_moved(self, server, since):
        self._fail()
        return self.moved.get(server.uuid, -1) >= since

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

    def flavors(self):
        self._fail()
        return list(self.known_flavors)

    def aggregate(self, name):
        self._fail()
        return self.aggregates.get(name)

    def create_aggregate(self, name, metadata):
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
        known = self.aggregates[aggregate.name]
        both = {**known.metadata, **metadata}
        left = {k: v for k, v in both.items() if v is not None}
        self.aggregates[aggregate.name] = dataclasses.replace(
            known, metadata=left
        )

    def add_to_aggregate(self, aggregate, host):
        self._set_members(aggregate, lambda hosts: hosts | {host})

    def remove_from_aggregate(self, aggregate, host):
        self._set_members(aggregate, lambda hosts: hosts - {host})

    def _set_members(self, aggregate, change):
        self._fail()
        known = self.aggregates[aggregate.name]
        self.aggregates[aggregate.name] = dataclasses.replace(
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
            raise exception.Unavailable('placement answered 500')

    def inventories(self, provider):
        self._fail()
        self.looks[provider] += 1
        if provider not in self.providers:
            raise exception.HostNotFound(provider)
        return self.providers[provider]

    def traits(self, provider):
        self._fail()
        return self.traits_[provider]

    def generations(self):
        self._fail()
        return {id_: self.generations_[id_] for id_ in self.providers}

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

    def release_inventory(self, hostname, name):
        self._fail()
        self.used[hostname, name] = 0


class World:
    """The manager and what surrounds it; `wait` lets the time pass."""

    def __init__(self, conf):
        self.clock = Clock()
        self.monotonic = self.clock.monotonic
        self.nova = Nova()
        self.placement = Placement()
        self.neutron = neutron_edge.Neutron()
        self.waited = 0
        self.begin(conf)

    def begin(self, conf):
        """Have a new manager, by what `conf` says now; return it."""
        self.manager = self.another(conf)
        self.ledger = self.manager.ledger
        self.leases = self.manager.leases
        self.hosts = self.manager.hosts
        self.floating_ips = self.manager.floating_ips
        self.runner = self.manager.runner
        self.healer = self.manager.healer
        self.monitor = self.manager.monitor
        return self.manager

    def another(self, conf):
        """Return a manager of the same."""
        return Manager(
            conf, self.nova, self.placement, self.clock, self.monotonic,
            self.wait, neutron=Neutron(self.neutron),
        )

    @property
    def now(self):
        return self.clock.now

    def host(self, name):
        """Return a registered host by its hostname."""
        return next(
            h for h in self.ledger.hosts() if h.hypervisor_hostname == name
        )

    def wait(self, seconds):
        self.waited += seconds
        self.clock.now += max(1, round(seconds))

    def add_host(self, name, vcpus=8, register=True, **values):
        """Have a compute node in Nova; return its uuid."""
        id_ = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
        self.nova.nodes[name] = Hypervisor(
            id_, name, name, 'QEMU', 8000, '{}', 'nova'
        )
        self.placement.providers[id_] = {
            inventory.VCPU: Inventory(vcpus),
            inventory.MEMORY_MB: Inventory(vcpus * 1024),
            inventory.DISK_GB: Inventory(vcpus * 10),
        }
        if register:
            self.hosts.create(name, values)
        return id_

    def set_up(self, *names, up=True):
        """Have nova-compute of nodes up or down, and let that be seen."""
        for name in names:
            self.nova.nodes[name] = dataclasses.replace(
                self.nova.nodes[name], up=up
            )
        self.monitor.step()

    def fail(self, *names):
        self.set_up(*names, up=False)

    def add_server(self, node, project_id='other', vcpus=1, **values):
        server = Server(
            **{
                'uuid': str(uuid.uuid4()),
                'node': node,
                'project_id': project_id,
                'amounts': {'VCPU': vcpus, 'MEMORY_MB': 512, 'DISK_GB': 1},
                'end': window.FOREVER,
                'reservation_id': None,
                'preemptible': False,
                'status': 'ACTIVE',
                **values,
            }
        )
        self.nova.stored[server.uuid] = server
        return server

    def create(self, *reservations, start=100, end=200, **values):
        """Create a lease; times are seconds from now."""
        return self.leases.create(
            {
                'name': 'lease',
                'project_id': 'project',
                'user_id': 'user',
                'start': start if start == 'now' else self.now + start,
                'end': end if end == window.FOREVER else self.now + end,
                'before_end': None,
                'reservations': list(reservations) or [hosts()],
                **values,
            }
        )

    def lease(self, lease):
        return self.ledger.lease(lease.id)

    def held(self, lease):
        """Return (reservation, host, VCPU or 'whole') of its allocations."""
        return sorted(
            (a.reservation_id, a.host, a.amounts.get('VCPU', 'whole'))
            for a, _ in self.ledger.allocations(lease_id=lease.id)
        )

    def run(self, seconds=0):
        """Let time pass, and then do what is due, as far as that goes."""
        self.clock.now += seconds
        while any(
            self.runner.run(event, claim)
            for event, claim in self.runner.due()
        ):
            pass

    def check(self):
        """The ledger is sound, and its replica holds nothing but it."""
        assert self.ledger.check() == []
        self.ledger.commit(lambda tx: None)
        replica = self.ledger.replica
        allocations = [a for a, _ in self.ledger.allocations()]
        held = [
            a for r in replica.reservations
            for a in replica.indexes.allocations(r).values()
        ]
        assert sorted(held, key=str) == sorted(allocations, key=str)
        occupying = sum(
            accounting.occupancy(i, i.end <= self.now) is not None
            for i in replica.instances.values()
        )
        assert len(replica.indexes.main) == len(allocations) + occupying


def hosts(minimum=1, maximum=1, **parameters):
    return {
        'resource_type': 'physical:host',
        'min': minimum,
        'max': maximum,
        **parameters,
    }


def instances(amount=1, vcpus=2, **parameters):
    return {
        'resource_type': 'virtual:instance',
        'vcpus': vcpus,
        'memory_mb': 512,
        'disk_gb': 1,
        'amount': amount,
        **parameters,
    }


@pytest.fixture(scope='session')
def empty(tmp_path_factory):
    """The file of an empty ledger: made once, copied for each test."""
    path = tmp_path_factory.mktemp('ledger') / 'empty.sqlite'
    ledger = Ledger(f'sqlite:///{path}')
    ledger.upgrade()
    ledger.close()
    return path


@pytest.fixture
def conf(empty, tmp_path):
    conf = service_conf.load(files=[])
    path = shutil.copy(empty, tmp_path / 'ledger.sqlite')
    conf.set_override('connection', f'sqlite:///{path}', 'database')
    conf.set_override('transport_url', 'fake://')
    # Who tests vacating switches it on.
    conf.set_override('vacate_lead_time', 0, 'manager')
    return conf


@pytest.fixture
def world(conf):
    world = World(conf)
    yield world
    world.ledger.close()


class Killed(BaseException):
    """Nothing catches it, and nothing is done after it."""


@pytest.fixture
def killed():
    """Have the work stop for good at a point of `faults`: killed(point)."""

    @contextlib.contextmanager
    def killed(point):
        def kill(name):
            if name == point:
                raise Killed

        faults.arm(kill)
        try:
            with pytest.raises(Killed):
                yield
        finally:
            faults.arm(None)

    return killed


@pytest.fixture
def whole():
    """Ask for whole hosts: whole(minimum, maximum, **parameters)."""
    return hosts


@pytest.fixture
def slots():
    """Ask for instances: slots(amount, vcpus, **parameters)."""
    return instances
