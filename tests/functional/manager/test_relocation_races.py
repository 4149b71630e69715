# SPDX-License-Identifier: Apache-2.0
"""Relocation while something else happens, with Nova and time in memory.

Where two things happen at once, one is held between its decision and its
commit until the other is done, or until both are there.
"""

import dataclasses
import itertools
import threading

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.inventory import Inventory
from blazar_sched.placing import relocation
from blazar_sched.replica import instance_record
from blazar_sched.service import faults
from blazar_sched.service.booking.lease_writer import LeaseWriter
from blazar_sched.service.upkeep import relocation as relocating
from blazar_sched.service.upkeep.relocation import MAX_REQUESTS
from blazar_sched.service.upkeep.relocation import PAUSE
from tests import closed
from tests.functional.manager.conftest import at
from tests.functional.manager.conftest import hosts
from tests.functional.manager.conftest import instances
from tests.functional.manager.conftest import Killed
from tests.functional.manager.relocating import FEATURES
from tests.functional.manager.relocating import LEAD
from tests.functional.manager.relocating import LOOK
from tests.functional.manager.relocating import NAMES
from tests.functional.manager.relocating import NOTICE
from tests.functional.manager.relocating import RelocatingManager
from tests.functional.manager.relocating import RULES
from tests.functional.manager.relocating import VCPUS

LONG = 100 * NOTICE


@pytest.fixture
def world(conf):
    world = RelocatingManager(conf)
    yield world
    world.ledger.close()


@pytest.fixture
def unplanned(told):
    """unplanned() -> the servers that were reported since the last call."""

    def unplanned():
        found = [
            payload['instance_id'] for event_type, payload in told
            if event_type == 'instance.unplanned'
        ]
        told.clear()
        return found

    return unplanned


def arrive(world, node, vcpus=VCPUS):
    """Have a server on a node, as placed by nova-scheduler's decision.

    :returns: the server, and the path that the decision goes by
    """
    server = world.add_server(
        node, vcpus=vcpus, features=FEATURES, created=world.now
    )
    host = world.host(node).uuid

    def decide(replica):
        replica.advance(world.now)
        record = instance_record.make(replica, host, server, world.now, RULES)
        return relocation.plan(replica, record, world.now, RULES)

    path = world.ledger.read_replica(decide)
    assert path
    return server, path


@pytest.fixture
def obey(monkeypatch):
    """obey(decided): the control, with paths written as they were decided.

    :param decided: paths by the uuid of the server
    """
    planned = relocating.with_path

    def obey(decided):
        monkeypatch.setattr(
            relocating, 'with_path',
            lambda replica, old, new, *args: dataclasses.replace(
                planned(replica, old, new, *args), path=decided[new.uuid]
            ),
        )

    return obey


class Held:
    """Answers of Nova about servers that are held back.

    A manager has read the ledger when it queries Nova, and then writes the
    record.
    """

    def __init__(self, world, monkeypatch, hold):
        query = world.nova.server

        def server(uuid):
            hold()
            return query(uuid)

        monkeypatch.setattr(world.nova, 'server', server)


def look_at(manager, server):
    manager.instances.notice(server.uuid)
    while manager.instances._noticed:
        manager.instances.poll()


@pytest.fixture
def look_at_once(world, conf, monkeypatch):
    """Have two managers look at a server each, both before either writes."""

    def look(*servers):
        both = threading.Barrier(len(servers), timeout=60)
        waiting = set()

        def hold():
            # A later query is another try of the same manager.
            if threading.get_ident() not in waiting:
                waiting.add(threading.get_ident())
                both.wait()

        with monkeypatch.context() as patch:
            Held(world, patch, hold)
            threads = [
                threading.Thread(
                    target=look_at, args=(world.another(conf), server)
                )
                for server in servers
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert len(waiting) == len(servers)

    return look


@pytest.fixture
def same_room(world):
    """Two servers that were let pass by the same place on the same host."""
    world.reserve('a', 'b')
    (one, path), (other, same) = arrive(world, 'a'), arrive(world, 'b')
    assert path[1:] == same[1:]
    return {one.uuid: path, other.uuid: same}, [one, other]


def test_two_that_were_let_pass_by_the_same_place_get_two_places(
    world, look_at_once, same_room, unplanned
):
    decided, servers = same_room
    look_at_once(*servers)
    world.look()
    world.check_promises()
    assert len({world.path(server)[-1] for server in servers}) == 2
    assert unplanned() == []


def test_the_decision_alone_would_promise_the_place_twice(
    world, look_at_once, same_room, obey
):
    decided, servers = same_room
    obey(decided)
    look_at_once(*servers)
    with pytest.raises(AssertionError):
        world.check_promises()


def test_server_whose_only_place_is_taken_is_reported_and_keeps_its_host(
    world, look_at_once, unplanned
):
    world.reserve('a', 'b')
    world.reserve('d', start=10, end=LONG)
    (one, _), (other, _) = arrive(world, 'a'), arrive(world, 'b')
    look_at_once(one, other)
    world.look()
    by_path = {bool(world.path(each)): each for each in (one, other)}
    assert unplanned() == [by_path[False].uuid]
    world.look()
    assert unplanned() == []
    del world.nova.stored[by_path[True].uuid]
    world.look()
    assert world.path(by_path[False])[-1] == 'c'
    world.check_promises()


@pytest.fixture
def race_of_a_lease(world, monkeypatch):
    """Have a lease booked where a decided path leads; return server, lease."""
    world.reserve('a')
    server, path = arrive(world, 'a')
    names = world.names()
    leases = []

    def hold():
        if not leases:
            leases.append(world.reserve(
                names[path[-1].host], start=NOTICE + 10, end=LONG
            ))

    def race():
        Held(world, monkeypatch, hold)
        look_at(world.manager, server)
        return server, path, leases[0]

    return server, path, race


def test_a_lease_wins_that_is_booked_between_decision_and_record(
    world, race_of_a_lease
):
    server, path, race = race_of_a_lease
    *_, lease = race()
    [(_, held, _)] = world.held(lease)
    assert held == path[-1].host
    assert world.ledger.instance(server.uuid).path[-1].host != held
    world.check_promises()


def test_the_decision_alone_would_lead_to_the_host_of_the_lease(
    world, race_of_a_lease, obey
):
    server, path, race = race_of_a_lease
    obey({server.uuid: path})
    race()
    with pytest.raises(AssertionError):
        world.check_promises()


@pytest.fixture
def planned(world):
    """Return a server, the lease of its host, and where its path leads."""
    server = world.boot('a')
    lease = world.reserve('a')
    return server, lease, world.path(server)[-1]


def until_start(world, lease):
    """Let the time pass until a lease has started."""
    while world.now <= lease.start:
        world.look(min(LOOK, lease.start + 1 - world.now))


def shrink(world, name):
    held = {
        'VCPU': Inventory(VCPUS - 1), 'MEMORY_MB': Inventory(4096),
        'DISK_GB': Inventory(100),
    }
    world.placement.change(world.host(name).uuid, held)
    world.hosts.sync()


LOSSES = {
    'down': lambda world, name: world.fail(name),
    'removed': lambda world, name: world.hosts.delete(world.host(name).id),
    'disabled': lambda world, name: world.hosts.update(
        world.host(name).id, {'disabled': True}
    ),
    'dedicated': lambda world, name: world.hosts.update(
        world.host(name).id, {'hold': 'dedicated'}
    ),
    'closed': lambda world, name: world.hosts.update(
        world.host(name).id, {'unbounded': 'never'}
    ),
    'shrunk': shrink,
    # No filter has admitted this server, and it cannot be moved.
    'filled by force': lambda world, name: world.boot(
        name, vcpus=1, features=None
    ),
}


@pytest.mark.parametrize('early', [True, False])
@pytest.mark.parametrize('loss', LOSSES)
def test_a_path_leads_around_a_host_that_is_lost(
    world, planned, unplanned, loss, early
):
    server, lease, target = planned
    if not early:
        # The move is being made, and fails.
        world.nova.slowness = 1
        world.look(NOTICE - LEAD + 1)
        assert world.node(server) == 'a'
    LOSSES[loss](world, target)
    world.look()
    assert target not in world.path(server)
    until_start(world, lease)
    assert world.node(server) not in ('a', target)
    assert not world.lease(lease).degraded
    assert unplanned() == []


def test_a_server_moves_earlier_from_a_host_that_closes_earlier(
    world, planned, unplanned
):
    server, lease, _ = planned
    start = lease.start - NOTICE // 2
    closed.close(world.ledger, 'a', start, start + 1)
    world.look()
    assert world.ledger.instance(server.uuid).leaves_at == start
    assert unplanned() == []


@pytest.mark.parametrize('loss', ['down', 'filled by force'])
def test_a_path_to_a_lost_host_would_make_the_lease_late(
    world, planned, loss, monkeypatch
):
    """The control; the manager of the in-memory Nova moves no server there."""
    server, lease, target = planned
    monkeypatch.setattr(relocation, 'is_open', lambda *args: True)
    refuse(world, monkeypatch, target)
    LOSSES[loss](world, target)
    until_start(world, lease)
    assert world.node(server) == 'a'
    assert world.lease(lease).degraded


def refuse(world, monkeypatch, *names):
    """Have Nova accept moves to some hosts, and leave the servers there."""
    move = world.nova.migrate_server

    def migrate(server, service_name, way):
        return service_name in names or move(server, service_name, way)

    monkeypatch.setattr(world.nova, 'migrate_server', migrate)


def test_server_without_any_place_is_reported_and_planned_when_room_comes(
    world, planned, unplanned
):
    server, lease, _ = planned
    for name in NAMES[1:]:
        world.fail(name)
    world.look()
    assert unplanned() == [server.uuid]
    assert world.node(server) == 'a'
    # There is less time than the lead, and it is enough.
    world.look(NOTICE - LEAD // 2)
    world.set_up('d')
    world.look()
    world.look(1)
    assert world.node(server) == 'd'
    until_start(world, lease)
    assert not world.lease(lease).degraded


def test_after_several_failed_moves_the_path_leads_elsewhere(
    world, monkeypatch, conf
):
    lead = (MAX_REQUESTS + 1) * PAUSE
    conf.set_override('relocation_lead', lead, 'manager')
    server = world.boot('a')
    lease = world.reserve('a')
    target = world.path(server)[-1]
    refuse(world, monkeypatch, target)
    world.look(NOTICE - lead)
    for _ in range(MAX_REQUESTS - 1):
        world.look(PAUSE)
        assert world.path(server)[-1] == target
    world.look(PAUSE)
    assert world.path(server)[-1] != target
    until_start(world, lease)
    assert world.node(server) not in ('a', target)
    assert not world.lease(lease).degraded


def test_nova_that_is_away_has_not_tried_a_host(world, monkeypatch, conf):
    lead = (MAX_REQUESTS + 4) * PAUSE
    conf.set_override('relocation_lead', lead, 'manager')
    server = world.boot('a')
    lease = world.reserve('a')
    target = world.path(server)[-1]

    def migrate_server(*args):
        raise exception.Unavailable('compute answered 503', service='compute')

    with monkeypatch.context() as away:
        away.setattr(world.nova, 'migrate_server', migrate_server)
        for pause in (NOTICE - lead, *[PAUSE] * (MAX_REQUESTS + 1)):
            with pytest.raises(exception.Unavailable):
                world.look(pause)
    assert world.path(server)[-1] == target
    until_start(world, lease)
    assert world.node(server) == target


def test_the_only_path_is_tried_until_the_window_opens(
    world, planned, monkeypatch
):
    server, lease, target = planned
    for name in set(NAMES[1:]) - {target}:
        world.fail(name)
    asked = []
    monkeypatch.setattr(
        world.nova, 'migrate_server',
        lambda server, service_name, way: asked.append(service_name) or True,
    )
    until_start(world, lease)
    assert asked == [target] * len(asked) and len(asked) > 1
    assert world.lease(lease).degraded
    assert world.node(server) == 'a'


def test_of_two_servers_that_fit_alone_one_moves(world):
    servers = [world.boot('a', 2), world.boot('a', 2)]
    world.leases.delete(world.reserve('a').id, None)
    lease = world.create(
        instances(1, 2, resource_properties=at('a')),
        start=NOTICE, end=2 * NOTICE,
    )
    assert all(map(world.path, servers))
    until_start(world, lease)
    assert sorted(map(world.node, servers))[0] == 'a'
    assert len(set(map(world.node, servers))) == 2
    assert not world.lease(lease).degraded
    world.check_promises()


def test_a_manager_that_was_away_leads_past_the_stays_that_are_over(world):
    server = world.boot('a')
    world.reserve('b', start=NOTICE + 200, end=LONG)
    world.reserve('c', start=10, end=NOTICE + 100)
    world.reserve('d', start=10, end=LONG)
    world.reserve('a', end=LONG)
    assert world.path(server) == ['a', 'b', 'c']
    world.look(NOTICE + 200)
    world.look(1)
    assert world.node(server) == 'c'
    assert world.path(server) == []


def test_a_server_that_is_deleted_while_it_moves_leaves_no_place_behind(
    world, planned
):
    server, lease, target = planned
    world.nova.slowness = 1
    world.look(NOTICE - LEAD + 1)
    moving = dataclasses.replace(world.nova.server(server.uuid), task='m')
    world.nova.stored[server.uuid] = moving
    with pytest.raises(exception.NotEnoughHostsAvailable):
        world.reserve(target, start=10, end=20)
    del world.nova.stored[server.uuid]
    world.look()
    assert world.ledger.instance(server.uuid) is None
    world.reserve(target, start=10, end=20)
    world.reserve('a', start=10, end=20)
    world.check_promises()


def changed(world, server, **values):
    world.nova.stored[server.uuid] = dataclasses.replace(
        world.nova.server(server.uuid), **values
    )
    world.look()


def test_server_moved_by_an_operator_frees_its_booked_place(world, planned):
    server, lease, target = planned
    [other, *_] = sorted(set(NAMES) - {'a', target})
    changed(world, server, node=other)
    assert world.path(server) == []
    # The place that was booked is free again.
    world.reserve(target, start=NOTICE + 10, end=LONG)
    world.check_promises()


def test_resized_server_gets_a_path_for_its_new_size(world):
    server = world.boot('a', 2)
    for name in NAMES[1:]:
        world.boot(name, {'d': 1}.get(name, 2))
    world.reserve('a')
    small = world.path(server)[-1]
    assert small != 'd'
    amounts = {**server.amounts, 'VCPU': 3}
    changed(world, server, amounts=amounts)
    assert world.path(server)[-1] == 'd'
    world.check_promises()


def test_shelved_server_has_no_path_until_it_returns(world, planned):
    server, lease, target = planned
    changed(world, server, node=None, status='SHELVED_OFFLOADED')
    assert world.ledger.instance(server.uuid) is None
    full = world.reserve(*NAMES[1:])
    world.leases.delete(full.id, None)
    changed(world, server, node='a', status='ACTIVE')
    assert world.path(server)[0] == 'a'
    world.check_promises()


@pytest.fixture
def displaced(world):
    """Return a server, and a lease that could have had any host later."""
    server, *others = (
        world.boot('a', 2),
        *(world.boot(name, 2, features=None) for name in NAMES[1:]),
    )
    lease = world.create(hosts(), start=NOTICE, end=2 * NOTICE)
    assert world.path(server)[0] == 'a'
    for each in others:
        del world.nova.stored[each.uuid]
    world.look()
    return server, lease


def test_lease_leaves_the_host_of_a_server_that_becomes_immovable(
    world, displaced
):
    server, lease = displaced
    changed(world, server, features=dataclasses.replace(
        FEATURES, extra_specs={'hw:cpu_policy': 'dedicated'}
    ))
    world.manager.replanner.replan()
    assert world.path(server) == []
    until_start(world, lease)
    assert not world.lease(lease).degraded
    world.check_promises()


CHANGES = {
    'shortened': lambda lease: {'end': lease.end - 100},
    'prolonged': lambda lease: {'end': lease.end + 1000},
    'later': lambda lease: {'start': lease.start + 100},
    'earlier': lambda lease: {'start': lease.start - 2 * LEAD},
}


@pytest.mark.parametrize('change', CHANGES)
def test_a_lease_that_changes_keeps_its_host_and_the_server_a_place(
    world, planned, change
):
    server, lease, _ = planned
    changed = world.leases.update(lease.id, None, CHANGES[change](lease))
    world.look()
    world.check_promises()
    until_start(world, changed)
    assert not world.lease(lease).degraded
    world.check_promises()


def test_a_longer_lead_counts_for_new_paths_only(world, planned, conf):
    server, lease, target = planned
    conf.set_override('relocation_lead', 2 * LEAD, 'manager')
    world.look()
    assert world.path(server) == ['a', target]
    until_start(world, lease)
    assert world.node(server) == target
    assert not world.lease(lease).degraded


def test_without_relocation_the_paths_go_and_so_does_the_lease(
    world, displaced, conf
):
    server, lease = displaced
    conf.set_override('relocate_instances', False, 'manager')
    world.look()
    world.manager.replanner.replan()
    assert world.path(server) == []
    until_start(world, lease)
    assert not world.lease(lease).degraded
    world.check_promises()


class Points:
    """The points at which a manager is killed, counted as they are passed.

    The points are those of `faults`, and the times before and after a request
    for a move.
    """

    def __init__(self, world, monkeypatch):
        self.passed = []
        self.fatal = 0
        move = world.nova.migrate_server

        def migrate_server(*args):
            faults.point('move:asked')
            answer = move(*args)
            faults.point('move:answered')
            return answer

        monkeypatch.setattr(world.nova, 'migrate_server', migrate_server)

    def __call__(self, name):
        self.passed.append(name)
        if len(self.passed) == self.fatal:
            raise Killed


class Course:
    """A server that is planned, displaced and moved, and the two leases."""

    def __init__(self, world, conf, points):
        self.world = world
        self.conf = conf
        self.points = points
        self.restarts = 0

    def play(self):
        """Do all steps; a step in which the manager is killed is repeated."""
        world = self.world
        world.reserve('a')
        for name in NAMES:
            world.add_server(
                name, vcpus=2, features=FEATURES, created=world.now
            )
        begun = world.now
        self._do(world.look)
        # Each host has a server that has to leave.
        self._do(lambda: self.reserve(begun))
        world.clock.now = begun + NOTICE - LEAD
        self._do(world.look)
        world.clock.now += PAUSE
        self._do(world.look)

    def reserve(self, begun):
        self.world.leases.create({
            'name': 'displacing', 'project_id': 'project', 'user_id': 'user',
            'before_end': None, 'start': begun + NOTICE,
            'end': begun + 2 * NOTICE, 'reservations': [hosts()],
        }, key=f'key {begun}')

    def _do(self, step):
        faults.arm(self.points)
        try:
            step()
        except Killed:
            faults.arm(None)
            self.restarts += 1
            self.world.ledger.close()
            self.world.begin(self.conf)
            # Nothing is half done, even before anything is repeated.
            self.world.check_promises()
            step()
        finally:
            faults.arm(None)
        self.world.check_promises()

    def check(self):
        world = self.world
        assert len(world.ledger.leases()) == 2
        world.look(LEAD)
        assert not any(lease.degraded for lease in world.ledger.leases())
        assert all(lease.status == 'ACTIVE' for lease in world.ledger.leases())
        assert not any(map(world.path, world.nova.stored.values()))
        world.check_promises()

    def clear(self):
        self.world.nova.stored.clear()
        for lease in self.world.ledger.leases():
            self.world.leases.delete(lease.id, None)
        self.world.look()


@pytest.mark.more
def test_a_manager_that_is_killed_at_any_point_leaves_nothing_half_done(
    world, conf, monkeypatch
):
    points = Points(world, monkeypatch)
    course = Course(world, conf, points)
    passed = set()
    for fatal in itertools.count(1):
        points.passed.clear()
        points.fatal = fatal
        course.restarts = 0
        course.play()
        course.check()
        passed.update(points.passed)
        course.clear()
        if not course.restarts:
            break
    assert passed == {
        'commit:before', 'commit:after', 'move:asked', 'move:answered',
    }


def test_a_lease_without_the_paths_would_be_seen(world, conf, monkeypatch):
    """The control: as if the manager were killed between two commits."""
    write = LeaseWriter.write
    monkeypatch.setattr(LeaseWriter, 'write', lambda self, tx, new: write(
        self, tx, [(lease, placed, []) for lease, placed, _ in new]
    ))
    with pytest.raises(AssertionError):
        Course(world, conf, Points(world, monkeypatch)).play()
