# SPDX-License-Identifier: Apache-2.0
"""One lease, changed concurrently by many threads: see `history`."""

import dataclasses
import functools
import random
import threading
import time

import pytest

from blazar_sched.service import faults
from blazar_sched.service.manager.manager import Manager
from tests.functional.manager import history
from tests.waiting import at_once

PENDING = history.Lease('lease', 'PENDING', frozenset({'start_lease'}))
ACTIVE = history.Lease('lease', 'ACTIVE', frozenset())


class Crowd:
    """Threads over two managers, each of which runs one kind of step."""

    def __init__(self, world, other, lease, rng):
        self.recorder = history.Recorder()
        self._managers = (world.manager, other)
        self._lease = lease
        self._rng = rng
        self._pauses = {}

    def run(self, *acts):
        def begin(act, manager, pauses):
            self._pauses[threading.get_ident()] = pauses
            act(manager)

        faults.arm(self._at)
        at_once(*(
            functools.partial(
                begin, act, self._rng.choice(self._managers),
                random.Random(self._rng.random()),
            )
            for act in acts
        ))

    def _at(self, point):
        """Let the other threads run first, at each point, for a random time.

        In the middle of an event the time is long enough for other steps.
        """
        if not point.endswith((':claimed', ':finished')):
            longest = 0.02 if point.startswith('commit') else 0.2
            pauses = self._pauses[threading.get_ident()]
            time.sleep(pauses.random() * longest)
        self.recorder.passed(point)

    def rename(self, name):
        def act(manager):
            self.recorder.record(
                'rename', name, lambda: self._update(manager, name=name)
            )

        return act

    def end_now(self, manager):
        self.recorder.record(
            'end_now', None, lambda: self._update(manager, end='now')
        )

    def delete(self, manager):
        """Record only the beginning: `work` does the end of the lease."""
        manager.leases._finish_delete = lambda *args: None
        self.recorder.record(
            'delete', None, lambda: manager.leases.delete(self._lease.id, None)
        )

    def work(self, manager):
        for _ in range(4):
            for event, seen in manager.ledger.due_events(self._lease.end):
                with self.recorder.events():
                    manager.runner.run(event, seen)

    def _update(self, manager, **values):
        new = manager.leases.update(self._lease.id, None, values)
        return new.name, new.status


@pytest.fixture
def other(conf, world):
    manager = Manager(
        conf, world.nova, world.placement, world.clock, world.monotonic
    )
    yield manager
    manager.ledger.close()


@pytest.mark.parametrize('first', [PENDING, ACTIVE], ids=lambda x: x.status)
@pytest.mark.parametrize('seed', range(8))
def test_every_answer_is_that_of_some_order(world, other, slots, seed, first):
    rng = random.Random(seed)
    world.add_host('a')
    lease = world.create(slots(), start='now', end=1000)
    if first == ACTIVE:
        world.run()
    world.clock.now += 10
    crowd = Crowd(world, other, lease, rng)
    acts = [
        crowd.work, crowd.work, crowd.end_now, crowd.rename('b'),
        crowd.rename('c'), crowd.delete,
    ]
    # In some histories no thread deletes the lease, or ends it.
    del acts[len(acts) - rng.randrange(2) :]
    try:
        crowd.run(*acts)
    finally:
        faults.arm(None)
    left = world.ledger.leases()
    last = (left[0].name, left[0].status) if left else None
    assert history.explains(first, crowd.recorder.steps, last)
    world.run(2000)
    world.run(100)
    assert not world.nova.made_flavors
    assert not world.placement.children
    world.check()


class TestChecker:
    """The checker refuses impossible histories."""

    def step(self, name, argument, answer, began, over):
        return history.Step(name, argument, answer, began, over)

    def explains(self, *steps, last=('lease', 'PENDING')):
        return history.explains(PENDING, list(steps), last)

    def test_lost_change_is_found(self):
        step = self.step('rename', 'b', ('b', 'PENDING'), 0, 1)
        assert self.explains(step, last=('b', 'PENDING'))
        assert not self.explains(step)

    def test_an_answer_out_of_order(self):
        first = self.step('rename', 'b', ('b', 'PENDING'), 0, 1)
        second = self.step('delete', None, None, 2, 3)
        assert self.explains(first, second, last=None)
        late = dataclasses.replace(first, began=4, over=5)
        assert not self.explains(late, second, last=None)
        # Of simultaneous steps either may have been first.
        at_once = dataclasses.replace(first, began=2, over=5)
        assert self.explains(at_once, second, last=None)

    def test_a_delete_in_the_middle_of_an_event(self):
        steps = [
            self.step('claim', 'start_lease', None, 0, 1),
            self.step('delete', None, None, 2, 3),
            self.step('finish', 'start_lease', None, 4, 5),
        ]
        assert not self.explains(*steps, last=None)
        steps[1] = dataclasses.replace(steps[1], answer=history.BUSY)
        assert self.explains(*steps, last=('lease', 'ACTIVE'))

    def test_an_event_that_is_done_twice(self):
        once = [
            self.step('claim', 'start_lease', None, 0, 1),
            self.step('finish', 'start_lease', None, 2, 3),
        ]
        assert self.explains(*once, last=('lease', 'ACTIVE'))
        assert not self.explains(*once, *once, last=('lease', 'ACTIVE'))
