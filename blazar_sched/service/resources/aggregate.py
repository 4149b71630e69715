# SPDX-License-Identifier: Apache-2.0
"""The host aggregate of a reservation, with its hosts and its owner.

The aggregate is named by the reservation's id. The aggregate admits or refuses
no server here, but operators, and other filters, recognize a reservation's
hosts by the aggregate.
"""

from collections.abc import Iterable

from blazar_sched.domain.host import Host
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.service.clients.nova import Aggregate
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.ledger.ledger import Ledger

# The metadata value with which Blazar marks, by its id, a project that shares
# a reservation.
_SHARES = 'blazar:project'


def make(
    nova: Nova, lease: Lease, reservation: Reservation, hosts: Iterable[str],
    known: Aggregate | None = None,
) -> Aggregate:
    """Make sure that the aggregate exists with these hosts.

    The aggregate may also have other hosts.

    :param hosts: the names of the nova-compute services of the hosts
    :param known: the aggregate if the caller has just seen it
    """
    metadata = {
        'blazar:owner': lease.project_id,
        'reservation': reservation.id,
        **dict.fromkeys(reservation.projects, _SHARES),
    }
    made = nova.create_aggregate(reservation.id, metadata, known)
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
    ledger: Ledger, aggregate: Aggregate | None, hosts: Iterable[Host]
) -> list[Host]:
    """Return the hosts in the aggregate that are not among `hosts`."""
    names = set(aggregate.hosts if aggregate else ())
    names -= {host.service_name for host in hosts}
    if not names:
        return []
    return [h for h in ledger.hosts() if h.service_name in names]
