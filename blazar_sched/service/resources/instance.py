# SPDX-License-Identifier: Apache-2.0
"""``virtual:instance``: slots of one size, on any hosts with room.

In its window the project has a private flavor of that size. Each server of
it takes one of a resource class that only the reservation's hosts have, as
many on each as there are slots.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from blazar_sched.domain import allocation as allocation_
from blazar_sched.domain import exception
from blazar_sched.domain import host as host_
from blazar_sched.domain import lease as lease_
from blazar_sched.domain import placing
from blazar_sched.domain import reservation as reservation_
from blazar_sched.service.clients import placement as placement_
from blazar_sched.service.resources import base
from blazar_sched.service.resources import parameters as parameters_

_DEFAULTS = {
    'vcpus': None,
    'memory_mb': None,
    'disk_gb': None,
    'amount': None,
    'affinity': None,
    'resource_properties': '',
}
# What Nova asks of a flavor, and one instance at least.
_MINIMUM = {'vcpus': 1, 'memory_mb': 1, 'disk_gb': 0, 'amount': 1}


class InstanceResource(base.Resource):
    """The driver of ``virtual:instance``."""

    def validate(
        self, parameters: Mapping[str, Any], project_id: str
    ) -> dict[str, Any]:
        """Return the parameters complete.

        :raises InvalidInput: naming the one that is wrong
        """
        complete = parameters_.check_names(parameters, _DEFAULTS)
        for name, minimum in _MINIMUM.items():
            parameters_.check_integer(complete, name, minimum)
        if not isinstance(complete['affinity'], bool | None):
            raise exception.InvalidInput(
                'affinity must be true, false or null', field='affinity'
            )
        parameters_.check_requirement(complete, 'resource_properties')
        return complete

    def update(
        self,
        parameters: Mapping[str, Any],
        changes: Mapping[str, Any],
        active: bool,
        project_id: str,
    ) -> dict[str, Any]:
        """Return the changed parameters.

        :raises CantUpdateParameter: if the lease is active, unless the
            amount grows
        :raises InvalidInput: naming the one that is wrong
        """
        new = self.validate({**parameters, **changes}, project_id)
        for name in _DEFAULTS if active else ():
            grows = name == 'amount' and new[name] > parameters[name]
            if new[name] != parameters[name] and not grows:
                raise exception.CantUpdateParameter(
                    f'{name} cannot be changed so in an active lease: only '
                    'the amount can, upward',
                    field=name,
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
        """Give the project its flavor, and the hosts their inventory.

        :returns: False: what Placement holds is what was promised
        """
        slots = placement_.resource_class(reservation.id)
        self._placement.create_resource_class(slots)
        slot = reservation.slot()
        for allocation in allocations:
            self._placement.set_inventory(
                allocation.host,
                hosts[allocation.host].hypervisor_hostname,
                slots,
                placing.count_slots(allocation.amounts, slot),
            )
        self._nova.create_flavor(
            reservation.id,
            f'reservation:{reservation.id}',
            slot,
            {
                'blazar:reservation': reservation.id,
                f'resources:{slots}': '1',
            },
        )
        self._nova.add_flavor_access(reservation.id, lease.project_id)
        return base.Opened()

    def end(
        self,
        lease: lease_.Lease,
        reservation: reservation_.Reservation,
        allocations: Sequence[allocation_.Allocation],
        hosts: Mapping[str, host_.Host],
    ) -> bool:
        """Remove the flavor, its servers and the hosts' inventory.

        :returns: True if nothing of them is left
        """
        self._nova.remove_flavor_access(reservation.id, lease.project_id)
        gone = self._nova.delete_servers(
            server
            for server in self._nova.servers(project_id=lease.project_id)
            if server.reservation_id == reservation.id
        )
        if not gone:
            return False
        self._nova.delete_flavor(reservation.id)
        slots = placement_.resource_class(reservation.id)
        # Each of them, before saying that one is still in use.
        removed = [
            self._placement.remove_inventory(
                hosts[allocation.host].hypervisor_hostname, slots
            )
            for allocation in allocations
        ]
        if not all(removed):
            return False
        self._placement.delete_resource_class(slots)
        return True
