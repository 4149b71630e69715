# SPDX-License-Identifier: Apache-2.0
"""Inventory of a host, exactly as in Placement."""

import dataclasses

VCPU = 'VCPU'
MEMORY_MB = 'MEMORY_MB'
DISK_GB = 'DISK_GB'

# The classes that Nova's HostState has figures for, in the index's order.
RESOURCE_CLASSES = (VCPU, MEMORY_MB, DISK_GB)


@dataclasses.dataclass(frozen=True, slots=True)
class Inventory:
    """How much of one resource class a host has."""

    total: int
    reserved: int = 0
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> int:
        """The amount that Placement would hand out."""
        return int((self.total - self.reserved) * self.allocation_ratio)
