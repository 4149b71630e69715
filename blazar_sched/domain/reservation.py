# SPDX-License-Identifier: Apache-2.0
"""A reservation: one resource request in a lease."""

from collections.abc import Mapping
import dataclasses
from typing import Any

from blazar_sched.domain import inventory

PHYSICAL_HOST = 'physical:host'
VIRTUAL_INSTANCE = 'virtual:instance'
FLAVOR_INSTANCE = 'flavor:instance'
FLOATING_IP = 'virtual:floatingip'
# Those that take slots of one size on hosts.
INSTANCES = (VIRTUAL_INSTANCE, FLAVOR_INSTANCE)
ON_HOSTS = (PHYSICAL_HOST, *INSTANCES)

# What becomes of a reservation's servers when it ends: they are deleted,
# shelved, or stay as ordinary ones.
DELETE = 'delete'
SHELVE = 'shelve'
KEEP = 'keep'
ON_END = (DELETE, SHELVE, KEEP)


@dataclasses.dataclass(frozen=True, slots=True)
class Reservation:
    """`parameters` are those of its resource type.

    - ``physical:host``: min, max, hypervisor_properties,
      resource_properties, before_end
    - ``virtual:instance``: vcpus, memory_mb, disk_gb, amount, affinity,
      resource_properties
    - ``flavor:instance``: flavor_id, amount, affinity, and what the flavor
      was when it was reserved: name, resources (amounts by resource class),
      vcpus, memory_mb, disk_gb, ephemeral_gb, swap_mb, extra_specs, and
      resource_properties, made of its traits
    - ``virtual:floatingip``: network_id, amount, required_floatingips

    `projects` may use it beside its own. `on_end` is one of ON_END. `made`
    holds the ids of what its start has made in other services.
    """

    id: str
    lease_id: str
    resource_type: str
    status: str
    parameters: Mapping[str, Any]
    missing_resources: bool = False
    resources_changed: bool = False
    projects: tuple[str, ...] = ()
    on_end: str = DELETE
    made: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    created_at: int | None = None
    updated_at: int | None = None

    def slot(self) -> dict[str, int]:
        """What one instance takes, by resource class.

        Only for a reservation of instances.
        """
        if self.resource_type == FLAVOR_INSTANCE:
            return dict(self.parameters['resources'])
        return {
            inventory.VCPU: self.parameters['vcpus'],
            inventory.MEMORY_MB: self.parameters['memory_mb'],
            inventory.DISK_GB: self.parameters['disk_gb'],
        }
