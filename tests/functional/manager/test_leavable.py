# SPDX-License-Identifier: Apache-2.0
"""Leases that leave hosts for servers that cannot be moved."""

import dataclasses

import pytest

from blazar_sched.placing import leavable as placing
from tests.functional.manager.conftest import hosts
from tests.functional.manager.relocating import FEATURES
from tests.functional.manager.relocating import NAMES
from tests.functional.manager.relocating import NOTICE
from tests.functional.manager.relocating import RelocatingManager

FIXED = dataclasses.replace(FEATURES, hint='false')
DAY = 86400


@pytest.fixture
def world(conf):
    world = RelocatingManager(conf)
    yield world
    assert world.ledger.check() == []
    world.ledger.close()


def book(world, count, start=DAY):
    return world.create(hosts(count, count), start=start, end=start + NOTICE)


def search(world):
    world.manager.leavable_hosts.step()


def leavable(world):
    """Return the names of the hosts that leases can leave."""
    names = world.names()
    return {names[uuid] for uuid in world.ledger.replica.leavable}


def hosts_of(world, lease):
    names = world.names()
    return {
        names[each.host]
        for each, _ in world.ledger.allocations(lease_id=lease.id)
    }


def boot(world, node):
    return world.boot(node, features=FIXED)


def test_a_lease_leaves_the_host_of_a_server(world):
    lease = book(world, 2)
    search(world)
    assert leavable(world) == hosts_of(world, lease)
    node = min(leavable(world))
    server = boot(world, node)
    search(world)
    world.manager.replanner.replan()
    assert len(hosts_of(world, lease)) == 2
    assert node not in hosts_of(world, lease)
    world.run(DAY)
    assert world.lease(lease).status == 'ACTIVE'
    assert not world.lease(lease).degraded
    assert world.node(server) == node


def test_no_server_is_misplaced_where_leases_can_leave(world, caplog):
    [node] = hosts_of(world, book(world, 1))
    for search_first in (False, True):
        caplog.clear()
        if search_first:
            search(world)
        server = boot(world, node)
        is_reported = 'is in the way of leases' in caplog.text
        assert is_reported is not search_first
        del world.nova.stored[server.uuid]
        world.look()


@pytest.mark.parametrize('change', ['book', 'update'])
def test_no_host_stays_leavable_once_a_lease_takes_room(world, change):
    """A lease may take the only host to which another lease can move."""
    later = book(world, 1, start=3 * DAY)
    book(world, len(NAMES) - 1)
    search(world)
    assert leavable(world)
    if change == 'book':
        book(world, 1)
    else:
        world.update_lease(
            later, start=world.now + DAY, end=world.now + DAY + NOTICE,
        )
    assert leavable(world) == set()
    search(world)
    assert leavable(world) == set()


def test_what_was_found_stays_until_the_lease_has_moved(world):
    """Another server on the host has the same lease moved."""
    lease = book(world, 1)
    search(world)
    [node] = leavable(world)
    world.boot(node, vcpus=2, features=FIXED)
    before = world.ledger.replica.revision
    search(world)
    assert leavable(world) == {node}
    assert world.ledger.replica.revision == before
    world.boot(node, vcpus=2, features=FIXED)
    world.manager.replanner.replan()
    search(world)
    assert node not in hosts_of(world, lease) | leavable(world)


@pytest.mark.parametrize('number', range(1, 6))
def test_no_host_is_added_if_a_lease_comes_during_the_search(
    world, monkeypatch, number
):
    book(world, 2)
    read = world.ledger.read_replica
    count = 0

    def reading(query):
        nonlocal count
        found = read(query)
        count += 1
        if count == number:
            # All hosts to which the lease could move.
            book(world, len(NAMES) - 2)
        return found

    monkeypatch.setattr(world.ledger, 'read_replica', reading)
    search(world)
    search(world)
    assert count > number
    assert leavable(world) == set()


def test_hosts_of_many_reservations_are_passed_over(world, monkeypatch):
    monkeypatch.setattr(placing, 'MAX_MOVED', 0)
    book(world, 1)
    search(world)
    assert leavable(world) == set()


def test_a_second_manager_writes_nothing(world, conf):
    book(world, 1)
    search(world)
    before = world.ledger.replica.revision
    world.another(conf).leavable_hosts.step()
    assert world.ledger.replica.revision == before
