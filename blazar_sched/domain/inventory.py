# SPDX-License-Identifier: Apache-2.0
"""The inventory of a host, exactly as in Placement."""

from collections.abc import Mapping
import dataclasses
from typing import Any
from typing import TypeVar

from blazar_sched import ext

T = TypeVar('T')

VCPU = 'VCPU'
MEMORY_MB = 'MEMORY_MB'
DISK_GB = 'DISK_GB'
PCPU = 'PCPU'
MIB_PER_GIB = 1024
# The prefix of the resource class of the slots of a reservation of instances.
SLOT_PREFIX = 'CUSTOM_RESERVATION_'

# The resource classes that Nova's HostState has figures for, in the index's
# order.
RESOURCE_CLASSES = (VCPU, MEMORY_MB, DISK_GB)
_KNOWN = frozenset(RESOURCE_CLASSES)
# The fields of an inventory that are always written.
_FIGURES = frozenset({'total', 'reserved', 'allocation_ratio'})

# The largest capacity of a host, and the largest amount of an instance, that
# the timeline index is given. The index can count the sum of two such amounts.
# Placement allows far larger ones: operators set an allocation ratio of 9999,
# and drivers report 2**31 - 1 for "no limit".
MAX_AMOUNT = ext.AMOUNT_LIMIT // 2


def countable(amount: float) -> int:
    """Return a capacity or an amount as the timeline index counts it.

    The result is from 0 to MAX_AMOUNT, rounded down; 0 for NaN.
    """
    return int(max(0, min(amount, MAX_AMOUNT)))


@dataclasses.dataclass(frozen=True, slots=True)
class Inventory:
    """The inventory that a host has of one resource class.

    One request of the class takes from `min_unit` to `max_unit` of the host's
    own resource provider, a multiple of `step_size`. `max_unit` is None if any
    amount within the capacity may be taken.
    """

    total: int
    reserved: int = 0
    allocation_ratio: float = 1.0
    min_unit: int = 1
    max_unit: int | None = None
    step_size: int = 1

    @property
    def capacity(self) -> int:
        """The capacity that Placement would hand out, as far as countable."""
        return countable(self._unreserved)

    @property
    def capacity_with_reserved(self) -> int:
        """The capacity with `reserved` added back, as far as countable."""
        return countable(self._unreserved + self.reserved)

    @property
    def without_overcommitment(self) -> int:
        """The capacity with an allocation ratio of 1, as far as countable."""
        return countable(self.total - self.reserved)

    @property
    def _unreserved(self) -> float:
        return (self.total - self.reserved) * self.allocation_ratio

    def allows(self, amount: int) -> bool:
        """Tell whether one request may take an amount, if it is free."""
        return (
            self.min_unit <= amount
            and (self.max_unit is None or amount <= self.max_unit)
            and amount % self.step_size == 0
        )


def encode(held: Inventory) -> dict[str, Any]:
    """Return an inventory as plain values, for JSON.

    Hosts are many, so that what most hosts do not have is left out.
    """
    return {
        each.name: getattr(held, each.name)
        for each in dataclasses.fields(held)
        if each.name in _FIGURES or getattr(held, each.name) != each.default
    }


def others(by_class: Mapping[str, T]) -> dict[str, T]:
    """Return the values, unless zero, of classes beside RESOURCE_CLASSES."""
    # Other classes are rare.
    if _KNOWN.issuperset(by_class):
        return {}
    return {
        name: held
        for name, held in by_class.items()
        if held and name not in _KNOWN
    }
