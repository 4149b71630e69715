# SPDX-License-Identifier: Apache-2.0
"""The queries of the ledger, inside a commit or outside a commit."""

from blazar_sched.service.ledger import allocation
from blazar_sched.service.ledger import change
from blazar_sched.service.ledger import check
from blazar_sched.service.ledger import event
from blazar_sched.service.ledger import flavor
from blazar_sched.service.ledger import host
from blazar_sched.service.ledger import idempotency
from blazar_sched.service.ledger import instance
from blazar_sched.service.ledger import listing
from blazar_sched.service.ledger import off_hosts
from blazar_sched.service.ledger import offer
from blazar_sched.service.ledger import property
from blazar_sched.service.ledger import reservation
from blazar_sched.service.ledger import retention
from blazar_sched.service.ledger import shelved_server
from blazar_sched.service.ledger import snapshot
from blazar_sched.service.ledger import statistics
from blazar_sched.service.ledger import timeline
from blazar_sched.service.ledger import trust
from blazar_sched.service.ledger import use


class Reader(
    allocation.Reads, statistics.Reads, change.Reads, check.Reads, event.Reads,
    flavor.Reads, host.Reads, idempotency.Reads, instance.Reads,
    listing.Reads, off_hosts.Reads, offer.Reads, property.Reads,
    reservation.Reads, retention.Reads, shelved_server.Reads, snapshot.Reads,
    timeline.Reads, trust.Reads, use.Reads,
):
    """All queries of the ledger, answered with domain objects.

    All objects of an answer are of one state of the ledger.
    """
