# SPDX-License-Identifier: Apache-2.0
"""The last floating IP is given once, if all check before any commits."""

import dataclasses
from unittest import mock
import uuid

import pytest

from blazar_sched.parts.floating_ip import models as floating_ips
from blazar_sched.parts.floating_ip.demand import Addresses
from blazar_sched.parts.floating_ip.floating_ip import FloatingIP
from blazar_sched.parts.floating_ip.resources import FloatingIPResource
from tests.functional.ledger.conftest import *  # noqa: F401, F403
from tests.functional.ledger.conftest import on
from tests.functional.ledger.test_race import CLIENTS
from tests.functional.ledger.test_race import END
from tests.functional.ledger.test_race import Overlap
from tests.functional.ledger.test_race import run
from tests.functional.ledger.test_race import START


@pytest.fixture
def floating_ip(store):
    """The last floating IP of its network."""
    last = FloatingIP(
        str(uuid.uuid4()), str(uuid.uuid4()), 'subnet', '203.0.113.9'
    )
    store.write(lambda tx: tx.run(floating_ips.add, last))
    return last


@on('sqlite', 'mysql')
def test_the_last_floating_ip_is_won_once(
    store, open_ledger, nouns, floating_ip
):
    """The driver chooses the address inside the commit."""
    overlap = Overlap(0.02)
    driver = FloatingIPResource(mock.Mock())

    def client():
        lease = nouns.lease(START, END)
        reservation = nouns.reservation(
            lease, demand=Addresses(floating_ip.network_id, 1).demand
        )
        lease = dataclasses.replace(lease, reservations=(reservation,))

        def work(tx):
            tx.add_lease(lease, ())
            ask = tx.run

            def run(query, *args):
                found = ask(query, *args)
                if query is floating_ips.free:
                    overlap.wait()
                return found

            tx.run = run
            driver.book(tx, lease, reservation, lease.window)

        open_ledger().commit(work)

    assert run(client) == ['full'] * (CLIENTS - 1) + ['won']
    assert len(store.leases()) == 1
    assert store.check() == []
