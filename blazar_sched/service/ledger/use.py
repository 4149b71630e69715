# SPDX-License-Identifier: Apache-2.0
"""The use of a lease: the hosts and servers of its reservations."""

from collections import Counter
import dataclasses

import sqlalchemy as sa

from blazar_sched.domain.lease import Lease
from blazar_sched.service.ledger import allocation
from blazar_sched.service.ledger import host
from blazar_sched.service.ledger import instance
from blazar_sched.service.ledger import lease


@dataclasses.dataclass(frozen=True, slots=True)
class Use:
    """The use of a reservation.

    :param hosts: the hypervisor hostnames, sorted
    :param used: the number of servers in the reservation
    """

    hosts: list[str]
    used: int


def of_lease(
    connection: sa.Connection, lease_id: str, project_id: str | None
) -> tuple[Lease, dict[str, Use]]:
    """Return a lease, and the use of its reservations by their id.

    :raises LeaseNotFound: as `lease.owned`
    """
    found = lease.owned(connection, lease_id, project_id)
    held = [a for a, _ in allocation.list_(connection, lease_id=lease_id)]
    hosts = host.list_(connection, {a.host for a in held})
    names = {each.uuid: each.hypervisor_hostname for each in hosts}
    used = Counter(
        each.reservation_id for each in instance.list_(connection, set(names))
    )
    return found, {
        reservation.id: Use(
            sorted(
                names[a.host]
                for a in held
                if a.reservation_id == reservation.id and a.host in names
            ),
            used[reservation.id],
        )
        for reservation in found.reservations
    }
