# SPDX-License-Identifier: Apache-2.0
"""The host aggregate of a reservation: which hosts it has, and whose it is.

Named by the reservation's id. It lets nobody in or out here, but it is what
operators, and other filters, know a reservation's hosts by.
"""

from collections.abc import Iterable

from blazar_sched.domain import host as host_
from blazar_sched.domain import lease as lease_
from blazar_sched.domain import reservation as reservation_
from blazar_sched.service.clients import nova as nova_
from blazar_sched.service.ledger import ledger as ledger_

# How Blazar marks, by its id, a project that shares a reservation.
_SHARES = 'blazar:project'


def make(
    nova: nova_.Nova,
    lease: lease_.Lease,
    reservation: reservation_.Reservation,
    hosts: Iterable[str],
) -> nova_.Aggregate:
    """Make sure that it is there with these hosts, and perhaps others.

    :param hosts: the names of their nova-compute services
    """
    metadata = {
        'blazar:owner': lease.project_id,
        'reservation': reservation.id,
        **dict.fromkeys(reservation.projects, _SHARES),
    }
    made = nova.create_aggregate(reservation.id, metadata)
    struck_off = {
        name: None
        for name, value in made.metadata.items()
        if value == _SHARES and name not in metadata
    }
    if struck_off:
        nova.set_aggregate_metadata(made, struck_off)
    for host in hosts:
        nova.add_to_aggregate(made, host)
    return made


def others(
    ledger: ledger_.Ledger,
    aggregate: nova_.Aggregate | None,
    hosts: Iterable[host_.Host],
) -> list[host_.Host]:
    """Return the hosts in the aggregate that are not among `hosts`."""
    names = set(aggregate.hosts if aggregate else ())
    names -= {host.service_name for host in hosts}
    if not names:
        return []
    return [h for h in ledger.hosts() if h.service_name in names]
