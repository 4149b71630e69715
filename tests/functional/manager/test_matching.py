# SPDX-License-Identifier: Apache-2.0
"""Requirements are bounded, and matched before a commit begins."""

import json

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import requirements
from blazar_sched.domain.host import Host
from blazar_sched.service.booking.lease import Leases
from tests.functional.manager import conftest

LONG = json.dumps(['==', '$note', 'x' * 9000])
OTHER = json.dumps(['==', '$note', 'y' * 9000])
ANY = json.dumps(['>=', '$vcpus', '1'])


def many(number):
    """Return a requirement with half of the allowed number of parts."""
    values = [f'{number}'] * (requirements.MAX_NODES // 2)
    return json.dumps(['not', ['in', '$note', *values]])


@pytest.mark.parametrize('texts', [
    (LONG, OTHER), (many(1), many(2), many(3)),
], ids=['characters', 'parts'])
def test_the_requirements_of_a_lease_are_bounded_together(world, texts):
    world.add_host('a')
    with pytest.raises(exception.InvalidInput, match='together') as e:
        world.create(
            *(conftest.hosts(1, 1, resource_properties=t) for t in texts)
        )
    assert e.value.field == 'reservations'
    assert world.ledger.leases() == []


def test_equal_requirements_count_once(world):
    world.add_hosts('a', 'b')
    lease = world.create(
        *(conftest.hosts(1, 1, resource_properties=many(1)) for _ in 'ab')
    )
    assert len(lease.reservations) == 2


def test_the_text_of_equal_ones_is_bounded(world):
    """Otherwise updates could make a lease longer than any message."""
    world.add_hosts('a', 'b', 'c', 'd', 'e')
    text = ANY.ljust(requirements.MAX_LENGTH)
    lease = world.create(
        *(conftest.hosts(1, 1, resource_properties=text) for _ in 'abcd')
    )
    with pytest.raises(exception.InvalidInput, match='65536') as e:
        world.update_lease(
            lease,
            reservations=[conftest.hosts(1, 1, resource_properties=text)],
        )
    assert e.value.field == 'reservations'
    assert world.ledger.lease(lease.id) == lease


@pytest.fixture
def looked(world, monkeypatch):
    """Whether a commit or a query waited, for each host that was matched."""
    held = []
    properties = Host.properties

    def look(host):
        held.append(bool(world.ledger._lock._turns))
        return properties(host)

    monkeypatch.setattr(Host, 'properties', look)
    return held


def ask(world):
    world.add_hosts('a', 'b')
    world.create(conftest.hosts(1, 1, resource_properties=ANY))


def test_no_commit_waits_for_the_matching(world, looked):
    ask(world)
    assert looked == [False, False]


def test_control_without_early_matching_commits_wait(
    world, looked, monkeypatch
):
    monkeypatch.setattr(Leases, '_match', lambda self, lease: None)
    ask(world)
    assert True in looked


def test_a_host_that_changes_meanwhile_is_matched_anew(world, monkeypatch):
    """A match from before the commit is not valid any more."""
    world.add_host('a')
    match = Leases._match

    def change(leases, lease):
        match(leases, lease)
        world.add_host('b')

    monkeypatch.setattr(Leases, '_match', change)
    lease = world.create(conftest.hosts(2, 2, resource_properties=ANY))
    assert len(world.ledger.allocations(lease_id=lease.id)) == 2
