# SPDX-License-Identifier: Apache-2.0
"""The interface of the drivers of resource types, and its arguments."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any
from typing import Protocol

from keystoneauth1.adapter import Adapter

from blazar_sched.domain import exception
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import Demand
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.pci_alias import Aliases
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import Window
from blazar_sched.placing.window_search import Edges
from blazar_sched.service.before_end import Actions
from blazar_sched.service.clients import creator
from blazar_sched.service.clients.keystone import Keystone
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.placement import Placement
from blazar_sched.service.ledger import off_hosts
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.resources.freepool import Freepool
from blazar_sched.service.resources.servers import Finder
from blazar_sched.service.resources.vacating import Vacater


@dataclasses.dataclass(frozen=True, slots=True)
class Services:
    """The services that a driver may use, as an admin, and the ledger.

    :param adapter: returns the adapter for a further service, which a group of
        options describes; None if the service is not configured
    """

    ledger: Ledger
    nova: Nova
    placement: Placement
    keystone: Keystone
    freepool: Freepool
    vacater: Vacater
    before_end: Actions
    aliases: Aliases
    adapter: Callable[[str], Adapter | None]


@dataclasses.dataclass(frozen=True, slots=True)
class Opened:
    """The outcome of a start.

    :param degraded: whether the reservation falls short of what was promised
    :param made: the ids of the objects made in other services, by their names
        in the API: they are stored as the reservation's `made`
    :param missing_resources: the new value of the reservation's flag, None to
        leave the flag
    """

    degraded: bool = False
    made: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    missing_resources: bool | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """A reservation of a lease, with its allocations on hosts.

    `hosts` has the hosts of the allocations, by uuid, and possibly others.
    `failing` has the uuids of the hosts that the reservation gives up first:
    see `placing.overload.failing_hosts`.
    """

    lease: Lease
    reservation: Reservation
    allocations: Sequence[Allocation]
    hosts: Mapping[str, Host]
    failing: Collection[str] = ()

    @property
    def held(self) -> list[Host]:
        """Return the hosts of the allocations, in allocation order."""
        return [self.hosts[a.host] for a in self.allocations]


class FreeOffHosts(Protocol):
    """What is free over time for a new lease, of resources not on hosts.

    Two answers are equal if nothing has changed in between.
    """

    def lacking(
        self, window: Window
    ) -> exception.NotEnoughHostsAvailable | None:
        """Return the refusal of the lease in a window, None if it has room."""

    def first_start(self, at: int, length: int) -> int | None:
        """Return a start, at a time or later, before which there is no room.

        :param length: the length of the window in seconds, or FOREVER
        :returns: None if there is no room at all
        """

    def edges(self) -> Edges:
        """Return the openings and closings of the resources."""


class Resource:
    """The base class of the drivers of resource types, which does nothing.

    An end removes what a start has made. Both may be called twice, and an end
    may be called after a start that failed.

    :cvar searched: what windows are searched for, if `free` knows what is free
        of resources that are not on hosts, such as "floating IPs"
    """

    searched = ''

    def __init__(self, services: Services) -> None:
        self._ledger = services.ledger
        self._nova = services.nova
        self._placement = services.placement
        self._keystone = services.keystone
        self._freepool = services.freepool
        self._aliases = services.aliases
        self._vacater = services.vacater
        self._before_end = services.before_end
        self._servers = Finder(services.ledger, services.nova)

    def validate(
        self, parameters: Mapping[str, Any], project_id: str
    ) -> Demand:
        """Return the demand of a new reservation.

        No other service is called. The demand of another package's resource
        type is an `Other`.

        :param parameters: the fields of the reservation in the request
        :param project_id: the project that makes the request
        :raises InvalidInput: naming the parameter that is wrong
        """
        raise NotImplementedError

    def update(
        self, demand: Demand, changes: Mapping[str, Any], active: bool,
        project_id: str,
    ) -> Demand:
        """Return the changed demand.

        :param changes: the changed parameters
        :param active: whether the reservation has been started
        :raises CantUpdateParameter: for a parameter that cannot be changed
        :raises InvalidInput: naming the parameter that is wrong
        """
        return self.validate({**demand.encode(), **changes}, project_id)

    def give_up(self, part: Part) -> list[Allocation]:
        """Remove the excess of an open reservation from other services.

        The start is done again afterwards, whatever the outcome: this method
        need not restore anything itself.

        :param part: a part of the lease as it is to be
        :returns: the remaining allocations
        :raises Conflict: if more is in use than is to remain
        :raises Unavailable: if the call is to be tried again
        """
        return list(part.allocations)

    def dry_run_give_up(
        self, part: Part, bound: Collection[Instance]
    ) -> list[Allocation]:
        """Return what `give_up` would leave, without calling other services.

        :param part: a part of the lease as it is to be
        :param bound: the records of the instances that draw on the reservation
        :raises Conflict: if more is in use than is to remain
        """
        return list(part.allocations)

    def book(
        self, tx: PlacingTx, lease: Lease, reservation: Reservation,
        window: Window, settled: bool = False,
    ) -> None:
        """Allocate resources that are not on hosts, in the lease's commit.

        Resources on hosts have been placed and written before. This method is
        also called after an update, and has to make the allocations fit the
        reservation.

        :param window: the remaining part of the lease's window
        :param settled: whether the reservation asks for no more than was
            promised: it keeps its allocations, and is not refused
        :raises Conflict: if there is no room
        """

    def free(
        self, source: Reader, lease: Lease, after: int
    ) -> FreeOffHosts | None:
        """Return what is free for a new lease that has reservations of a type.

        :param after: the time from which on that is asked for
        :returns: None if all resources of this type are on hosts
        """
        return None

    def adopt(
        self, project_id: str, demand: Demand,
        resources: Collection[off_hosts.Resource],
    ) -> Mapping[str, Any]:
        """Return as `made` the objects that Blazar has made at a start.

        :param resources: the resources of the reservation, if they are not on
            hosts
        :raises Unavailable: if another service does not answer
        """
        return {}

    def vacate(self, part: Part, now: int) -> bool:
        """Clear the hosts of servers that are in the way, ahead of the start.

        :returns: True if nothing more is to be done; otherwise the method is
            called again until the lease starts
        :raises Unavailable: if the call is to be tried again
        """
        return True

    def start(self, part: Part, now: int) -> Opened | None:
        """Open the reservation in other services.

        :returns: None if other services have not finished: the method is
            called again
        :raises Unavailable: if the call is to be tried again
        """
        return Opened()

    def act(self, part: Part, when: str) -> str | None:
        """Do the action that the reservation requests.

        :param when: ON_START once the lease has started, BEFORE_END ahead of
            its end

        :returns: what the action still waits for, None if it waits for
            nothing; otherwise the method is called again
        :raises Unavailable: if the call is to be tried again
        :raises Impossible: if the action cannot be done any more; see
            `service.before_end.base`
        """
        return None

    def end(self, part: Part) -> bool:
        """Remove what the start has made, and end the servers that used it.

        :returns: True if nothing is left; otherwise the method is called again
        :raises Unavailable: if the call is to be tried again
        """
        return True

    def _nova_of(self, lease: Lease) -> Nova:
        """Return Nova as the lease's creator, if the trust is still valid."""
        return creator.nova(lease, self._keystone, self._nova)
