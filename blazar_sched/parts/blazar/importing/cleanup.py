# SPDX-License-Identifier: Apache-2.0
"""Removal of the objects that Blazar has created for pending leases.

Blazar creates the flavors, aggregates and groups of a lease when the lease is
created; this service creates them when the lease starts. Until Blazar's
objects are removed, a return to Blazar is possible. But while they exist, a
lease that is deleted before its start leaves them behind, and a lease that is
changed conflicts with a flavor of its old size.
"""

from collections.abc import Callable
import contextlib
import dataclasses
import time

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.demand import ON_HOSTS
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.service.clients import placement
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.resources import base

# Seconds. A lease that starts sooner is skipped, as it may just be starting.
MARGIN = 600


@dataclasses.dataclass(slots=True)
class Cleanup:
    """The number of tidied leases, and the ids of the skipped leases."""

    count: int = 0
    left: list[str] = dataclasses.field(default_factory=list)


def clean_up(
    services: base.Services, now: int,
    monotonic: Callable[[], float] = time.monotonic,
) -> Cleanup:
    """Remove the objects; repeatable, also while managers run.

    :param now: the time in epoch seconds as the removal begins
    :param monotonic: measures the duration of the removal
    :raises Unavailable: if another service does not answer
    """
    done = Cleanup()
    began = monotonic()
    for lease in services.ledger.leases(status=states.LEASE_PENDING):
        at = now + int(monotonic() - began)
        if _may_be_open(services, lease.id, at):
            done.left.append(lease.id)
            continue
        for reservation in lease.reservations:
            remove(services, reservation)
        if any(reservation.made for reservation in lease.reservations):
            _forget(services, lease)
        done.count += 1
    return done


def _may_be_open(services: base.Services, lease_id: str, now: int) -> bool:
    """Return whether a lease has started, or may start while it is tidied.

    Each lease is checked immediately before its removal: there may be so many
    leases that some have started since they were listed. A lease that was
    deleted meanwhile has left all of its objects behind.
    """
    try:
        lease = services.ledger.lease(lease_id)
    except exception.LeaseNotFound:
        return False
    return lease.status != states.LEASE_PENDING or lease.start < now + MARGIN


def remove(services: base.Services, reservation: Reservation) -> None:
    """Remove what Blazar has created in advance for a reservation."""
    if reservation.resource_type not in ON_HOSTS:
        return
    if reservation.demand.slot:
        services.nova.delete_flavor(reservation.id)
        if reservation.made.get('server_group_id'):
            services.nova.delete_server_group(f'reservation:{reservation.id}')
        services.placement.delete_resource_class(
            placement.resource_class(reservation.id)
        )
    services.nova.delete_aggregate(reservation.id)


def _forget(services: base.Services, lease: Lease) -> None:
    """Clear the records of a lease's removed objects."""

    def work(tx: PlacingTx) -> None:
        known = tx.lease(lease.id)
        if known.status != states.LEASE_PENDING:
            # The objects that the start has created meanwhile are the
            # lease's own.
            return
        tx.set_reservations_made({r.id: {} for r in known.reservations})

    # The lease may have been deleted meanwhile.
    with contextlib.suppress(exception.NotFound):
        services.ledger.commit(work)
