# SPDX-License-Identifier: Apache-2.0
"""A manager over a real ledger, with Nova, Placement and time in memory."""

import contextlib
import dataclasses
import shutil
import uuid

import pytest

from blazar_sched.conf import service as service_conf
from blazar_sched.domain import window
from blazar_sched.replica import accounting
from blazar_sched.service import faults
from blazar_sched.service.clients.neutron import Neutron
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.manager.manager import Manager
from tests.standins.clients import add_compute_node
from tests.standins.clients import Nova
from tests.standins.clients import Placement
from tests.standins.neutron import NeutronApi

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


class ManagerInMemory:
    """The manager and what surrounds it; `wait` lets the time pass."""

    def __init__(self, conf):
        self.clock = Clock()
        self.monotonic = self.clock.monotonic
        self.nova = Nova()
        self.placement = Placement()
        self.neutron = NeutronApi()
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
        id_ = add_compute_node(
            self.nova, self.placement, name, vcpus, vcpus * 1024, vcpus * 10
        )
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
    world = ManagerInMemory(conf)
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
