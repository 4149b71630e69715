# SPDX-License-Identifier: Apache-2.0
"""Inventory of a host, exactly as in Placement."""

from collections.abc import Mapping
import dataclasses
from typing import TypeVar

T = TypeVar('T')

VCPU = 'VCPU'
MEMORY_MB = 'MEMORY_MB'
DISK_GB = 'DISK_GB'
PCPU = 'PCPU'
# Of the class that a slot of a reservation of instances is one of.
SLOT_PREFIX = 'CUSTOM_RESERVATION_'

# The classes that Nova's HostState has figures for, in the index's order.
RESOURCE_CLASSES = (VCPU, MEMORY_MB, DISK_GB)
_KNOWN = frozenset(RESOURCE_CLASSES)


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


def others(by_class: Mapping[str, T]) -> dict[str, T]:
    """Return what is there of the classes beside RESOURCE_CLASSES."""
    # Hardly ever is there any.
    if _KNOWN.issuperset(by_class):
        return {}
    return {
        name: held
        for name, held in by_class.items()
        if held and name not in _KNOWN
    }
