# SPDX-License-Identifier: Apache-2.0
"""One driver for each reservation type, found by its entry point.

A driver says what a lease's start and end do in other services: see
`base.Resource`, which it extends. A package of anybody's adds one by an entry
point in NAMESPACE, named as its resource type.
"""

from typing import Any
from typing import cast

import stevedore

from blazar_sched.domain import exception
from blazar_sched.service import extension
from blazar_sched.service.resources import base

NAMESPACE = 'blazar_sched.resources'


class Drivers:
    """The drivers by resource type."""

    def __init__(self, services: base.Services) -> None:
        self._found: stevedore.ExtensionManager[Any]
        self._found = stevedore.ExtensionManager(
            NAMESPACE,
            invoke_on_load=True,
            invoke_args=(services,),
            on_load_failure_callback=extension.refuse,
        )

    def __getitem__(self, resource_type: str) -> base.Resource:
        """Return the driver of a resource type.

        :raises InvalidInput: if there is none
        """
        if resource_type not in self._found:
            raise exception.InvalidInput(
                f'resource_type {str(resource_type)[:64]!r} is not supported',
                field='resource_type',
            )
        driver: Any = self._found[resource_type].obj
        return cast('base.Resource', driver)
