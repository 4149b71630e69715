# SPDX-License-Identifier: Apache-2.0
"""The ledger's copy of Nova's flavors."""

import dataclasses

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.flavor import Flavor

SMALL = Flavor('1', 'small', 1, 512, 1)
LARGE = Flavor('2', 'large', 8, 8192, 80, 10, 512, {'hw:x': 'y'}, ('a', 'b'))
HIDDEN = Flavor('3', 'hidden', 1, 1, 0, projects=())


@pytest.fixture
def sync(world):
    """sync(flavors) -> the flavors in the ledger, synchronized with Nova."""

    def run(*flavors):
        world.nova.known_flavors = list(flavors)
        world.manager.flavors.sync()
        return {f.id: f for f in world.ledger.flavors()}

    return run


def test_copies_follow_novas_flavors(world, sync):
    assert sync(SMALL, LARGE, HIDDEN) == {'1': SMALL, '2': LARGE, '3': HIDDEN}
    new = dataclasses.replace(LARGE, extra_specs={}, projects=None)
    assert sync(new, HIDDEN) == {'2': new, '3': HIDDEN}
    assert world.ledger.flavor('2') == new
    assert world.ledger.flavor('1') is None


def test_unchanged_flavors_cause_no_commit(world, sync, monkeypatch):
    sync(LARGE, SMALL)
    monkeypatch.setattr(world.ledger, 'write', None)
    sync(SMALL, LARGE)


def test_flavors_stay_while_nova_does_not_answer(world, sync):
    sync(SMALL)
    world.nova.failures = 1
    with pytest.raises(exception.Unavailable):
        sync()
    assert world.ledger.flavors() == [SMALL]


def test_flavor_is_open_to_its_projects():
    assert SMALL.is_open_to('anybody')
    assert LARGE.is_open_to('a')
    assert not LARGE.is_open_to('c')
    assert not HIDDEN.is_open_to('a')
