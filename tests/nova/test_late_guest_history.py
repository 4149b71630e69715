# SPDX-License-Identifier: Apache-2.0
"""Random histories of preemptible servers that are late for a lease.

Two nova-schedulers place them without knowing of a lease yet, they are on
their way when it starts or grows, and their deletion fails. Two managers look
at the leases, and are killed before and after commits. In a world that has
settled no owner is refused. What must hold is computed from the rows of the
ledger and from the servers alone.
"""

from collections import Counter
import random

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.reservation import WAITED_FOR
from blazar_sched.service import faults
from blazar_sched.service.resources import vacating
from blazar_sched.service.upkeep import clearing
from tests.functional.manager.conftest import hosts
from tests.functional.manager.conftest import instances
from tests.functional.manager.conftest import Killed
from tests.nova import site as nova_site
from tests.nova import test_placed
from tests.nova.site import VCPUS
from tests.seeds import seeds

NAMES = 'abcd'
STEPS = 30


class Row:
    """A reservation that is open, as the rows of the ledger and Nova have it.

    :ivar units: its hosts or slots by uuid of the host
    :ivar used: those in use by uuid of the host
    """

    def __init__(self, site, reservation):
        self.id = reservation.id
        self.whole = reservation.demand.whole
        self.vcpus = VCPUS if self.whole else reservation.demand.slot['VCPU']
        self.waited_for = reservation.made.get(WAITED_FOR)
        self.units, self.used = {}, Counter()
        for a, _ in site.ledger.allocations(reservation_id=reservation.id):
            self.units[a.host] = (
                1 if a.whole else a.amounts['VCPU'] // self.vcpus
            )
        for each in site.nova.stored.values():
            if each.reservation_id == self.id and each.node:
                self.used[site.nova.nodes[each.node].uuid] += 1
        if self.whole:
            self.used = Counter(dict.fromkeys(self.used, 1))


class History:
    """Random steps, and what they have to keep.

    :param fresh: whether schedulers know the ledger whenever they decide
    """

    def __init__(self, site, rng, fresh):
        self.site = site
        self.rng = rng
        self.done = Counter()
        self._fresh = fresh
        site.announced = self._announced

    def _announced(self, instance):
        """Tell a manager of a server, unless the message is lost."""
        manager = self.rng.choice((*self.site.managers, None))
        if manager is not None:
            manager.instances.book(instance, self.site.now)
            if self.rng.random() < 0.5:
                manager.instances.poll()

    def steps(self):
        """Return what can be done, each with its weight."""
        return {
            self.book: 2, self.own: 6, self.several: 2, self.guest: 12,
            self.ordinary: 1, self.leave: 5, self.resize: 2, self.extend: 1,
            self.delete: 0.3, self.fail: 0.3, self.recover: 1,
            self.hear: 6, self.look: 12,
        }

    def act(self):
        """Do something at random, and let some time pass."""
        self.site.nova.slowness = self.rng.choice((0, 0, 0, 1, 3))
        if self.rng.random() < 0.15:
            self.kill()
        steps = self.steps()
        [step] = self.rng.choices(list(steps), list(steps.values()))
        if not self._active():
            step = self.book
        try:
            step()
            self.done[step.__name__] += 1
        except exception.BlazarSchedError as refusal:
            assert refusal.status < 500, refusal
            self.done[f'{step.__name__} refused'] += 1
        if self.rng.random() < 0.2:
            self.settle()
            return
        seconds = self.rng.choice((0, 0, 0, 1, 5, 35, 70))
        if seconds:
            self.site.arrive()
        self.site.run(seconds)

    # What people do.

    def book(self):
        if len(self._active()) == 2:
            return
        asked = self.rng.choice((
            hosts(1, self.rng.randint(2, 4)),
            instances(
                self.rng.randint(3, 8), vcpus=self.rng.randint(1, 2),
                affinity=self.rng.choice((None, None, True)),
            ),
        ))
        self._change(lambda: self.site.create(
            asked, start='now', end=self.rng.choice((900, 5000, 200_000)),
            project_id=nova_site.OWNER,
        ))

    def own(self):
        """Boot a server of an owner."""
        row = self._row()
        self._boot(
            self.rng.randint(1, VCPUS) if row.whole else row.vcpus,
            reservation=row.id,
        )

    def several(self):
        for _ in range(self.rng.randint(2, 4)):
            self.own()

    def guest(self):
        """Boot a preemptible server, by a scheduler that may be late."""
        self._boot(self.rng.randint(1, 3), preemptible=True)

    def ordinary(self):
        self._change(lambda: self._boot(self.rng.randint(1, 2)))

    def _boot(self, vcpus, **asked):
        if self._fresh or not asked.get('preemptible'):
            self.site.pull()
        booted = self.site.boot(
            self.rng.choice(self.site.schedulers), vcpus=vcpus,
            arrives=self.rng.random() < 0.5, **asked,
        )
        self.done['booted', *asked] += booted is not None

    def leave(self):
        stored = self.site.nova.stored
        if stored:
            del stored[self.rng.choice(list(stored))]

    def resize(self):
        row, most = self._row(), self.rng.randint(1, 6)
        [lease] = [
            each for each in self._active()
            if each.reservations[0].id == row.id
        ]
        self._change(lambda: self.site.leases.update(lease.id, None, {
            'reservations': [{'id': row.id, **(
                {'min': 1, 'max': most} if row.whole else {'amount': most}
            )}],
        }))

    def extend(self):
        later = self.site.now + self.rng.choice((1, 600, 5000))
        self._change(lambda: self.site.leases.update(
            self._lease().id, None, {'end': later}
        ))

    def delete(self):
        self._change(lambda: self.site.leases.delete(self._lease().id, None))

    def _change(self, change):
        """Change what is reserved; only preemptible servers are late."""
        self.site.arrive(lambda server: not server.preemptible)
        try:
            change()
        finally:
            self.site.run()

    # What the operator does, and what breaks.

    def fail(self):
        self._change(lambda: self.site.fail(self.rng.choice(NAMES)))

    def recover(self):
        nodes = self.site.nova.nodes.items()
        down = [name for name, node in nodes if not node.up]
        self._change(lambda: self.site.set_up(*down))

    def kill(self):
        """Kill a manager at a commit, and begin another one."""
        point = self.rng.choice(('commit:before', 'commit:after'))
        left = self.rng.randint(1, 6)

        def hit(name):
            nonlocal left
            left -= name == point
            if not left:
                raise Killed

        faults.arm(hit)
        try:
            self.site.look(
                self.rng.choice((0, 5, 31, 61)),
                self.rng.choice(self.site.managers),
            )
        except Killed:
            self.done['killed'] += 1
        finally:
            faults.arm(None)
        for each in self.site.managers:
            each.ledger.close()
        self.site.begin(self.site.conf)
        self.site.managers = [
            self.site.manager, self.site.another(self.site.conf)
        ]

    def hear(self):
        self.rng.choice(self.site.schedulers).pull()

    def look(self):
        """Look by a manager, in the midst of which something happens."""
        point = self.rng.choice(('commit', 'vacate', None))
        if self.rng.random() < 0.5:
            self.site.arrive()
        if point is None:
            self.site.look(manager=self.rng.choice(self.site.managers))
            return
        between = self.rng.choice((
            self.own, self.guest, self.leave, self.site.arrive,
            lambda: self.site.look(manager=self.site.managers[1]),
        ))
        with nova_site.interleaved(self.site, point, between) as done:
            self.site.look()
        self.done[point] += len(done)

    def _active(self):
        return [
            lease for lease in self.site.ledger.leases()
            if lease.status == 'ACTIVE'
            and lease.start <= self.site.now < lease.end
        ]

    def _lease(self):
        found = self._active()
        if not found:
            raise exception.LeaseNotFound('any')
        return self.rng.choice(found)

    def _row(self):
        [reservation] = self._lease().reservations
        return Row(self.site, reservation)

    # What has to hold.

    def settle(self):
        """Let the managers and Nova come to rest, and check the outcome."""
        self.site.nova.slowness = 0
        self.site.arrive()
        # The claim of an event by a killed manager, and the longest pause.
        for _ in range(vacating.MAX_PAUSE // 60 + 1):
            self.site.look(60)
        self.site.healer.heal()
        self.site.run()
        self.site.settle()
        assert self.site.ledger.check(self.site.now) == []
        rows = [
            Row(self.site, each)
            for lease in self._active() for each in lease.reservations
        ]
        usable = {
            h.uuid for h in self.site.ledger.hosts()
            if h.reservable and not h.is_closed(self.site.now)
        }
        for name, node in self.site.nova.nodes.items():
            if node.uuid in usable:
                self.check_host(name, node.uuid, rows)
        for row in rows:
            self.check_row(row, usable)

    def check_host(self, name, host, rows):
        """Check that nobody but an owner is on what is reserved."""
        open_ = {row.id for row in rows}
        taken = sum(
            each.amounts['VCPU'] for each in self.site.nova.stored.values()
            if each.node == name and each.reservation_id not in open_
        )
        promised = sum(row.units.get(host, 0) * row.vcpus for row in rows)
        assert taken + promised <= VCPUS, (
            name, taken, [row.units for row in rows],
        )

    def check_row(self, row, usable):
        assert row.waited_for is None
        free = {host: n - row.used[host] for host, n in row.units.items()}
        assert min(free.values(), default=0) >= 0, free
        if any(n for host, n in free.items() if host in usable):
            self.check_boot(row)

    def check_boot(self, row):
        """Check that the owner can boot a server, by either scheduler."""
        for each in self.site.schedulers:
            asked = test_placed.spec(vcpus=row.vcpus, reservation=row.id)
            asked.project_id = nova_site.OWNER
            passing = each.passing(asked, self.site.host_states())
            assert any(
                self.site.claim(h.nodename, asked) for h in passing
            ), row.units
            del self.site.claimed[asked.instance_uuid]
        self.done['probed'] += 1


@pytest.fixture
def play(empty_ledger, tmp_path):
    """play(seed) plays a history, and returns what was done."""

    def play(seed, kind=History):
        folder = tmp_path / str(seed)
        folder.mkdir()
        site = nova_site.Site(empty_ledger, folder, NAMES)
        rng = random.Random(seed)
        try:
            history = kind(site, rng, rng.random() < 0.5)
            for _ in range(STEPS):
                history.act()
            history.settle()
            return history.done
        finally:
            site.close()

    return play


@pytest.mark.row('F55')
@pytest.mark.parametrize('seed', seeds(24, few=2))
def test_no_owner_is_refused(play, seed):
    play(seed)


@pytest.mark.more
def test_control_an_owner_is_refused(play, monkeypatch):
    monkeypatch.setattr(clearing, 'overfull', lambda *args, **values: {})
    with pytest.raises(AssertionError):
        for seed in range(20):
            play(seed)
