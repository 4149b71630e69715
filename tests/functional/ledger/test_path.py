# SPDX-License-Identifier: Apache-2.0
"""The relocation paths of instances, in each database."""

import dataclasses

import pytest

from blazar_sched.domain.instance import Stay
from blazar_sched.domain.window import FOREVER
from blazar_sched.replica import accounting
from blazar_sched.replica import packing
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.replica import wire


@pytest.fixture
def other(store, nouns):
    return store.commit(lambda tx: tx.put_host(nouns.host()))


@pytest.fixture
def instance(store, nouns, host, other):
    """An instance that is on one host until 100, then on another."""
    path = (Stay(host.uuid, 0, 100), Stay(other.uuid, 90, FOREVER))
    new = dataclasses.replace(
        nouns.instance(host, vcpus=3, end=FOREVER), path=path, movable='live'
    )
    store.commit(lambda tx: tx.put_instances([new]))
    return new


def peak(replica, host, at):
    main = replica.indexes.main
    return main.peak(main.rows([host.uuid]), at, at + 1)[0]


def test_a_path_comes_back_whole(store, instance):
    assert store.instance(instance.uuid) == instance
    assert store.instances() == [instance]


def test_a_path_counts_in_the_replica_of_the_ledger(
    store, host, other, instance
):
    peaks = store.read_replica(lambda replica: {
        (name, at): peak(replica, each, at)
        for name, each in (('here', host), ('there', other))
        for at in (0, 89, 90, 99, 100, 1000)
    })
    assert peaks == {
        ('here', 0): 3, ('here', 89): 3, ('here', 90): 3, ('here', 99): 3,
        ('here', 100): 0, ('here', 1000): 0,
        ('there', 0): 0, ('there', 89): 0, ('there', 90): 3,
        ('there', 99): 3, ('there', 100): 3, ('there', 1000): 3,
    }


def test_a_path_is_fed_to_replicas(store, other, instance):
    page = wire.parse_snapshot(store.snapshot(None, 1000))
    copy = state.Replica(accounting.SchedulerAccounting)
    assert copy.load(page.revision, *packing.split(page.items)) == set()
    assert copy.instances[instance.uuid] == instance
    assert peak(copy, other, 90) == 3
    stays = dataclasses.replace(instance, path=())
    store.commit(lambda tx: tx.put_instances([stays]))
    changes = wire.parse_changes(store.changes(page.revision, 1000))
    copy.apply(changes.revision, changes.records)
    assert copy.instances[instance.uuid] == stays
    assert peak(copy, other, 90) == 0


def test_a_host_that_is_deleted_takes_the_paths_to_it_along(
    store, other, instance
):
    before = store.changes(0, 1)['newest']
    store.commit(lambda tx: tx.delete_host(other.uuid))
    assert store.instance(instance.uuid).path == ()
    changes = wire.parse_changes(store.changes(before, 1000))
    assert record.encode(dataclasses.replace(instance, path=())) in [
        tuple(each) for each in changes.records
    ]
    assert store.check() == []


def test_a_host_that_is_deleted_takes_its_instances_along(
    store, host, other, instance
):
    store.commit(lambda tx: tx.delete_host(host.uuid))
    assert store.instances() == []
    assert store.read_replica(lambda replica: peak(replica, other, 100)) == 0
