# SPDX-License-Identifier: Apache-2.0
"""Random histories of leases that lend.

Owners and preemptible servers are booted by two nova-schedulers that hear late
of what is lent, while two managers look at the leases. What must hold is
computed from the rows of the ledger and from the servers alone.
"""

from collections import Counter
import dataclasses
import random

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import lending
from blazar_sched.domain.lending import Lending
from blazar_sched.service.upkeep import lending as lending_loop
from tests.functional.manager.conftest import hosts
from tests.functional.manager.conftest import instances
from tests.nova import borrowing
from tests.nova import test_placed
from tests.nova.borrowing import VCPUS
from tests.seeds import seeds

NAMES = 'abcd'
STEPS = 40


class Row:
    """A reservation that is open, as the rows of the ledger and Nova have it.

    :ivar units: its units by uuid of the host
    :ivar used: the units in use by uuid of the host
    """

    def __init__(self, site, reservation):
        self.id = reservation.id
        self.lends = reservation.lend
        self.whole = reservation.demand.whole
        self.vcpus = VCPUS if self.whole else reservation.demand.slot['VCPU']
        self.known = Lending.decode(reservation.made)
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

    def kept(self, host):
        """Return how many units of a host are the owner's now."""
        return self.units.get(host, 0) - self.known.lent.get(host, 0)


class History:
    """Random steps, and what they have to keep."""

    def __init__(self, site, seed):
        self.site = site
        self.rng = random.Random(seed)
        self.done = Counter()

    def act(self):
        """Do something at random, and let some time pass."""
        steps = {
            self.book: 2, self.own: 6, self.burst: 2, self.guest: 12,
            self.ordinary: 1, self.leave: 5, self.recall: 1.5, self.lend: 3,
            self.resize: 2, self.extend: 1, self.delete: 0.3,
            self.fail: 0.3, self.recover: 1, self.close: 0.2,
            self.operate: 0.2, self.hear: 6, self.look: 12,
        }
        [step] = self.rng.choices(list(steps), list(steps.values()))
        if not self._active():
            step = self.book
        try:
            step()
            self.done[step.__name__] += 1
        except exception.BlazarSchedError as refusal:
            assert refusal.status < 500, refusal
            self.done[f'{step.__name__} refused'] += 1
        self.check()
        if self.rng.random() < 0.2:
            self.settle()
        else:
            self.wait(self.rng.choice((0, 0, 0, 1, 5, 35, 70)))

    def wait(self, seconds):
        if seconds:
            self.site.arrive()
        self.site.run(seconds)
        self.check()

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
            {**asked, 'lend': self.rng.random() < 0.9}, start='now',
            end=self.rng.choice((900, 5000, 200_000)),
            project_id=borrowing.OWNER,
        ))

    def own(self):
        """Boot a server of an owner, by a scheduler that may be late."""
        row = self._row()
        if row is not None:
            self._boot(
                self.rng.randint(1, VCPUS) if row.whole else row.vcpus,
                reservation=row.id,
            )

    def burst(self):
        for _ in range(self.rng.randint(2, 4)):
            self.own()

    def guest(self):
        self._boot(self.rng.randint(1, 3), preemptible=True)

    def ordinary(self):
        self._change(lambda: self._boot(self.rng.randint(1, 2)))

    def _boot(self, vcpus, **asked):
        booted = self.site.boot(
            self.rng.choice(self.site.schedulers), vcpus=vcpus,
            arrives=self.rng.random() < 0.5, **asked,
        )
        self.done['booted', *asked] += booted is not None

    def leave(self):
        stored = self.site.nova.stored
        if stored:
            del stored[self.rng.choice(list(stored))]

    def recall(self):
        self.site.leases.recall(self._lease().id, None)

    def lend(self):
        self._update(lend=self.rng.random() < 0.8)

    def resize(self):
        row = self._row()
        if row is not None:
            most = self.rng.randint(1, 6)
            self._change(lambda: self._update(row, **(
                {'min': 1, 'max': most} if row.whole else {'amount': most}
            )))

    def _update(self, row=None, **values):
        lease = self._lease()
        id_ = lease.reservations[0].id
        if row is not None:
            [lease] = [
                each for each in self._active()
                if each.reservations[0].id == row.id
            ]
            id_ = row.id
        self.site.leases.update(lease.id, None, {
            'reservations': [{'id': id_, **values}],
        })

    def extend(self):
        later = self.site.now + self.rng.choice((1, 600, 5000))
        self._change(lambda: self.site.leases.update(
            self._lease().id, None, {'end': later}
        ))

    def delete(self):
        self._change(
            lambda: self.site.leases.delete(self._lease().id, None)
        )

    def _change(self, change):
        """Change what is reserved, without a race.

        What two schedulers make of a lease that changes has nothing to do with
        lending.
        """
        self.site.arrive()
        self.site.pull()
        try:
            change()
        finally:
            self.site.run()
            self.site.arrive()
            self.site.pull()

    # What the operator does, and what breaks.

    def fail(self):
        self._change(lambda: self.site.fail(self.rng.choice(NAMES)))

    def recover(self):
        nodes = self.site.nova.nodes.items()
        down = [name for name, node in nodes if not node.up]
        self._change(lambda: self.site.set_up(*down))

    def close(self):
        self._change(lambda: self.site.manager.maintenances.create({
            'name': 'rack', 'reason': 'power', 'start': self.site.now,
            'end': self.site.now + 300, 'resource_properties': None,
            'hosts': [self.rng.choice(NAMES)],
        }, True, False))

    def operate(self):
        self.site.conf.set_override(
            'lend', self.rng.choice(('never', 'on-request', 'on-request')),
            'manager',
        )

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
        with borrowing.interleaved(self.site, point, between) as done:
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
        rows = self._rows()
        return self.rng.choice(rows) if rows else None

    # What has to hold.

    def _rows(self):
        return [
            Row(self.site, each)
            for lease in self._active() for each in lease.reservations
        ]

    def check(self):
        """Check what holds at any moment."""
        for row in self._rows():
            known = row.known
            self.done['lent'] += sum(known.lent.values())
            for host in {*known.lent, *known.recalled}:
                away = known.lent.get(host, 0) + known.recalled.get(host, 0)
                assert 0 < away <= row.units.get(host, 0), (known, row.units)

    def settle(self):
        """Let the managers and Nova come to rest, and check the outcome."""
        self.site.healer.heal()
        self.site.run()
        self.site.settle()
        assert self.site.ledger.check(self.site.now) == []
        rows = self._rows()
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
        """Check that nobody but an owner is on what is not lent."""
        open_ = {row.id for row in rows}
        taken = sum(
            each.amounts['VCPU'] for each in self.site.nova.stored.values()
            if each.node == name and each.reservation_id not in open_
        )
        promised = sum(row.kept(host) * row.vcpus for row in rows)
        assert taken + promised <= VCPUS, (
            name, taken, [(row.units, row.known) for row in rows],
        )

    def check_row(self, row, usable):
        known = row.known
        assert not known.recalled and not known.recalled_at, known
        never = self.site.conf.manager.lend == 'never'
        assert not known.lent or row.lends and not never
        free = {
            host: row.kept(host) - row.used[host] for host in row.units
        }
        assert min(free.values(), default=0) >= 0, (free, known)
        reserve = sum(n for host, n in free.items() if host in usable)
        if known.lent:
            assert reserve >= max(1, known.reserve), (free, known)
        if reserve:
            self.check_boot(row)
        assert reserve <= known.reserve or never or not row.lends, known

    def check_boot(self, row):
        """Check that the owner can boot a server from the reserve."""
        for each in self.site.schedulers:
            asked = test_placed.spec(vcpus=row.vcpus, reservation=row.id)
            asked.project_id = borrowing.OWNER
            passing = each.passing(asked, self.site.host_states())
            assert any(
                self.site.claim(h.nodename, asked) for h in passing
            ), (row.units, row.known)
            del self.site.claimed[asked.instance_uuid]
        self.done['probed'] += 1


@pytest.fixture
def play(empty_ledger, tmp_path):
    """play(seed) plays a history, and returns what was done."""

    def play(seed):
        folder = tmp_path / str(seed)
        folder.mkdir()
        site = borrowing.Site(empty_ledger, folder, NAMES)
        try:
            history = History(site, seed)
            for _ in range(STEPS):
                history.act()
            history.settle()
            return history.done
        finally:
            site.close()

    return play


@pytest.mark.row('F110')
@pytest.mark.parametrize('seed', seeds(12))
def test_nobody_but_the_owner_is_on_what_is_not_lent(play, seed):
    assert play(seed)['probed']


@pytest.mark.more
@pytest.mark.parametrize('module, name, broken', [
    (lending_loop, 'overfull', lambda *args, **values: {}),
    (lending, 'held', lambda reservation, allocations: reservation),
    (lending.Lending, 'cleared', lambda self, host: dataclasses.replace(
        self, recalled={}, lent={**self.lent, **self.recalled}
    )),
], ids=['strays', 'given up', 'cleared'])
def test_control_a_defect_is_found(play, monkeypatch, module, name, broken):
    monkeypatch.setattr(module, name, broken)
    with pytest.raises(AssertionError):
        for seed in range(10, 40):
            play(seed)
