# SPDX-License-Identifier: Apache-2.0
"""What a filter is, and what it is asked about."""

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
from blazar_sched.placing import host_selection
from blazar_sched.service.ledger import reader

# What each reservation of a lease has, by its id: a host for each whole host
# and for each slot, or floating IPs.
Held = Mapping[str, Sequence[Host | FloatingIP]]

NO_LIMIT = -1


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """A lease as it is to be.

    :param current: as it is, None if it is new
    :param now: the time in epoch seconds
    """

    lease: Lease
    current: Lease | None
    now: int

    @property
    def project_id(self) -> str:
        return self.lease.project_id

    @property
    def asks_nothing(self) -> bool:
        """Whether what it asks for, and when, stays the same."""
        return self.current is not None and (
            self.lease.window == self.current.window
            and self.lease.reservations == self.current.reservations
        )


class Filter:
    """Says what is not allowed: nothing, which all others extend.

    :param conf: the service's configuration
    """

    # Whether it has something to do in `ask` and in `on_end`.
    asks = False
    wants_end = False

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf[enforcement_conf.GROUP]

    def check(self, asked: Asked, source: reader.Reader) -> None:
        """Refuse a lease, in the commit that would write it.

        What is read from `source` is exact: no other lease comes between.
        It may have the lease by then, or not yet.
        Nothing else may be asked there, for all others wait.

        :raises BlazarSchedError: if it is refused
        """

    def ask(self, asked: Asked, held: Held, current: Held) -> None:
        """Refuse a lease, ahead of that commit; this may take some time.

        :param held: what it has if it is placed now; later, when it really
            is, that may be something else
        :param current: what it has
        :raises BlazarSchedError: if it is refused
        """

    def on_end(self, lease: Lease, held: Held) -> None:
        """Take note that a lease is over; what is raised is logged."""


def held(source: reader.Reader, lease: Lease) -> Held:
    """Return what the ledger, or a commit, says that a lease has."""
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
    """Return how many slots an allocation is, one if it is a whole host."""
    if reservation.resource_type not in INSTANCES:
        return 1
    return host_selection.count_slots(allocation.amounts, reservation.slot())


def limit(
    refusal: type[exception.LimitExceeded],
    most: int,
    value: int,
    current: int,
    what: str,
    field: str,
) -> None:
    """Refuse a value beyond the limit, unless it is no more than before.

    So what was let in before the limit was lowered can be made smaller.

    :param what: says of ``{most}`` what it limits
    :raises LimitExceeded: as the subclass `refusal`
    """
    if most != NO_LIMIT and value > max(most, current):
        raise refusal(what.format(most=most), field=field)
