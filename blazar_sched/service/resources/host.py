# SPDX-License-Identifier: Apache-2.0
"""``physical:host``: whole hosts.

Who may use a host in its window is decided by the filters in nova-scheduler.
What is left to do is to clear it of what has to yield, and at the end of
what the lease's project left there.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from blazar_sched.domain import allocation as allocation_
from blazar_sched.domain import exception
from blazar_sched.domain import host as host_
from blazar_sched.domain import lease as lease_
from blazar_sched.domain import reservation as reservation_
from blazar_sched.service.clients import nova as nova_
from blazar_sched.service.resources import base
from blazar_sched.service.resources import parameters as parameters_

_DEFAULTS = {
    'min': None,
    'max': None,
    'hypervisor_properties': '',
    'resource_properties': '',
    'before_end': 'default',
}
# Blazar's 'snapshot' is not one of them: nothing here makes snapshots.
_BEFORE_END = ('', 'default')


class HostResource(base.Resource):
    """The driver of ``physical:host``."""

    def validate(
        self, parameters: Mapping[str, Any], project_id: str
    ) -> dict[str, Any]:
        """Return the parameters complete.

        :raises InvalidInput: naming the one that is wrong
        """
        complete = parameters_.check_names(parameters, _DEFAULTS)
        parameters_.check_integer(complete, 'min', 1)
        parameters_.check_integer(complete, 'max', complete['min'])
        for name in ('hypervisor_properties', 'resource_properties'):
            parameters_.check_requirement(complete, name)
        if complete['before_end'] not in _BEFORE_END:
            raise exception.InvalidInput(
                "before_end must be '' or 'default'", field='before_end'
            )
        return complete

    def update(
        self,
        parameters: Mapping[str, Any],
        changes: Mapping[str, Any],
        active: bool,
        project_id: str,
    ) -> dict[str, Any]:
        """Return the changed parameters.

        :raises CantUpdateParameter: for before_end
        :raises InvalidInput: naming the one that is wrong
        """
        new = self.validate({**parameters, **changes}, project_id)
        if new['before_end'] != parameters['before_end']:
            raise exception.CantUpdateParameter(
                'before_end cannot be changed', field='before_end'
            )
        return new

    def start(
        self,
        lease: lease_.Lease,
        reservation: reservation_.Reservation,
        allocations: Sequence[allocation_.Allocation],
        hosts: Mapping[str, host_.Host],
        now: int,
    ) -> base.Opened:
        """Clear the hosts of what is overdue or preemptible.

        :returns: True if other projects' servers are still to stay there
        """
        degraded = False
        for allocation in allocations:
            host = hosts[allocation.host]
            others = [
                server
                for server in self._nova.servers(host=host.service_name)
                if server.node == host.hypervisor_hostname
                and not _is_bound(server, lease, reservation)
            ]
            yielding = [s for s in others if s.preemptible or s.end <= now]
            self._nova.delete_servers(yielding)
            degraded = degraded or len(yielding) < len(others)
        return base.Opened(degraded)

    def end(
        self,
        lease: lease_.Lease,
        reservation: reservation_.Reservation,
        allocations: Sequence[allocation_.Allocation],
        hosts: Mapping[str, host_.Host],
    ) -> bool:
        """Delete the project's servers that used the hosts.

        Those that draw on another reservation are its own affair.

        :returns: True if there is none left
        """
        nodes = {hosts[a.host].hypervisor_hostname for a in allocations}
        return self._nova.delete_servers(
            server
            for server in self._nova.servers(project_id=lease.project_id)
            if server.reservation_id == reservation.id
            or (server.reservation_id is None and server.node in nodes)
        )


def _is_bound(
    server: nova_.Server,
    lease: lease_.Lease,
    reservation: reservation_.Reservation,
) -> bool:
    return (
        server.project_id == lease.project_id
        and server.reservation_id == reservation.id
    )
