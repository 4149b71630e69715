# SPDX-License-Identifier: Apache-2.0
"""A reservation: one resource request in a lease."""

from collections.abc import Mapping
import dataclasses
from typing import Any

from blazar_sched.domain import inventory

PHYSICAL_HOST = 'physical:host'
VIRTUAL_INSTANCE = 'virtual:instance'
RESOURCE_TYPES = (PHYSICAL_HOST, VIRTUAL_INSTANCE)


@dataclasses.dataclass(frozen=True, slots=True)
class Reservation:
    """`parameters` are those of its resource type.

    - ``physical:host``: min, max, hypervisor_properties,
      resource_properties, before_end
    - ``virtual:instance``: vcpus, memory_mb, disk_gb, amount, affinity,
      resource_properties
    """

    id: str
    lease_id: str
    resource_type: str
    status: str
    parameters: Mapping[str, Any]
    missing_resources: bool = False
    resources_changed: bool = False
    created_at: int | None = None
    updated_at: int | None = None

    def slot(self) -> dict[str, int]:
        """What one instance of a ``virtual:instance`` reservation takes."""
        return {
            inventory.VCPU: self.parameters['vcpus'],
            inventory.MEMORY_MB: self.parameters['memory_mb'],
            inventory.DISK_GB: self.parameters['disk_gb'],
        }
