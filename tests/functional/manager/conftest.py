# SPDX-License-Identifier: Apache-2.0
"""A manager on a real ledger, with Nova, Placement and time in memory."""

import contextlib
import dataclasses
import functools
import shutil
import uuid

import pytest

from blazar_sched.conf import service as service_conf
from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.replica import accounting
from blazar_sched.replica import packing
from blazar_sched.service import faults
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.manager.manager import Manager
from tests import overriding
from tests.standins import processor
from tests.standins.clients import add_compute_node
from tests.standins.clients import Nova
from tests.standins.clients import Placement
from tests.standins.neutron import NeutronApi
from tests.told import notified
from tests.waiting import at_once

START = 1_800_000_000


class Clock:
    """A clock; `now` is the wall time; it can be set, `step`ped or advanced.
    """

    def __init__(self):
        self.now = START
        self.steps = 0

    def __call__(self):
        return float(self.now)

    def step(self, seconds):
        """Set the wall time without advancing the monotonic time."""
        self.now += seconds
        self.steps += seconds

    def monotonic(self):
        return float(self.now - self.steps - START)


class ManagerInMemory:
    """A manager and its surroundings; `wait` lets the time pass."""

    def __init__(self, conf):
        self.clock = Clock()
        self.monotonic = self.clock.monotonic
        self.nova = Nova()
        self.placement = Placement()
        self.neutron = NeutronApi()
        self.waited = 0
        self.begin(conf)

    def begin(self, conf):
        """Create a new manager with the current `conf`; return it."""
        self.manager = self.another(conf)
        self.ledger = self.manager.ledger
        self.leases = self.manager.leases
        self.hosts = self.manager.hosts
        self.runner = self.manager.runner
        self.healer = self.manager.healer
        self.monitor = self.manager.monitor
        return self.manager

    def another(self, conf):
        """Return another manager with the same surroundings."""
        return Manager(
            conf, self.nova, self.placement, self.clock, self.monotonic,
            self.wait, adapter={'neutron': self.neutron}.get,
            thread_time=processor.ticking(),
        )

    @property
    def now(self):
        return self.clock.now

    def host(self, name):
        """Return a registered host by its hostname."""
        return next(
            h for h in self.ledger.hosts() if h.hypervisor_hostname == name
        )

    def names(self):
        """Return the hostnames of the registered hosts, by uuid."""
        return {h.uuid: h.hypervisor_hostname for h in self.ledger.hosts()}

    def wait(self, seconds):
        self.waited += seconds
        self.clock.now += max(1, round(seconds))

    def add_host(self, name, vcpus=8, register=True, **values):
        """Add a compute node to Nova; return its uuid."""
        id_ = add_compute_node(
            self.nova, self.placement, name, vcpus, vcpus * 1024, vcpus * 10
        )
        if register:
            self.hosts.create(name, values)
        return id_

    def add_hosts(self, *names, **values):
        """Add compute nodes, each as by `add_host`; return their uuids."""
        return [self.add_host(name, **values) for name in names]

    def set_up(self, *names, up=True):
        """Set nova-compute of nodes up or down, and let the monitor poll."""
        for name in names:
            self.nova.nodes[name] = dataclasses.replace(
                self.nova.nodes[name], up=up
            )
        self.monitor.step()

    def fail(self, *names):
        self.set_up(*names, up=False)

    def monitor_at_once(self, conf):
        """Let the monitors of four managers poll at the same time."""
        others = [self.another(conf) for _ in range(3)]
        at_once(*(manager.monitor.step for manager in (self.manager, *others)))
        for other in others:
            other.ledger.close()

    def add_server(self, node, project_id='other', vcpus=1, **values):
        server = Server(**{
            'uuid': str(uuid.uuid4()),
            'node': node,
            'project_id': project_id,
            'amounts': {'VCPU': vcpus, 'MEMORY_MB': 512, 'DISK_GB': 1},
            'end': window.FOREVER,
            'reservation_id': None,
            'preemptible': False,
            'status': 'ACTIVE',
            **values,
        })
        self.nova.stored[server.uuid] = server
        return server

    def add_own_server(self, lease, node='a', project_id='project', **values):
        """Add a server that names the first reservation of a lease."""
        return self.add_server(
            node, project_id, reservation_id=lease.reservations[0].id, **values
        )

    def values(self, *reservations, start=100, end=200, **values):
        """Return the values of a new lease; times are seconds from now."""
        return {
            'name': 'lease',
            'project_id': 'project',
            'user_id': 'user',
            'start': start if start == 'now' else self.now + start,
            'end': end if end == window.FOREVER else self.now + end,
            'before_end': None,
            'reservations': list(reservations) or [hosts()],
            **values,
        }

    def create(self, *reservations, **values):
        """Create a lease; arguments as of `values`."""
        return self.leases.create(self.values(*reservations, **values))

    def start_lease(self, *reservations, **values):
        """Create a lease that starts now, and run its start."""
        lease = self.create(*reservations, start='now', **values)
        self.run()
        return lease

    def update_lease(self, lease, **values):
        return self.leases.update(lease.id, None, values)

    def change_reservation(self, lease, **values):
        """Change the first reservation of a lease; return the lease."""
        change = {'id': lease.reservations[0].id, **values}
        return self.update_lease(lease, reservations=[change])

    def refuse(self, *reservations, **values):
        """Check that a lease finds too few hosts; arguments as of `create`."""
        with pytest.raises(exception.NotEnoughHostsAvailable):
            self.create(*reservations, **values)

    def lease(self, lease):
        return self.ledger.lease(lease.id)

    def held(self, lease):
        """Return a lease's allocations: (reservation, host, amount)."""
        return sorted(
            (a.reservation_id, a.host, a.amounts.get('VCPU', 'whole'))
            for a, _ in self.ledger.allocations(lease_id=lease.id)
        )

    def run(self, seconds=0):
        """Let time pass, and then run the events that are due."""
        self.clock.now += seconds
        while any(
            self.runner.run(event, claim) for event, claim in self.runner.due()
        ):
            pass

    def check(self):
        """Check that the ledger is consistent, and equal to its replica."""
        assert self.ledger.check(self.now) == []
        self.ledger.commit(lambda tx: None)
        replica = self.ledger.replica
        allocations = [a for a, _ in self.ledger.allocations()]
        held = [
            a for r in replica.reservations
            for a in replica.indexes.allocations(r).values()
        ]
        assert sorted(held, key=str) == sorted(allocations, key=str)
        # What takes other resource classes alone is not in the main index.
        in_main = sum(
            a.whole or any(packing.amounts_of(a.amounts)) for a in allocations
        )
        occupying = sum(
            accounting.occupancy(i, i.end <= self.now) is not None
            and any(packing.amounts_of(i.countable()))
            for i in replica.instances.values()
        )
        closed = sum(
            len(host.closed_windows) for host in replica.hosts.values()
        )
        assert len(replica.indexes.main) == in_main + occupying + closed


def hosts(minimum=1, maximum=1, **parameters):
    return {
        'resource_type': 'physical:host', 'min': minimum, 'max': maximum,
        **parameters,
    }


def instances(amount=1, vcpus=2, **parameters):
    return {
        'resource_type': 'virtual:instance', 'vcpus': vcpus, 'memory_mb': 512,
        'disk_gb': 1, 'amount': amount, **parameters,
    }


@functools.lru_cache(maxsize=1)
def at(name):
    """Return the requirement of a request that names its host."""
    return f'["==", "$hypervisor_hostname", "{name}"]'


def _without_files(module, exchange):
    """Return a configuration that the tests of a module share.

    Some read files into it, or register options.
    """
    return service_conf.load(files=[])


@pytest.fixture
def conf(request, empty_ledger, tmp_path):
    path = shutil.copy(empty_ledger, tmp_path / 'ledger.sqlite')
    read = _without_files(request.module.__name__, overriding.exchange())
    with overriding.forgetting(read) as conf:
        conf.set_override('connection', f'sqlite:///{path}', 'database')
        conf.set_override('transport_url', 'fake://')
        # Tests of vacating enable it themselves.
        conf.set_override('vacate_lead_time', 0, 'manager')
        # Tests of relocation and of limits set the options that they are
        # about.
        conf.set_override('relocate_instances', False, 'manager')
        conf.set_override('enabled_filters', [], 'enforcement')
        conf.set_override('max_start_horizon', -1, 'enforcement')
        conf.set_override('max_percent_per_project', -1, 'enforcement')
        yield conf


@pytest.fixture
def limit(conf):
    """limit(**options) -> set options of the enforcement."""

    def set_(**options):
        for name, value in options.items():
            conf.set_override(name, value, 'enforcement')

    return set_


@pytest.fixture
def world(conf):
    world = ManagerInMemory(conf)
    yield world
    world.ledger.close()


@pytest.fixture
def on(world):
    """Return the names of the hosts that a lease holds."""

    def on(lease):
        names = world.names()
        return sorted(names[host] for _, host, _ in world.held(lease))

    return on


@contextlib.contextmanager
def refused(error, field, **matching):
    """Check that an error is raised that names a field."""
    with pytest.raises(error, **matching) as refusal:
        yield refusal
    assert refusal.value.field == field


@pytest.fixture
def told(world, monkeypatch):
    """The notifications of the manager, (type, payload), none of them sent."""
    return notified(world.manager, monkeypatch)


class Killed(BaseException):
    """An exception that no code catches, like a kill."""


@pytest.fixture
def killed():
    """killed(point, after=0): stop the work for good at a point of `faults`.

    The work passes the point `after` times before.
    """

    @contextlib.contextmanager
    def killed(point, after=0):
        left = [after]

        def kill(name):
            if name == point:
                left[0] -= 1
                if left[0] < 0:
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
    """Return a request for whole hosts: whole(minimum, maximum, **parameters).
    """
    return hosts


@pytest.fixture
def slots():
    """Return a request for instances: slots(amount, vcpus, **parameters)."""
    return instances
