# SPDX-License-Identifier: Apache-2.0
"""Random decisions of the filters, compared with slow arithmetic.

The filters decide over Nova's own HostStates. Each server is in the figures
and in the names of a HostState, and in the feed, at times of its own; records
may also stay after their servers are gone. The arithmetic knows the servers
that there are. A request that would not fit beside these must be refused. A
request that fits even if each server that is not both named and recorded
stays for ever, at the larger of its amounts, must be let in. No filter may
fail meanwhile.

A host may lack a resource class that is asked for: what is asked for is then
that of a provider that cannot be reserved, and the host passes. Hosts leave
the ledger and come back.

What a server asks for is what Nova asks of Placement for its flavor, whose
extra specs are drawn: among others `resources:`, CPU policies, devices by PCI
aliases, persistent memory and memory encryption. No server can be moved.

BLAZAR_SCHED_SEEDS sets how many worlds are played: 600 of them have about
36,000 decisions.
"""

import dataclasses
import json
import os
import random
import uuid

from nova import conf as nova_conf
from nova import objects
from nova.pci import request as pci_request
from nova.scheduler import utils
from oslo_config import fixture
import pytest

from blazar_sched import ext
from blazar_sched.domain import duration
from blazar_sched.domain import flavor
from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.inventory import Inventory
from blazar_sched.ext import host_state as plain_host_state
from blazar_sched.ext import timeline_index as plain_timeline
from blazar_sched.replica import accounting
from blazar_sched.replica import fixed
from blazar_sched.replica import record
from blazar_sched.worker import admission
from blazar_sched.worker import consumption
from blazar_sched.worker import filtering
from blazar_sched.worker import process
from blazar_sched.worker import request
from blazar_sched.worker.paths import Paths
from tests import overriding
from tests.nova import test_placed
from tests.nova.test_placed import GPU
from tests.nova.test_placed import NOW
from tests.nova.test_placed import PROJECT

SEEDS = int(os.environ.get('BLAZAR_SCHED_SEEDS', '15'))
TAIL = NOW + 9000
ROUNDS = 12
RUNTIME = 300
VCPU, MEMORY_MB, DISK_GB = MAIN = inventory.RESOURCE_CLASSES
PCPU, VGPU, NIC = 'PCPU', 'VGPU', 'CUSTOM_PCI_8086_1521'
PMEM, ENCRYPTION = 'CUSTOM_PMEM_NAMESPACE_4GB', 'MEM_ENCRYPTION_CONTEXT'
# Of these classes a HostState has no figures.
DEVICES = GPU, PCPU, VGPU, NIC, PMEM, ENCRYPTION
TOTALS = {MEMORY_MB: 8192, DISK_GB: 80, **dict.fromkeys(DEVICES, 4)}
ALIASES = [
    {'name': 'gpu', 'resource_class': GPU},
    {'name': 'nic', 'vendor_id': '8086', 'product_id': '1521'},
]
IMAGE = {'hw_firmware_type': 'uefi', 'hw_machine_type': 'q35'}
# The extra specs of a flavor: one of each list.
CPUS = [
    '', '', 'resources:VCPU=0', 'resources:VCPU=1', 'resources:VCPU=4',
    'hw:cpu_policy=shared hw:mem_page_size=large',
    'hw:cpu_policy=dedicated hw:cpu_thread_policy=require',
    'hw:cpu_policy=dedicated hw:emulator_threads_policy=isolate',
    'resources:PCPU=1 resources:VCPU=1', 'resources:PCPU=2',
]
MIXED = [
    'hw:cpu_policy=mixed hw:cpu_dedicated_mask=^0',
    'hw:cpu_policy=mixed hw:cpu_dedicated_mask=0',
    'hw:cpu_policy=mixed hw:cpu_realtime=yes hw:cpu_realtime_mask=^0',
]
SIZES = [
    '', '', 'hw:mem_page_size=2048', 'resources:MEMORY_MB=3000',
    'resources:DISK_GB=0', 'resources:DISK_GB=30',
]
DEVICES_ASKED = [
    '', '', 'resources:VGPU=1', 'resources1:VGPU=1 resources2:VGPU=1',
    f'resources:{GPU}=1', f'resources_device:{GPU}=1 group_policy=none',
    'pci_passthrough:alias=gpu:1', 'pci_passthrough:alias=nic:2,gpu:1',
    f'pci_passthrough:alias=nic:1 resources:{GPU}=1',
    'hw:pmem=4GB', 'hw:pmem=4GB,4GB', 'hw:mem_encryption=true',
]
TRAITS = ['', '', f'trait:{VGPU}=required trait1:{GPU}=required']
# What an allocation of the whole host needs.
WHOLE = 10**6
POLICIES = 'never', 'assume:10m', 'forever', 'relocate'
FIXED = *POLICIES[:3], 'share:0', 'share:0.2', 'share:0.4', 'share:1'
# The seconds from now on for which no headroom is kept: a day, as by default.
NOTICE = 86400


@dataclasses.dataclass
class Server:
    """A server; `nova` are its amounts in the figures of a HostState."""

    host: str
    vcpus: int
    extra_specs: dict
    amounts: dict = dataclasses.field(default_factory=dict)
    end: int = window.FOREVER
    reservation: str | None = None
    preemptible: bool = False
    named: bool = False
    recorded: bool = False
    gone: bool = False
    uuid: str = dataclasses.field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def nova(self):
        return {VCPU: self.vcpus, MEMORY_MB: 1, DISK_GB: 1}

    def record(self):
        return record.encode(Instance(
            self.uuid, self.host, PROJECT, self.amounts, self.end,
            self.reservation, self.preemptible, self.reservation,
            used=self.nova, building=not self.named,
        ))

    def stays(self, at, most):
        """Return until when it counts for itself: at a time, or never."""
        if most and not (self.named and self.recorded):
            return True
        if self.preemptible:
            # It yields when a window opens, but not at once.
            return at < NOW + RUNTIME
        if self.reservation and self.end > NOW:
            return False
        return self.end <= NOW or at < self.end

    def need(self, name, at, most):
        """Return its amount of a class at a time, at least or at most."""
        if name not in MAIN:
            return self.device_need(name, at, most)
        amount, nova = self.amounts.get(name, 0), self.nova[name]
        if not most:
            return 0 if self.gone or not self.stays(at, most) else amount
        larger = max(amount, nova)
        # A server that is gone may be pending, a copy may yield.
        if not (self.named or self.gone) and self.reservation:
            return larger - nova if self.recorded else 0
        if self.named and self.recorded:
            return amount if self.stays(at, most) else 0
        return larger

    def device_need(self, name, at, most):
        amount = self.amounts.get(name, 0)
        if self.gone and not most:
            return 0
        if self.preemptible:
            return amount if at < NOW + RUNTIME else 0
        if self.reservation and self.end > NOW:
            return 0
        if most and not self.recorded or self.end <= NOW or at < self.end:
            return amount
        return 0

    def is_for_ever(self, most):
        """Tell whether it counts for itself, and has no end to come."""
        if self.preemptible:
            return False
        return self.end <= NOW or not self.reservation and (
            self.end == window.FOREVER or most and not self.recorded
        )


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
        # The hosts that have left the ledger.
        self.left = set()
        self.settings = overriding.settings(
            unbounded=draw.choice([*POLICIES, 'forever', 'relocate']),
            unbounded_fixed=draw.choice(FIXED),
            relocation_headroom=draw.choice([0, 0, 0.3]),
            relocation_host_headroom=draw.choice([0, 0.4, 0.7]),
        )
        self.site.replica.use(self.settings)
        for name in 'abc':
            held = {VCPU: Inventory(
                draw.randint(4, 8), draw.randint(0, 2),
                float(draw.randint(1, 2)),
            )} | {name: Inventory(total) for name, total in TOTALS.items()}
            for lacking in draw.sample((VCPU, DISK_GB, *DEVICES), 2):
                del held[lacking]
            host = Host(
                str(uuid.uuid4()), name, name, inventory=held,
                hold=draw.choice(['shared', 'shared', 'shared', 'dedicated']),
                unbounded=draw.choice([*POLICIES, None, None, None]),
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
            VCPU: draw.randint(1, 4), MEMORY_MB: draw.choice([9, 4000]),
            DISK_GB: draw.choice([9, 30]),
        } | {name: draw.randint(0, 2) for name in DEVICES}
        end = start + draw.randint(300, 3600)
        held = Allocation(f'{name} {host}', name, host, start, end, {
            c: n for c, n in amounts.items()
            if n and c in self.hosts[host].inventory
        }, whole)
        self.held.append(held)
        self.site.tell(
            record.encode(record.Reservation(
                name, 'l', PROJECT, 'flavor:instance', start, TAIL,
                dict.fromkeys((VCPU, *DEVICES), 1),
            )),
            record.encode(held),
        )

    def server(self, host=''):
        draw = self.draw
        vcpus = draw.randint(1, 3)
        made = Server(host, vcpus, self.extra_specs(vcpus))
        kind = draw.choice(['', '', 'bounded', 'bound', 'preemptible'])
        if kind == 'bounded':
            made.end = NOW + draw.randint(60, 3600)
        elif kind == 'bound':
            made.reservation = 'r'
        made.preemptible = kind == 'preemptible'
        asked = utils.ResourceRequest.from_request_spec(self.spec(made))
        made.amounts = asked.merged_resources()
        return made

    def extra_specs(self, vcpus):
        """Draw what a flavor asks for beside its size."""
        drawn = self.draw.choice(CPUS + MIXED * (vcpus > 1)), *map(
            self.draw.choice, (SIZES, DEVICES_ASKED, TRAITS)
        )
        return dict(each.split('=') for each in ' '.join(drawn).split())

    def spec(self, server, copies=1):
        hints = {}
        if server.reservation:
            hints['reservation'] = server.reservation
        if server.end != window.FOREVER:
            hints['lifetime'] = f'{server.end - NOW}s'
        made = test_placed.spec(
            server.preemptible, server.extra_specs, server.vcpus, **hints
        )
        made.flavor.name = 'drawn'
        properties = objects.ImageMetaProps(**IMAGE)
        made.image = objects.ImageMeta(properties=properties)
        made.request_level_params = objects.RequestLevelParams()
        made.requested_resources = []
        get = pci_request.get_pci_requests_from_flavor
        made.pci_requests = get(made.flavor)
        made.generate_request_groups_from_pci_requests()
        made.instance_uuid, made.num_instances = server.uuid, copies
        return made

    def host_states(self):
        """Return new HostStates, as Nova makes them for each request."""
        found = []
        for host in self.hosts.values():
            here = [s for s in self.servers if s.named and s.host == host.uuid]
            made = self.site.host_state(
                sum(s.vcpus for s in here), [s.uuid for s in here]
            )
            if VCPU in host.inventory:
                made.vcpus_used += host.inventory[VCPU].reserved
            made.uuid = host.uuid
            # As far as the servers are counted.
            made.free_ram_mb -= len(here)
            made.disk_mb_used = 1024 * len(here)
            found.append(made)
        return found

    def need(self, host, name, at, most):
        """Return how much of a class is needed at a time, least or most."""
        here = [s for s in self.servers if s.host == host]
        need = sum(s.need(name, at, most) for s in here)
        for each in self.held:
            if each.host == host and each.start <= at < each.end:
                if each.whole:
                    return WHOLE
                reserved = each.amounts.get(name, 0)
                used = name in MAIN and sum(
                    s.amounts.get(name, 0) for s in here
                    if s.reservation == each.reservation_id and s.end > NOW
                    and (most or s.recorded and not s.gone)
                )
                need += max(reserved, used)
        return need

    def fits(self, asked, uuid_, most):
        """Tell whether a request fits on a host beside all others."""
        host = self.hosts[uuid_]
        if asked.reservation:
            return self.fits_inside(asked, uuid_, most)
        if uuid_ in self.left:
            return True
        if not asked.preemptible and host.hold == 'dedicated':
            return False
        end = self.end(asked, host, most)
        if end is None:
            return False
        times = {NOW, *(a.start for a in self.held), *(
            a.end for a in self.held
        ), *(s.end for s in self.servers)}
        return not any(
            self.need(uuid_, name, at, most) + amount > (
                host.capacity(name) if name in host.inventory else WHOLE - 1
            )
            for at in times if NOW <= at < end
            for name, amount in asked.amounts.items()
        )

    def end(self, asked, host, most):
        """Return until when a request needs room; None if it is refused."""
        if asked.preemptible:
            return min(asked.end, NOW + RUNTIME)
        policy = host.unbounded or self.settings.unbounded
        if policy == duration.RELOCATE:
            policy = self.settings.unbounded_fixed
        end = asked.end
        if policy.startswith('assume'):
            end = min(end, NOW + 600)
        if end == window.FOREVER and policy == 'never':
            return None
        if end <= NOW + NOTICE or self.is_among(asked):
            return end
        if self.with_relocation and not self.keeps_headroom(asked, most):
            return None
        _, _, share = policy.partition('share:')
        if share and not self.has_share(asked, float(share), most):
            return None
        if self.with_relocation and not self.leaves_hosts(host, most):
            return None
        return end

    @property
    def with_relocation(self):
        """Whether any server may be relocated: it stays so."""
        return self.site.replica.indexes.total is not None

    def is_among(self, asked):
        """Tell whether a server that moves is counted already."""
        return asked in self.servers and asked.host not in self.left

    def keeps_headroom(self, asked, most):
        """Tell whether all hosts keep headroom for ever, beside a request."""
        kept = self.settings.rules.headroom
        return all(
            self.for_ever(name, asked, most, pending=most)
            + int(kept * self.capacity(name)) <= self.capacity(name)
            for name in (VCPU, MEMORY_MB)
            if name in asked.amounts or int(kept * self.capacity(name))
        )

    def has_share(self, asked, share, most):
        """Tell whether a request is within the share of fixed servers."""
        return all(
            self.for_ever(name, asked, most, pending=True)
            <= int(share * self.capacity(name))
            for name in asked.amounts
            if any(name in h.inventory for h in self.there())
        )

    def leaves_hosts(self, host, most):
        """Tell whether a fixed server joins others, or leaves whole hosts.

        A server that is not recorded counts once more on its host.
        """
        kept = int(self.settings.rules.host_headroom * len(self.there()))
        staying = [
            s for s in self.servers
            if s.host not in self.left and s.is_for_ever(True)
        ]
        known = {
            s.host for s in staying
            if s.recorded and not s.gone and s.is_for_ever(False)
        }
        if not most:
            return not kept or host.uuid in {s.host for s in staying} or (
                len(known) + 1 + kept <= len(self.there())
            )
        counted = [{s.host for s in staying if s.recorded}, {
            s.host for s in staying if not s.recorded
        }]
        return not kept or host.uuid in known or (
            sum(map(len, counted)) + 1 + kept <= len(self.there())
        )

    def there(self):
        return [h for h in self.hosts.values() if h.uuid not in self.left]

    def for_ever(self, name, asked, most, pending):
        """Return how much is held without an end to come, with a request.

        Memory is counted in GiB, at most rounded up for each server.
        """
        amounts = [
            s.amounts.get(name, 0) for s in [asked, *(
                s for s in self.servers
                if s.host not in self.left and s.is_for_ever(most)
                and (most or not s.gone) and (pending or s.recorded)
            )]
        ]
        if name != MEMORY_MB:
            return sum(amounts)
        return sum(-(-n // 1024) for n in amounts if most) or (
            -(-sum(amounts) // 1024)
        )

    def capacity(self, name):
        return sum(
            h.capacity(name) // (1024 if name == MEMORY_MB else 1)
            for h in self.there() if name in h.inventory
        )

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
        return not any(
            sum(s.amounts.get(name, 0) for s in used) + amount
            > held.amounts.get(name, 0)
            for name, amount in asked.amounts.items()
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
            self.come_or_go(self.draw.choice(list(self.hosts)))
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

    def come_or_go(self, host):
        """Let a host leave the ledger, or come back, now and then.

        A host that is leased leaves only after its leases have left it, which
        they do while no server is in them.
        """
        here = [s for s in self.servers if s.host == host]
        if host in self.left:
            if self.draw.random() < 0.5:
                self.left.remove(host)
                self.site.tell(record.encode(self.hosts[host]))
                for each in here:
                    each.named = not each.gone
                    if not each.reservation:
                        self.tell(each)
        elif self.draw.random() < 0.1 and not any(s.reservation for s in here):
            held = [each for each in self.held if each.host == host]
            self.held = [each for each in self.held if each not in held]
            self.left.add(host)
            self.site.tell(*(
                (record.ALLOCATION, each.id, None) for each in held
            ), *(
                (record.INSTANCE, s.uuid, None) for s in here if s.recorded
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
                # What was pending on a host that leaves may stay pending.
                if each.host not in self.left and draw.random() < 0.3:
                    self.servers.remove(each)
                    self.site.tell(each.record())
                    process.ensure_started().pending.by_host(self.site.replica)
                    self.site.tell((record.INSTANCE, each.uuid, None))
            elif draw.random() < 0.15:
                each.gone, each.named = True, False
            else:
                each.named = each.named or draw.random() < 0.4
                if draw.random() < 0.4:
                    self.tell(each)


@pytest.fixture(scope='module', autouse=True)
def aliases():
    used = fixture.Config(nova_conf.CONF)
    used.setUp()
    used.config(alias=list(map(json.dumps, ALIASES)), group='pci')
    used.config(pci_in_placement=True, group='filter_scheduler')
    pci_request.get_alias_from_config.cache_clear()
    yield
    used.cleanUp()
    pci_request.get_alias_from_config.cache_clear()


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


def only_known(admissions, host_states, look):
    found = SELECT(admissions, host_states, look)
    return [h for h in found if h.uuid in admissions._replica.hosts]


SELECT = admission.Admissions.select
CONTROLS = {
    'rule for fixed servers': (
        admission, '_fixed_policy',
        lambda text, field: duration.Unbounded(window.FOREVER),
    ),
    'share of fixed servers': (
        fixed.FixedDemand, 'has_room', lambda *args, **kwargs: True
    ),
    'headroom': (Paths, 'has_headroom', lambda self, end: True),
    'whole hosts': (Paths, 'with_fixed', lambda self, states, end: states),
    'PCI alias': (request, '_devices', lambda spec: {}),
    'PCPU': (flavor, '_cpus', lambda vcpus, extra_specs: {}),
    'pmem and encryption': (flavor, '_translated', lambda extra_specs: ()),
    'class that a host lacks': (
        accounting.SchedulerAccounting, 'capacity',
        staticmethod(lambda host, reserved=True: host.amounts(reserved)),
    ),
    'host that has left': (admission.Admissions, 'select', only_known),
}


@pytest.mark.parametrize('what', CONTROLS)
def test_control_a_filter_that_is_wrong_is_found(monkeypatch, what):
    monkeypatch.setattr(*CONTROLS[what])
    assert any(play(range(60)))
