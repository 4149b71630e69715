# SPDX-License-Identifier: Apache-2.0
"""One driver for each reservation type, found by its entry point.

A driver says what a lease's start and end do in other services. Its methods:

- ``validate(parameters)`` returns them complete, or refuses them by name;
- ``update(parameters, changes, active)`` the same for a change of them;
- ``start(lease, reservation, allocations, hosts, now)`` opens the
  reservation, and returns whether it falls short of what was promised;
- ``end(lease, reservation, allocations, hosts)`` removes all of it, and
  returns whether nothing is left; if not, it is called again.

start and end may be called twice, and end after a start that failed.
"""

from typing import Any

import stevedore

from blazar_sched.domain import exception
from blazar_sched.service.clients import nova as nova_
from blazar_sched.service.clients import placement as placement_

NAMESPACE = 'blazar_sched.resources'


def _refuse(manager: Any, entry_point: Any, error: BaseException) -> None:
    raise error


class Drivers:
    """The drivers by resource type."""

    def __init__(
        self, nova: nova_.Nova, placement: placement_.Placement
    ) -> None:
        self._found = stevedore.ExtensionManager(
            NAMESPACE,
            invoke_on_load=True,
            invoke_args=(nova, placement),
            on_load_failure_callback=_refuse,
        )

    def __getitem__(self, resource_type: str) -> Any:
        """Return the driver of a resource type.

        :raises InvalidInput: if there is none
        """
        if resource_type not in self._found:
            raise exception.InvalidInput(
                f'resource_type {str(resource_type)[:64]!r} is not supported',
                field='resource_type',
            )
        return self._found[resource_type].obj
