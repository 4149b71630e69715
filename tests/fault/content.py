# SPDX-License-Identifier: Apache-2.0
"""The content of a replica, in short."""

from collections.abc import Iterator
import hashlib
import json

from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.service.ledger import snapshot
from blazar_sched.service.ledger.ledger import Ledger


def digest(replica: state.Replica) -> str:
    """Return a digest of the content of a replica.

    The field that the next release adds in test_upgrade is left out.
    """
    lines = sorted(
        json.dumps(
            [kind, key, {k: v for k, v in data.items() if k != 'colour'}],
            sort_keys=True,
        )
        for kind, key, data in map(record.encode, _nouns(replica)) if data
    )
    return hashlib.sha256('\n'.join(lines).encode()).hexdigest()


def _nouns(replica: state.Replica) -> Iterator[record.Entity]:
    yield from replica.hosts.values()
    yield from replica.instances.values()
    for reservation in replica.reservations.values():
        yield reservation
        yield from replica.indexes.allocations(reservation.id).values()


def rebuilt(ledger: Ledger) -> state.Replica:
    """Return a new replica built from SQL."""
    return snapshot.load(ledger)
