# SPDX-License-Identifier: Apache-2.0
"""Random histories of devices: no device is promised twice.

After each step, the slots of all leases are booted on the devices of the
hosts, at each time at which something starts. Placement is played by a full
search for candidates, of which a random one is taken. The windows and the
amounts are those of the ledger's rows, the devices those of the test.
"""

from collections import Counter
import dataclasses
import itertools
import json
import random

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import flavor as flavor_rules
from blazar_sched.domain import pci_alias
from blazar_sched.domain import states
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.provider import Units
from blazar_sched.domain.request_group import RequestGroups
from blazar_sched.domain.window import FOREVER
from tests.seeds import seeds

GPU, NIC, VGPU = 'CUSTOM_PCI_10DE_20B0', 'CUSTOM_NIC', 'VGPU'
FAST, OLD = 'CUSTOM_FAST', 'CUSTOM_OLD'
ALIAS = json.dumps({
    'name': 'a100', 'vendor_id': '10de', 'product_id': '20b0',
    'device_type': 'type-PF',
})
FLAVORS = {
    'gpu': {f'resources:{GPU}': '1'},
    'gpus': {'pci_passthrough:alias': 'a100:2'},
    'apart': {
        f'resources1:{GPU}': '1', f'resources2:{GPU}': '1',
        'group_policy': 'isolate',
    },
    'fast': {f'resources7:{GPU}': '1', f'trait7:{FAST}': 'required'},
    'modern': {f'resources:{GPU}': '1', f'trait:{OLD}': 'forbidden'},
    'vgpu': {f'resources:{VGPU}': '1'},
    'vgpus': {f'resources:{VGPU}': '2'},
    'wide': {f'resources1:{GPU}': '1', f'resources1:{NIC}': '1'},
    'both': {
        f'resources1:{GPU}': '1', f'resources2:{NIC}': '1',
        'group_policy': 'isolate',
    },
    'any': {f'resources:{GPU}': '1', f'resources:{NIC}': '1'},
    'bare': {
        f'resources:{GPU}': '1', 'resources:VCPU': '0',
        'resources:MEMORY_MB': '0', 'resources:DISK_GB': '0',
    },
    'plain': {},
}
WITH_GPU = f'[">=", "$resources:{GPU}", "1"]'
# The most seconds ahead of which a lease starts, and for which it lasts.
AHEAD = 60
LENGTH = 60


def units(capacity, min_unit=1, max_unit=9, step_size=1):
    return Units(capacity, min_unit, max_unit, step_size)


def random_cards(rng):
    """Return the devices of a host: the traits and the units of each."""
    traits = tuple(t for t in (FAST, OLD) if rng.random() < 0.4)
    kind = rng.randrange(6)
    if kind < 2:
        return [(traits, {GPU: units(1)})] * rng.randint(1, 4)
    if kind == 2:
        cards = [(traits, {GPU: units(1)})] * rng.randint(1, 3)
        return [*cards, ((), {NIC: units(rng.randint(1, 3))})]
    if kind == 3:
        return [(traits, {GPU: units(1), NIC: units(2)})]
    if kind == 4:
        return [((), {VGPU: units(
            rng.randint(1, 4), max_unit=rng.choice((1, 2, 9)),
            step_size=rng.choice((1, 1, 2)),
        )})] * rng.randint(1, 2)
    return [
        ((FAST,), {GPU: units(1)}), ((), {GPU: units(1)}),
        ((), {VGPU: units(2)}),
    ]


def candidates(cards, used, groups):
    """Yield what each way to place the groups takes, beside what is used.

    :param cards: the traits and the units of each device, by its id
    :param used: amounts by (device, resource class)
    """
    parts = []
    for group in groups.groups:
        names = [
            (name, n) for name, n in group.resources
            if name in (GPU, NIC, VGPU)
        ]
        ways = (
            [(id_,) * len(names) for id_ in cards] if group.suffix
            else itertools.product(cards, repeat=len(names))
        )
        parts.append([
            (group, tuple(zip(way, names, strict=True))) for way in ways
            if all(
                name in cards[id_][1] and cards[id_][1][name].allows(n)
                for id_, (name, n) in zip(way, names, strict=True)
            )
        ] or ([(group, ())] if not names else []))
    for way in itertools.product(*parts):
        taken = Counter()
        apart = []
        for group, places in way:
            having = set().union(*(cards[id_][0] for id_, _ in places))
            if not having.issuperset(group.required):
                break
            if having.intersection(group.forbidden):
                break
            for id_, (name, n) in places:
                taken[id_, name] += n
            if group.suffix and places:
                apart.append(places[0][0])
        else:
            if groups.isolate and len(set(apart)) < len(apart):
                continue
            if all(
                used[key] + n <= cards[key[0]][1][key[1]].capacity
                for key, n in taken.items()
            ):
                yield taken


@dataclasses.dataclass
class Running:
    """A server, and what it takes of devices.

    :ivar reservation: the id of the reservation that the server draws on
    """

    uuid: str
    host: str
    takes: Counter
    amounts: dict
    end: int
    preemptible: bool = False
    reservation: str | None = None


class History:
    """Random steps in a world with devices, and what they have to keep."""

    def __init__(self, world, seed):
        self.world = world
        self.rng = random.Random(seed)
        # By the uuid of a host: the devices by id.
        self.cards = {}
        self.flavors = {
            name: Flavor(name, name, 1, 512, 1, extra_specs=specs)
            for name, specs in FLAVORS.items()
        }
        world.nova.known_flavors = list(self.flavors.values())
        world.manager.flavors.sync()
        self.aliases = pci_alias.read([ALIAS])
        # The hosts of which a device has failed, or become another one.
        self.changed = set()
        self.running = {}
        self.leases = []
        self.done = Counter()
        self._names = itertools.count()
        for _ in range(self.rng.randint(2, 4)):
            self.add_host()

    # What the operator does.

    def add_host(self):
        name = f'h{next(self._names)}'
        host = self.world.add_host(name, register=False)
        self.cards[host] = {}
        for card in random_cards(self.rng):
            self._plug(host, card)
        self.world.hosts.create(name, {})

    def _plug(self, host, card):
        id_ = f'card{next(self._names)}'
        self.cards[host][id_] = card
        self.world.placement.put_below(host, id_, card[1], card[0])

    def plug(self):
        """Add a device, often one that the host has not."""
        host = self.rng.choice(list(self.cards))
        self.changed.add(host)
        self._plug(host, self.rng.choice([
            *self.cards[host].values(), *random_cards(self.rng)
        ]))
        self._look()

    def refit(self):
        """Give an idle device other traits, such as another type."""
        host = self.rng.choice(list(self.cards))
        idle = self._idle(host)
        if idle:
            id_ = self.rng.choice(idle)
            self.changed.add(host)
            _, held = self.cards[host][id_]
            traits = tuple(t for t in (FAST, OLD) if self.rng.random() < 0.5)
            self.cards[host][id_] = traits, held
            self.world.placement.put_below(host, id_, held, traits)
            self._look()

    def _look(self):
        self.world.hosts.sync()
        self.world.monitor.step()

    def _idle(self, host):
        return [
            id_ for id_ in self.cards[host]
            if not any(
                key[0] == id_ for each in self.running.values()
                for key in each.takes
            )
        ]

    def fail(self):
        """Have a device fail that no server uses: gone, or reserved."""
        host = self.rng.choice(list(self.cards))
        idle = self._idle(host)
        if not idle:
            return
        id_ = self.rng.choice(idle)
        self.changed.add(host)
        traits, held = self.cards[host].pop(id_)
        self.world.placement.put_below(
            host, id_, None if self.rng.random() < 0.5 else {
                name: units(0) for name in held
            }, traits,
        )
        self._look()

    def remove_host(self):
        host = self.rng.choice(list(self.cards))
        if any(each.host == host for each in self.running.values()):
            return
        self.world.hosts.delete(self._host(host).id)
        del self.cards[host]
        placement = self.world.placement
        for id_, (root, _) in list(placement.below.items()):
            if root == host:
                placement.put_below(host, id_, None)
        del placement.providers[host]
        if len(self.cards) < 2:
            self.add_host()

    # What users do.

    def create(self):
        start, end = self._window()
        asked = [self._asked() for _ in range(self.rng.choice((1, 1, 2)))]
        try:
            self.leases.append(self.world.create(
                *asked, start=start - self.world.now, end=end - self.world.now
            ))
        except exception.NotEnoughHostsAvailable:
            if len(asked) == 1:
                self.check_refusal(asked[0], start, end)
            raise

    def _asked(self):
        if self.rng.random() < 0.15:
            return {
                'resource_type': 'physical:host', 'min': 1,
                'max': self.rng.randint(1, 2),
                'hypervisor_properties': self.rng.choice(('', WITH_GPU)),
            }
        return {
            'resource_type': 'flavor:instance',
            'flavor_id': self.rng.choice(list(FLAVORS)),
            'amount': self.rng.randint(1, 4),
            'affinity': self.rng.choice((None, None, None, True, False)),
        }

    def update(self):
        lease = self._lease()
        values = {}
        if self.rng.random() < 0.6:
            values['end'] = self.world.now + self.rng.randint(1, AHEAD)
        if lease.status == states.LEASE_PENDING and self.rng.random() < 0.5:
            values['start'] = self.world.now + self.rng.randint(0, AHEAD)
        values['reservations'] = [
            {'id': r.id, 'amount': self.rng.randint(1, 4)}
            for r in lease.reservations
            if not r.demand.whole and self.rng.random() < 0.5
        ]
        if self.rng.random() < 0.2:
            values['reservations'].append(self._asked())
        self.world.leases.update(lease.id, None, values, offering=True)

    def reduce(self):
        """Ask for less, which is never refused for lack of capacity."""
        lease = self._lease()
        reservation = self.rng.choice([
            r for r in lease.reservations if r.demand.most > 1
        ] or [None])
        if reservation is None:
            return
        demand = reservation.demand
        change = {
            'id': reservation.id,
            'max' if demand.whole else 'amount':
            self.rng.randrange(1, demand.most),
        }
        before = self._held(lease)
        try:
            self.world.leases.update(
                lease.id, None, {'reservations': [change]}
            )
        except exception.NotEnoughHostsAvailable as e:
            raise AssertionError('less was refused') from e
        # Nothing has moved.
        assert self._held(lease) <= before

    def _held(self, lease):
        """Return how many slots or whole hosts a lease has, by host."""
        return Counter({
            (a.reservation_id, a.host): 1 if a.whole else self._count(
                a, self._reservation(a.reservation_id)
            )
            for a, _ in self.world.ledger.allocations(lease_id=lease.id)
        })

    def extend(self):
        """Extend a lease as far as advised, and not further."""
        lease = self._lease()
        asked = lease.end + self.rng.randint(1, LENGTH)
        end = self.world.manager.extensions.get(lease.id, None, asked)['end']
        for later in (end, end + 1):
            if lease.end < later <= asked:
                assert self._can_end(lease, later) is (later == end)
        if lease.end < end:
            self.world.leases.update(lease.id, None, {'end': end})

    def _can_end(self, lease, end):
        try:
            self.world.leases.update(lease.id, None, {'end': end}, True)
        except exception.NotEnoughHostsAvailable:
            return False
        return True

    def delete(self):
        self.world.leases.delete(self._lease().id, None)

    def boot(self):
        """Boot a server that the filter lets in, and Placement too."""
        host = self.rng.choice(list(self.cards))
        flavor = self.flavors[self.rng.choice(list(FLAVORS))]
        end = self.rng.choice((
            FOREVER, self.world.now + self.rng.randint(5, 100),
        ))
        preemptible = self.rng.random() < 0.2
        if not preemptible and not self._lets_in(host, flavor, end):
            return
        self._boot(host, flavor, end, preemptible)

    def draw(self):
        """Boot a server of a reservation: it has to find its devices."""
        now = self.world.now
        for a, _ in self.world.ledger.allocations():
            reservation = self._reservation(a.reservation_id)
            if (
                reservation is None or not a.start <= now < a.end
                or reservation.status != states.RESERVATION_ACTIVE
                or a.whole or self._left(a, reservation) < 1
            ):
                continue
            flavor = self._flavor(reservation)
            assert a.host in self.changed or self._boot(
                a.host, flavor, a.end, False, reservation.id
            ), ('a slot that is open has no devices', a)
            return

    def _boot(self, host, flavor, end, preemptible, reservation=None):
        amounts, groups = self._needs(flavor)
        used = Counter()
        for each in self.running.values():
            if each.host == host and (
                reservation is None or not self._yields(each)
            ):
                used.update(each.takes)
        ways = list(candidates(self.cards[host], used, groups))
        if not ways:
            return False
        server = self.world.add_server(
            self._host(host).hypervisor_hostname,
            'other' if reservation is None else 'project', amounts=amounts,
            end=end, preemptible=preemptible, reservation_id=reservation,
            created=self.world.now,
        )
        self.running[server.uuid] = Running(
            server.uuid, host, self.rng.choice(ways), amounts, end,
            preemptible, reservation,
        )
        self.world.manager.instances.sync()
        return True

    def leave(self):
        if self.running:
            uuid = self.rng.choice(list(self.running))
            del self.world.nova.stored[uuid]
            self.world.manager.instances.sync()

    def steps(self):
        """Return what can be done, each with its weight."""
        return {
            self.create: 6, self.update: 4, self.delete: 2,
            self.extend: 1, self.reduce: 2,
            self.boot: 4, self.draw: 4, self.leave: 1,
            self.plug: 1, self.refit: 0.5, self.fail: 1,
            self.remove_host: 0.3, self.add_host: 0.3,
        }

    def act(self):
        """Do something at random, and let some time pass."""
        steps = self.steps()
        [step] = self.rng.choices(list(steps), list(steps.values()))
        try:
            step()
            self.done[step.__name__] += 1
        except exception.BlazarSchedError as refusal:
            assert refusal.status < 500, refusal
            self.done[f'{step.__name__} refused'] += 1
        self.check()
        self.wait(self.rng.choice((0, 0, 1, 5, 20)))

    def wait(self, seconds):
        self.world.run(seconds)
        # Servers end as declared.
        for uuid, each in list(self.running.items()):
            if each.end <= self.world.now:
                self.world.nova.stored.pop(uuid, None)
        self.world.manager.instances.sync()
        for each in self.world.manager._threads:
            if each.loops[:1] and each.loops[0].name == 'unused reservations':
                each.step()
        self.world.monitor.step()
        self.check_flags()
        self.check_requirements()
        self.world.run()
        self.check()

    # What has to hold.

    def check_requirements(self):
        """Check that no lease keeps a host that it could not get, unnoticed.
        """
        at_risk = self.world.manager.replanner._at_risk
        for a, lease_id in self.world.ledger.allocations():
            lease = self.world.ledger.lease(lease_id)
            if (
                lease.is_offer or lease.in_progress
                or lease.end <= self.world.now
            ):
                continue
            demand = self._reservation(a.reservation_id).demand
            wanted = demand.whole and demand.hypervisor_properties
            devices = [
                units_ for _, units_ in self.cards[a.host].values()
                if GPU in units_
            ]
            assert not wanted or devices or lease_id in at_risk, lease

    def check_flags(self):
        """Check that a lease which lost devices after its start says so."""
        now = self.world.now
        started = [
            a for a, _ in self.world.ledger.allocations()
            if a.start <= now < a.end
        ]
        taken = Counter()
        for a in started:
            for name, amount in a.amounts.items():
                taken[a.host, name] += amount
        for lease in map(self.world.ledger.lease, {
            lease_id for a, lease_id in self.world.ledger.allocations()
            if a.start <= now < a.end
        }):
            if lease.status != states.LEASE_ACTIVE or lease.in_progress:
                continue
            for reservation in lease.reservations:
                own = [
                    a for a in started if a.reservation_id == reservation.id
                ]
                lacks = any(
                    taken[a.host, name] > self._host(a.host).capacity(name)
                    for a in own for name in a.amounts
                )
                held = sum(
                    1 if a.whole else self._count(a, reservation) for a in own
                )
                promised = reservation.demand.least
                assert reservation.missing_resources == (
                    lacks or held < promised
                ), (reservation, own, lacks, promised)
                assert lease.degraded or not reservation.missing_resources
                self.done['flagged'] += lacks

    def check(self):
        try:
            self.world.check()
        except AssertionError as e:
            # Devices that have failed may have been promised: see below.
            if ' allocated at ' not in str(e):
                raise
        for uuid in list(self.running):
            if uuid not in self.world.nova.stored:
                del self.running[uuid]
        now = self.world.now
        held = {}
        for a, _ in self.world.ledger.allocations():
            if a.end > now:
                held.setdefault(a.host, []).append(a)
        for host, allocations in held.items():
            times = sorted({max(now, a.start) for a in allocations})
            for at in times:
                broken = self._broken(
                    host, [a for a in allocations if a.start <= at < a.end], at
                )
                if broken:
                    self.check_broken(host, at, broken)

    def check_broken(self, host, at, broken):
        """Check that what does not fit had nowhere else to go."""
        at_risk = self.world.manager.replanner._at_risk
        leases = {
            lease_id for a, lease_id in self.world.ledger.allocations(
                host=host
            ) if a.start <= at < a.end
        }
        # Nobody is notified of a held offer.
        started = {
            id_ for id_ in leases
            if self.world.ledger.lease(id_).start <= self.world.now
            or self.world.ledger.lease(id_).is_offer
        }
        assert host in self.changed and (leases & at_risk or started), (
            'promised beyond what Placement would allocate',
            host, at - self.world.now, broken, self.cards[host],
        )
        self.done['broken'] += 1

    def _broken(self, host, allocations, at):
        """Return an allocation that cannot be used at a time, or None."""
        stay = [
            each for each in self.running.values()
            if each.host == host and each.end > at
            and not self._yields(each)
        ]
        whole = [a for a in allocations if a.whole]
        inside = {a.reservation_id for a in allocations}
        if whole:
            others = [e for e in stay if e.reservation not in inside]
            return whole[0] if others or len(allocations) > 1 else None
        used = Counter()
        booted = Counter()
        for each in stay:
            used.update(each.takes)
            booted[each.reservation] += each.reservation in inside
        slots = []
        for a in allocations:
            reservation = self._reservation(a.reservation_id)
            count = self._count(a, reservation) - booted[reservation.id]
            slots += [(a, self._needs(self._flavor(reservation))[1])] * count
        self.rng.shuffle(slots)
        for a, groups in slots:
            ways = list(candidates(self.cards[host], used, groups))
            if not ways:
                return a
            used.update(self.rng.choice(ways))
        return None

    def check_refusal(self, asked, start, end):
        """Check that a refused reservation has no room by the sums."""
        if asked['resource_type'] == 'physical:host' or asked['affinity']:
            return
        amounts, groups = self._needs(self.flavors[asked['flavor_id']])
        free = 0
        for host in self.cards:
            known = self._host(host)
            if not groups.suits(known) or not known.available:
                continue
            count = self._free(known, amounts, start, end)
            free += min(count, 1) if asked['affinity'] is False else count
        assert free < asked['amount'], ('refused although there is room',
                                        asked, free)

    def _free(self, known, amounts, start, end):
        taken = self._taken(known.uuid)
        taken += [
            (each.start, each.end, None) for each in known.closed_windows
        ]
        counts = []
        times = {start, *(t[0] for t in taken if start < t[0] < end)}
        for at in times:
            used = Counter()
            for first, last, those in taken:
                if first <= at < last:
                    if those is None:
                        return 0
                    used.update(those)
            counts.append(min(
                (known.capacity(name) - used[name]) // n
                for name, n in amounts.items()
            ))
        return max(0, min(counts))

    def _taken(self, host):
        """Return (start, end, amounts) of what counts on a host."""
        return [
            (a.start, a.end, None if a.whole else a.amounts)
            for a, _ in self.world.ledger.allocations(host=host)
        ] + [
            (0, each.end, each.amounts) for each in self.running.values()
            if each.host == host and each.reservation is None
            and not each.preemptible
        ]

    def _lets_in(self, host, flavor, end):
        known = self._host(host)
        if known.closed_windows:
            return False
        amounts, _ = self._needs(flavor)
        taken = self._taken(host)
        now = self.world.now
        if any(each[2] is None and each[1] > now and each[0] < end
               for each in taken):
            return False
        return self._free(known, amounts, now, end) > 0

    def _yields(self, running):
        return running.preemptible or running.end <= self.world.now

    def _left(self, allocation, reservation):
        return self._count(allocation, reservation) - sum(
            each.reservation == reservation.id
            and each.host == allocation.host
            for each in self.running.values()
        )

    def _count(self, allocation, reservation):
        slot = reservation.demand.slot
        return min(allocation.amounts.get(c, 0) // n for c, n in slot.items())

    def _needs(self, flavor):
        specs = pci_alias.expanded(flavor.extra_specs, self.aliases)
        amounts = flavor_rules.resources(1, 512, 1, specs)
        return amounts, flavor_rules.groups(amounts, specs)

    def _flavor(self, reservation):
        return self.flavors[reservation.demand.flavor.id]

    def _reservation(self, id_):
        """Return the reservation of an allocation, of an offer, too."""
        lease_id = next(
            lease_id for a, lease_id in self.world.ledger.allocations()
            if a.reservation_id == id_
        )
        lease = self.world.ledger.lease(lease_id)
        return next((r for r in lease.reservations if r.id == id_), None)

    def _host(self, uuid):
        return next(h for h in self.world.ledger.hosts([uuid]))

    def _lease(self):
        if not self.leases:
            raise exception.LeaseNotFound('none')
        lease = self.rng.choice(self.leases)
        try:
            return self.world.lease(lease)
        except exception.LeaseNotFound:
            self.leases.remove(lease)
            raise

    def _window(self):
        start = self.world.now + self.rng.randint(0, AHEAD)
        return start, start + self.rng.randint(1, LENGTH)


@pytest.fixture
def world(conf, world):
    conf.set_override('pci_alias', [ALIAS], 'nova')
    for name, value in {
        'unused_after': 30, 'unused_notice': 10, 'on_unused': 'shrink',
    }.items():
        if name in conf.manager:
            conf.set_override(name, value, 'manager')
    world.begin(conf)
    return world


def play(world, seed, kind=History):
    history = kind(world, seed)
    for _ in range(60):
        history.act()
    for _ in range(3):
        history.wait(1000)
    return history


@pytest.mark.row('F94')
@pytest.mark.parametrize('seed', seeds(4))
def test_any_history_keeps_what_was_promised(world, seed):
    history = play(world, seed)
    assert not world.ledger.allocations()
    assert history.done['create']


def test_unlike_devices_break_promises(world, monkeypatch):
    """The control: every host with the devices is promised."""
    monkeypatch.setattr(RequestGroups, 'suits', lambda self, host: True)
    with pytest.raises(AssertionError, match='promised beyond'):
        # A history in which a host is promised that has too few devices.
        play(world, 5)
