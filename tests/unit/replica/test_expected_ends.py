# SPDX-License-Identifier: Apache-2.0
"""The latest expected end on each host follows records and time."""

import random

import pytest

from blazar_sched.domain import lifetime_history
from blazar_sched.domain import window
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.inventory import Inventory
from blazar_sched.replica import accounting
from blazar_sched.replica import expected_ends
from blazar_sched.replica import record
from blazar_sched.replica import state

NOW, HOUR, DAY = 10 ** 6, 3600, 86400
SIZE = {'VCPU': 1, 'MEMORY_MB': 512}
HISTORY = lifetime_history.add(
    lifetime_history.LifetimeHistory(lifetime_history.id_of('p', SIZE)),
    [HOUR, HOUR, HOUR, 10 * DAY], NOW,
)


def a_host(uuid):
    held = {'VCPU': Inventory(64), 'MEMORY_MB': Inventory(65536)}
    return Host(uuid, uuid, uuid, inventory=held)


def a_server(uuid, on='h', created=NOW, project='p', **fields):
    return Instance(uuid, on, project, SIZE, created=created, **fields)


@pytest.fixture
def replica():
    made = state.Replica(accounting.SchedulerAccounting)
    made.apply(1, map(record.encode, (a_host('h'), a_host('g'), HISTORY)))
    return made


def put(replica, *entities):
    replica.apply(replica.revision + 1, map(record.encode, entities))


def latest(replica, now=NOW):
    return replica.expected_ends.latest(['h', 'g'], now)


def test_latest_end_follows_the_instances_of_a_host(replica):
    assert latest(replica) == [NOW, NOW]
    put(replica, a_server('i', end=NOW + HOUR))
    put(replica, a_server('j', 'g', end=NOW + 9))
    assert latest(replica) == [NOW + HOUR, NOW + 9]
    put(replica, a_server('k', end=NOW + DAY))
    assert latest(replica) == [NOW + DAY, NOW + 9]
    put(replica, a_server('k', 'g', end=NOW + DAY))
    assert latest(replica) == [NOW + HOUR, NOW + DAY]
    replica.apply(9, [(record.INSTANCE, 'i', None)])
    assert latest(replica) == [NOW, NOW + DAY]
    assert latest(replica, NOW + DAY - 1) == [NOW + DAY - 1, NOW + DAY]
    # An instance that is past its end has no end.
    assert latest(replica, NOW + DAY)[1] > NOW + 2 * DAY


def test_instances_that_yield_do_not_count(replica):
    put(replica, a_server('i', preemptible=True))
    assert latest(replica) == [NOW, NOW]


def test_an_end_is_predicted_anew_once_it_is_past(replica):
    put(replica, a_server('i'))
    first = latest(replica)[0]
    assert 2 * DAY < first - NOW < 4 * DAY
    assert latest(replica, first - 1)[0] == first
    # Only the instance that lived for ten days has lived as long.
    assert 9 * DAY < latest(replica, first)[0] - NOW < 11 * DAY


def test_instances_of_which_nothing_is_known_may_stay_for_ever(replica):
    for number, unknown in enumerate((
        {'project': 'q'}, {'created': 0},
    )):
        put(replica, a_server(f'i{number}', **unknown))
        assert latest(replica) == [window.FOREVER, NOW]
        replica.apply(
            replica.revision + 1, [(record.INSTANCE, f'i{number}', None)]
        )


def test_one_call_computes_a_bounded_number_of_ends(replica, monkeypatch):
    monkeypatch.setattr(expected_ends, 'MAX_COMPUTED', 1)
    put(replica, a_server('i', end=NOW + 5), a_server('j', 'g', end=NOW + 9))
    assert latest(replica) == [NOW + 5, NOW]
    assert latest(replica) == [NOW + 5, NOW + 9]
    replica.apply(4, [(record.INSTANCE, 'i', None)])
    assert latest(replica) == [NOW, NOW + 9]
    # An empty host takes no turn.
    put(replica, a_server('j', 'g', end=NOW + 7))
    assert latest(replica) == [NOW, NOW + 7]


def test_a_full_copy_has_the_histories(replica):
    put(replica, a_server('i'))
    copy = state.Replica(accounting.SchedulerAccounting)
    copy.load(2, replica.items())
    assert latest(copy) == latest(replica)
    assert copy.histories == {HISTORY.id: HISTORY}


def test_latest_equals_the_latest_of_all_records(replica):
    rng = random.Random(4)
    now = NOW
    for step in range(300):
        now += rng.randrange(2 * HOUR)
        uuid = f'i{rng.randrange(8)}'
        if rng.random() < 0.4:
            replica.apply(step + 2, [(record.INSTANCE, uuid, None)])
        else:
            put(replica, a_server(
                uuid, rng.choice('hg'), now,
                end=NOW + (step + 9) * 2 * HOUR + rng.randrange(DAY),
            ))
        expected = [
            max(
                (each.end for each in replica.instances.values()
                 if each.host == host),
                default=now,
            )
            for host in 'hg'
        ]
        assert latest(replica, now) == expected
