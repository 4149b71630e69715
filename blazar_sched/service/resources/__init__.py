# SPDX-License-Identifier: Apache-2.0
"""The drivers of resource types, found by their entry points.

There is one driver for each resource type. A driver implements in other
services what a lease's start and end do: see `base.Resource`, the base class
of drivers. Any package can add a driver by an entry point in NAMESPACE, named
as the resource type of the driver; a part has its drivers in `DRIVERS` of its
module ``resources``.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import stevedore

from blazar_sched.domain import exception
from blazar_sched.service import entry_points
from blazar_sched.service import parts
from blazar_sched.service.resources import base

NAMESPACE = 'blazar_sched.resources'


def check_drivers() -> None:
    """Load all drivers.

    :raises Exception: whatever the driver raises that cannot be loaded
    """
    stevedore.ExtensionManager(
        NAMESPACE, on_load_failure_callback=entry_points.refuse
    )


class Drivers:
    """The drivers by resource type.

    :param running: the names of the parts that run
    """

    def __init__(
        self, services: base.Services, running: Sequence[str]
    ) -> None:
        found: Iterable[Any] = stevedore.ExtensionManager(
            NAMESPACE, invoke_on_load=True, invoke_args=(services,),
            on_load_failure_callback=entry_points.refuse,
        )
        self._found: dict[str, base.Resource]
        self._found = {each.name: each.obj for each in found}
        for drivers in parts.each('resources', 'DRIVERS', running):
            self._found |= {
                name: driver(services) for name, driver in drivers.items()
            }

    def __getitem__(self, resource_type: str) -> base.Resource:
        """Return the driver of a resource type.

        :raises InvalidInput: if there is no such driver
        """
        if resource_type not in self._found:
            raise exception.InvalidInput(
                f'resource_type {str(resource_type)[:64]!r} is not supported',
                field='resource_type',
            )
        return self._found[resource_type]

    @property
    def searched(self) -> Mapping[str, str]:
        """What windows are searched for beside hosts, by resource type."""
        return {
            name: driver.searched for name, driver in self._found.items()
            if driver.searched
        }
