# SPDX-License-Identifier: Apache-2.0
"""What reservations of floating IPs ask for."""

import dataclasses

from blazar_sched.domain.demand import Demand
from blazar_sched.domain.demand import Other
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation

RESOURCE_TYPE = 'virtual:floatingip'
REQUIRED = 'required_floatingips'


@dataclasses.dataclass(frozen=True, slots=True)
class Addresses:
    """Floating IPs of an external network, among them those required."""

    network_id: str
    amount: int
    required: tuple[str, ...] = ()

    @property
    def demand(self) -> Other:
        return Other(RESOURCE_TYPE, {
            'network_id': self.network_id,
            'amount': self.amount,
            REQUIRED: list(self.required),
        })


def read(demand: Demand) -> Addresses:
    """Return what the demand of a reservation of floating IPs asks for."""
    known = demand.encode()
    return Addresses(
        known['network_id'], known['amount'], tuple(known.get(REQUIRED, ()))
    )


def of(lease: Lease) -> list[tuple[Reservation, Addresses]]:
    """Return the reservations of floating IPs, with what they ask for."""
    return [
        (r, read(r.demand)) for r in lease.reservations
        if r.resource_type == RESOURCE_TYPE
    ]
