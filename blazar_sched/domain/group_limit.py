# SPDX-License-Identifier: Apache-2.0
"""A group limit: how much of some hosts leases may have at the same time."""

from collections.abc import Mapping
import dataclasses
import fractions
import math

from blazar_sched.domain import requirements
from blazar_sched.domain.host import Host
from blazar_sched.domain.inventory import MEMORY_MB
from blazar_sched.domain.inventory import MIB_PER_GIB

# The most that is counted of one host, so that no sum of hosts overflows.
MAX_AMOUNT = 1 << 20


@dataclasses.dataclass(frozen=True, slots=True)
class GroupLimit:
    """A limit on what leases reserve on a group of hosts at the same time.

    What counts is the amount of `resource_class`. Without a resource class,
    each host of a reservation counts: with the number that is the value of
    `counted_property`, or with 1. Memory is counted in GiB.

    :param resource_properties: the requirement that the hosts of the group
        meet, '' for all hosts
    :param max: the most that may be reserved, None if `share` says so
    :param share: the part of the group that may be reserved
    """

    name: str
    resource_properties: str = ''
    resource_class: str | None = None
    counted_property: str | None = None
    max: int | None = None
    share: float = 1.0

    def members(self, hosts: Mapping[str, Host]) -> dict[str, int]:
        """Return what each host of the group counts, by UUID.

        :param hosts: the hosts to consider, by UUID
        """
        requirement = requirements.parse(
            self.resource_properties, 'resource_properties'
        )
        return {
            uuid: min(self._amount(host), MAX_AMOUNT)
            for uuid, host in hosts.items()
            if requirement.matches(host.properties())
        }

    def most(self, total: int) -> int:
        """Return the most that may be reserved.

        :param total: what all hosts of the group count
        """
        if self.max is None:
            # A binary fraction would make 0.29 of 100 hosts 28 hosts.
            return int(total * fractions.Fraction(str(self.share)))
        return self.max // self._unit

    def amount(
        self, host: int, slot: Mapping[str, int] | None, count: int
    ) -> int:
        """Return what a number of instances on a host counts.

        :param host: what the host counts
        :param slot: the amounts of one instance, None for the whole host
        """
        if not count:
            return 0
        if slot is None or self.resource_class is None:
            return host
        amount = count * slot.get(self.resource_class, 0)
        return min(-(-amount // self._unit), MAX_AMOUNT)

    @property
    def _unit(self) -> int:
        return MIB_PER_GIB if self.resource_class == MEMORY_MB else 1

    def _amount(self, host: Host) -> int:
        if self.resource_class is not None:
            return host.capacity(self.resource_class) // self._unit
        if self.counted_property is None:
            return 1
        try:
            value = float(host.properties().get(self.counted_property, 0))
        except ValueError:
            return 0
        return math.ceil(value) if 0 < value < math.inf else 0
