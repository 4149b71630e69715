# SPDX-License-Identifier: Apache-2.0
"""Relocation by whole managers, with Nova and time in memory."""

import functools

import pytest

from blazar_sched.domain import exception
from blazar_sched.placing import displacement
from blazar_sched.service.booking.search import first_window
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.upkeep.relocation import PAUSE
from tests.functional.manager.conftest import at
from tests.functional.manager.conftest import hosts
from tests.functional.manager.conftest import Killed
from tests.functional.manager.relocating import FEATURES
from tests.functional.manager.relocating import LEAD
from tests.functional.manager.relocating import LOOK
from tests.functional.manager.relocating import NAMES
from tests.functional.manager.relocating import NOTICE
from tests.functional.manager.relocating import RelocatingManager
from tests.functional.manager.relocating import VCPUS


@pytest.fixture
def world(conf):
    world = RelocatingManager(conf)
    yield world
    world.ledger.close()


def test_the_check_would_see_it(world):
    """The control: a forced server, and every other host is leased."""
    world.reserve(*NAMES)
    world.check_promises()
    world.boot('a', vcpus=1)
    with pytest.raises(AssertionError):
        world.check_promises()


def test_live_migration_that_does_not_happen_is_requested_again(world):
    server = world.boot('a')
    lease = world.reserve('a')
    world.nova.slowness = 1
    world.look(NOTICE - LEAD)
    assert world.node(server) == 'a'
    world.look(PAUSE - 1)
    assert world.node(server) == 'a'
    world.look(1)
    assert world.node(server) != 'a'
    world.look()
    assert world.path(server) == []
    assert not world.lease(lease).degraded


def test_a_server_that_never_moves_is_told_of_when_the_window_opens(world):
    server = world.boot('a')
    lease = world.reserve('a')
    world.nova.slowness = 1000
    for _ in range(NOTICE // LOOK + 1):
        world.look(LOOK)
    # The server is kept: it never said that it yields.
    assert world.node(server) == 'a'
    assert world.lease(lease).degraded


def test_the_path_of_a_server_ends_when_its_own_lease_does(world):
    end = world.now + 9 * NOTICE
    server = world.add_server(
        'a', vcpus=VCPUS, features=FEATURES, created=world.now, end=end
    )
    world.look()
    [own] = [each for each in world.ledger.leases() if each.is_lifetime]
    lease = world.create(
        hosts(resource_properties=at('a')), start=NOTICE, end=2 * NOTICE
    )
    path = world.ledger.instance(server.uuid).path
    assert path[-1].end == end

    world.update_lease(own, end=end - NOTICE)

    shorter = world.ledger.instance(server.uuid).path
    assert shorter[-1].end == end - NOTICE
    assert shorter[:-1] == path[:-1]

    world.leases.delete(lease.id, None)
    world.update_lease(own, end=end + NOTICE)

    assert world.ledger.instance(server.uuid).path == ()


class Commits:
    """The commits of a ledger, counted; one of them is never made."""

    def __init__(self, monkeypatch):
        self.count, self.fatal = 0, None
        commit = Ledger._commit_whole

        def counted(ledger, work, first):
            self.count += 1
            if self.count == self.fatal:
                raise Killed
            return commit(ledger, work, first)

        monkeypatch.setattr(Ledger, '_commit_whole', counted)
        monkeypatch.setattr(displacement, 'ENOUGH', 1)


def book(world, count=3, manager=None, **more):
    """Book whole hosts by a manager, by that of the world by default."""
    values = world.values(hosts(count, count), start=NOTICE, end=2 * NOTICE)
    return (manager or world.manager).leases.create(values, **more)


@pytest.fixture
def commits(monkeypatch, world):
    for name in NAMES:
        world.boot(name, vcpus=1)
    return Commits(monkeypatch)


def test_a_large_lease_is_booked_in_several_commits(world, commits):
    lease = book(world)
    # Each commit of new paths is preceded by an attempt at the lease.
    assert commits.count == 5
    world.check_promises()
    for _ in range(2 * NOTICE // LOOK):
        world.look(LOOK)
        world.check_promises()
    assert not world.lease(lease).degraded


@pytest.mark.parametrize('fatal', range(1, 6))
def test_a_manager_killed_between_two_commits_leaves_no_half(
    world, conf, commits, fatal
):
    commits.fatal = fatal
    with pytest.raises(Killed):
        book(world)
    assert world.ledger.leases() == []
    world.check_promises()
    again = book(world, manager=world.another(conf))
    world.check_promises()
    assert len(world.ledger.allocations(None, again.id)) == 3


def test_the_paths_of_a_lease_that_never_came_are_dropped(world, commits):
    commits.fatal = 5
    with pytest.raises(Killed):
        book(world)
    assert any(each.path for each in world.ledger.instances())
    for _ in range(NOTICE // LOOK):
        world.look(LOOK)
    assert not any(each.path for each in world.ledger.instances())
    assert {s.node for s in world.nova.stored.values()} == {*NAMES}


def test_a_dry_run_of_a_large_lease_changes_nothing(world, commits):
    before = world.ledger.replica.revision
    book(world, dry_run=True)
    assert world.ledger.replica.revision == before
    assert not any(each.path for each in world.ledger.instances())
    with pytest.raises(exception.NotEnoughHostsAvailable):
        book(world, 4, dry_run=True)


def test_a_dry_run_gives_up_where_too_many_servers_would_move(
    world, commits, monkeypatch
):
    monkeypatch.setattr(displacement, 'MAX_ON_TRIAL', 2)
    with pytest.raises(
        exception.NotEnoughHostsAvailable, match='are moved on trial'
    ) as refusal:
        book(world, dry_run=True)
    assert exception.reason(refusal.value) == str(refusal.value)
    assert not any(each.path for each in world.ledger.instances())
    book(world, 2, dry_run=True)
    # The lease itself is booked in as many commits as it takes.
    book(world)


def test_a_search_moves_few_servers_on_trial(world, commits, monkeypatch):
    """Commits wait for a trial, so that no search tries a large one."""
    lease = book(world, dry_run=True)
    search = functools.partial(
        first_window, world.manager.bookings.writer, lease,
        (lease.start, lease.start), world.now,
    )
    assert world.manager.search.result(search) == lease.window
    monkeypatch.setattr(displacement, 'MAX_ON_TRIAL', 1)
    assert world.manager.search.result(search) is None


def test_a_lease_grows_in_several_commits(world, commits):
    lease = book(world, 1)
    [reservation] = lease.reservations
    world.update_lease(
        lease, reservations=[{'id': reservation.id, 'min': 3, 'max': 3}],
    )
    world.check_promises()
    assert len(world.ledger.allocations(None, lease.id)) == 3


def test_a_server_that_comes_leaves_the_room_of_an_open_lease(world, slots):
    """Preemptible servers beside an unused slot have to go for the server."""
    world.create(
        slots(1, 1, resource_properties=at('b')),
        start='now', end=4 * NOTICE,
    )
    world.reserve('c', 'd', start=NOTICE, end=4 * NOTICE)
    world.run()
    server = world.boot('a', vcpus=2)
    guests = [world.boot('b', vcpus=1, preemptible=True) for _ in range(3)]
    world.reserve('a')
    world.look(NOTICE - LEAD)
    world.look(PAUSE)
    assert world.node(server) == 'b'
    # One VCPU of four is the slot's.
    assert sum(g.uuid in world.nova.stored for g in guests) == 1
