# SPDX-License-Identifier: Apache-2.0
"""The drivers of resource types, found by their entry points.

There is one driver for each resource type. A driver implements in other
services what a lease's start and end do: see `base.Resource`, the base class
of drivers. Any package can add a driver by an entry point in NAMESPACE, named
as the resource type of the driver.
"""

from typing import Any
from typing import cast

import stevedore

from blazar_sched.domain import exception
from blazar_sched.service import entry_points
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
    """The drivers by resource type."""

    def __init__(self, services: base.Services) -> None:
        self._found: stevedore.ExtensionManager[Any]
        self._found = stevedore.ExtensionManager(
            NAMESPACE, invoke_on_load=True, invoke_args=(services,),
            on_load_failure_callback=entry_points.refuse,
        )

    def __getitem__(self, resource_type: str) -> base.Resource:
        """Return the driver of a resource type.

        :raises InvalidInput: if there is no such driver
        """
        if resource_type not in self._found:
            raise exception.InvalidInput(
                f'resource_type {str(resource_type)[:64]!r} is not supported',
                field='resource_type',
            )
        driver: Any = self._found[resource_type].obj
        return cast('base.Resource', driver)
