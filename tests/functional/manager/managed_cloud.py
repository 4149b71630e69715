# SPDX-License-Identifier: Apache-2.0
"""A manager with stand-ins for Nova and Placement at the level of HTTP."""

from oslo_messaging.notify import _impl_test

from blazar_sched.domain import duration
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.placement import Placement
from blazar_sched.service.manager.manager import Manager
from tests.standins.cloud import CloudApi


class ManagedCloud:
    """A cloud with hosts of 8 VCPUs, and a manager that has no host yet.

    :param options: arguments of the manager
    """

    def __init__(self, conf, clock, *hosts, **options):
        self.conf = conf
        self.clock = clock
        self.cloud = CloudApi(*hosts)
        self.hosts = {name: self.cloud.uuid(name) for name in hosts}
        self._options = options
        self.manager = self.another()
        self.ledger = self.manager.ledger

    def another(self):
        """Return another manager of the same cloud."""
        return Manager(
            self.conf, Nova(self.cloud), Placement(self.cloud), self.clock,
            self.clock.monotonic, **self._options,
        )

    def register_all(self):
        """Register each host of the cloud."""
        for name in self.hosts:
            self.manager.hosts.create(name, {})

    def create(self, *reservations, start=1000, end=2000, **values):
        """Create a lease; times are in seconds from now."""
        now = self.clock.now
        return self.manager.leases.create({
            'name': 'lease', 'project_id': 'project', 'user_id': 'user',
            'start': start if start == 'now' else now + start,
            'end': now + end, 'before_end': None,
            'reservations': list(reservations), **values,
        })

    def run_until(self, lease, status):
        """Let time pass until a lease has a state, for ten minutes at most."""
        until = self.clock.now + 600
        while self.ledger.lease(lease.id).status != status:
            assert self.clock.now < until
            for event, claim in self.ledger.due_events(self.clock.now):
                self.manager.runner.run(event, claim)
            self.clock.now += 5


class NotifyingCloud(ManagedCloud):
    """A cloud that records notifications; times are in seconds from now."""

    def __init__(self, conf, clock, *hosts, **options):
        _impl_test.reset()
        conf.set_override('driver', ['test'], 'oslo_messaging_notifications')
        super().__init__(conf, clock, *hosts, **options)
        self.register_all()

    @property
    def now(self):
        return self.clock.now

    def server(self, host, vcpus=1, age=0, **specs):
        """Add a server to a host; return the server as Nova shows it."""
        server = self.cloud.servers[self.cloud.add_server(host, 'other')]
        server['flavor'].update(vcpus=vcpus, extra_specs=specs)
        server['created'] = duration.format_time(self.now - age)
        return server

    def preemptible(self, host, vcpus=1, **values):
        return self.server(
            host, vcpus, **values, **{'blazar:preemptible': 'true'}
        )

    def sync(self):
        """Synchronize the ledger's instance records with Nova."""
        self.manager.instances.sync()

    def lease(self, lease):
        return self.ledger.lease(lease.id)

    def run(self, seconds=0, manager=None):
        """Let time pass, then run the events that are due, until each waits.
        """
        self.clock.now += seconds
        runner = (manager or self.manager).runner
        while any(
            runner.run(event, claim)
            for event, claim in self.ledger.due_events(self.now)
        ):
            pass

    def asked(self, *paths):
        """Return the requests about servers since the last call."""
        seen, self.cloud.asked[:] = list(self.cloud.asked), []
        return [
            (method, path)
            for method, path in seen
            if method != 'GET' and path.startswith('/servers')
        ]

    def sent(self):
        """Return the notifications since the last call: (type, payload)."""
        self.manager.notifier.step()
        messages = [message for _, message, *_ in _impl_test.NOTIFICATIONS]
        _impl_test.reset()
        return [(m['event_type'], m['payload']) for m in messages]


def at(seconds):
    """Return a time in the format of the notice in a server's metadata."""
    return duration.format_time(seconds)
