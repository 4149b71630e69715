# SPDX-License-Identifier: Apache-2.0
"""Random decisions of the filters, compared with slow arithmetic.

The filters decide over Nova's own HostStates. Each server is in the figures
and in the names of a HostState, and in the feed, at times of its own; records
may also stay after their servers are gone. The arithmetic knows the servers
that there are. A request that would not fit beside these must be refused. A
request that fits even if each server that is not both named and recorded
stays for ever, at the larger of its amounts, must be let in. No filter may
fail meanwhile.

A host may lack the device that is asked for: the device is then that of a
provider that cannot be reserved, and the host passes. One host has no leases,
and leaves the ledger.

BLAZAR_SCHED_SEEDS sets how many worlds are played: 600 of them have about
20,000 decisions.
"""

import dataclasses
import os
import random
import uuid

import pytest

from blazar_sched import ext
from blazar_sched.domain import window
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.inventory import Inventory
from blazar_sched.ext import host_state as plain_host_state
from blazar_sched.ext import timeline_index as plain_timeline
from blazar_sched.replica import record
from blazar_sched.worker import consumption
from blazar_sched.worker import filtering
from blazar_sched.worker import process
from tests.nova import test_placed
from tests.nova.test_placed import GPU
from tests.nova.test_placed import NOW
from tests.nova.test_placed import PROJECT

SEEDS = int(os.environ.get('BLAZAR_SCHED_SEEDS', '15'))
TAIL = NOW + 9000
ROUNDS = 12
RUNTIME = 300
PCPU, VGPU = 'PCPU', 'VGPU'
DEVICES = 4
# What an allocation of the whole host needs.
WHOLE = 10**6
POLICIES = {
    None: window.FOREVER, 'never': None, 'assume:10m': NOW + 600,
    'forever': window.FOREVER,
}


@dataclasses.dataclass
class Server:
    """A server; `nova` are its VCPUs in the figures of a HostState."""

    host: str
    vcpus: int
    nova: int
    device: str
    count: int
    end: int = window.FOREVER
    reservation: str | None = None
    preemptible: bool = False
    named: bool = False
    recorded: bool = False
    gone: bool = False
    uuid: str = dataclasses.field(default_factory=lambda: str(uuid.uuid4()))

    def record(self):
        amounts = {
            'VCPU': self.vcpus, 'MEMORY_MB': 1, 'DISK_GB': 1,
            self.device: self.count,
        }
        return record.encode(Instance(
            self.uuid, self.host, PROJECT,
            {name: n for name, n in amounts.items() if n}, self.end,
            self.reservation, self.preemptible, self.reservation,
            used={'VCPU': self.nova, 'MEMORY_MB': 1, 'DISK_GB': 1},
            building=not self.named,
        ))

    def stays(self, at, most):
        """Return until when it counts for itself: at a time, or never."""
        overdue = self.end <= NOW
        if most and not (self.named and self.recorded):
            return True
        if self.preemptible:
            # It yields when a window opens, but not at once.
            return at < NOW + RUNTIME
        if self.reservation and not overdue:
            return False
        return overdue or at < self.end

    def vcpus_at(self, at, most):
        """Return its VCPUs in the need at a time, at least or at most."""
        if not most:
            return 0 if self.gone or not self.stays(at, most) else self.vcpus
        larger = max(self.vcpus, self.nova)
        # A server that is gone may be pending, a copy may yield.
        if not (self.named or self.gone) and self.reservation:
            return larger - self.nova if self.recorded else 0
        if self.named and self.recorded:
            return self.vcpus if self.stays(at, most) else 0
        return larger

    def devices_at(self, device, at, most):
        if device != self.device or self.gone and not most:
            return 0
        if self.preemptible:
            return self.count if at < NOW + RUNTIME else 0
        if self.reservation and self.end > NOW:
            return 0
        if most and not self.recorded or self.end <= NOW or at < self.end:
            return self.count
        return 0


class World:
    """Three hosts, leases on two of them, and the servers that there are."""

    def __init__(self, seed):
        self.draw = draw = random.Random(seed)
        self.site = test_placed.ReservedHost()
        self.site.tell(
            (record.ALLOCATION, 'a', None), (record.RESERVATION, 'r', None),
            (record.HOST, self.site.uuid, None),
        )
        self.servers, self.held, self.hosts = [], [], {}
        self.left = set()
        for name in 'abc':
            held = Inventory(
                draw.randint(4, 8), draw.randint(0, 2),
                float(draw.randint(1, 2)),
            )
            host = Host(
                str(uuid.uuid4()), name, name, inventory={
                    'VCPU': held, 'MEMORY_MB': Inventory(8192),
                    'DISK_GB': Inventory(80),
                } | {
                    device: Inventory(DEVICES) for device in (GPU, PCPU, VGPU)
                    if draw.random() < 0.7
                },
                hold=draw.choice(['shared', 'shared', 'shared', 'dedicated']),
                unbounded=draw.choice([*POLICIES, None, None]),
            )
            self.hosts[host.uuid] = host
        self.site.tell(*map(record.encode, self.hosts.values()))
        soon = draw.choice((100, 900))
        for name, start in ('r', NOW - 60), ('q', NOW + soon):
            for host in list(self.hosts)[:2]:
                self.reserve(name, host, start)
        for host in self.hosts:
            for _ in range(draw.randint(0, 3)):
                server = self.server(host)
                server.end = draw.choice([
                    NOW - 9, NOW + draw.randint(1, 1800), window.FOREVER
                ])
                server.named = server.recorded = True
                self.servers.append(server)
                self.site.tell(server.record())

    def reserve(self, name, host, start):
        draw = self.draw
        whole = name == 'q' and draw.random() < 0.2
        amounts = {} if whole else {
            'VCPU': draw.randint(1, 4), 'MEMORY_MB': 9, 'DISK_GB': 9,
        } | {
            device: draw.randint(0, 2) for device in (GPU, PCPU, VGPU)
            if device in self.hosts[host].inventory
        }
        end = start + draw.randint(300, 3600)
        held = Allocation(
            f'{name} {host}', name, host, start, end,
            {c: n for c, n in amounts.items() if n}, whole,
        )
        self.held.append(held)
        self.site.tell(
            record.encode(record.Reservation(
                name, 'l', PROJECT, 'flavor:instance', start, TAIL,
                {'VCPU': 1, GPU: 1},
            )),
            record.encode(held),
        )

    def server(self, host=''):
        draw = self.draw
        vcpus = nova = draw.randint(1, 3)
        device, count = draw.choice([GPU, PCPU, VGPU]), draw.choice([0, 0, 1])
        if device == PCPU and count:
            # Dedicated processors take the place of the others.
            vcpus, count = 0, vcpus
        elif draw.random() < 0.3:
            nova = draw.randint(0, 4)
        made = Server(host, vcpus, nova, device, count)
        kind = draw.choice(['', '', 'bounded', 'bound', 'preemptible'])
        if kind == 'bounded':
            made.end = NOW + draw.randint(60, 3600)
        elif kind == 'bound':
            made.reservation = 'r'
        made.preemptible = kind == 'preemptible'
        return made

    def spec(self, server, copies=1):
        extra_specs = {f'trait:{VGPU}': 'required'}
        if not server.vcpus:
            extra_specs['hw:cpu_policy'] = 'dedicated'
        else:
            extra_specs['resources:VCPU'] = str(server.vcpus)
            if server.count:
                group = self.draw.choice(('', '1', '_device'))
                extra_specs[f'resources{group}:{server.device}'] = str(
                    server.count
                )
        hints = {}
        if server.reservation:
            hints['reservation'] = server.reservation
        if server.end != window.FOREVER:
            hints['lifetime'] = f'{server.end - NOW}s'
        made = test_placed.spec(
            server.preemptible, extra_specs, server.nova, **hints
        )
        made.instance_uuid, made.num_instances = server.uuid, copies
        return made

    def host_states(self):
        """Return new HostStates, as Nova makes them for each request."""
        found = []
        for host in self.hosts.values():
            here = [
                s for s in self.servers if s.named and s.host == host.uuid
            ]
            made = self.site.host_state(
                host.inventory['VCPU'].reserved + sum(s.nova for s in here),
                [s.uuid for s in here],
            )
            made.uuid = host.uuid
            # As far as the servers are counted.
            made.free_ram_mb -= len(here)
            made.disk_mb_used = 1024 * len(here)
            found.append(made)
        return found

    def needs(self, host, device, at, most):
        """Return the VCPUs and devices needed at a time, least or most."""
        here = [s for s in self.servers if s.host == host]
        vcpus = sum(s.vcpus_at(at, most) for s in here)
        devices = sum(s.devices_at(device, at, most) for s in here)
        for each in self.held:
            if each.host == host and each.start <= at < each.end:
                if each.whole:
                    return WHOLE, WHOLE
                used = sum(
                    s.vcpus for s in here
                    if s.reservation == each.reservation_id and s.end > NOW
                    and (most or s.recorded and not s.gone)
                )
                vcpus += max(each.amounts['VCPU'], used)
                devices += each.amounts.get(device, 0)
        return vcpus, devices

    def fits(self, asked, uuid_, most):
        """Tell whether a request fits on a host beside all others."""
        host = self.hosts[uuid_]
        if asked.reservation:
            return self.fits_inside(asked, uuid_, most)
        if uuid_ in self.left:
            return True
        end = asked.end
        if asked.preemptible:
            end = NOW + RUNTIME
        elif host.hold == 'dedicated':
            return False
        elif end == window.FOREVER:
            end = POLICIES[host.unbounded]
            if end is None:
                return False
        times = {NOW, *(a.start for a in self.held), *(
            a.end for a in self.held
        ), *(s.end for s in self.servers)}
        for at in times:
            if not NOW <= at < end:
                continue
            vcpus, devices = self.needs(uuid_, asked.device, at, most)
            if vcpus >= WHOLE or asked.vcpus and (
                vcpus + asked.vcpus > host.inventory['VCPU'].capacity
            ) or asked.count and asked.device in host.inventory and (
                devices + asked.count > DEVICES
            ):
                return False
        return True

    def fits_inside(self, asked, uuid_, most):
        held = next((
            a for a in self.held
            if a.host == uuid_ and a.reservation_id == asked.reservation
        ), None)
        if held is None:
            return False
        used = [
            s for s in self.servers
            if s.host == uuid_ and s.reservation == asked.reservation
            and (most or not s.gone)
        ]
        vcpus = sum(s.vcpus for s in used)
        devices = sum(s.count for s in used if s.device == asked.device)
        return not (
            asked.vcpus and vcpus + asked.vcpus > held.amounts['VCPU']
            or asked.count
            and devices + asked.count > held.amounts.get(asked.device, 0)
        )

    def faults(self):
        """Place some requests; yield each decision that is wrong, or None."""
        for _ in range(ROUNDS):
            first, states = self.server(), self.host_states()
            copies = self.draw.choice([1, 1, 3])
            for _ in range(copies):
                asked = dataclasses.replace(first, uuid=str(uuid.uuid4()))
                passing, wrong = self.decide(asked, states, copies)
                yield from wrong
                if not passing:
                    break
                chosen = self.draw.choice(passing)
                chosen.consume_from_request(self.noted)
                asked.host = chosen.uuid
                self.servers.append(asked)
                if self.draw.random() < 0.2:
                    self.tell(asked)
            self.move()
            if not self.left and self.draw.random() < 0.1:
                self.leave(list(self.hosts)[2])
            yield from self.moved()

    def decide(self, asked, states, copies=1):
        self.noted = self.spec(asked, copies)
        passing = self.site.passing_of(states, self.noted)
        there = {h.uuid for h in passing}
        wrong = []
        for h in states:
            bad = (
                not self.fits(asked, h.uuid, most=False)
                if h.uuid in there else self.fits(asked, h.uuid, most=True)
            )
            wrong.append((asked, h.uuid in there) if bad else None)
        return passing, wrong

    def moved(self):
        """Decide about moves of servers to the other host."""
        for each in self.servers:
            if not (each.named and each.recorded) or each.reservation:
                continue
            if each.end > NOW and self.draw.random() < 0.2:
                _, wrong = self.decide(each, [
                    h for h in self.host_states() if h.uuid != each.host
                ])
                yield from wrong

    def leave(self, host):
        """Let a host leave the ledger, with the records of its servers."""
        self.left.add(host)
        self.site.tell(*(
            (record.INSTANCE, s.uuid, None)
            for s in self.servers if s.host == host and s.recorded
        ), (record.HOST, host, None))

    def tell(self, server):
        if server.host in self.left:
            return
        server.recorded = True
        self.site.tell(server.record())

    def move(self):
        """Let Nova name servers, the feed record them, and servers leave."""
        draw = self.draw
        for each in tuple(self.servers):
            if each.gone:
                if draw.random() < 0.3:
                    self.servers.remove(each)
                    if each.host in self.left:
                        continue
                    self.site.tell(each.record())
                    process.ensure_started().pending.by_host(self.site.replica)
                    self.site.tell((record.INSTANCE, each.uuid, None))
            elif draw.random() < 0.15:
                each.gone, each.named = True, False
            else:
                each.named = each.named or draw.random() < 0.4
                if draw.random() < 0.4:
                    self.tell(each)


@pytest.fixture(params=['compiled', 'plain'])
def twin(request, monkeypatch):
    if request.param == 'plain':
        monkeypatch.setattr(ext, 'TimelineIndex', plain_timeline.TimelineIndex)
        monkeypatch.setattr(ext, 'unconfirmed', plain_host_state.unconfirmed)


def play(seeds):
    """Return the decisions of some worlds: None, or what is wrong."""
    found = []
    failures = filtering.failure.count, consumption.failure.count
    for seed in seeds:
        world = World(seed)
        with process.following(world.site.replica, lambda: NOW):
            found += world.faults()
    assert (filtering.failure.count, consumption.failure.count) == failures
    return found


@pytest.mark.usefixtures('twin')
@pytest.mark.timeout(0)
def test_each_decision_is_right():
    decided = play(range(SEEDS))

    assert len(decided) > 15 * SEEDS
    assert [each for each in decided if each] == []


def test_control_a_server_that_is_not_counted_is_found(monkeypatch):
    """A placed server is dropped from the count once HostState names it."""
    real = consumption._uncounted

    def uncounted(replica, host_state, placed, figures=None):
        if placed.uuid in host_state.instances or figures is not None:
            return dataclasses.replace(placed, amounts={})
        return real(replica, host_state, placed, figures)

    monkeypatch.setattr(consumption, '_uncounted', uncounted)
    assert any(play(range(30)))
