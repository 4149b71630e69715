# SPDX-License-Identifier: Apache-2.0
"""Rules of relocation: which instances are moved, how, and how far ahead."""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses

import os_resource_classes as orc

from blazar_sched.domain import flavor
from blazar_sched.domain import inventory
from blazar_sched.domain.flavor import MOVABLE
from blazar_sched.domain.instance import MAX_STAYS
from blazar_sched.domain.way import COLD
from blazar_sched.domain.way import LIVE
from blazar_sched.domain.way import NOT
from blazar_sched.domain.way import read_way
from blazar_sched.domain.way import weakest

# The kinds of what an instance may have, beside the names of resource classes.
DISK, DEVICE, MEMORY = 'disk', 'device', 'memory'
CPU, ENCRYPTION = 'cpu', 'encryption'

_TRUE = ('true', 'yes', '1')
# The extra specs with which Nova pins or encrypts an instance: the kind, and
# the values.
_PINNED = {
    'hw:cpu_policy': (CPU, ('dedicated', 'mixed')),
    'hw:cpu_realtime': (CPU, _TRUE),
    'hw:mem_encryption': (ENCRYPTION, _TRUE),
}
# The image properties that do the same.
IMAGE_PROPERTIES = {
    'hw_cpu_policy': 'hw:cpu_policy',
    'hw_mem_encryption': 'hw:mem_encryption',
}


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """The operator's rules of relocation.

    :param lead: seconds between the start of a migration and the end of the
        stay on the host that the instance leaves, at least
    :param cold_notice: seconds before that from which on the owner of an
        instance may choose the time of a cold migration
    :param most_moves: the most moves of one relocation path
    :param shortest_stay: the least seconds of the first stay
    :param notice: seconds from now on for which no headroom is kept
    :param headroom: the share of the capacity of all hosts that instances
        outside of reservations leave free
    :param host_headroom: the share of the hosts that fixed instances leave to
        leases
    :param most_memory_mb: the memory above which an instance is of the kind
        MEMORY, 0 for none
    :param ways: how an instance is moved by the kind of what it has; NOT for
        a kind without a way
    """

    lead: int = 600
    cold_notice: int = 3600
    most_moves: int = MAX_STAYS - 1
    shortest_stay: int = 600
    notice: int = 86400
    headroom: float = 0.06
    host_headroom: float = 0.15
    most_memory_mb: int = 0
    ways: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def way_of(self, kind: str) -> str:
        """Return how an instance is moved because of a kind."""
        return self.ways.get(kind, NOT)

    def lead_of(self, movable: str) -> int:
        """Return by how many seconds two stays of an instance overlap.

        :param movable: LIVE or COLD
        """
        return self.lead + (self.cold_notice if movable == COLD else 0)

    def least_stay(self, movable: str) -> int:
        """Return the least seconds of the first stay, with the first move.

        :param movable: LIVE or COLD
        """
        return max(self.lead_of(movable), self.shortest_stay)


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


def way(rules: Rules, features: Features) -> str:
    """Return how an instance is moved: LIVE, COLD or NOT.

    What the flavor declares decides; otherwise the weakest way of all that the
    instance has, and of the scheduler hint. The hint, which is any user's, can
    only forbid what the operator allows. The memory counts in any case.
    """
    declared = read_way(features.extra_specs.get(MOVABLE))
    hinted = read_way(features.hint)
    ways = [declared] if declared is not None else [
        LIVE if hinted is None else hinted,
        *map(rules.way_of, _kinds(features)),
    ]
    if rules.most_memory_mb and features.memory_mb > rules.most_memory_mb:
        ways.append(rules.way_of(MEMORY))
    return weakest(ways)


def obstacle(rules: Rules, features: Features) -> str | None:
    """Return why an instance is not moved, None if it is.

    :returns: a kind, or where it is said
    """
    if way(rules, features) != NOT:
        return None
    if read_way(features.extra_specs.get(MOVABLE)) == NOT:
        return MOVABLE
    for kind in _kinds(features):
        if rules.way_of(kind) == NOT:
            return kind
    return 'movable' if read_way(features.hint) == NOT else MEMORY


def _kinds(features: Features) -> Iterator[str]:
    """Yield the kinds of what an instance has that Nova moves with trouble."""
    if features.local_disk:
        yield DISK
    if features.devices:
        yield DEVICE
    nova = {
        IMAGE_PROPERTIES[name]: value
        for name, value in features.image_properties.items()
    } | dict(features.extra_specs)
    for name, (kind, values) in _PINNED.items():
        if str(nova.get(name)).lower() in values:
            yield kind
    # Other classes are those of dedicated CPUs and of devices.
    asked = flavor.resources(0, 0, 0, features.extra_specs)
    for name in inventory.others(asked):
        yield ENCRYPTION if name == orc.MEM_ENCRYPTION_CONTEXT else name
