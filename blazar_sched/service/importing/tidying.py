# SPDX-License-Identifier: Apache-2.0
"""Removes what Blazar has made ahead for leases that are still to start.

Blazar makes a lease's flavors, aggregates and groups when it is booked, we do
when it starts. Until they are removed there is a way back to Blazar; and as
long as they are there, a lease that is deleted before it starts leaves them
behind, and one that is changed meets a flavor of its old size.
"""

from collections.abc import Callable
import contextlib
import dataclasses
import time

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import ON_HOSTS
from blazar_sched.domain.reservation import Reservation
from blazar_sched.service.clients import placement
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.resources import base

# Seconds: whoever starts sooner is left alone, as it may just be opened.
MARGIN = 600


@dataclasses.dataclass(slots=True)
class Tidied:
    """How many leases have nothing ahead now, and the ids of the others."""

    count: int = 0
    left: list[str] = dataclasses.field(default_factory=list)


def tidy(
    services: base.Services,
    now: int,
    monotonic: Callable[[], float] = time.monotonic,
) -> Tidied:
    """Remove it; it may be done again, and while managers run.

    :param now: the time in epoch seconds as it begins
    :param monotonic: measures how long it takes
    :raises Unavailable: if another service does not answer
    """
    tidied = Tidied()
    began = monotonic()
    for lease in services.ledger.leases(status=states.LEASE_PENDING):
        at = now + int(monotonic() - began)
        if _may_be_open(services, lease.id, at):
            tidied.left.append(lease.id)
            continue
        for reservation in lease.reservations:
            if reservation.resource_type in ON_HOSTS:
                _remove(services, reservation)
        if any(reservation.made for reservation in lease.reservations):
            _forget(services, lease)
        tidied.count += 1
    return tidied


def _may_be_open(services: base.Services, lease_id: str, now: int) -> bool:
    """Tell whether a lease is open, or may be before it is tidied.

    Asked for each in its turn: there may be so many that some have started
    since they were listed. One that is deleted by now leaves all behind.
    """
    try:
        lease = services.ledger.lease(lease_id)
    except exception.LeaseNotFound:
        return False
    return lease.status != states.LEASE_PENDING or lease.start < now + MARGIN


def _remove(
    services: base.Services, reservation: Reservation
) -> None:
    if reservation.has_slots:
        services.nova.delete_flavor(reservation.id)
        if reservation.made.get('server_group_id'):
            services.nova.delete_server_group(f'reservation:{reservation.id}')
        services.placement.delete_resource_class(
            placement.resource_class(reservation.id)
        )
    services.nova.delete_aggregate(reservation.id)


def _forget(services: base.Services, lease: Lease) -> None:
    """Show no longer what is gone."""

    def work(tx: PlacingTx) -> None:
        known = tx.lease(lease.id)
        if known.status != states.LEASE_PENDING:
            # What its start has made meanwhile is its own.
            return
        for reservation in known.reservations:
            tx.set_reservation_made(reservation.id, {})

    # It may have been deleted meanwhile.
    with contextlib.suppress(exception.NotFound):
        services.ledger.commit(work)
