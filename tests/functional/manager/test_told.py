# SPDX-License-Identifier: Apache-2.0
"""Only servers of an ending reservation, or with a notice, are deleted.

The test runs random histories of leases that keep, shelve or delete their
servers, that draw servers without a hint, and are shared, extended, shortened,
removed and ended late. An account of its own judges each server that Nova is
asked to delete or to shelve: the account has leases from the accepted
requests, and servers from the actions of the test. Nova notifies of servers
that come and go, so their records exist; nothing notifies of leases that
change.
"""

import contextlib
import dataclasses
import random

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import reservation
from blazar_sched.domain.demand import PHYSICAL_HOST
from blazar_sched.replica import record
from blazar_sched.replica import server_reservation
from blazar_sched.service.resources import vacating

EPISODES = 4
PROJECTS = ('p1', 'p2', 'p3')
HOSTS = ('a', 'b', 'c')


@dataclasses.dataclass
class Booking:
    """A reservation, as accepted by the API."""

    lease_id: str
    project_id: str
    whole: bool
    on_end: str
    start: int
    end: int
    had: set
    # The hostnames, including those of lost hosts.
    hosts: set = dataclasses.field(default_factory=set)
    gone: bool = False


class Account:
    """The account of which servers may be deleted or shelved."""

    def __init__(self, world):
        self.world = world
        self.bookings = {}
        # For each server the host it came to, and the open reservations then.
        self.came = {}
        self.told = set()
        self.faults = []
        self.ended = 0
        nova = world.nova
        self._delete, self._shelve = nova.delete_servers, nova.shelve_servers
        nova.delete_servers = lambda servers: self._judged(
            'delete', self._delete, servers
        )
        nova.shelve_servers = lambda servers: self._judged(
            'shelve', self._shelve, servers
        )
        nova.set_server_metadata = self._mark
        nova.migrate_server = lambda server: False

    def _mark(self, server, metadata):
        if vacating.VACATE_AT in metadata:
            self.told.add(server.uuid)
        kept = {k: v for k, v in metadata.items() if v is not None}
        self.world.nova.stored[server.uuid] = dataclasses.replace(
            self.world.nova.stored[server.uuid],
            metadata={**server.metadata, **kept},
        )

    def _judged(self, action, do, servers):
        servers = list(servers)
        for server in servers:
            self._judge(action, server)
        return do(servers)

    def _judge(self, action, server):
        now = self.world.now
        if server.node is None and action == 'shelve':
            return
        mine = [b for id_, b in self.bookings.items()
                if self._is_of(server, id_, b)]
        if any(b.on_end == action and (b.gone or b.end <= now) for b in mine):
            self.ended += 1
            return
        if any(b.start <= now < b.end and not b.gone for b in mine):
            self.faults.append(f'{action} {server.uuid} in its window')
        elif server.uuid not in self.told:
            self.faults.append(f'{action} {server.uuid} at {now}, untold')

    def _is_of(self, server, id_, booking):
        if server.reservation_id is not None:
            return (
                server.reservation_id == id_
                and server.project_id in booking.had
            )
        host, open_ = self.came[server.uuid]
        return (
            booking.whole
            and server.project_id == booking.project_id
            and host == server.node
            and id_ in open_
        )


class Play:
    """One history."""

    def __init__(self, world, seed):
        self.world = world
        self.random = random.Random(seed)
        self.account = Account(world)
        for name in HOSTS:
            world.add_host(name)

    def lease(self, host, start, length):
        """Create a lease of a whole host or of half of a host."""
        use = {
            'on_end': self.random.choice(reservation.ON_END),
            'resource_properties': f'["==", "$hypervisor_hostname", "{host}"]',
        }
        if self.random.random() < 0.5:
            use['projects'] = [self.random.choice(PROJECTS)]
        whole = self.random.random() < 0.6
        if whole:
            asked = {
                'resource_type': 'physical:host', 'min': 1, 'max': 1,
                'magnetic': self.random.random() < 0.5, **use,
            }
        else:
            asked = {
                'resource_type': 'virtual:instance', 'vcpus': 2,
                'memory_mb': 512, 'disk_gb': 1, 'amount': 2, **use,
            }
        project_id = self.random.choice(PROJECTS)
        many = 1 if whole else self.random.randint(1, 2)
        lease = self.world.create(
            *[asked] * many, start=start or 'now', end=start + length,
            project_id=project_id,
        )
        for noun in lease.reservations:
            self.account.bookings[noun.id] = Booking(
                lease.id, project_id, whole, noun.on_end, lease.start,
                lease.end, {project_id, *noun.projects},
            )

    def follow(self):
        """Create a lease that follows another one on its host."""
        _, booking = self.random.choice(self.open())
        self.lease(
            self.random.choice(sorted(booking.hosts)),
            booking.end - self.world.now + self.random.choice([0, 0, 300]), 900
        )

    def server(self):
        """Boot a server, as Nova's scheduler admits it."""
        id_, booking = self.random.choice(self.open())
        node = self.random.choice(sorted(booking.hosts))
        kind = self.random.random()
        if kind < 0.5:
            who = self.random.choice(sorted(booking.had))
            self.boot(node, who, reservation_id=id_)
        elif kind < 0.8:
            # The server has no hint: it is of a project that may use the
            # reservation.
            self.boot(node, self.random.choice(sorted(booking.had)))
        else:
            self.boot(self.random.choice(HOSTS), self.random.choice(PROJECTS))

    def boot(self, node, project_id, **values):
        server = self.world.add_server(
            node, project_id, created=self.world.now, **values
        )
        self.arrive(server)

    def arrive(self, server):
        self.account.came[server.uuid] = server.node, {
            id_ for id_, booking in self.open() if server.node in booking.hosts
        }
        self.look(server)

    def look(self, server):
        self.world.manager.instances.notice(server.uuid)
        self.world.manager.instances.poll()

    def move(self):
        there = [s for s in self.world.nova.stored.values() if s.node]
        if there:
            server = self.random.choice(there)
            node = self.random.choice(HOSTS)
            if node != server.node:
                moved = dataclasses.replace(server, node=node)
                self.world.nova.stored[server.uuid] = moved
                self.arrive(moved)

    def change(self):
        """Extend, shorten or share a lease, or change its on_end."""
        found = self.leases()
        if not found:
            return
        lease = self.random.choice(found)
        values = {}
        if self.random.random() < 0.6:
            values['end'] = self.random.choice(
                ['now', lease.end - 50, lease.end + 700, lease.end + 5000]
            )
        noun = self.random.choice(lease.reservations)
        asked = {'id': noun.id}
        if self.random.random() < 0.3:
            asked['on_end'] = self.random.choice(reservation.ON_END)
        if self.random.random() < 0.3:
            asked['projects'] = self.random.sample(
                PROJECTS, self.random.randint(0, 2)
            )
        if len(asked) > 1:
            values['reservations'] = [asked]
        self.world.leases.update(lease.id, None, values)
        self.accept(lease)

    def remove(self):
        """Remove a reservation from a lease."""
        found = [e for e in self.leases() if len(e.reservations) > 1]
        if found:
            lease = self.random.choice(found)
            gone = self.random.choice(lease.reservations).id
            asked = {'id': gone, 'remove': True}
            self.account.bookings[gone].gone = True
            try:
                self.world.leases.update(
                    lease.id, None, {'reservations': [asked]}
                )
            except exception.BlazarSchedError:
                self.account.bookings[gone].gone = False
                raise

    def delete(self, lease=None):
        found = self.world.ledger.leases()
        if found:
            lease = lease or self.random.choice(found)
            mine = [self.account.bookings[r.id] for r in lease.reservations
                    if r.id in self.account.bookings]
            was = [b.gone for b in mine]
            for booking in mine:
                booking.gone = True
            try:
                self.world.leases.delete(lease.id, None)
            except exception.InvalidStatus:
                for booking, gone in zip(mine, was, strict=True):
                    booking.gone = gone
                raise

    def fail(self):
        up = [n for n in HOSTS if self.world.nova.nodes[n].up]
        if len(up) == len(HOSTS):
            self.world.fail(self.random.choice(up))
        else:
            self.world.set_up(*HOSTS)

    def away(self):
        """Make Nova unavailable for some requests."""
        self.world.nova.failures = self.random.choice([1, 3, 40])

    def wait(self):
        now = self.world.now
        times = [
            at for b in self.account.bookings.values()
            for at in (b.start, b.end) if at > now and not b.gone
        ]
        until = min(times, default=now) + self.random.choice([0, 5, 60])
        while self.world.now < until:
            self.world.run(min(60, until - self.world.now))
            self.note()
        self.world.run(1)
        self.world.nova.failures = 0

    def sync(self):
        self.world.manager.instances.sync()

    def leases(self):
        return [
            e for e in self.world.ledger.leases()
            if e.status in ('PENDING', 'ACTIVE') and not e.is_lifetime
        ]

    def open(self):
        now = self.world.now
        return [
            (id_, b) for id_, b in self.account.bookings.items()
            if b.start <= now < b.end and not b.gone and b.hosts
        ]

    def accept(self, lease):
        lease = self.world.lease(lease)
        for noun in lease.reservations:
            booking = self.account.bookings[noun.id]
            booking.start, booking.end = lease.start, lease.end
            booking.on_end = noun.on_end
            booking.had.update(noun.projects)

    def note(self):
        """Record the hosts of each reservation."""
        names = {h.uuid: h.hypervisor_hostname
                 for h in self.world.ledger.hosts()}
        for id_, booking in self.account.bookings.items():
            for held, _ in self.world.ledger.allocations(reservation_id=id_):
                booking.hosts.add(names[held.host])

    def try_(self, act, *args):
        # The request is refused, Nova is away, or no reservation is open.
        with contextlib.suppress(exception.BlazarSchedError, IndexError):
            act(*args)
        self.note()
        for each in self.leases():
            self.accept(each)

    def episode(self):
        """Run a lease, another one after it, and remove all objects."""
        self.try_(self.lease, self.random.choice(HOSTS), 0, 900)
        self.try_(self.world.run)
        for act in (self.server, self.server, self.follow):
            self.try_(act)
        for _ in range(self.random.randint(3, 8)):
            self.try_(self.random.choice([
                self.server, self.server, self.move, self.change, self.change,
                self.change, self.remove, self.delete, self.fail, self.away,
                self.away, self.wait, self.wait, self.wait, self.sync,
            ]))
        for _ in range(3):
            self.try_(self.wait)
        self.world.nova.failures = 0
        self.world.set_up(*HOSTS)
        self.clear()

    def clear(self):
        """Remove all leases and servers."""
        for uuid in list(self.world.nova.stored):
            self.look(self.world.nova.stored.pop(uuid))
        for lease in self.world.ledger.leases():
            self.delete(lease)


@pytest.fixture
def conf(conf):
    conf.set_override('vacate_lead_time', 600, 'manager')
    conf.set_override('vacate_notice', 60, 'manager')
    return conf


def played(world, seed):
    play = Play(world, seed)
    for _ in range(EPISODES):
        play.episode()
        if play.account.faults:
            break
    return play.account


@pytest.mark.parametrize('seed', [0, 152])
def test_no_server_goes_that_may_stay(world, seed):
    account = played(world, seed)
    assert account.faults == []
    # Other servers were deleted correctly.
    assert account.ended
    world.check()


def forget_to_keep(patch):
    """The fault: a reservation claims the servers that it has kept."""
    patch.setattr(record.Reservation, 'keeps', False)


def vacate_at_once(patch):
    """The fault: servers are vacated in the window of their own reservation.
    """
    patch.setattr(vacating.Vacater, '_open_until', lambda *args: {})


def take_all(patch, of=lambda noun, server: True):
    """The fault: a reservation draws every server without a hint."""
    draws_on = server_reservation.draws_on

    def take(noun, server, known, host):
        return draws_on(noun, server, known, host) or (
            host is not None
            and noun.resource_type == PHYSICAL_HOST
            and server.reservation_id is None
            and noun.is_open_to(server.project_id)
            and of(noun, server)
        )

    patch.setattr(server_reservation, 'draws_on', take)


def take_those_of_friends(patch):
    """The fault: a reservation draws servers of projects that share it."""
    take_all(
        patch, lambda noun, server: noun.start <= server.created < noun.end
    )


@pytest.mark.parametrize('seed, switch_off', [
    (0, forget_to_keep),
    (0, vacate_at_once),
    (0, take_all),
    (4, take_those_of_friends),
])
def test_control_a_deleted_server_that_may_stay_is_found(
    world, seed, switch_off, monkeypatch
):
    switch_off(monkeypatch)
    assert played(world, seed).faults
