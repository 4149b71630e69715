# SPDX-License-Identifier: Apache-2.0
"""Inventory of a host, exactly as in Placement."""

from collections.abc import Mapping
import dataclasses
from typing import TypeVar

from blazar_sched import ext

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

# The largest capacity of a host, and the largest amount of an instance, that
# the timeline index is given. The index can count two of them together.
# Placement knows far more: operators set an allocation ratio of 9999, and
# drivers report 2**31 - 1 for "no limit".
MOST = ext.AMOUNT_LIMIT // 2


def countable(amount: float) -> int:
    """Return a capacity or an amount as the timeline index counts it.

    That is from 0 to MOST, rounded down; 0 for what is not a number.
    """
    return int(max(0, min(amount, MOST)))


@dataclasses.dataclass(frozen=True, slots=True)
class Inventory:
    """How much of one resource class a host has."""

    total: int
    reserved: int = 0
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> int:
        """What Placement would hand out, as far as it is countable."""
        return countable(self._unreserved)

    @property
    def capacity_with_reserved(self) -> int:
        """The capacity with `reserved` added back, as far as countable."""
        return countable(self._unreserved + self.reserved)

    @property
    def without_overcommitment(self) -> int:
        """The capacity by an allocation ratio of 1, as far as countable."""
        return countable(self.total - self.reserved)

    @property
    def _unreserved(self) -> float:
        return (self.total - self.reserved) * self.allocation_ratio


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
