# SPDX-License-Identifier: Apache-2.0
"""What all reservations on hosts have in common: others are in their way."""

from collections.abc import Mapping
from collections.abc import Sequence

from blazar_sched.domain import allocation as allocation_
from blazar_sched.domain import host as host_
from blazar_sched.domain import lease as lease_
from blazar_sched.domain import reservation as reservation_
from blazar_sched.service.clients import nova as nova_
from blazar_sched.service.resources import base


class OnHostsResource(base.Resource):
    """A driver of reservations that are on hosts."""

    def vacate(
        self,
        lease: lease_.Lease,
        reservation: reservation_.Reservation,
        allocations: Sequence[allocation_.Allocation],
        hosts: Mapping[str, host_.Host],
        now: int,
    ) -> bool:
        """Have those servers go that are in the way."""
        held = [hosts[allocation.host] for allocation in allocations]
        others = self._in_the_way(lease, reservation, held, now)
        return self._vacater.vacate(lease, reservation, others, now)

    def _evict(
        self,
        lease: lease_.Lease,
        reservation: reservation_.Reservation,
        held: Sequence[host_.Host],
        now: int,
    ) -> list[str]:
        """Delete of what is in the way all that yields; see `Vacater.evict`.

        :returns: the uuids of the servers that stay
        """
        others = self._in_the_way(lease, reservation, held, now)
        return self._vacater.evict(lease, others, now)

    def _in_the_way(
        self,
        lease: lease_.Lease,
        reservation: reservation_.Reservation,
        held: Sequence[host_.Host],
        now: int,
    ) -> list[nova_.Server]:
        """Return the servers that are: as many as take its room."""
        return self._vacater.as_needed(lease, reservation, held, now)
