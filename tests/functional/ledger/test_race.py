# SPDX-License-Identifier: Apache-2.0
"""The last slot is given once, also if all clients check before any commits.

Every client is a manager of its own: with its own connections, replica and
lock, so that only the database separates them.
"""

import dataclasses
import json
import threading

import pytest
import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain.demand import Hosts
from blazar_sched.domain.group_limit import GroupLimit
from blazar_sched.placing import lease_placing
from blazar_sched.service.ledger import models
from tests.functional.ledger.conftest import on
from tests.functional.ledger.conftest import on_every_engine
from tests.functional.ledger.conftest import on_servers
from tests.waiting import at_once

CLIENTS = 12
START, END = 100, 200


class Overlap:
    """A barrier that holds each client after its check, for a limited time."""

    def __init__(self, seconds):
        self._seconds = seconds
        self._lock = threading.Lock()
        self._checked = 0
        self._all_checked = threading.Event()

    def wait(self):
        with self._lock:
            self._checked += 1
            if self._checked == CLIENTS:
                self._all_checked.set()
        return self._all_checked.wait(self._seconds)


def run(client):
    """Run CLIENTS clients at once; return the result of each."""

    def outcome():
        try:
            return client() or 'won'
        except exception.Conflict:
            return 'full'
        except Exception as e:
            return repr(e)

    return sorted(at_once(*[outcome] * CLIENTS))


@pytest.fixture
def host(store, nouns):
    """A host with one free slot of two."""
    last = nouns.host(vcpus=2)
    lease = nouns.lease(START, END)

    def work(tx):
        kept = tx.put_host(last)
        tx.put_lease(lease)
        allocation = nouns.allocation(lease, kept)
        tx.put_allocations(allocation.reservation_id, [allocation])
        return kept

    return store.commit(work)


@on_every_engine
@pytest.mark.row('F24')
def test_the_last_slot_is_won_once(store, open_ledger, nouns, host):
    overlap = Overlap(0.02)
    pauses = []

    def client():
        lease = nouns.lease(START, END)
        allocation = nouns.allocation(lease, host)

        def work(tx):
            index = tx.replica.indexes.main
            fits = index.fits(index.rows([host.uuid]), START, END, (1, 0, 0))
            overlap.wait()
            if not fits[0]:
                raise exception.NotEnoughHostsAvailable('full')
            tx.put_lease(lease)
            tx.put_allocations(allocation.reservation_id, [allocation])

        open_ledger(sleep=pauses.append).commit(work)

    assert run(client) == ['full'] * (CLIENTS - 1) + ['won']
    # The clients waited in turn: no client met a conflict and retried.
    assert pauses == []
    assert len(store.allocations(host=host.uuid)) == 2
    assert store.check() == []


@on('sqlite', 'mysql')
@pytest.mark.row('F76')
def test_the_last_of_a_group_limit_is_won_once(store, open_ledger, nouns):
    """Each client has a host of its own, and one rack gives power to all."""
    hosts = [nouns.host() for _ in range(CLIENTS)]
    names = iter([each.hypervisor_hostname for each in hosts])
    store.commit(lambda tx: [tx.put_host(each) for each in hosts])
    overlap = Overlap(0.02)
    limits = [GroupLimit('rack', max=1)]

    def client():
        lease = nouns.lease(START, END)
        wanted = ["==", "$hypervisor_hostname", next(names)]
        reservation = nouns.reservation(
            lease, demand=Hosts(1, 1, json.dumps(wanted))
        )
        lease = dataclasses.replace(lease, reservations=(reservation,))

        def work(tx):
            replica = tx.replica
            overlap.wait()
            placed = lease_placing.place(replica, lease, lease.window)
            tx.add_lease(lease, placed[reservation.id])

        open_ledger(group_limits=limits).commit(work)

    assert run(client) == ['full'] * (CLIENTS - 1) + ['won']
    assert len(store.leases()) == 1


@on_servers
def test_without_the_protocol_it_is_overbooked(
    store, open_ledger, nouns, host, database
):
    """The control: the same race on bare transactions overbooks.

    This cannot happen on SQLite: its write lock hides the fault.
    """
    overlap = Overlap(60)
    leases = [nouns.lease(START, END) for _ in range(CLIENTS)]

    def put(tx):
        for lease in leases:
            tx.put_lease(lease)

    store.commit(put)
    on_host = models.Allocation.host == host.uuid
    capacity = host.inventory[inventory.VCPU].capacity

    def client():
        lease = leases.pop()
        row = {
            'id': lease.id, 'reservation_id': lease.reservations[0].id,
            'host': host.uuid, 'start': START, 'end': END,
            'amounts': {'VCPU': 1}, 'whole': False,
        }
        with database.begin() as connection:
            held = connection.execute(
                sa.select(models.Allocation.amounts).where(on_host)
            )
            used = sum(amounts['VCPU'] for (amounts,) in held)
            overlap.wait()
            if used >= capacity:
                raise exception.NotEnoughHostsAvailable('full')
            connection.execute(sa.insert(models.Allocation), row)

    assert run(client) == ['won'] * CLIENTS
    assert store.check() == [
        f'host {host.uuid}: {CLIENTS + 1} of {capacity} VCPU allocated at '
        f'{START}'
    ]
