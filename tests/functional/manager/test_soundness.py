# SPDX-License-Identifier: Apache-2.0
"""Random requests overbook no host, and leave no objects behind."""

import dataclasses
import random

import pytest

from blazar_sched.domain import event
from blazar_sched.domain import exception
from tests.seeds import seeds


class Client:
    """A client that makes random requests."""

    def __init__(self, world, whole, slots, seed):
        self._world = world
        self._whole = whole
        self._slots = slots
        self._rng = random.Random(seed)
        self._leases = []

    def act(self):
        """Make a request; tell whether it was accepted."""
        acts = (self._create, self._create, self._update, self._delete)
        act = self._rng.choice(acts) if self._leases else self._create
        try:
            act()
        except exception.BlazarSchedError as refusal:
            assert refusal.status < 500, refusal
            return False
        finally:
            self._world.run(self._rng.randint(0, 15))
        return True

    def _create(self):
        start = self._rng.randint(0, 60)
        asked = [self._reservation() for _ in range(self._rng.randint(1, 2))]
        self._leases.append(self._world.create(
            *asked, start=start, end=start + self._rng.randint(1, 60)
        ))

    def _update(self):
        lease = self._world.lease(self._rng.choice(self._leases))
        changes = [c for r in lease.reservations for c in self._changes(r)]
        if self._rng.random() < 0.3:
            changes.append(self._reservation())
        values = {
            'end': self._world.now + self._rng.randint(0, 100),
            'reservations': changes,
        }
        if lease.status == 'PENDING':
            values['start'] = self._world.now + self._rng.randint(0, 50)
        before = self._state(lease)
        try:
            self._world.leases.update(lease.id, None, values)
        except exception.BlazarSchedError:
            assert self._state(lease) == before
            raise

    def _delete(self):
        lease = self._leases.pop(self._rng.randrange(len(self._leases)))
        self._world.leases.delete(lease.id, None)

    def _state(self, lease):
        noun = self._world.lease(lease)
        # A reservation that gave up slots before it was refused has its start
        # repeated, which restores the slots.
        events = event.start_again(noun.events)
        return dataclasses.replace(noun, events=events), self._world.held(
            lease
        )

    def _reservation(self):
        rng = self._rng
        if rng.random() < 0.5:
            return self._whole(1, rng.randint(1, 2))
        affinity = rng.choice((None, True, False))
        return self._slots(rng.randint(1, 3), affinity=affinity)

    def _changes(self, reservation):
        """Return a change of a reservation, or none."""
        size = 'max' if reservation.demand.whole else 'amount'
        change = self._rng.choice(
            (
                None,
                None,
                {size: self._rng.randint(1, 4)},
                {size: self._rng.randint(1, 4), 'projects': ['other']},
                {'remove': True},
            )
        )
        return [] if change is None else [{'id': reservation.id, **change}]


@pytest.mark.parametrize('seed', seeds(10, few=2))
def test_any_history_keeps_the_ledger_sound(world, whole, slots, seed):
    world.add_hosts('a', 'b', 'c', vcpus=4)
    client = Client(world, whole, slots, seed)
    accepted = 0
    for _ in range(40):
        accepted += client.act()
        world.check()
    assert accepted > 10
    for _ in range(3):
        world.run(1000)
    assert not world.ledger.allocations()
    assert not world.nova.made_flavors
    assert not world.placement.children
    assert not world.placement.classes
