# SPDX-License-Identifier: Apache-2.0
"""Servers that a worker has placed, before their records arrive."""

import dataclasses

from blazar_sched.domain import window
from blazar_sched.domain.instance import Instance
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.worker import request
from blazar_sched.worker.pending import Pending

ASKED = request.Request(
    instance_uuid='i1', project_id='p', amounts=(1, 2, 3), extra={},
    reservation_id=None, preemptible=False, end=window.FOREVER, own=None,
)


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
    pending.add('h1', ASKED, 60)

    clock.now += 59.9
    [placed] = pending.by_host(replica_with())['h1']
    assert placed.request == ASKED
    clock.now += 0.1
    assert pending.by_host(replica_with()) == {}
    assert not pending


def test_counts_until_the_feed_knows_it_there():
    pending = Pending()
    pending.add('h1', ASKED, 60)
    # The server moves: its record names the former host.
    elsewhere = replica_with(Instance('i1', 'h0', 'p', {}))
    assert list(pending.by_host(elsewhere)) == ['h1']

    there = replica_with(Instance('i1', 'h1', 'p', {}))
    assert pending.by_host(there) == {}
    assert pending.by_host(elsewhere) == {}


def test_the_last_host_counts():
    pending = Pending()
    pending.add('h1', ASKED, 60)
    pending.add('h2', ASKED, 60)
    pending.add('h2', dataclasses.replace(ASKED, instance_uuid='i2'), 60)

    found = pending.by_host(replica_with())

    assert {h: len(many) for h, many in found.items()} == {'h2': 2}


def test_preemptible_memory_follows_the_instances():
    replica = state.Replica(accounting.SchedulerAccounting)
    host = {
        'uuid': 'h1', 'id': '1', 'hypervisor_hostname': 'h1',
        'inventory': {}, 'projects': (), 'traits': (),
    }

    def tell(revision, **fields):
        noun = Instance(
            'i1', 'h1', 'p', {'MEMORY_MB': 512}, **fields
        )
        replica.apply(revision, [record.encode(noun)])

    replica.apply(1, [(record.HOST, 'h1', host)])
    tell(2, preemptible=True)
    assert replica.preemptible_mb['h1'] == 512
    tell(3, preemptible=False)
    assert replica.preemptible_mb['h1'] == 0
    tell(4, preemptible=True)
    replica.apply(5, [(record.INSTANCE, 'i1', None)])
    assert replica.preemptible_mb['h1'] == 0
