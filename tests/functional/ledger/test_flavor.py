# SPDX-License-Identifier: Apache-2.0
"""The copy of Nova's flavors in the ledger."""

import dataclasses

import pytest

from blazar_sched.domain.flavor import Flavor
from tests.functional.ledger.conftest import on_every_engine

WHOLE = Flavor(
    id='m1 huge.', name='ein großer', vcpus=2**31 - 1, memory_mb=2**31 - 1,
    disk_gb=2**31 - 1, ephemeral_gb=5, swap_mb=6,
    extra_specs={'hw:cpu_policy': 'dedicated', 'x': 'y' * 10_000},
    projects=('a', 'b'),
)
PUBLIC = Flavor('1', 'small', 1, 512, 0)
NOBODYS = Flavor('2', 'small', 1, 512, 0, projects=())


@pytest.fixture
def put(store):
    def work(*flavors):
        store.write(lambda tx: tx.put_flavors(flavors))

    return work


@on_every_engine
def test_flavors_are_read_as_written(store, put):
    put(WHOLE, PUBLIC, NOBODYS)
    assert {f.id: f for f in store.flavors()} == {
        f.id: f for f in (WHOLE, PUBLIC, NOBODYS)
    }
    for noun in (WHOLE, PUBLIC, NOBODYS):
        assert store.flavor(noun.id) == noun


@on_every_engine
def test_an_id_is_exact(store, put):
    put(WHOLE, PUBLIC)
    for id_ in ('', 'M1 huge.', 'm1 huge. ', '1\0', '\ud800'):
        assert store.flavor(id_) is None


@on_every_engine
def test_flavors_that_nova_no_longer_has_are_deleted(store, put):
    put(WHOLE, PUBLIC)
    changed = dataclasses.replace(WHOLE, extra_specs={}, projects=None)
    put(NOBODYS, changed)
    assert {f.id: f for f in store.flavors()} == {
        changed.id: changed, NOBODYS.id: NOBODYS
    }
    put()
    assert store.flavors() == []


def test_no_replica_learns_of_them(store, put):
    before = store.changes(0)['newest']
    put(WHOLE)
    assert store.changes(0)['newest'] == before
