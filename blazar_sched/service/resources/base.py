# SPDX-License-Identifier: Apache-2.0
"""What a driver of a resource type does, and what it is given for it."""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any

from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import Window
from blazar_sched.service.before_end import Actions
from blazar_sched.service.clients import creator
from blazar_sched.service.clients.keystone import Keystone
from blazar_sched.service.clients.neutron import Neutron
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.placement import Placement
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.resources.freepool import Freepool
from blazar_sched.service.resources.servers import Finder
from blazar_sched.service.resources.vacating import Vacater


@dataclasses.dataclass(frozen=True, slots=True)
class Services:
    """What a driver may use: other services as an admin, and the ledger."""

    ledger: Ledger
    nova: Nova
    placement: Placement
    neutron: Neutron
    keystone: Keystone
    freepool: Freepool
    vacater: Vacater
    before_end: Actions


@dataclasses.dataclass(frozen=True, slots=True)
class Opened:
    """The outcome of a start.

    :param degraded: whether it falls short of what was promised
    :param made: the ids of what was made in other services, by their name
        in the API: they are kept as the reservation's `made`
    :param missing_resources: the reservation's flag, None to leave it
    """

    degraded: bool = False
    made: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    missing_resources: bool | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """A reservation of a lease, with what it has on hosts.

    `hosts` are those of the allocations, by uuid, and maybe others.
    """

    lease: Lease
    reservation: Reservation
    allocations: Sequence[Allocation]
    hosts: Mapping[str, Host]

    @property
    def held(self) -> list[Host]:
        """The hosts of the allocations, in their order."""
        return [self.hosts[a.host] for a in self.allocations]


class Resource:
    """The driver of a resource type: does nothing, which all else extends.

    What a start has made is removed by an end. Both may be called twice, and
    end after a start that failed.
    """

    def __init__(self, services: Services) -> None:
        self._ledger = services.ledger
        self._nova = services.nova
        self._placement = services.placement
        self._neutron = services.neutron
        self._keystone = services.keystone
        self._freepool = services.freepool
        self._vacater = services.vacater
        self._before_end = services.before_end
        self._servers = Finder(services.ledger, services.nova)

    def validate(
        self, parameters: Mapping[str, Any], project_id: str
    ) -> dict[str, Any]:
        """Return a new reservation's parameters complete.

        Without a call to another service.

        :param project_id: the project that asks
        :raises InvalidInput: naming the one that is wrong
        """
        return dict(parameters)

    def update(
        self,
        parameters: Mapping[str, Any],
        changes: Mapping[str, Any],
        active: bool,
        project_id: str,
    ) -> dict[str, Any]:
        """Return the changed parameters.

        :param active: whether the reservation has been started
        :raises CantUpdateParameter: for what is fixed
        :raises InvalidInput: naming the one that is wrong
        """
        return self.validate({**parameters, **changes}, project_id)

    def shrinks(
        self, parameters: Mapping[str, Any], new: Mapping[str, Any]
    ) -> bool:
        """Tell whether what is open must `give_up` some for a change."""
        return False

    def give_up(self, part: Part) -> list[Allocation]:
        """Take from what is open, in other services, all that is too much.

        The start is done again afterwards, however it goes: so it need not
        put anything back itself.

        :param part: of the lease as it is to be
        :returns: the allocations that are left
        :raises Conflict: if more is in use than is to be left
        :raises Unavailable: if it is to be tried again
        """
        return list(part.allocations)

    def rehearse_give_up(
        self, part: Part, bound: Collection[Instance]
    ) -> list[Allocation]:
        """Return what `give_up` would leave, without asking other services.

        :param part: of the lease as it is to be
        :param bound: the records of the instances that draw on it
        :raises Conflict: if more is in use than is to be left
        """
        return list(part.allocations)

    def book(
        self,
        tx: PlacingTx,
        lease: Lease,
        reservation: Reservation,
        window: Window,
        settled: bool = False,
    ) -> None:
        """Allocate what is on no host, in the commit that writes the lease.

        What is on hosts has been placed and written. It is also called after
        an update, and has to make what is allocated fit the reservation.

        :param window: what is left of the lease's own
        :param settled: whether no more is asked for than it has been promised:
            it keeps what it has, and is not refused
        :raises Conflict: if there is no room
        """

    def vacate(self, part: Part, now: int) -> bool:
        """Clear the hosts of what is in the way, ahead of the start.

        :returns: True if nothing more is to be done; else it is called again
            until the lease starts
        :raises Unavailable: if it is to be tried again
        """
        return True

    def start(self, part: Part, now: int) -> Opened | None:
        """Open the reservation in other services.

        :returns: None if other services are still at it: it is called again
        :raises Unavailable: if it is to be tried again
        """
        return Opened()

    def before_end(self, part: Part) -> str | None:
        """Do what the reservation has asked for ahead of its end.

        :returns: what is still to be waited for, None if nothing is: else it
            is called again
        :raises Unavailable: if it is to be tried again
        :raises Impossible: if it cannot be done any more; see
            `service.before_end.base`
        """
        return None

    def end(self, part: Part) -> bool:
        """Remove what the start has made, and end what used it.

        :returns: True if nothing is left; else it is called again
        :raises Unavailable: if it is to be tried again
        """
        return True

    def _nova_of(self, lease: Lease) -> Nova:
        """Return Nova as the lease's creator, if their trust still holds."""
        return creator.nova(lease, self._keystone, self._nova)
