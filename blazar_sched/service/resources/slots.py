# SPDX-License-Identifier: Apache-2.0
"""Slots of one size: the common base of all instance reservations.

In the window of the reservation the project has a private flavor of that size.
Each server with that flavor takes one unit of a resource class that only the
hosts of the reservation have, as many units on each host as there are slots.
"""

from collections import Counter
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any

from blazar_sched.domain import exception
from blazar_sched.domain import flavor
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import BEFORE_END
from blazar_sched.domain.demand import Demand
from blazar_sched.domain.demand import Slots
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import KEEP
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.reservation import SHELVE
from blazar_sched.service.clients import placement
from blazar_sched.service.clients.nova import Aggregate
from blazar_sched.service.clients.nova import ERROR
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.resources import aggregate as aggregates
from blazar_sched.service.resources import base
from blazar_sched.service.resources import on_hosts
from blazar_sched.service.resources import servers as reservation_servers
from blazar_sched.service.resources.base import Part
from blazar_sched.service.resources.servers import end_servers

# The parameters that may be changed in an active lease.
_CHANGEABLE = ('amount', BEFORE_END)
POLICIES = {True: 'affinity', False: 'anti-affinity'}


def check_affinity(parameters: Mapping[str, Any]) -> None:
    """Refuse an invalid value of the affinity parameter.

    :raises InvalidInput: naming the parameter
    """
    if not isinstance(parameters['affinity'], bool | None):
        raise exception.InvalidInput(
            'affinity must be true, false or null', field='affinity'
        )


class SlotsResource(on_hosts.OnHostsResource):
    """A driver of instance reservations.

    The aggregate records which hosts the reservation has, or had: a host joins
    the aggregate before the host gets inventory, and leaves it after the host
    has no inventory.
    """

    def update(
        self, demand: Demand, changes: Mapping[str, Any], active: bool,
        project_id: str,
    ) -> Demand:
        """Return the changed demand.

        :raises CantUpdateParameter: for any parameter outside _CHANGEABLE, if
            the lease is active
        :raises InvalidInput: naming the parameter that is wrong
        """
        new = super().update(demand, changes, active, project_id)
        known = demand.encode()
        for name, value in new.encode().items() if active else ():
            if name not in _CHANGEABLE and value != known[name]:
                raise exception.CantUpdateParameter(
                    f'{name} cannot be changed in an active lease: only '
                    f'{" and ".join(_CHANGEABLE)} can',
                    field=name,
                )
        return new

    def give_up(self, part: Part) -> list[Allocation]:
        """Remove unused slots from the inventory of the hosts.

        The failing hosts come first, and then the hosts with the fewest slots
        in use, so that whole hosts come free. Affinity adds no constraint:
        fewer slots on the same hosts keep any affinity.

        :raises CantUpdateParameter: if more than the amount are in use
        """
        lease, reservation = part.lease, part.reservation
        held = part.held
        names = {host.uuid: host.hypervisor_hostname for host in held}
        used, beside = self._count_used(lease, reservation, held)
        slots = placement.resource_class(reservation.id)

        def cut(host: str, total: int) -> int:
            return self._placement.cut_inventory(
                names[host], slots, total, beside[host]
            )

        return _shrink(part, used, cut)

    def dry_run_give_up(
        self, part: Part, bound: Collection[Instance]
    ) -> list[Allocation]:
        """Return the slots that `give_up` would leave.

        :raises CantUpdateParameter: if more than the amount are in use
        """
        slot = part.reservation.demand.slot
        used = {
            a.host: _count_filled(
                (i.amounts for i in bound if i.host == a.host), slot
            )
            for a in part.allocations
        }
        return _shrink(part, used, lambda host, total: max(total, used[host]))

    def _count_used(
        self, lease: Lease, reservation: Reservation, held: Sequence[Host]
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Return the slots in use, and the part of them not in Placement.

        Both counts are by host. A server with another flavor draws on the
        reservation by a hint and takes no slot in Placement: so the slots that
        such a server fills are counted from Nova, once the server is on its
        host.
        """
        names = {host.uuid: host.hypervisor_hostname for host in held}
        slots = placement.resource_class(reservation.id)
        # Nova first: a server booted meanwhile is counted once, by Placement.
        servers = self._servers.find(lease, reservation, held)
        users = {
            host: self._placement.count_used(name, slots)
            for host, name in names.items()
        }
        counted = {id_ for counts in users.values() for id_ in counts}
        others = [s for s in servers if s.uuid not in counted]
        beside = {
            host: _count_filled(
                (s.amounts for s in others if s.node == name),
                reservation.demand.slot,
            )
            for host, name in names.items()
        }
        used = {
            host: sum(users[host].values()) + beside[host] for host in names
        }
        return used, beside

    def start(self, part: Part, now: int) -> base.Opened:
        """Give the projects their flavor, and the hosts their inventory.

        Of the servers in the way, the servers that yield are deleted.

        :returns: degraded if some servers are to stay in the way, which are
            kept as `in_the_way`, or if there is no server group for the
            affinity, which the slots keep nevertheless
        """
        lease, reservation = part.lease, part.reservation
        demand = reservation.demand
        slots = placement.resource_class(reservation.id)
        held = part.held
        self._placement.create_resource_class(slots)
        aggregate = aggregates.make(
            self._nova, lease, reservation, [h.service_name for h in held]
        )
        for host, allocation in zip(held, part.allocations, strict=True):
            self._placement.set_inventory(
                host.uuid, host.hypervisor_hostname, slots,
                demand.slots_in(allocation.amounts),
            )
        in_use = self._give_up(reservation, aggregate, slots, held)
        group_id = self._make_server_group(lease, reservation)
        self._nova.create_flavor(flavor_of(reservation, slots))
        projects = reservation_servers.projects(lease, reservation)
        allowed = {lease.project_id, *reservation.projects}
        for project_id in projects:
            if project_id in allowed:
                self._nova.add_flavor_access(reservation.id, project_id)
            else:
                self._nova.remove_flavor_access(reservation.id, project_id)
        evicted = self._evict(lease, reservation, held, now)
        return base.Opened(
            degraded=bool(evicted['in_the_way'])
            or (demand.affinity is not None and group_id is None),
            made={
                'flavor_id': reservation.id,
                'aggregate_id': aggregate.id,
                'server_group_id': group_id,
                'projects': projects,
                'hosts': sorted({host.uuid for host in (*held, *in_use)}),
                **evicted,
            },
        )

    def end(self, part: Part) -> bool:
        """End the servers, and remove everything that the start has made.

        :returns: True if nothing is left
        """
        lease, reservation = part.lease, part.reservation
        for project_id in reservation_servers.projects(lease, reservation):
            self._nova.remove_flavor_access(reservation.id, project_id)
        held = part.held
        own = self._servers.find(lease, reservation, held)
        if not end_servers(self._nova, own, reservation.on_end):
            return False
        self._nova.delete_flavor(reservation.id)
        if reservation.demand.affinity is not None:
            self._nova.delete_server_group(name_of(reservation))
        if not self._empty(reservation, part.allocations, part.hosts, own):
            return False
        self._placement.delete_resource_class(
            placement.resource_class(reservation.id)
        )
        self._nova.delete_aggregate(reservation.id)
        return True

    def _make_server_group(
        self, lease: Lease, reservation: Reservation
    ) -> str | None:
        """Return the id of the server group that keeps the affinity.

        Nova lets a project use only its own server groups, so the creator of
        the lease makes the group.
        """
        affinity = reservation.demand.affinity
        if affinity is None:
            return None
        return self._nova_of(lease).create_server_group(
            name_of(reservation), POLICIES[affinity]
        )

    def _give_up(
        self, reservation: Reservation, aggregate: Aggregate, slots: str,
        hosts: Sequence[Host],
    ) -> list[Host]:
        """Give up all hosts but the given hosts, unless they are in use.

        :returns: the hosts that are in use
        """
        in_use = [
            host for host in self._left(reservation, aggregate, hosts)
            if not self._placement.remove_inventory(
                host.hypervisor_hostname, slots
            )
        ]
        for host in aggregates.others(
            self._ledger, aggregate, (*hosts, *in_use)
        ):
            self._nova.remove_from_aggregate(aggregate, host.service_name)
        return in_use

    def _left(
        self, reservation: Reservation, aggregate: Aggregate | None,
        hosts: Sequence[Host],
    ) -> list[Host]:
        """Return the hosts that a reservation has left, as far as known.

        The aggregate does not tell the nodes of one nova-compute apart, so
        the last start has noted the hosts.
        """
        before = reservation.made.get('hosts', ())
        left = aggregates.others(self._ledger, aggregate, hosts)
        known = {host.uuid for host in (*hosts, *left)}
        return left + self._ledger.hosts(set(before) - known)

    def _empty(
        self, reservation: Reservation, allocations: Sequence[Allocation],
        hosts: Mapping[str, Host], own: Iterable[Server],
    ) -> bool:
        """Remove the inventory of every host; tell whether all is removed.

        :param own: the servers of the reservation, as the end has found them
        """
        slots = placement.resource_class(reservation.id)
        held = [hosts[allocation.host] for allocation in allocations]
        aggregate = self._nova.aggregate(reservation.id)
        left = self._left(reservation, aggregate, held)
        names = [host.hypervisor_hostname for host in (*held, *left)]
        staying = {s.uuid for s in own if s.status == ERROR}
        only = None if reservation.on_end == KEEP else staying
        if only is None or only and reservation.on_end == SHELVE:
            # A server that stays would hold its slot for ever.
            for name in names:
                self._placement.release_inventory(name, slots, only)
        # Every host is tried before reporting that one host is still in use.
        removed = [
            self._placement.remove_inventory(name, slots) for name in names
        ]
        return all(removed)


def _shrink(
    part: Part, used: Mapping[str, int], cut: Callable[[str, int], int]
) -> list[Allocation]:
    """Return the remaining allocations, no more slots than the amount.

    :param used: how many slots are in use, by host
    :param cut: a function that leaves a host the given number of slots, or as
        many as are in use on the host; returns how many
    :raises CantUpdateParameter: if more than the amount are in use
    """
    reservation = part.reservation
    demand = reservation.demand.of_kind(Slots)
    _check_used(reservation, sum(used.values()))
    held = {a.host: demand.slots_in(a.amounts) for a in part.allocations}
    left = dict(held)
    excess = sum(held.values()) - demand.amount
    # With equal use the smaller hosts come first: more hosts come free.
    for host in sorted(
        held, key=lambda h: (h not in part.failing, used[h], held[h], h)
    ):
        if excess <= 0:
            break
        least = cut(host, max(0, held[host] - excess))
        left[host] = min(held[host], least)
        excess -= held[host] - left[host]
    _check_used(reservation, sum(left.values()))
    return [
        dataclasses.replace(a, amounts=demand.times(left[a.host]))
        for a in part.allocations
        if left[a.host]
    ]


def _count_filled(
    many: Iterable[Mapping[str, int]], slot: Mapping[str, int]
) -> int:
    """Return how many slots the amounts of servers fill together."""
    filled: Counter[str] = Counter()
    for amounts in many:
        filled.update(amounts)
    return max(-(-filled[c] // n) for c, n in slot.items() if n)


def _check_used(reservation: Reservation, used: int) -> None:
    """Refuse an amount that is smaller than the number in use."""
    if used > reservation.demand.most:
        raise exception.CantUpdateParameter(
            f'amount is less than the {used} instances in use of reservation '
            f'{reservation.id}',
            field='amount',
        )


def name_of(reservation: Reservation) -> str:
    """Return the name of a reservation's flavor and server group."""
    return f'reservation:{reservation.id}'


def flavor_of(reservation: Reservation, slots: str) -> Flavor:
    """Return the flavor for the servers of a reservation."""
    size = reservation.demand.of_kind(Slots).size
    return dataclasses.replace(
        size, id=reservation.id, name=name_of(reservation), projects=None,
        extra_specs={
            **size.extra_specs,
            flavor.RESERVATION: reservation.id,
            f'resources:{slots}': '1',
        },
    )
