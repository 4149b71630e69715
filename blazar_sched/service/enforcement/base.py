# SPDX-License-Identifier: Apache-2.0
"""The base class of filters, and the data that filters decide on."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from oslo_config import cfg

from blazar_sched.conf import enforcement as enforcement_conf
from blazar_sched.domain import exception
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.floating_ip import FloatingIP
from blazar_sched.domain.host import Host
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import FLOATING_IP
from blazar_sched.domain.reservation import INSTANCES
from blazar_sched.domain.reservation import Reservation
from blazar_sched.placing.room import count_slots
from blazar_sched.service.ledger import reader

# The resources of each reservation of a lease, by the reservation's id: a host
# for each whole host and for each slot, or floating IPs.
Resources = Mapping[str, Sequence[Host | FloatingIP]]

NO_LIMIT = -1


@dataclasses.dataclass(frozen=True, slots=True)
class LeaseRequest:
    """A requested lease, new or changed.

    `lease` is the lease as it is to be.

    :param current: the lease as it is, None if the lease is new
    :param now: the time in epoch seconds
    """

    lease: Lease
    current: Lease | None
    now: int

    @property
    def project_id(self) -> str:
        return self.lease.project_id

    @property
    def is_unchanged(self) -> bool:
        """Return whether the window and the reservations stay the same."""
        return self.current is not None and (
            self.lease.window == self.current.window
            and self.lease.reservations == self.current.reservations
        )


class Filter:
    """The base class of filters, which refuses nothing.

    :param conf: the configuration of the service
    """

    # Whether the filter implements `check_external` and `on_end`.
    is_external = False
    handles_end = False

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf[enforcement_conf.GROUP]

    def check(self, request: LeaseRequest, source: reader.Reader) -> None:
        """Refuse a lease, in the commit that would write the lease.

        Reads from `source` are exact: no other lease is written in between.
        `source` may contain the lease by then, or not yet. No other service
        may be called here, because all other commits wait.

        :raises BlazarSchedError: if the lease is refused
        """

    def check_external(
        self, request: LeaseRequest, held: Resources, current: Resources
    ) -> None:
        """Refuse a lease, ahead of that commit; this may take some time.

        :param held: the resources of the lease if the lease is placed now; the
            real placement later may be different
        :param current: the resources that the lease has
        :raises BlazarSchedError: if the lease is refused
        """

    def on_end(self, lease: Lease, held: Resources) -> None:
        """Note that a lease is over; an exception raised here is logged."""


def resources_of(source: reader.Reader, lease: Lease) -> Resources:
    """Return the resources of a lease, read from the ledger or a commit."""
    allocations = [a for a, _ in source.allocations(lease_id=lease.id)]
    hosts = {h.uuid: h for h in source.hosts({a.host for a in allocations})}
    return {
        r.id: source.floating_ips(r.id)
        if r.resource_type == FLOATING_IP
        else [
            hosts[a.host]
            for a in allocations
            if a.reservation_id == r.id
            for _ in range(_count(r, a))
        ]
        for r in lease.reservations
    }


def _count(
    reservation: Reservation, allocation: Allocation
) -> int:
    """Return the slots in an allocation; a whole host counts as one."""
    if reservation.resource_type not in INSTANCES:
        return 1
    return count_slots(allocation.amounts, reservation.slot())


def limit(
    refusal: type[exception.LimitExceeded],
    most: int,
    value: int,
    current: int,
    what: str,
    field: str,
) -> None:
    """Refuse a value beyond the limit, unless it is no more than before.

    So a lease that was admitted before the limit was lowered can be made
    smaller.

    :param what: the error message, in which ``{most}`` is the limit
    :raises LimitExceeded: as the subclass `refusal`
    """
    if most != NO_LIMIT and value > max(most, current):
        raise refusal(what.format(most=most), field=field)
