# SPDX-License-Identifier: Apache-2.0
"""The child resource providers of a host, such as those of GPUs.

Nova makes a child provider for each PCI device, each physical GPU of virtual
GPUs, and whatever a provider configuration file adds. Sharing providers are
not children of the host, and are not counted.
"""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
from typing import Any

import os_resource_classes as orc

from blazar_sched.domain import fields
from blazar_sched.domain import inventory
from blazar_sched.domain.inventory import Inventory

# The classes of child providers that are not counted: Nova takes them for the
# ports and for the encrypted memory of a server, which no flavor shows, and
# HostState counts the others.
_UNCOUNTED = frozenset({
    *inventory.RESOURCE_CLASSES, orc.MEM_ENCRYPTION_CONTEXT,
})
_UNCOUNTED_PREFIXES = ('NET_', inventory.SLOT_PREFIX)


@dataclasses.dataclass(frozen=True, slots=True)
class Units:
    """The inventory of a resource class of one child provider.

    One request of the class takes from `min_unit` to `max_unit`, a multiple
    of `step_size`.
    """

    capacity: int
    min_unit: int
    max_unit: int
    step_size: int

    def allows(self, amount: int) -> bool:
        """Tell whether one request may take an amount, if it is free."""
        return (
            self.min_unit <= amount <= min(self.max_unit, self.capacity)
            and amount % self.step_size == 0
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Providers:
    """The child providers of a host that are alike.

    :ivar count: the number of these child providers
    :ivar traits: the traits of each child provider, sorted
    :ivar units: the inventory of each child provider, by resource class
    """

    count: int
    traits: tuple[str, ...]
    units: Mapping[str, Units]


def counted(units: Mapping[str, Units]) -> dict[str, Units]:
    """Return the inventory of a child provider without uncounted classes."""
    return {
        name: held for name, held in units.items()
        if name not in _UNCOUNTED
        and not name.startswith(_UNCOUNTED_PREFIXES)
    }


def grouped(
    providers: Iterable[tuple[tuple[str, ...], Mapping[str, Units]]]
) -> tuple[Providers, ...]:
    """Return child providers, grouped by what they have, in a fixed order.

    :param providers: the traits and the inventory of each provider
    """
    counts = Counter(
        # The names differ, so units are never compared.
        (traits, tuple(sorted(units.items())))
        for traits, units in providers if units
    )
    return tuple(
        Providers(count, traits, dict(units))
        for (traits, units), count in sorted(counts.items(), key=repr)
    )


def with_children(
    own: Mapping[str, Inventory], children: Iterable[Providers]
) -> dict[str, Inventory]:
    """Return the inventory of a host, with that of its child providers.

    The amounts of each class are added up. Where no provider of a class may
    be divided among unlike requests, the sum is exact: see
    domain.request_group. What one request may take is that of the host's own
    provider.
    """
    sums: Counter[str] = Counter()
    for each in children:
        for name, units in each.units.items():
            sums[name] += each.count * units.capacity
    none = Inventory(0)
    return dict(own) | {
        name: dataclasses.replace(
            own.get(name, none),
            total=inventory.countable(amount + own.get(name, none).capacity),
            reserved=0, allocation_ratio=1.0,
        )
        for name, amount in sums.items()
    }


def decode(data: Iterable[Mapping[str, Any]]) -> tuple[Providers, ...]:
    """Return the child providers that `dataclasses.asdict` describes."""
    return tuple(
        Providers(
            each['count'], tuple(each['traits']),
            {
                name: fields.build(Units, held)
                for name, held in each['units'].items()
            },
        )
        for each in data
    )
