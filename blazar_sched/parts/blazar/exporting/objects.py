# SPDX-License-Identifier: Apache-2.0
"""The objects in other services by which Blazar starts and ends leases.

Blazar creates an aggregate for each reservation on hosts, and a flavor, a
resource class and a server group for each reservation of instances, before
the lease starts. No server is changed.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses

from blazar_sched.domain import states
from blazar_sched.domain.demand import ON_HOSTS
from blazar_sched.domain.demand import PHYSICAL_HOST
from blazar_sched.domain.flavor import BLAZARS
from blazar_sched.domain.flavor import BLAZARS_GROUP
from blazar_sched.domain.host import Host
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.parts.blazar.importing.plan import ImportedLease
from blazar_sched.service.clients import creator
from blazar_sched.service.clients import placement
from blazar_sched.service.clients.nova import Aggregate
from blazar_sched.service.resources import aggregate as aggregates
from blazar_sched.service.resources import base
from blazar_sched.service.resources import slots

# The prefix of the availability zones by which Blazar's filter recognizes the
# aggregates of reservations of hosts.
_ZONES = 'blazar_'

# The ids of created objects, by column of Blazar's table.
Made = dict[str, int | str | None]


class Objects:
    """The objects of leases; each method can be repeated.

    Every method raises Unavailable if a service does not answer.
    """

    def __init__(self, services: base.Services) -> None:
        self._services = services
        self._nova = services.nova
        self.notes: list[str] = []

    def make(
        self, leases: Iterable[ImportedLease], hosts: Iterable[Host]
    ) -> Mapping[str, Made]:
        """Create the objects of the leases that are not over.

        All hosts join the freepool, except for those that an open reservation
        has as a whole.

        :returns: the ids of the objects, by reservation
        """
        on_hosts = [
            (kept, reservation)
            for kept in leases
            if kept.lease.status != states.LEASE_TERMINATED
            for reservation in kept.lease.reservations
            if reservation.resource_type in ON_HOSTS
        ]
        # One request: Nova's list is long, and has no filter.
        found = self._nova.aggregates() if on_hosts else []
        known = {each.name: each for each in found}
        taken: set[str] = set()
        made = {}
        for kept, reservation in on_hosts:
            is_open = reservation.status != states.RESERVATION_PENDING
            made[reservation.id] = self._make(
                kept.lease, reservation, is_open, known.get(reservation.id)
            )
            taken |= {
                a.host
                for a in kept.allocations
                if a.whole and is_open
                and a.reservation_id == reservation.id
            }
        self._services.freepool.join(
            [h.service_name for h in hosts if h.uuid not in taken]
        )
        return made

    def _make(
        self, lease: Lease, reservation: Reservation, is_open: bool,
        known: Aggregate | None,
    ) -> Made:
        aggregate = aggregates.make(self._nova, lease, reservation, (), known)
        if not is_open:
            # Blazar's start adds the hosts, and accepts none that are there.
            for name in aggregate.hosts:
                self._nova.remove_from_aggregate(aggregate, name)
        if reservation.resource_type == PHYSICAL_HOST:
            self._set_zone(lease, reservation, aggregate)
            return {'aggregate_id': aggregate.id}
        group_id = self._make_slots(lease, reservation, is_open)
        metadata = {'filter_tenant_id': lease.project_id}
        if group_id is not None:
            metadata[BLAZARS_GROUP] = group_id
        if not metadata.items() <= aggregate.metadata.items():
            self._nova.set_aggregate_metadata(aggregate, metadata)
        return {'aggregate_id': aggregate.id, 'server_group_id': group_id}

    def _set_zone(
        self, lease: Lease, reservation: Reservation, aggregate: Aggregate
    ) -> None:
        zone = f'{_ZONES}{reservation.id}'
        if not self._nova.set_aggregate_zone(aggregate, zone):
            self.notes.append(
                f'lease {lease.id} ({lease.name}): Nova does not change the '
                'availability zone of hosts with servers, so Blazar ends the '
                f'lease, but aggregate {aggregate.name} admits no new servers'
            )

    def _make_slots(
        self, lease: Lease, reservation: Reservation, is_open: bool
    ) -> str | None:
        """Create a flavor, a resource class and, for affinity, a group.

        :returns: the id of the server group
        """
        class_ = placement.resource_class(reservation.id)
        self._services.placement.create_resource_class(class_)
        if not is_open:
            # The reservation may have changed since Blazar made the flavor,
            # which has no server yet.
            self._nova.delete_flavor(reservation.id)
        group_id = self._make_group(lease, reservation, is_open)
        flavor = slots.flavor_of(reservation, class_)
        specs = {**flavor.extra_specs, BLAZARS: reservation.id}
        if group_id is not None:
            specs[BLAZARS_GROUP] = group_id
        self._nova.create_flavor(
            dataclasses.replace(flavor, extra_specs=specs)
        )
        return group_id

    def _make_group(
        self, lease: Lease, reservation: Reservation, is_open: bool
    ) -> str | None:
        affinity = reservation.demand.affinity
        if is_open:
            group_id: str | None = reservation.made.get('server_group_id')
            return group_id
        name = slots.name_of(reservation)
        if affinity is None:
            if reservation.made.get('server_group_id'):
                self._nova.delete_server_group(name)
            return None
        nova = creator.nova(lease, self._services.keystone, self._nova)
        made: str | None = nova.create_server_group(
            name, slots.POLICIES[affinity]
        )
        return made
