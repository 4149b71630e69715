# SPDX-License-Identifier: Apache-2.0
"""The queries of the ledger, inside a commit or outside a commit."""

from blazar_sched.service.ledger import access
from blazar_sched.service.ledger import allocation
from blazar_sched.service.ledger import change
from blazar_sched.service.ledger import check
from blazar_sched.service.ledger import event
from blazar_sched.service.ledger import flavor
from blazar_sched.service.ledger import host
from blazar_sched.service.ledger import idempotency
from blazar_sched.service.ledger import instance
from blazar_sched.service.ledger import lease
from blazar_sched.service.ledger import listing
from blazar_sched.service.ledger import off_hosts
from blazar_sched.service.ledger import reservation
from blazar_sched.service.ledger import retention
from blazar_sched.service.ledger import snapshot
from blazar_sched.service.ledger import statistics
from blazar_sched.service.ledger import trust
from blazar_sched.service.ledger import use


class Reader(access.Reads):
    """All queries of the ledger, answered with domain objects.

    All objects of an answer are of one state of the ledger.
    """

    allocations = access.read(allocation.list_)
    uses = access.read(allocation.uses)
    newest = access.read(change.newest)
    version = access.read(change.version)
    changes = access.read(change.page)
    check = access.read(check.check)
    due_events = access.read(event.list_due)
    is_blocked = access.read(event.is_blocked)
    next_event = access.read(event.next_time)
    flavors = access.read(flavor.list_)
    flavor = access.read(flavor.get)
    hosts = access.read(host.list_)
    capacities = access.read(host.capacities)
    properties = access.read(host.properties)
    host = access.read(host.get)
    lease_by_key = access.read(idempotency.get)
    instances = access.read(instance.list_)
    claiming = access.read(instance.claiming)
    shelved_servers = access.read(instance.shelved)
    instance = access.read(instance.get)
    owned_lease = access.read(lease.owned)
    open_leases = access.read(lease.open_)
    whole_hosts = access.read(lease.whole_hosts)
    leases_on = access.read(lease.on_hosts)
    leases_with = access.read(lease.with_type)
    vacated_leases = access.read(lease.vacated)
    started_leases = access.read(lease.started)
    offers = access.read(lease.offers)
    lease = access.read(lease.get)
    leases = access.read(listing.list_)
    off_hosts = access.read(off_hosts.list_)
    lacking = access.read(reservation.list_lacking)
    reservation_records = access.read(reservation.records)
    ended_leases = access.read(retention.ended)
    snapshot = access.read(snapshot.page)
    counts_of = access.read(statistics.counts_of)
    statistics = access.read(statistics.take)
    discarded_trusts = access.read(trust.list_discarded)
    lease_in_use = access.read(use.of_lease)
