# SPDX-License-Identifier: Apache-2.0
"""A manager over Nova and Placement at their HTTP edge, in tests' time."""

from oslo_messaging.notify import _impl_test

from blazar_sched.domain import duration
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.placement import Placement
from blazar_sched.service.manager.manager import Manager
from tests.functional.manager.edge import Edge


class Site:
    """Hosts of 8 VCPUs, all reservable; times are in seconds from now."""

    def __init__(self, conf, clock, *hosts):
        _impl_test.reset()
        conf.set_override('driver', ['test'], 'oslo_messaging_notifications')
        self.conf = conf
        self.clock = clock
        self.edge = Edge(*hosts)
        self.hosts = {name: self.edge.uuid(name) for name in hosts}
        self.manager = self.another()
        self.ledger = self.manager.ledger
        for name in hosts:
            self.manager.hosts.create(name, {})

    def another(self):
        """Return another manager of the same."""
        return Manager(
            self.conf, Nova(self.edge), Placement(self.edge),
            self.clock, self.clock.monotonic,
        )

    @property
    def now(self):
        return self.clock.now

    def server(self, host, vcpus=1, age=0, **specs):
        """Have a server on a host; return it as Nova knows it."""
        server = self.edge.servers[self.edge.add_server(host, 'other')]
        server['flavor'].update(vcpus=vcpus, extra_specs=specs)
        server['created'] = duration.format_time(self.now - age)
        return server

    def preemptible(self, host, vcpus=1, **values):
        return self.server(
            host, vcpus, **values, **{'blazar:preemptible': 'true'}
        )

    def sync(self):
        """Have the ledger learn what runs where."""
        self.manager.instances.sync()

    def create(self, *reservations, start=1000, end=2000):
        return self.manager.leases.create(
            {
                'name': 'lease',
                'project_id': 'project',
                'user_id': 'user',
                'start': self.now + start,
                'end': self.now + end,
                'before_end': None,
                'reservations': list(reservations),
            }
        )

    def lease(self, lease):
        return self.ledger.lease(lease.id)

    def run(self, seconds=0, manager=None):
        """Let time pass, then do what is due, each event until it waits."""
        self.clock.now += seconds
        runner = (manager or self.manager).runner
        while any(
            runner.run(event, claim)
            for event, claim in self.ledger.due_events(self.now)
        ):
            pass

    def asked(self, *paths):
        """Return what was asked of servers since the last look."""
        seen, self.edge.asked[:] = list(self.edge.asked), []
        return [
            (method, path)
            for method, path in seen
            if method != 'GET' and path.startswith('/servers')
        ]

    def sent(self):
        """Return the notifications since the last look: (type, payload)."""
        self.manager.notifier.step()
        messages = [message for _, message, *_ in _impl_test.NOTIFICATIONS]
        _impl_test.reset()
        return [(m['event_type'], m['payload']) for m in messages]


def at(seconds):
    """Return a time as servers are told it."""
    return duration.format_time(seconds)
