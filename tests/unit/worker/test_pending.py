# SPDX-License-Identifier: Apache-2.0
"""Servers that a worker has placed, before their records arrive."""

import dataclasses

from blazar_sched.domain.instance import Instance
from blazar_sched.domain.instance import Stay
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.worker.pending import Pending

PLACED = Instance('i1', 'h1', 'p', {'VCPU': 1}, movable='live', building=True)


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def replica_with(*instances):
    replica = state.Replica(accounting.SchedulerAccounting)
    replica.instances.update((i.uuid, i) for i in instances)
    return replica


def test_counts_until_its_time_is_over():
    clock = Clock()
    pending = Pending(clock)
    pending.refresh()
    pending.add(PLACED, 20)
    clock.now += 9.9
    pending.refresh()
    clock.now += 9.9
    pending.refresh()
    assert pending.by_host(replica_with()) == {'h1': [PLACED]}
    clock.now += 0.3
    pending.refresh()
    assert pending.by_host(replica_with()) == {}
    assert not pending


def test_counts_while_the_replica_is_not_refreshed():
    """The manager is away, and needs some time after it has come back."""
    clock = Clock()
    pending = Pending(clock)
    pending.add(PLACED, 60)
    pending.refresh()
    clock.now += 1000
    assert pending.by_host(replica_with()) == {'h1': [PLACED]}
    pending.refresh()
    assert pending.by_host(replica_with()) == {'h1': [PLACED]}


def test_a_resize_on_its_host_counts_until_its_record_has_grown():
    pending = Pending()
    grown = dataclasses.replace(PLACED, amounts={'VCPU': 3})
    pending.add(grown, 60)
    before = Instance('i1', 'h1', 'p', {'VCPU': 1})
    assert pending.by_host(replica_with(before)) == {'h1': [grown]}
    after = dataclasses.replace(before, amounts={'VCPU': 4, 'CUSTOM_X': 1})
    assert pending.by_host(replica_with(after)) == {}


def test_counts_until_the_feed_knows_it_there():
    pending = Pending()
    pending.add(PLACED, 60)
    # The server moves: its record names the former host.
    elsewhere = replica_with(Instance('i1', 'h0', 'p', {}))
    assert list(pending.by_host(elsewhere)) == ['h1']
    there = replica_with(Instance('i1', 'h1', 'p', {'VCPU': 1}))
    assert pending.by_host(there) == {}
    assert pending.by_host(elsewhere) == {}


def test_counts_while_nova_is_building_it():
    """The record of a placed instance is there before HostState counts."""
    pending = Pending()
    pending.add(PLACED, 60)
    assert pending.by_host(replica_with(PLACED)) == {'h1': [PLACED]}
    built = dataclasses.replace(PLACED, building=False)
    assert pending.by_host(replica_with(built)) == {}


def test_counts_no_more_once_nova_has_given_it_up():
    """The manager has booked a record, and deletes the record."""
    pending = Pending()
    pending.add(PLACED, 60)
    assert pending.by_host(replica_with()) == {'h1': [PLACED]}
    assert pending.by_host(replica_with(PLACED)) == {'h1': [PLACED]}
    assert pending.by_host(replica_with()) == {}
    # The server is placed again.
    pending.add(PLACED, 60)
    assert pending.by_host(replica_with()) == {'h1': [PLACED]}


def test_counts_on_the_later_hosts_of_its_path_until_it_has_a_record():
    moving = dataclasses.replace(PLACED, path=(
        Stay('h1', 0, 9), Stay('h2', 5, 20), Stay('h1', 15, 30)
    ))
    pending = Pending()
    pending.add(moving, 60)
    both = {'h1': [moving], 'h2': [moving]}
    assert pending.by_host(replica_with()) == both
    # The record is that of the host which the server leaves.
    former = dataclasses.replace(PLACED, host='h0')
    assert pending.by_host(replica_with(former)) == both
    assert pending.by_host(replica_with(PLACED)) == {'h1': [moving]}


def test_the_last_host_counts():
    pending = Pending()
    pending.add(PLACED, 60)
    pending.add(dataclasses.replace(PLACED, host='h2'), 60)
    pending.add(dataclasses.replace(PLACED, host='h2', uuid='i2'), 60)
    found = pending.by_host(replica_with())
    assert {h: len(many) for h, many in found.items()} == {'h2': 2}


def test_preemptible_memory_follows_the_instances():
    replica = state.Replica(accounting.SchedulerAccounting)
    host = {
        'uuid': 'h1', 'id': '1', 'hypervisor_hostname': 'h1',
        'inventory': {}, 'projects': (), 'traits': (),
    }

    def tell(revision, **fields):
        noun = Instance('i1', 'h1', 'p', {'MEMORY_MB': 512}, **fields)
        replica.apply(revision, [record.encode(noun)])

    replica.apply(1, [(record.HOST, 'h1', host)])
    tell(2, preemptible=True)
    assert replica.preemptible_mb['h1'] == 512
    tell(3, preemptible=False)
    assert replica.preemptible_mb['h1'] == 0
    tell(4, preemptible=True)
    replica.apply(5, [(record.INSTANCE, 'i1', None)])
    assert replica.preemptible_mb['h1'] == 0
