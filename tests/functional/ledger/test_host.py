# SPDX-License-Identifier: Apache-2.0
"""Hosts, their properties, and the instances on them."""

import dataclasses

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.domain.host import DEDICATED
from tests.functional.ledger.conftest import on_every_engine


@on_every_engine
def test_a_host_comes_back_whole(store, nouns):
    host = nouns.host(
        service_name='compute', hypervisor_type='QEMU',
        hypervisor_version=4_002_001, cpu_info='{"model": "…"}' * 10_000,
        availability_zone='nova', hold=DEDICATED, unbounded='assume:1d',
        cleaning_time=90, reservable=False,
        capabilities={'gpu': 'yes', 'GPU': 'no', 'gpu ': '', 'čpu': '\0'},
        updated_at=2,
    )
    kept = store.commit(lambda tx: tx.put_host(host))
    assert kept == dataclasses.replace(host, id=kept.id)
    assert kept.id.isdecimal()
    assert store.host(kept.id) == store.host(kept.uuid) == kept
    assert store.hosts() == [kept]


def test_an_update_keeps_the_id(store, nouns, host):
    other = store.commit(lambda tx: tx.put_host(nouns.host()))
    new = dataclasses.replace(
        host, capabilities={'ssd': '1'}, unbounded='never'
    )
    assert store.commit(lambda tx: tx.put_host(new)) == new
    assert store.hosts() == [new, other]


@on_every_engine
def test_an_id_is_never_given_twice(store, nouns, host):
    store.commit(lambda tx: tx.delete_host(host.uuid))
    again = dataclasses.replace(host, id='')
    assert store.commit(lambda tx: tx.put_host(again)).id != host.id


@on_every_engine
def test_some_hosts(store, nouns, host):
    other = store.commit(lambda tx: tx.put_host(nouns.host()))
    assert store.hosts([other.uuid, 'x']) == [other]
    assert store.hosts({host.uuid, other.uuid}) == [host, other]
    assert store.hosts([]) == []


@on_every_engine
def test_a_host_is_registered_once(store, host):
    again = dataclasses.replace(host, id='')
    with pytest.raises(exception.HostExists):
        store.commit(lambda tx: tx.put_host(again))


@on_every_engine
def test_a_host_that_is_not_there(store, nouns, host):
    for host_id in ('', '0', '0' + host.id, '9' * 400, 'x', host.uuid + ' '):
        with pytest.raises(exception.HostNotFound):
            store.host(host_id)
    for host_id in ('+' + host.id, '¹', '١', 'x\0', '\udfff'):
        with pytest.raises(exception.HostNotFound):
            store.host(host_id)
    with pytest.raises(exception.HostNotFound):
        store.commit(lambda tx: tx.delete_host(nouns.host().uuid))
    with pytest.raises(exception.HostNotFound):
        store.commit(lambda tx: tx.put_host(nouns.host(id='77')))


@on_every_engine
def test_a_deleted_host_takes_along_what_was_there(store, nouns, host):
    other = store.commit(lambda tx: tx.put_host(nouns.host()))
    lease = nouns.lease()
    there, elsewhere = (nouns.allocation(lease, on) for on in (host, other))
    stays = nouns.instance(other)

    def occupy(tx):
        tx.put_lease(lease)
        tx.put_allocations(there.reservation_id, [there, elsewhere])
        tx.put_instances([nouns.instance(host)])
        tx.put_instances([stays])

    store.commit(occupy)
    store.commit(lambda tx: tx.delete_host(host.uuid))
    assert store.hosts() == [other]
    assert store.allocations() == [(elsewhere, lease.id)]
    assert store.instances() == [stays]
    replica = store.commit(lambda tx: tx.replica)
    assert replica.indexes.main.hosts == [other.uuid]


@on_every_engine
def test_properties(store):
    def work(tx):
        tx.put_property('gpu', True)
        tx.put_property('GPU', False)
        tx.put_property('ssd', False)

    store.write(work)
    store.write(lambda tx: tx.put_property('ssd', True))
    assert store.properties() == {'gpu': True, 'GPU': False, 'ssd': True}


def test_instances(store, nouns, host):
    one = nouns.instance(host, end=500, preemptible=True)
    two = nouns.instance(host, vcpus=2)

    def work(tx):
        tx.put_instances([one])
        tx.put_instances([two])

    store.commit(work)
    assert two.end == window.FOREVER
    assert store.instance(one.uuid) == one
    assert store.instances() == sorted([one, two], key=lambda i: i.uuid)
    moved = dataclasses.replace(two, end=900, amounts={'VCPU': 3})

    def change(tx):
        tx.put_instances([moved])
        tx.delete_instances([one.uuid])
        tx.delete_instances(['not there'])

    store.commit(change)
    assert store.instances() == [moved]
    assert store.instance(one.uuid) is None
