# SPDX-License-Identifier: Apache-2.0
"""The plan of an import: what is kept or refused, fixed before any write."""

from collections import Counter
from collections import defaultdict
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from blazar_sched import ext
from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import FLAVOR_INSTANCE
from blazar_sched.domain.demand import PHYSICAL_HOST
from blazar_sched.domain.demand import VIRTUAL_INSTANCE
from blazar_sched.domain.host import Host
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import Window
from blazar_sched.parts.blazar import tables as blazar
from blazar_sched.parts.blazar.importing import floating_ip
from blazar_sched.parts.blazar.importing import host
from blazar_sched.parts.blazar.importing import lease
from blazar_sched.parts.blazar.importing import reservation
from blazar_sched.parts.blazar.importing.lookup import Lookup
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.service import resources
from blazar_sched.service.ledger.off_hosts import Resource

# Errors of a single entity, as opposed to the failure of a service.
_WRONG = (exception.InvalidInput, exception.Conflict)
# The table with the parameters of each resource type.
OWN = {
    PHYSICAL_HOST: 'computehost_reservations',
    VIRTUAL_INSTANCE: 'instance_reservations',
    FLAVOR_INSTANCE: 'instance_reservations',
    floating_ip.RESOURCE_TYPE: 'floatingip_reservations',
}


@dataclasses.dataclass(frozen=True, slots=True)
class RefusedRow:
    """An entity that is refused, or differs; `kind` is the type of entity."""

    kind: str
    id: str
    name: str
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class ImportedLease:
    """A lease with its allocations.

    `floating_ips` has the ids of the allocated floating IPs, by reservation.
    """

    lease: Lease
    allocations: Sequence[Allocation]
    floating_ips: Mapping[str, Sequence[str]]


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """The entities to write, the refused entities, and notes."""

    hosts: list[Host] = dataclasses.field(default_factory=list)
    properties: dict[str, bool] = dataclasses.field(default_factory=dict)
    floating_ips: list[Resource] = dataclasses.field(default_factory=list)
    leases: list[ImportedLease] = dataclasses.field(default_factory=list)
    refused: list[RefusedRow] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)


class Planner:
    """A builder of a single plan.

    :param lead_time: the seconds before the start of a lease from which its
        hosts are vacated
    """

    def __init__(
        self, tables: blazar.Tables, lookup: Lookup,
        drivers: resources.Drivers, now: int, lead_time: int,
    ) -> None:
        self._tables = tables
        self._lookup = lookup
        self._drivers = drivers
        self._now = now
        self._lead_time = lead_time
        self._plan = Plan()
        # The kept hosts and floating IPs, by the ids of Blazar.
        self._hosts: dict[str, Host] = {}
        self._floating_ips: dict[str, Resource] = {}
        self._held = group(tables['computehost_allocations'])
        self._held_ips = group(tables['floatingip_allocations'])
        self._own = {
            name: {row['reservation_id']: row for row in tables[name]}
            for name in OWN.values()
        }
        self._required = group(
            tables['required_floatingips'], 'floatingip_reservation_id'
        )

    def plan(self) -> Plan:
        """Return the plan.

        Active leases are planned first, then the other leases, each group by
        age: so a conflict refuses the lease to which the capacity was
        promised later.

        :raises Unavailable: if another service does not answer
        """
        self._plan_hosts()
        self._plan_floating_ips()
        room = _Capacity(self._plan.hosts)
        reservations = group(self._tables['reservations'], 'lease_id')
        events = group(self._tables['events'], 'lease_id')
        for row in sorted(self._tables['leases'], key=_is_to_come):
            own = reservations[row['id']], events[row['id']]
            try:
                kept = self._lease(row, *own)
                room.take(kept)
            except _WRONG as e:
                self._refuse('lease', row['id'], row['name'], e)
                continue
            self._plan.leases.append(kept)
            self._plan.notes.extend(
                f'lease {row["id"]}: its event {e["event_type"]} is left out'
                for e in lease.unknown_events(events[row['id']])
            )
        return self._plan

    def _refuse(self, kind: str, id_: str, name: str, why: Exception) -> None:
        self._plan.refused.append(RefusedRow(kind, id_, name, str(why)))

    def _plan_hosts(self) -> None:
        properties = {
            row['id']: row['property_name']
            for row in self._tables['resource_properties']
        }
        known: set[str] = set()
        capabilities = group(
            self._tables['computehost_extra_capabilities'], 'computehost_id'
        )
        for row in self._tables['computehosts']:
            name = row['hypervisor_hostname'] or row['id']
            named = (
                (properties[c['property_id']], c['capability_value'])
                for c in capabilities[row['id']]
            )
            try:
                imported = host.from_row(row, named, self._lookup)
                if imported.uuid in known:
                    raise exception.Conflict('Blazar has the host twice')
            except _WRONG as e:
                self._refuse('host', row['id'], name, e)
                continue
            known.add(imported.uuid)
            self._hosts[row['id']] = imported
            self._plan.hosts.append(imported)
            if not imported.id:
                also = row['id'] == imported.uuid
                self._plan.notes.append(
                    f'host {name}: it gets a number for its id {row["id"]}'
                    f'{", by which it can still be asked for" * also}'
                )
        self._plan.properties.update(
            host.properties(self._tables['resource_properties'])
        )

    def _plan_floating_ips(self) -> None:
        known: set[tuple[str, str]] = set()
        for row in self._tables['floatingips']:
            address = row[floating_ip.ADDRESS]
            try:
                # Refuses a floating IP if no part has any.
                self._drivers[floating_ip.RESOURCE_TYPE]
                imported = floating_ip.from_row(row)
                key = (
                    imported['floating_network_id'],
                    imported[floating_ip.ADDRESS],
                )
                if key in known:
                    raise exception.Conflict(
                        'Blazar has the address twice in the network'
                    )
            except _WRONG as e:
                self._refuse('floating IP', row['id'], address, e)
                continue
            known.add(key)
            self._floating_ips[row['id']] = imported
            self._plan.floating_ips.append(imported)

    def _lease(
        self, row: blazar.Row, reservations: Collection[blazar.Row],
        events: Collection[blazar.Row],
    ) -> ImportedLease:
        lease.check(row, reservations, events)
        mine = [
            reservation.from_row(
                r, self._own_row(r), row, self._drivers, self._lookup,
                self._floating_ips_of(r),
            )
            for r in reservations
        ]
        imported = lease.from_row(
            row, mine, events, self._now, self._lead_time
        )
        # Blazar keeps the floating IPs of leases that are over until the
        # leases are deleted.
        held = [
            r
            for r in imported.reservations
            if r.status != states.RESERVATION_DELETED
        ]
        return ImportedLease(
            imported,
            [a for r in held for a in self._allocations(r, imported.window)],
            {
                r.id: [a['floatingip_id'] for a in self._held_ips[r.id]]
                for r in held
                if r.resource_type == floating_ip.RESOURCE_TYPE
            },
        )

    def _own_row(self, row: blazar.Row) -> blazar.Row:
        table = OWN.get(row['resource_type'])
        found = table and self._own[table].get(row['id'])
        if not found:
            return {}
        required = [r['address'] for r in self._required[found['id']]]
        return {**found, 'required': required}

    def _floating_ips_of(self, row: blazar.Row) -> list[Resource]:
        """Return the floating IPs of a reservation.

        :raises Conflict: if a floating IP is not kept
        """
        held = [a['floatingip_id'] for a in self._held_ips[row['id']]]
        if row['status'] == states.RESERVATION_DELETED:
            return []
        for id_ in held:
            if id_ not in self._floating_ips:
                raise exception.Conflict(f'floating IP {id_} is skipped')
        return [self._floating_ips[id_] for id_ in held]

    def _allocations(
        self, reservation: Reservation, window: Window
    ) -> Iterable[Allocation]:
        """Yield an allocation for each host; Blazar has one for each slot.

        :raises Conflict: if a host is not kept
        """
        rows = self._held[reservation.id]
        ids = {row['compute_host_id']: row['id'] for row in rows}
        counts = Counter(row['compute_host_id'] for row in rows)
        for host_id, count in counts.items():
            if host_id not in self._hosts:
                raise exception.Conflict(f'host {host_id} is skipped')
            slot = reservation.demand.slot
            yield Allocation(
                id=ids[host_id], reservation_id=reservation.id,
                host=self._hosts[host_id].uuid, start=window.start,
                end=window.end,
                amounts={name: count * n for name, n in slot.items()},
                whole=reservation.demand.whole,
            )


class _Capacity:
    """The hosts and floating IPs that the planned leases leave free."""

    def __init__(self, hosts: Iterable[Host]) -> None:
        self._replica = state.Replica(accounting.LedgerAccounting)
        self._replica.apply(0, list(map(record.encode, hosts)))
        self._windows: dict[str, list[Window]] = defaultdict(list)

    def take(self, kept: ImportedLease) -> None:
        """Take the allocations of a lease.

        :raises Conflict: if an allocation is not free; nothing is taken then
        """
        window = kept.lease.window
        wanted = [id_ for ids in kept.floating_ips.values() for id_ in ids]
        for id_ in wanted:
            if any(map(window.overlaps, self._windows[id_])):
                raise exception.Conflict(
                    f'floating IP {id_} is allocated to an overlapping lease'
                )
        taken: list[Allocation] = []
        for allocation in kept.allocations:
            self._take(allocation, taken)
            taken.append(allocation)
        for id_ in wanted:
            self._windows[id_].append(window)

    def _take(
        self, allocation: Allocation, taken: Sequence[Allocation]
    ) -> None:
        try:
            self._replica.indexes.add([allocation])
        except (ext.TimelineError, KeyError) as e:
            # A resource class that no host has has no index.
            self._replica.indexes.remove(taken)
            name = self._replica.hosts[allocation.host].hypervisor_hostname
            raise exception.Conflict(
                f'host {name} has no room beside the allocations of earlier '
                'leases'
            ) from e


def _is_to_come(row: blazar.Row) -> bool:
    is_to_come: bool = row['status'] != states.LEASE_ACTIVE
    return is_to_come


def group(
    rows: Iterable[blazar.Row], key: str = 'reservation_id'
) -> defaultdict[str, list[blazar.Row]]:
    """Return the rows by the value of a column."""
    found = defaultdict(list)
    for row in rows:
        found[row[key]].append(row)
    return found
