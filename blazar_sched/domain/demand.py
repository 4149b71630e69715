# SPDX-License-Identifier: Apache-2.0
"""Demands: what reservations ask for, a class for each kind of resource."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any
from typing import Self
from typing import TypeVar

from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain import request_group
from blazar_sched.domain import requirements
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.host import Host
from blazar_sched.domain.request_group import NO_GROUPS
from blazar_sched.domain.request_group import RequestGroups
from blazar_sched.domain.requirements import ANY
from blazar_sched.domain.requirements import Requirement

PHYSICAL_HOST = 'physical:host'
VIRTUAL_INSTANCE = 'virtual:instance'
FLAVOR_INSTANCE = 'flavor:instance'
INSTANCE_LIFETIME = 'instance:lifetime'
# Resource types that take slots of one size on hosts.
INSTANCES = (VIRTUAL_INSTANCE, FLAVOR_INSTANCE)
ON_HOSTS = (PHYSICAL_HOST, *INSTANCES)
# Resource types that hosts are chosen for: a lifetime is on a host until it
# begins.
PLACED = (*ON_HOSTS, INSTANCE_LIFETIME)

# The parameter of reservations on hosts that says what is done before the end;
# its value DEFAULT_BEFORE_END leaves that choice to the operator.
BEFORE_END = 'before_end'
DEFAULT_BEFORE_END = 'default'
# The parameter that says what is done once the lease has started.
ON_START = 'on_start'

D = TypeVar('D')

# The parameters of a flavor:instance that are fields of its flavor.
_FLAVOR = (
    'name', 'vcpus', 'memory_mb', 'disk_gb', 'ephemeral_gb', 'swap_mb',
    'extra_specs',
)  # fmt: skip


class Demand:
    """What a reservation asks for; a demand that no host is chosen for.

    :ivar whole: whether hosts are taken whole
    :ivar slot: the amounts that one instance takes, by resource class
    :ivar affinity: True for one host for all instances, False for one host
        for each instance, None for any hosts
    :ivar before_end: the action that is requested before the end
    :ivar on_start: the action that is requested once the lease has started
    """

    __slots__ = ()

    whole = False
    amount: int
    slot: Mapping[str, int] = {}
    affinity: bool | None = None
    before_end: str = ''
    on_start: str = ''

    @property
    def resource_type(self) -> str:
        raise NotImplementedError

    def encode(self) -> dict[str, Any]:
        """Return the parameters: the fields of the API, without the type."""
        raise NotImplementedError

    @property
    def least(self) -> int:
        """How many hosts, instances or other resources are promised."""
        return self.amount

    @property
    def most(self) -> int:
        """How many hosts, instances or other resources there can be."""
        return self.least

    def of_kind(self, kind: type[D]) -> D:
        """Return the demand, which is of a kind that the caller knows.

        :raises TypeError: if the demand is of another kind
        """
        if not isinstance(self, kind):
            raise TypeError(f'{self} is not of {kind}')
        return self

    @property
    def asked(self) -> Sequence[str]:
        """The requirements for hosts as they were asked for, JSON texts.

        A default requirement of the operator replaces an empty last text.
        """
        return ()

    @property
    def needs(self) -> Self:
        """The demand, except for what affects no room and no start."""
        return self

    @property
    def kind(self) -> Self:
        """The needs, except for their size if a lease can give up a part."""
        return self

    def is_on_hosts(self, active: bool) -> bool:
        """Tell whether the reservation has allocations on hosts.

        An instance that has begun its lifetime counts for itself.

        :param active: whether the lease of the reservation has started
        """
        return False

    def requirement(self) -> Requirement:
        """Return the requirement that a host must meet.

        :raises InvalidInput: if the requirement is wrong, or if no resource
            type of this demand is on hosts
        """
        raise exception.InvalidInput(
            'no host is chosen for the resource type', field='resource_type'
        )

    def default_of(self, default: Requirement) -> Requirement:
        """Return the default requirement if it applies, else ANY."""
        if default == ANY or not self.asked:
            return ANY
        asked = requirements.parse(self.asked[-1], 'resource_properties')
        return default if asked == ANY else ANY

    def request_groups(self) -> RequestGroups:
        """Return the request groups that a host must suit."""
        return NO_GROUPS

    def unsuited(self, hosts: Collection[Host]) -> list[Host]:
        """Return the hosts that the reservation has, and could not get again.

        These are the hosts that do not meet the requirement any more, or do
        not suit the request groups.

        :param hosts: the hosts of the allocations of the reservation
        """
        if not hosts:
            return []
        wanted, groups = self.requirement(), self.request_groups()
        return [host for host in hosts if not suits(host, wanted, groups)]

    def slots_in(self, amounts: Mapping[str, int]) -> int:
        """Return how many slots the amounts are enough for; 1 for a host."""
        return 1

    def count(self, allocations: Collection[Allocation]) -> int:
        """Return how many hosts, slots or other resources a reservation has.

        :param allocations: the allocations on hosts
        """
        return sum(self.slots_in(a.amounts) for a in allocations)

    def shrinks(self, old: 'Demand') -> bool:
        """Tell whether a change of `old` asks for less, and nothing else.

        Only such a change of an active reservation gives up allocations.
        """
        return self.most < old.most and self.kind == old.kind

    def asks_no_more(
        self, old: 'Demand', left: Collection[Allocation] | None
    ) -> bool:
        """Tell whether a change of `old` needs no additional room.

        :param left: the remaining allocations of a reservation that has given
            up allocations, else None
        """
        if left is not None:
            # The least number of hosts may rise while the most falls.
            return not self.whole or self.least <= max(old.least, len(left))
        return self.least <= old.least and (self.most, self.kind) == (
            old.most, old.kind
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Hosts(Demand):
    """Whole hosts: as many as are free, from `least` to `most`.

    Both properties are requirements, as JSON texts.
    """

    resource_type = PHYSICAL_HOST
    whole = True

    # Without `field`, the properties of the base class would be the defaults.
    least: int = dataclasses.field()
    most: int = dataclasses.field()
    hypervisor_properties: str = ''
    resource_properties: str = ''
    before_end: str = DEFAULT_BEFORE_END
    on_start: str = ''

    @property
    def asked(self) -> Sequence[str]:
        return self.hypervisor_properties, self.resource_properties

    @property
    def needs(self) -> Self:
        return dataclasses.replace(self, before_end='', on_start='')

    @property
    def kind(self) -> Self:
        return dataclasses.replace(self.needs, least=0, most=0)

    def is_on_hosts(self, active: bool) -> bool:
        return True

    def requirement(self) -> Requirement:
        return requirements.all_of(
            requirements.parse(
                self.hypervisor_properties, 'hypervisor_properties'
            ),
            requirements.parse(
                self.resource_properties, 'resource_properties'
            ),
        )

    def encode(self) -> dict[str, Any]:
        return {
            'min': self.least,
            'max': self.most,
            'hypervisor_properties': self.hypervisor_properties,
            'resource_properties': self.resource_properties,
            **_encoded_actions(self),
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Instances(Demand):
    """Room for instances of one size.

    :ivar resource_properties: the requirement for hosts, as JSON text
    :ivar groups: the request groups of a flavor with other classes than
        RESOURCE_CLASSES, else None
    """

    slot: Mapping[str, int] = dataclasses.field()
    amount: int = 1
    affinity: bool | None = None
    resource_properties: str = ''
    groups: RequestGroups | None = None

    def requirement(self) -> Requirement:
        return requirements.all_of(
            requirements.parse(self.resource_properties, 'resource_properties')
        )

    def request_groups(self) -> RequestGroups:
        if self.groups is None:
            return request_group.of_amounts(self.slot)
        return self.groups

    def slots_in(self, amounts: Mapping[str, int]) -> int:
        return min(
            amounts.get(c, 0) // amount
            for c, amount in self.slot.items()
            if amount
        )

    def times(self, count: int) -> dict[str, int]:
        """Return the amounts of some slots, by resource class."""
        return {c: count * amount for c, amount in self.slot.items()}


@dataclasses.dataclass(frozen=True, slots=True)
class Slots(Instances):
    """Slots, for the servers of a flavor that the reservation has.

    :ivar flavor: Nova's flavor as it was when it was reserved; None, or
        without an id, for slots of VCPU, MEMORY_MB and DISK_GB that the
        request itself names
    :ivar asked_properties: the requirement of the request, as JSON text;
        `resource_properties` is made of it and, without `groups`, of the
        traits of the flavor
    """

    flavor: Flavor | None = None
    asked_properties: str = ''
    before_end: str = DEFAULT_BEFORE_END
    on_start: str = ''

    @property
    def resource_type(self) -> str:
        return FLAVOR_INSTANCE if self.size.id else VIRTUAL_INSTANCE

    @property
    def asked(self) -> Sequence[str]:
        return (self.asked_properties,)

    @property
    def needs(self) -> Self:
        return dataclasses.replace(self, before_end='', on_start='')

    @property
    def kind(self) -> Self:
        return dataclasses.replace(self.needs, amount=0)

    @property
    def size(self) -> Flavor:
        """The flavor, or a nameless one with the amounts of the slots."""
        return self.flavor or Flavor(
            '', '', self.slot[inventory.VCPU], self.slot[inventory.MEMORY_MB],
            self.slot[inventory.DISK_GB],
        )

    def is_on_hosts(self, active: bool) -> bool:
        return True

    def encode(self) -> dict[str, Any]:
        common = {
            'amount': self.amount,
            'affinity': self.affinity,
            'resource_properties': self.resource_properties,
            **_encoded_actions(self),
        }
        size = self.size
        if not size.id:
            further = {
                'ephemeral_gb': size.ephemeral_gb,
                'extra_specs': dict(size.extra_specs),
            }
            return {
                'vcpus': size.vcpus,
                'memory_mb': size.memory_mb,
                'disk_gb': size.disk_gb,
                **{name: value for name, value in further.items() if value},
                **common,
            }
        return {
            'flavor_id': size.id,
            **common,
            'asked_properties': self.asked_properties,
            **{name: getattr(size, name) for name in _FLAVOR},
            'is_public': size.projects is None,
            'resources': dict(self.slot),
            **_encoded_groups(self),
        }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime(Instances):
    """The lifetime of a server, which needs room where it starts later.

    :ivar on_end: what becomes of the server, one of LIFETIME_ON_END
    """

    resource_type = INSTANCE_LIFETIME

    instance_id: str
    on_end: str

    @property
    def asked(self) -> Sequence[str]:
        # A server requests hosts by its flavor alone.
        return ('',)

    def is_on_hosts(self, active: bool) -> bool:
        return not active

    def encode(self) -> dict[str, Any]:
        required = self.resource_properties
        return {
            'instance_id': self.instance_id,
            'resources': dict(self.slot),
            'amount': self.amount,
            'affinity': self.affinity,
            **({'resource_properties': required} if required else {}),
            **_encoded_groups(self),
            'on_end': self.on_end,
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Other(Demand):
    """A demand of a resource type that a part or another package has."""

    resource_type: str = dataclasses.field()
    parameters: Mapping[str, Any] = dataclasses.field()

    @property
    def least(self) -> int:
        return int(self.parameters.get('amount', 0))

    def count(self, allocations: Collection[Allocation]) -> int:
        return self.least

    def encode(self) -> dict[str, Any]:
        return dict(self.parameters)


def decode(resource_type: str, parameters: Mapping[str, Any]) -> Demand:
    """Return the demand that `encode` has written as parameters."""
    get = parameters.get
    if resource_type == PHYSICAL_HOST:
        return Hosts(
            parameters['min'], parameters['max'],
            get('hypervisor_properties', ''), get('resource_properties', ''),
            *_decoded_actions(parameters),
        )
    if resource_type in INSTANCES:
        return _decode_slots(resource_type, parameters)
    if resource_type == INSTANCE_LIFETIME:
        return Lifetime(
            parameters['resources'], parameters['amount'], get('affinity'),
            get('resource_properties', ''), _decoded_groups(parameters),
            instance_id=parameters['instance_id'], on_end=parameters['on_end'],
        )
    return Other(resource_type, parameters)


def _decode_slots(resource_type: str, parameters: Mapping[str, Any]) -> Slots:
    required = parameters.get('resource_properties', '')
    flavor = None
    asked = required
    if resource_type == FLAVOR_INSTANCE:
        flavor = Flavor(
            parameters['flavor_id'], parameters['name'], parameters['vcpus'],
            parameters['memory_mb'], parameters['disk_gb'],
            parameters['ephemeral_gb'], parameters['swap_mb'],
            parameters['extra_specs'], None if parameters['is_public'] else (),
        )
        asked = parameters['asked_properties']
        slot = parameters['resources']
    else:
        ephemeral_gb = parameters.get('ephemeral_gb', 0)
        slot = {
            inventory.VCPU: parameters['vcpus'],
            inventory.MEMORY_MB: parameters['memory_mb'],
            inventory.DISK_GB: parameters['disk_gb'] + ephemeral_gb,
        }
        extra_specs = parameters.get('extra_specs', {})
        if ephemeral_gb or extra_specs:
            flavor = Flavor(
                '', '', parameters['vcpus'], parameters['memory_mb'],
                parameters['disk_gb'], ephemeral_gb, extra_specs=extra_specs,
            )
    return Slots(
        slot, parameters['amount'], parameters.get('affinity'), required,
        _decoded_groups(parameters), flavor, asked,
        *_decoded_actions(parameters),
    )


def suits(host: Host, wanted: Requirement, groups: RequestGroups) -> bool:
    """Tell whether a host meets a requirement and suits request groups."""
    return wanted.matches(host.properties()) and groups.suits(host)


def check_size(demands: Iterable[Demand]) -> None:
    """Refuse a lease whose requirements together are too large.

    :raises InvalidInput: naming `reservations`
    """
    requirements.check_together(
        (text for each in demands for text in each.asked), 'reservations'
    )


def _encoded_actions(demand: Demand) -> dict[str, str]:
    on_start = {ON_START: demand.on_start} if demand.on_start else {}
    return {BEFORE_END: demand.before_end, **on_start}


def _decoded_actions(parameters: Mapping[str, Any]) -> tuple[str, str]:
    return (
        parameters.get(BEFORE_END, DEFAULT_BEFORE_END),
        parameters.get(ON_START, ''),
    )


def _encoded_groups(demand: Instances) -> dict[str, Any]:
    if demand.groups is None:
        return {}
    return {'groups': request_group.encode(demand.groups)}


def _decoded_groups(parameters: Mapping[str, Any]) -> RequestGroups | None:
    if 'groups' not in parameters:
        return None
    return request_group.decode(parameters['groups'])
