# SPDX-License-Identifier: Apache-2.0
"""Lookups in other services of the objects that Blazar has there.

Each object is requested once. Nothing is changed.
"""

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Collection
import functools
from typing import TypeVar

from blazar_sched.domain import exception
from blazar_sched.domain.inventory import Inventory
from blazar_sched.service.clients.nova import Aggregate
from blazar_sched.service.clients.nova import Hypervisor
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.resources import base

T = TypeVar('T')


class Lookup:
    """The objects of other services, each requested once.

    Every method raises Unavailable if a service does not answer.

    :param region: the region of Nova's hosts
    """

    def __init__(self, services: base.Services, region: str) -> None:
        self.region = region
        self._nova = services.nova
        self._placement = services.placement

    @functools.cached_property
    def _aggregates(self) -> dict[str, Aggregate]:
        return {each.name: each for each in self._nova.aggregates()}

    @functools.cached_property
    def _hypervisors(self) -> dict[str, list[Hypervisor]]:
        found = defaultdict(list)
        for hypervisor in self._nova.hypervisors():
            found[hypervisor.hostname].append(hypervisor)
        return found

    def hypervisor(self, hostname: str) -> Hypervisor:
        """Return the hypervisor with a hostname.

        :raises Conflict: if there is not exactly one such hypervisor
        """
        found = self._hypervisors.get(hostname, [])
        if len(found) != 1:
            raise exception.Conflict(
                f'Nova has {len(found) or "no"} hypervisor'
                f'{"s" * (len(found) > 1)} named {hostname}'
            )
        return found[0]

    def inventory(self, hypervisor: Hypervisor) -> dict[str, Inventory]:
        """Return the inventory of a hypervisor.

        :raises Conflict: if Placement does not know the hypervisor
        """
        return _known(self._placement.inventories, hypervisor)

    def traits(self, hypervisor: Hypervisor) -> tuple[str, ...]:
        """Return the traits of a hypervisor.

        :raises Conflict: if Placement does not know the hypervisor
        """
        return _known(self._placement.traits, hypervisor)

    def aggregate(self, reservation_id: str) -> Aggregate | None:
        """Return the host aggregate of a reservation."""
        return self._aggregates.get(reservation_id)

    def servers(self, hostnames: Collection[str]) -> list[Server]:
        """Return the servers on hosts."""
        return [s for s in self._nova.servers() if s.node in hostnames]


def _known(ask: Callable[[str], T], hypervisor: Hypervisor) -> T:
    try:
        return ask(hypervisor.uuid)
    except exception.HostNotFound as e:
        raise exception.Conflict(str(e)) from e
