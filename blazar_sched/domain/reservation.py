# SPDX-License-Identifier: Apache-2.0
"""A reservation: one resource request in a lease."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import MutableMapping
import dataclasses
from typing import Any

from blazar_sched.domain import exception
from blazar_sched.domain import inventory

PHYSICAL_HOST = 'physical:host'
VIRTUAL_INSTANCE = 'virtual:instance'
FLAVOR_INSTANCE = 'flavor:instance'
FLOATING_IP = 'virtual:floatingip'
# Those that take slots of one size on hosts.
INSTANCES = (VIRTUAL_INSTANCE, FLAVOR_INSTANCE)
ON_HOSTS = (PHYSICAL_HOST, *INSTANCES)

# What becomes of a reservation's servers when it ends: they are deleted,
# shelved, or stay as ordinary ones.
DELETE = 'delete'
SHELVE = 'shelve'
KEEP = 'keep'
ON_END = (DELETE, SHELVE, KEEP)

# How many projects a reservation is shared with, and their ids' length.
MAX_PROJECTS = 50
MAX_PROJECT_ID = 64


@dataclasses.dataclass(frozen=True, slots=True)
class Reservation:
    """`parameters` are those of its resource type.

    - ``physical:host``: min, max, hypervisor_properties,
      resource_properties, before_end
    - ``virtual:instance``: vcpus, memory_mb, disk_gb, amount, affinity,
      resource_properties
    - ``flavor:instance``: flavor_id, amount, affinity, and what the flavor
      was when it was reserved: name, resources (amounts by resource class),
      vcpus, memory_mb, disk_gb, ephemeral_gb, swap_mb, extra_specs;
      asked_properties, and resource_properties, made of them and its traits
    - ``virtual:floatingip``: network_id, amount, required_floatingips

    `projects` may use it beside its own. `on_end` is one of ON_END. `made`
    holds the ids of what its start has made in other services.
    """

    id: str
    lease_id: str
    resource_type: str
    status: str
    parameters: Mapping[str, Any]
    missing_resources: bool = False
    resources_changed: bool = False
    projects: tuple[str, ...] = ()
    on_end: str = DELETE
    made: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    created_at: int | None = None
    updated_at: int | None = None

    def slot(self) -> dict[str, int]:
        """What one instance takes, by resource class.

        Only for a reservation of instances.
        """
        if self.resource_type == FLAVOR_INSTANCE:
            return dict(self.parameters['resources'])
        return {
            inventory.VCPU: self.parameters['vcpus'],
            inventory.MEMORY_MB: self.parameters['memory_mb'],
            inventory.DISK_GB: self.parameters['disk_gb'],
        }


def take_use(
    resource_type: str, values: MutableMapping[str, Any]
) -> dict[str, Any]:
    """Take `projects` and `on_end` out of `values`, if they are there.

    :raises InvalidInput: naming the one that is wrong
    """
    taken: dict[str, Any] = {}
    for name, read in _USE.items():
        if name not in values:
            continue
        taken[name] = read(values.pop(name))
        if resource_type not in ON_HOSTS:
            raise exception.InvalidInput(
                f'{name} is not for {resource_type}', field=name
            )
    return taken


def _read_projects(value: Any) -> tuple[str, ...]:
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


def _read_on_end(value: Any) -> str:
    if value not in ON_END:
        raise exception.InvalidInput(
            f'on_end must be one of {", ".join(ON_END)}', field='on_end'
        )
    return str(value)


_USE: dict[str, Callable[[Any], Any]] = {
    'projects': _read_projects,
    'on_end': _read_on_end,
}
