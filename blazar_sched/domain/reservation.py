# SPDX-License-Identifier: Apache-2.0
"""A reservation: one request for resources in a lease."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import MutableMapping
import dataclasses
from typing import Any
import uuid

from blazar_sched.domain import exception
from blazar_sched.domain import flavor
from blazar_sched.domain.demand import BEFORE_END
from blazar_sched.domain.demand import DEFAULT_BEFORE_END
from blazar_sched.domain.demand import Demand
from blazar_sched.domain.demand import FLAVOR_INSTANCE
from blazar_sched.domain.demand import INSTANCE_LIFETIME
from blazar_sched.domain.demand import INSTANCES
from blazar_sched.domain.demand import ON_HOSTS
from blazar_sched.domain.demand import ON_START
from blazar_sched.domain.demand import PHYSICAL_HOST
from blazar_sched.domain.demand import VIRTUAL_INSTANCE

# What becomes of a reservation's servers when the reservation ends: they are
# deleted, shelved, or stay as ordinary servers.
DELETE = 'delete'
SHELVE = 'shelve'
KEEP = 'keep'
ON_END = (DELETE, SHELVE, KEEP)
# What becomes of a server at the end of its own lifetime: the server is
# deleted, shelved, or deleted once there is an image of it.
SNAPSHOT = 'snapshot'
LIFETIME_ON_END = (DELETE, SHELVE, SNAPSHOT)

# The keys in `made` for the reasons why the actions at the start, and before
# the coming end, were given up.
FAILED = {ON_START: 'on_start_failed', BEFORE_END: 'before_end_failed'}
# The key in `made` for the uuids of the hosts that the reservation can leave:
# see placing.leavable.
LEAVABLE = 'leavable'
# The key in `made` for the hosts that preemptible servers have still to leave:
# since when, in epoch seconds, by uuid.
WAITED_FOR = 'waited_for'
# The actions before the end that Blazar has.
BLAZARS_BEFORE_END = ('', DEFAULT_BEFORE_END, SNAPSHOT)

# The most projects that a lease is shared with, by one or several
# reservations, and the greatest length of a project's id.
MAX_PROJECTS = 50
MAX_PROJECT_ID = 64
# The name in place of which a part fills in the resource type and the size.
PRODUCT = 'product'


@dataclasses.dataclass(frozen=True, slots=True)
class Reservation:
    """One request for resources in a lease.

    The projects in `projects` may use the reservation beside its own project.
    `on_end` is one of ON_END. A server needs no hint to use a reservation that
    is `magnetic`. `labels` are as in domain.label. `product` is the name of a
    product, '' for none. `made` holds the ids of what the start of the
    reservation has created in other services, and the actions that were done:
    [the action, the lease's `ending`] under BEFORE_END, and [the action, the
    start of the lease] under ON_START.
    """

    id: str
    lease_id: str
    status: str
    demand: Demand
    missing_resources: bool = False
    resources_changed: bool = False
    projects: tuple[str, ...] = ()
    on_end: str = DELETE
    magnetic: bool = False
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    product: str = ''
    made: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    created_at: int | None = None
    updated_at: int | None = None

    @property
    def resource_type(self) -> str:
        return self.demand.resource_type

    def is_within(self, granted: 'Reservation') -> bool:
        """Tell whether the reservation is no more than one that was granted.

        The kind is what is reserved beside the amount: the resource type, the
        requirement for hosts, the size or the flavor. Sharing may be given up,
        and not be added.
        """
        return (
            (self.demand.kind, self.product)
            == (granted.demand.kind, granted.product)
            and self.demand.most <= granted.demand.most
            and set(self.projects) <= set(granted.projects)
        )

    def encode(self) -> dict[str, Any]:
        """Return the fields by name, with `parameters` for the demand.

        Nothing but the demand is copied.
        """
        fields = {name: getattr(self, name) for name in self.__slots__}
        fields['parameters'] = fields.pop('demand').encode()
        return {**fields, 'resource_type': self.resource_type}


def as_blazar(reservation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a reservation that Blazar has, as Blazar has them.

    Version 1.0 of the API and the notifications show these fields. Times are
    in epoch seconds.

    :param reservation: what `Reservation.encode` returns
    """
    type_ = reservation['resource_type']
    parameters, made = reservation['parameters'], reservation['made']
    fields = {name: reservation[name] for name in _COMMON}
    # Blazar has a further row for each resource type; here a reservation has
    # only its own row. The resource of a lifetime is the server, which existed
    # before the reservation.
    fields['resource_id'] = parameters.get('instance_id', reservation['id'])
    fields |= {name: parameters[name] for name in _OWN.get(type_, parameters)}
    if type_ == PHYSICAL_HOST:
        action = parameters.get(BEFORE_END)
        is_blazars = action in BLAZARS_BEFORE_END
        fields[BEFORE_END] = action if is_blazars else DEFAULT_BEFORE_END
    if type_ == FLAVOR_INSTANCE:
        fields['resource_properties'] = flavor.as_blazar(parameters)
    if type_ in INSTANCES:
        # Servers are booted with a flavor that has the reservation's id.
        fields['flavor_id'] = reservation['id']
        fields['aggregate_id'] = made.get('aggregate_id')
        fields['server_group_id'] = made.get('server_group_id')
    return fields


_COMMON = (
    'id', 'lease_id', 'resource_type', 'status', 'missing_resources',
    'resources_changed', 'created_at', 'updated_at',
)  # fmt: skip
_SLOTS = (
    'vcpus', 'memory_mb', 'disk_gb', 'amount', 'affinity',
    'resource_properties',
)  # fmt: skip
# The parameters that Blazar shows as they are; all of them of a resource type
# that a part or another package has.
_OWN = {
    PHYSICAL_HOST: (
        'min', 'max', 'hypervisor_properties', 'resource_properties'
    ),
    VIRTUAL_INSTANCE: _SLOTS,
    FLAVOR_INSTANCE: _SLOTS,
    INSTANCE_LIFETIME: ('instance_id', 'on_end'),
}


def take_use(
    resource_type: str, values: MutableMapping[str, Any]
) -> dict[str, Any]:
    """Remove the fields of _USE from `values`; return them.

    Only the fields that are present are returned. For a lifetime, such fields
    are parameters, if anything, and stay in `values`.

    :raises InvalidInput: naming the field that is wrong
    """
    taken: dict[str, Any] = {}
    if resource_type == INSTANCE_LIFETIME:
        return taken
    for name, read in _USE.items():
        if name not in values:
            continue
        taken[name] = read(values.pop(name))
        # Reservations of any type may have labels.
        if resource_type not in _FOR.get(name, (resource_type,)):
            raise exception.InvalidInput(
                f'{name} is not allowed for {resource_type}', field=name
            )
    return taken


def lifetime_id(instance_uuid: str) -> str:
    """Return the id of the reservation of an instance's own lifetime."""
    return str(uuid.uuid5(_LIFETIMES, instance_uuid))


def _read_projects(value: object) -> tuple[str, ...]:
    if (
        not isinstance(value, list | tuple)
        or len(value) > MAX_PROJECTS
        or not all(
            isinstance(id_, str) and 0 < len(id_) <= MAX_PROJECT_ID
            for id_ in value
        )
        or len(set(value)) < len(value)
    ):
        raise exception.InvalidInput(
            f'projects must be a list of at most {MAX_PROJECTS} different '
            f'ids of up to {MAX_PROJECT_ID} characters',
            field='projects',
        )
    return tuple(value)


def _read_on_end(value: object) -> str:
    if value not in ON_END:
        raise exception.InvalidInput(
            f'on_end must be one of {", ".join(ON_END)}', field='on_end'
        )
    return str(value)


def _read_magnetic(value: object) -> bool:
    if not isinstance(value, bool):
        raise exception.InvalidInput(
            'magnetic must be true or false', field='magnetic'
        )
    return value


_LIFETIMES = uuid.UUID('4f1c9a53-8f0e-4d0b-9b1e-2f6f8a1c7d35')
_FOR = {
    'projects': ON_HOSTS,
    'on_end': ON_HOSTS,
    # Slots have a flavor of their own, which names the reservation.
    'magnetic': (PHYSICAL_HOST,),
}
_USE: dict[str, Callable[[object], object]] = {
    'projects': _read_projects,
    'on_end': _read_on_end,
    'magnetic': _read_magnetic,
    # The API has checked the labels.
    'labels': lambda labels: labels,
}
