# SPDX-License-Identifier: Apache-2.0
"""What is no more than what was granted, against an oracle that counts it."""

import dataclasses
import random

import pytest

from blazar_sched.domain import demand
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import FOREVER
from tests.seeds import seeds

# No window of the test begins later.
LAST = 6
NAMES = 'ab'
NETWORKS = 'nm'


def draw_demand(draw):
    kind = draw.choice(['hosts', 'hosts', 'slots', 'slots', 'addresses'])
    properties = draw.choice(['', '["==", "$gpu", "1"]'])
    before_end = draw.choice(['', 'snapshot'])
    if kind == 'hosts':
        least = draw.randint(1, 3)
        return demand.Hosts(
            least, draw.randint(least, 3), draw.choice(['', '', properties]),
            properties, before_end,
        )
    if kind == 'slots':
        slot = {'VCPU': draw.randint(1, 2), 'MEMORY_MB': 1, 'DISK_GB': 0}
        return demand.Slots(
            slot, draw.randint(1, 3), draw.choice([None, True]), properties,
            before_end=before_end,
        )
    return demand.Other(
        'virtual:floatingip',
        {'network_id': draw.choice(NETWORKS), 'amount': 2},
    )


def draw_reservation(draw, id_):
    return Reservation(
        id_, 'lease', 'pending', draw_demand(draw),
        projects=tuple(draw.sample(NAMES, draw.randint(0, 2))),
        product=draw.choice(['', '', 'gold']),
        on_end=draw.choice(['delete', 'keep']),
        labels=draw.choice([{}, {'a': 'b'}]),
    )


def draw_lease(draw):
    start = draw.randint(0, LAST)
    end = draw.choice([start + draw.randint(1, 3), FOREVER])
    ids = draw.sample('123', draw.randint(1, 3))
    return Lease(
        'lease', 'name', 'project', 'user', start, end, 'PENDING',
        reservations=tuple(draw_reservation(draw, id_) for id_ in ids),
    )


def change(draw, lease):
    """Return a lease with one or two things of another lease."""
    for _ in range(draw.randint(1, 2)):
        other = draw_lease(draw)
        what = draw.choice(['start', 'end', 'reservations', 'one', 'part'])
        if what in ('start', 'end'):
            moved = {what: getattr(other, what)}
            window = {'start': lease.start, 'end': lease.end, **moved}
            if window['start'] < window['end']:
                lease = dataclasses.replace(lease, **window)
            continue
        known = {r.id: r for r in lease.reservations}
        id_ = draw.choice(list(known))
        if what == 'reservations':
            known = {r.id: r for r in other.reservations} | known
            del known[id_]
        else:
            new = draw_reservation(draw, id_)
            field = draw.choice(['demand', 'projects', 'product'])
            if what == 'one':
                new = dataclasses.replace(
                    known[id_], **{field: getattr(new, field)}
                )
            elif hasattr(known[id_].demand, 'amount'):
                new = dataclasses.replace(
                    known[id_], projects=known[id_].projects[:1]
                )
            known[id_] = new
        lease = dataclasses.replace(
            lease, reservations=tuple(known.values()) or lease.reservations
        )
    return lease


def granted(lease):
    """Return each thing of a lease, at each second, on its own."""
    seconds = range(lease.start, min(lease.end, 2 * LAST))
    things = {('second', s) for s in seconds}
    for r in lease.reservations:
        asked = r.demand.encode()
        for name in ('min', 'max', 'before_end', 'on_start'):
            asked.pop(name, None)
        if r.resource_type != 'virtual:floatingip':
            asked.pop('amount', None)
        kind = r.id, r.resource_type, r.product, repr(sorted(asked.items()))
        things |= {
            (kind, s, number)
            for s in seconds for number in range(r.demand.most)
        }
        things |= {(r.id, 'shared', project) for project in r.projects}
    return things


def differing(seed):
    """Return the pairs of which the oracle says another thing."""
    draw = random.Random(seed)
    found, within = [], 0
    for _ in range(400):
        old = draw_lease(draw)
        new = change(draw, old) if draw.random() < 0.9 else draw_lease(draw)
        expected = granted(new) <= granted(old)
        within += expected
        if new.is_within(old) != expected:
            found.append((old, new))
    # Both answers are given often.
    assert 40 < within < 360
    return found


@pytest.mark.parametrize('seed', seeds(20, few=3))
def test_a_lease_is_within_what_was_granted(seed):
    assert differing(seed) == []


@pytest.mark.parametrize('broken', [
    lambda new, old: new.demand.most <= old.demand.most,
    lambda new, old: new.demand.kind == old.demand.kind,
    lambda new, old: (
        new.demand.kind == old.demand.kind
        and new.demand.most <= old.demand.most
    ),
])
def test_control_with_a_comparison_that_leaves_something_out(
    broken, monkeypatch
):
    """The control: of numbers, of the kind, without sharing."""
    monkeypatch.setattr(Reservation, 'is_within', broken)
    assert differing(0)


def test_control_with_a_window_that_may_move(monkeypatch):
    monkeypatch.setattr(Lease, 'window', property(lambda lease: ANYWHERE))
    assert differing(0)


class _Anywhere:
    def includes(self, other):
        return True


ANYWHERE = _Anywhere()


def test_a_lease_is_within_itself():
    draw = random.Random(0)
    for _ in range(100):
        lease = draw_lease(draw)
        assert lease.is_within(lease)
