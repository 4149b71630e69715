# SPDX-License-Identifier: Apache-2.0
"""Rules of relocation: which instances are moved, and how far ahead."""

from collections.abc import Mapping
import dataclasses

from oslo_utils import strutils

from blazar_sched.domain import flavor
from blazar_sched.domain import inventory
from blazar_sched.domain.flavor import MOVABLE
from blazar_sched.domain.instance import MAX_STAYS

_TRUE = ('true', 'yes', '1')
# The extra specs with which Nova pins or encrypts an instance, and the values.
_IMMOVABLE = {
    'hw:cpu_policy': ('dedicated', 'mixed'),
    'hw:cpu_realtime': _TRUE,
    'hw:mem_encryption': _TRUE,
}
# The image properties that do the same.
IMAGE_PROPERTIES = {
    'hw_cpu_policy': 'hw:cpu_policy',
    'hw_mem_encryption': 'hw:mem_encryption',
}


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """The operator's rules of relocation.

    :param lead: seconds between the start of a live migration and the end of
        the stay on the host that the instance leaves
    :param most_moves: the most moves of one relocation path
    :param shortest_stay: the least seconds of the first stay, and the least
        seconds by which a move has to prolong the time on hosts with room
    :param notice: seconds from now on for which no headroom is kept
    :param headroom: the share of all hosts that instances leave free, which
        can be relocated
    :param large_headroom: the same for large instances, and for bounded ones
    :param large_vcpus: the number of VCPUs from which an instance is large
    :param most_memory_mb: the most memory of an instance that is moved, 0 for
        any
    :param local_disks: whether instances with disks on their hosts are moved
    """

    lead: int = 600
    most_moves: int = MAX_STAYS - 1
    shortest_stay: int = 600
    notice: int = 86400
    headroom: float = 0.05
    large_headroom: float = 0.15
    large_vcpus: int = 32
    most_memory_mb: int = 0
    local_disks: bool = False

    @property
    def least_stay(self) -> int:
        """The least seconds of the first stay, with time for the first move.
        """
        return max(self.lead, self.shortest_stay)

    def headroom_for(
        self, amounts: Mapping[str, int], bounded: bool
    ) -> float:
        """Return the share of all hosts that an instance leaves free."""
        is_large = amounts.get(inventory.VCPU, 0) >= self.large_vcpus
        return self.large_headroom if is_large or bounded else self.headroom


@dataclasses.dataclass(frozen=True, slots=True)
class Features:
    """The features of an instance that decide whether the instance is moved.

    :param extra_specs: of the flavor
    :param image_properties: those of IMAGE_PROPERTIES that the image has
    :param hint: the scheduler hint `movable`, None without the hint
    :param memory_mb: of the flavor
    :param local_disk: whether a disk of the instance is on its host
    :param devices: whether the instance has PCI devices
    """

    extra_specs: Mapping[str, str]
    image_properties: Mapping[str, str]
    hint: str | None
    memory_mb: int
    local_disk: bool
    devices: bool


def is_movable(rules: Rules, features: Features) -> bool:
    """Tell whether an instance may be live-migrated.

    What the flavor declares decides first. The scheduler hint, which is any
    user's, can only forbid what the features of the instance allow.
    """
    if rules.most_memory_mb and features.memory_mb > rules.most_memory_mb:
        return False
    declared = features.extra_specs.get(MOVABLE)
    if declared is not None:
        said: bool = strutils.bool_from_string(declared)
        return said
    if not strutils.bool_from_string(features.hint, default=True):
        return False
    if features.devices or features.local_disk and not rules.local_disks:
        return False
    nova = {
        IMAGE_PROPERTIES[name]: value
        for name, value in features.image_properties.items()
    } | dict(features.extra_specs)
    # Other classes are those of dedicated CPUs and of devices.
    asked = flavor.resources(0, 0, 0, features.extra_specs)
    return not inventory.others(asked) and not any(
        str(nova.get(name)).lower() in values
        for name, values in _IMMOVABLE.items()
    )
