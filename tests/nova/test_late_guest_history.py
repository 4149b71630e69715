# SPDX-License-Identifier: Apache-2.0
"""Random histories of preemptible servers that are late for a lease.

They are placed by nova-schedulers that do not know of a lease yet, are on
their way when it starts or recalls, and their deletion fails. Managers are
killed before and after commits. In a world that has settled no owner is
refused.
"""

import random

import pytest

from blazar_sched.service import faults
from blazar_sched.service.resources import vacating
from blazar_sched.service.upkeep import lending as lending_loop
from tests.functional.manager.conftest import Killed
from tests.nova import borrowing
from tests.nova.test_lending_history import History
from tests.nova.test_lending_history import NAMES
from tests.seeds import seeds

STEPS = 30


class LateHistory(History):
    """Random steps; only preemptible servers come late.

    :param fresh: whether schedulers know the ledger whenever they decide
    :param lends: the share of reservations that lend
    """

    def __init__(self, site, seed, fresh, lends):
        super().__init__(site, seed)
        self._fresh = fresh
        self._lends = lends
        site.announced = self._announced

    def _announced(self, instance):
        """Tell a manager of a server, unless the message is lost."""
        manager = self.rng.choice((*self.site.managers, None))
        if manager is not None:
            manager.instances.book(instance, self.site.now)
            if self.rng.random() < 0.5:
                manager.instances.poll()

    def act(self):
        self.site.nova.slowness = self.rng.choice((0, 0, 0, 1, 3))
        if self.rng.random() < 0.15:
            self.kill()
        super().act()

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

    def book(self):
        super().book()
        for lease in self._active():
            for each in lease.reservations:
                if each.lend and self.rng.random() >= self._lends:
                    self.site.leases.update(lease.id, None, {'reservations': [
                        {'id': each.id, 'lend': False},
                    ]})

    def _boot(self, vcpus, **asked):
        if self._fresh or not asked.get('preemptible'):
            self.site.pull()
        super()._boot(vcpus, **asked)

    def _change(self, change):
        """Change what is reserved; only preemptible servers are late."""
        self.site.arrive(lambda server: not server.preemptible)
        try:
            change()
        finally:
            self.site.run()

    def settle(self):
        self.site.nova.slowness = 0
        self.site.arrive()
        # The claim of an event by a killed manager, and the longest pause.
        for _ in range(vacating.MAX_PAUSE // 60 + 1):
            self.site.look(60)
        super().settle()


@pytest.fixture
def play(empty_ledger, tmp_path):
    """play(seed) plays a history, and returns what was done."""

    def play(seed):
        folder = tmp_path / str(seed)
        folder.mkdir()
        site = borrowing.Site(empty_ledger, folder, NAMES)
        rng = random.Random(seed)
        try:
            history = LateHistory(
                site, seed, rng.random() < 0.5, rng.choice((0, 0.5, 1))
            )
            for _ in range(STEPS):
                history.act()
            history.settle()
            return history.done
        finally:
            site.close()

    return play


@pytest.mark.row('F110')
@pytest.mark.parametrize('seed', seeds(24, few=2))
def test_no_owner_is_refused(play, seed):
    play(seed)


@pytest.mark.more
@pytest.mark.parametrize('broken', [
    lambda *args, **values: {},
], ids=['overfull'])
def test_control_an_owner_is_refused(play, monkeypatch, broken):
    monkeypatch.setattr(lending_loop, 'overfull', broken)
    with pytest.raises(AssertionError):
        for seed in range(20):
            play(seed)
