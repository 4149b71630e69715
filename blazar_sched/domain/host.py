# SPDX-License-Identifier: Apache-2.0
"""A compute host registered as reservable."""

from collections.abc import Mapping
import dataclasses

from blazar_sched import ext
from blazar_sched.domain import inventory
from blazar_sched.domain import requirements
from blazar_sched.domain import window
from blazar_sched.domain.duration import FOREVER
from blazar_sched.domain.duration import RELOCATE
from blazar_sched.domain.inventory import DISK_GB
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.inventory import MEMORY_MB
from blazar_sched.domain.inventory import RESOURCE_CLASSES
from blazar_sched.domain.inventory import VCPU
from blazar_sched.domain.provider import Providers
from blazar_sched.domain.way import LIVE
from blazar_sched.domain.way import NOT
from blazar_sched.domain.window import Window

# How a host is held: 'shared' lets ordinary instances use the host by the
# timeline, 'dedicated' keeps them off the host altogether (Blazar's freepool).
SHARED = 'shared'
DEDICATED = 'dedicated'
HOLDS = (SHARED, DEDICATED)

# The hypervisor type of the nodes of Ironic. Each node is a host, and several
# nodes have one nova-compute.
IRONIC = 'ironic'

# Why a host is closed: for a maintenance, or because the host has not come
# yet, or is gone.
MAINTENANCE = 'maintenance'
AVAILABILITY = 'availability'

# The longest cleaning time, in minutes: longer than the range of all times.
MAX_CLEANING_TIME = ext.TIME_LIMIT // 60

# The prefixes of the properties that stand for a trait, for a trait of a
# device, and for a resource class beside RESOURCE_CLASSES.
TRAIT = 'trait:'
DEVICE_TRAIT = 'device_trait:'
RESOURCES = 'resources:'

# The properties that name a host.
HOST_NAMES = frozenset({'hypervisor_hostname', 'service_name'})


@dataclasses.dataclass(frozen=True, slots=True)
class ClosedWindow:
    """A window ``[start, end)`` in which nothing may be on a host.

    `kind` is MAINTENANCE or AVAILABILITY. A maintenance has its `id`, its
    `name` and the `reason` that is shown to owners of leases.
    """

    start: int
    end: int
    kind: str = AVAILABILITY
    id: str = ''
    name: str = ''
    reason: str = ''

    def overlaps(self, other: Window) -> bool:
        return self.start < other.end and other.start < self.end


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """A compute host that is registered as reservable.

    `uuid` is that of the compute node, of its resource provider and of its
    HostState; `id` is the number that the API shows. `unbounded` is the host's
    own policy for unbounded instances (see domain.duration), and
    `cleaning_time` is the number of minutes between a reservation and all
    other use of the host; None of either means the cloud's setting. A host
    gets no new allocation while it is not `reservable`, as reported by
    monitors, or while it is `disabled`, as set by its operator; nor an
    allocation of a project that is not among its `projects`, if there are any.
    A `spare` host gets the allocations of leases that have lost a host only.
    Nothing may be on the host before `available_from` and from
    `available_until` on, if these are set, nor in the `maintenances`, which a
    part writes. `movable` is how instances on the host are moved at best, as
    the metadata of its aggregates says: see domain.way. `capabilities` are
    free text. `inventory` includes the inventory of the child providers, which
    are in `providers`: see domain.provider.
    """

    uuid: str
    id: str
    hypervisor_hostname: str
    service_name: str = ''
    hypervisor_type: str = ''
    hypervisor_version: int = 0
    cpu_info: str = ''
    availability_zone: str = ''
    inventory: Mapping[str, Inventory] = dataclasses.field(
        default_factory=dict
    )
    hold: str = SHARED
    unbounded: str | None = None
    cleaning_time: int | None = None
    reservable: bool = True
    disabled: bool = False
    spare: bool = False
    projects: tuple[str, ...] = ()
    region: str = ''
    movable: str = LIVE
    traits: tuple[str, ...] = ()
    providers: tuple[Providers, ...] = ()
    capabilities: Mapping[str, str] = dataclasses.field(default_factory=dict)
    available_from: int | None = None
    available_until: int | None = None
    maintenances: tuple[ClosedWindow, ...] = ()
    created_at: int | None = None
    updated_at: int | None = None

    def capacity(self, resource_class: str, overcommit: bool = True) -> int:
        """Return the capacity of a resource class, 0 without inventory.

        :param overcommit: whether the allocation ratio counts
        """
        held = self.inventory.get(resource_class)
        if held is None:
            return 0
        return held.capacity if overcommit else held.without_overcommitment

    def allows(self, resource_class: str, amount: int) -> bool:
        """Tell whether one request may take an amount of a resource class.

        Whether the amount is free is another question.
        """
        held = self.inventory.get(resource_class)
        return held is not None and held.allows(amount)

    def amounts(self, reserved: bool = False) -> tuple[int, ...]:
        """Return the capacity by RESOURCE_CLASSES.

        Nova counts the reserved part of a host as used, Placement subtracts
        it from the total: a caller that subtracts Nova's figure needs the
        reserved part added back.

        :param reserved: whether the reserved part is added back
        """
        held = [self.inventory.get(c) for c in RESOURCE_CLASSES]
        return tuple(
            0
            if i is None
            else i.capacity_with_reserved if reserved else i.capacity
            for i in held
        )

    def cleaning_seconds(self, otherwise: int) -> int:
        """Return the seconds between reservations and other use of the host.

        :param otherwise: seconds if the host has no cleaning time of its own
        """
        if self.cleaning_time is None:
            return otherwise
        return 60 * self.cleaning_time

    @property
    def available(self) -> bool:
        """Whether new allocations may be made on the host."""
        return self.reservable and not self.disabled

    @property
    def takes_leases(self) -> bool:
        """Whether any lease may get the host, or a part of it."""
        return self.available and not self.spare

    @property
    def closed_windows(self) -> tuple[ClosedWindow, ...]:
        """The windows in which nothing may be on the host, in any order."""
        closed = self.maintenances
        if self.available_from:
            closed += (ClosedWindow(0, self.available_from),)
        if self.available_until is not None:
            closed += (ClosedWindow(self.available_until, window.FOREVER),)
        return closed

    def closed_in(self, time: Window) -> tuple[ClosedWindow, ...]:
        """Return the closed windows that overlap a window."""
        return tuple(
            each for each in self.closed_windows if each.overlaps(time)
        )

    def is_closed(self, now: int) -> bool:
        """Tell whether nothing may be on the host now."""
        return bool(self.closed_in(Window(now, now + 1)))

    @property
    def likeness(self) -> tuple[str, str, str]:
        """The values that two hosts must share to exchange instances."""
        return self.availability_zone, self.hypervisor_type, self.movable

    @property
    def relocates(self) -> bool:
        """Whether the host's own policy lets instances be relocated.

        This holds in both directions: from the host, and to the host.
        """
        return self.movable != NOT and (
            self.unbounded in (None, FOREVER, RELOCATE)
        )

    @property
    def takes_relocated(self) -> bool:
        """Whether instances may be relocated to the host."""
        return self.takes_leases and self.hold == SHARED and self.relocates

    def properties(self) -> dict[str, str]:
        """Return the properties that a requirement can name, as text.

        The property ``trait:X`` is 'true' for each trait of the host, and
        ``device_trait:X`` for each trait of a child provider. The property
        ``resources:X`` is the capacity of each resource class beside
        RESOURCE_CLASSES.
        """

        def total(resource_class: str) -> str:
            held = self.inventory.get(resource_class)
            return str(held.total if held else 0)

        return {
            **{
                name.removeprefix(requirements.SCOPE): value
                for name, value in self.capabilities.items()
            },
            **{f'{TRAIT}{name}': 'true' for name in self.traits},
            **{
                f'{DEVICE_TRAIT}{name}': 'true'
                for each in self.providers for name in each.traits
            },
            **{
                f'{RESOURCES}{name}': str(held.capacity)
                for name, held in inventory.others(self.inventory).items()
            },
            'region': self.region,
            'hypervisor_hostname': self.hypervisor_hostname,
            'service_name': self.service_name,
            'hypervisor_type': self.hypervisor_type,
            'hypervisor_version': str(self.hypervisor_version),
            'cpu_info': self.cpu_info,
            'availability_zone': self.availability_zone,
            'vcpus': total(VCPU),
            'memory_mb': total(MEMORY_MB),
            'local_gb': total(DISK_GB),
        }


# The properties of every host that a requirement can name.
_OWN_PROPERTIES = frozenset(
    Host(uuid='', id='', hypervisor_hostname='').properties()
)


def is_capability(name: str) -> bool:
    """Tell whether a property is a capability, not one of the host's own."""
    return name not in _OWN_PROPERTIES and not name.startswith(
        (TRAIT, DEVICE_TRAIT, RESOURCES)
    )
