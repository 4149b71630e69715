# SPDX-License-Identifier: Apache-2.0
"""Preemptible servers that may not be on an open reservation go.

They were on their way when the lease started, or their deletion has failed.
"""

import dataclasses

from microversion_parse import Version
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.instance import Instance
from blazar_sched.service.api.views.reservation import RESERVATION
from blazar_sched.service.resources import vacating
from blazar_sched.service.upkeep import clearing
from blazar_sched.service.upkeep import instance_sync
from tests.functional.manager.conftest import hosts
from tests.functional.manager.conftest import instances

ASKED = {'whole': hosts(1), 'slots': instances(2, vcpus=4)}
VCPUS = 8
STEP = 5
NOTICE = 30


@pytest.fixture(params=ASKED)
def asked(request):
    return ASKED[request.param]


@pytest.fixture
def world(world):
    world.add_host('a', VCPUS)
    yield world
    assert world.ledger.check() == []


def place(world, announced=True, **values):
    """Have nova-scheduler place a preemptible server on the host.

    Nova does not name the host yet.
    """
    server = world.add_server(None, **{
        'vcpus': VCPUS, 'preemptible': True, 'status': 'BUILD',
        'task': 'spawning', **values,
    })
    if announced:
        world.manager.instances.book(Instance(
            server.uuid, world.host('a').uuid, server.project_id,
            server.amounts, preemptible=True, building=True,
        ), world.now)
        world.manager.instances.poll()
    return server


def arrive(world, server):
    world.nova.stored[server.uuid] = dataclasses.replace(
        world.nova.stored[server.uuid], node='a', status='ACTIVE', task=None
    )
    world.manager.instances.sync()


def start(world, asked):
    return world.start_lease(asked, end=7200)


def look(world, seconds=STEP, step=STEP):
    """Let time pass, with a look of the manager every few seconds."""
    for _ in range(-(-seconds // step)):
        world.run(step)
        world.manager.instances.sync()
        world.manager.clearing.step()
        world.run()


def waited_for(world, lease):
    """Return the number of hosts that the owner is told of."""
    [reservation] = world.lease(lease).reservations
    shown = RESERVATION.show(reservation.encode(), Version(1, 1))
    return shown['hosts_waited_for']


@pytest.mark.parametrize('announced', [True, False])
def test_a_server_on_its_way_when_a_lease_starts_goes(world, asked, announced):
    guest = place(world, announced)
    lease = start(world, asked)
    assert waited_for(world, lease) == announced
    look(world, 60)
    assert waited_for(world, lease) == announced
    arrive(world, guest)
    look(world)
    assert waited_for(world, lease) == 1
    look(world, NOTICE + 2 * STEP)
    assert guest.uuid not in world.nova.stored
    assert waited_for(world, lease) == 0


def test_control_such_a_server_would_stay(world, asked, monkeypatch):
    monkeypatch.setattr(world.manager.clearing, 'step', lambda: None)
    guest = place(world)
    start(world, asked)
    arrive(world, guest)
    look(world, 600, NOTICE)
    assert guest.uuid in world.nova.stored


def test_a_server_on_its_way_that_fails_is_waited_for_no_more(world, asked):
    guest = place(world)
    lease = start(world, asked)
    world.nova.stored[guest.uuid] = dataclasses.replace(
        guest, status='ERROR', task=None
    )
    look(world)
    assert waited_for(world, lease) == 0


def test_a_deletion_that_fails_is_requested_again(world, asked):
    """At growing pauses, and the owner is told meanwhile."""
    guest = world.add_server('a', vcpus=VCPUS, preemptible=True)
    world.manager.instances.sync()
    world.nova.slowness = 1000
    lease = start(world, asked)
    times, known = [], world.nova.asked[guest.uuid]
    assert known == 1
    end = world.now + 3600
    while world.now < end:
        # The first pauses are short.
        step = STEP if len(times) < 5 else NOTICE
        look(world, step, step)
        assert waited_for(world, lease) == 1
        if world.nova.asked[guest.uuid] != known:
            known = world.nova.asked[guest.uuid]
            times.append(world.now)
    pauses = [
        later - each for each, later in zip(times, times[1:], strict=False)
    ]
    assert pauses[:4] == [vacating.PAUSE * factor for factor in (1, 2, 4, 8)]
    assert set(pauses[4:]) == {vacating.MAX_PAUSE}

    world.nova.slowness = 0
    look(world, vacating.MAX_PAUSE + STEP)
    assert guest.uuid not in world.nova.stored
    assert waited_for(world, lease) == 0


def test_nobody_else_goes(world, asked):
    """Neither who was in the way at the start, nor the owner's servers."""
    lease = world.create({**asked, 'on_end': 'keep'}, start='now', end=7200)
    ordinary = world.add_server('a', vcpus=VCPUS)
    world.run()
    before = world.ledger.changes(0)['newest']
    own = world.add_own_server(
        lease, 'a', lease.project_id, created=world.now, preemptible=True,
    )
    guest = place(world)
    arrive(world, guest)
    look(world, 600, NOTICE)
    assert world.ledger.changes(0)['newest'] > before
    assert {ordinary.uuid, own.uuid} == world.nova.stored.keys()
    assert waited_for(world, lease) == 0


@pytest.mark.parametrize('stays', [True, False])
def test_nothing_is_written_while_nothing_changes(world, stays):
    guest = world.add_server('a', vcpus=VCPUS, preemptible=True)
    world.manager.instances.sync()
    world.nova.slowness = 1000 if stays else 0
    start(world, hosts(1))
    look(world, 60)
    assert (guest.uuid in world.nova.stored) is stays
    before = world.ledger.changes(0)['newest']
    look(world, 600, NOTICE)
    assert world.ledger.changes(0)['newest'] == before


def test_a_lease_without_others_asks_nova_nothing(world, asked, monkeypatch):
    start(world, asked)
    look(world)
    monkeypatch.setattr(world.nova, 'servers', None)
    world.manager.clearing.step()


@pytest.mark.parametrize('how', ['grows', 'loses its host'])
def test_a_host_that_a_lease_gets_later_is_cleared_too(world, how):
    """A server is on its way to that host."""
    world.add_host('b', VCPUS)
    lease = start(world, hosts(1))
    [(_, first, _)] = world.held(lease)
    [other] = world.names().keys() - {first}
    guest = place(world, announced=False)
    if how == 'grows':
        world.change_reservation(lease, min=2, max=2)
    else:
        world.fail(world.names()[first])
        world.healer.heal()
    world.run()
    held = {other, first} if how == 'grows' else {other}
    assert {host for _, host, _ in world.held(lease)} == held
    world.nova.stored[guest.uuid] = dataclasses.replace(
        guest, node=world.names()[other], status='ACTIVE', task=None
    )
    look(world, NOTICE + 2 * STEP)
    assert guest.uuid not in world.nova.stored


def test_many_announcements_are_few_commits(world, monkeypatch):
    monkeypatch.setattr(instance_sync, 'FLOOD', 60)
    monkeypatch.setattr(instance_sync, 'PAGE', 20)
    commits = []
    real = world.ledger.commit
    monkeypatch.setattr(
        world.manager.instances._ledger, 'commit',
        lambda work: commits.append(work) or real(work),
    )
    book = world.manager.instances.book
    for n in range(instance_sync.FLOOD + 10):
        book(Instance(
            f'i{n}', world.host('a').uuid, 'p', {'VCPU': 1}, preemptible=True,
            building=True,
        ), world.now)
    assert commits == []
    monkeypatch.setattr(world.manager.instances, '_take', dict)
    world.manager.instances.poll()
    assert len(commits) == instance_sync.FLOOD // instance_sync.PAGE
    assert len(world.ledger.instances()) == instance_sync.FLOOD


def test_nova_that_is_away_is_reported_by_the_loop_alone(world, asked, caplog):
    guest = world.add_server('a', vcpus=VCPUS, preemptible=True)
    world.manager.instances.sync()
    world.nova.slowness = 1
    start(world, asked)
    caplog.clear()
    for _ in range(60):
        world.run(STEP)
        world.nova.failures = 1
        with pytest.raises(exception.Unavailable):
            world.manager.clearing.step()
    # The loop has one line a minute, for all reservations.
    assert not [x for x in caplog.records if x.levelname == 'WARNING']
    assert not any(each.exc_info for each in caplog.records)
    look(world, 60)
    assert guest.uuid not in world.nova.stored


def test_the_replica_is_held_only_for_a_slice(world, monkeypatch):
    monkeypatch.setattr(clearing, 'SLICE', 1)
    world.add_host('b', VCPUS)
    guests = [
        world.add_server(name, vcpus=VCPUS, preemptible=True) for name in 'ab'
    ]
    world.nova.slowness = 1
    start(world, hosts(1))
    start(world, instances(2, vcpus=4))
    look(world, NOTICE + 2 * STEP)
    assert not any(each.uuid in world.nova.stored for each in guests)
