# SPDX-License-Identifier: Apache-2.0
"""The common base of the drivers of reservations on hosts.

Servers of others are in the way of such reservations, and an action may be
done before their end.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from blazar_sched.domain.demand import Demand
from blazar_sched.domain.host import Host
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.reservation import WAITED_FOR
from blazar_sched.placing import clearing
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.resources import base
from blazar_sched.service.resources import vacating
from blazar_sched.service.resources.base import Part


class OnHostsResource(base.Resource):
    """A driver of reservations that are on hosts."""

    def validate(
        self, parameters: Mapping[str, Any], project_id: str
    ) -> Demand:
        """Return the demand of a new reservation.

        :raises InvalidInput: naming the parameter that is wrong
        """
        new = self._read(parameters, project_id)
        self._before_end.check(new)
        return new

    def update(
        self, demand: Demand, changes: Mapping[str, Any], active: bool,
        project_id: str,
    ) -> Demand:
        """Return the changed demand.

        :raises InvalidInput: naming the parameter that is wrong
        """
        new = self._changed(demand, changes, project_id)
        self._before_end.check(new, demand)
        return new

    def act(self, part: Part, when: str) -> str | None:
        """Do the action that the reservation requests.

        See `service.before_end`.
        """
        lease, reservation = part.lease, part.reservation
        held = part.held
        return self._before_end.act(
            when, lease, reservation,
            lambda: self._servers.find(lease, reservation, held),
        )

    def _read(self, parameters: Mapping[str, Any], project_id: str) -> Demand:
        """Return the demand of a request, with the actions as requested.

        :raises InvalidInput: naming the parameter that is wrong
        """
        raise NotImplementedError

    def _changed(
        self, demand: Demand, changes: Mapping[str, Any], project_id: str
    ) -> Demand:
        return self._read({**demand.encode(), **changes}, project_id)

    def vacate(self, part: Part, now: int) -> bool:
        """Have the servers that are in the way go."""
        lease, reservation = part.lease, part.reservation
        held = part.held
        others = self._in_the_way(lease, reservation, held, now)
        cause = vacating.for_lease(lease, reservation)
        return self._vacater.vacate(cause, others, now)

    def _evict(
        self, lease: Lease, reservation: Reservation, held: Sequence[Host],
        now: int,
    ) -> dict[str, Any]:
        """Delete the yielding servers in the way; see `Vacater.evict`.

        A deletion takes some time, and may fail, and a preemptible server may
        still be on its way: the lease says so until upkeep.clearing has seen
        that the host is clear.

        :returns: the entries of `made`: `in_the_way` has the uuids of the
            servers that stay
        """
        others = self._in_the_way(lease, reservation, held, now)
        staying = self._vacater.evict(lease, others, now)
        going = {
            server.node for server in others
            if server.preemptible and server.uuid not in staying
        }
        waited_for = {
            host.uuid for host in held if host.hypervisor_hostname in going
        } | self._ledger.read_replica(lambda replica: clearing.overfull(
            replica, [host.uuid for host in held], now
        )).keys()
        made: dict[str, Any] = {'in_the_way': staying}
        if waited_for:
            known = reservation.made.get(WAITED_FOR, {})
            made[WAITED_FOR] = {**dict.fromkeys(waited_for, now), **known}
        return made

    def _in_the_way(
        self, lease: Lease, reservation: Reservation, held: Sequence[Host],
        now: int,
    ) -> list[Server]:
        """Return the servers in the way: as many as take the room needed."""
        return self._vacater.as_needed(lease, reservation, held, now)
