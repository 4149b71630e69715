# SPDX-License-Identifier: Apache-2.0
"""The plan of an export: the rows of Blazar's tables, before any write."""

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import uuid

from blazar_sched.domain import exception
from blazar_sched.domain import ip_address
from blazar_sched.domain import states
from blazar_sched.domain.demand import PHYSICAL_HOST
from blazar_sched.domain.host import Host
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.parts.blazar import tables as blazar
from blazar_sched.parts.blazar.exporting import host
from blazar_sched.parts.blazar.exporting import lease
from blazar_sched.parts.blazar.exporting import reservation
from blazar_sched.parts.blazar.importing import comparison
from blazar_sched.parts.blazar.importing import floating_ip
from blazar_sched.parts.blazar.importing import lease as imported
from blazar_sched.parts.blazar.importing.plan import group
from blazar_sched.parts.blazar.importing.plan import ImportedLease
from blazar_sched.parts.blazar.importing.plan import OWN
from blazar_sched.parts.blazar.importing.plan import Plan
from blazar_sched.parts.blazar.importing.plan import RefusedRow
from blazar_sched.service.ledger.off_hosts import Resource

# The tables whose rows belong to a reservation.
_OF_RESERVATION = (
    *dict.fromkeys(OWN.values()), 'computehost_allocations',
    'floatingip_allocations',
)
# The tables whose rows belong to a host.
_OF_HOST = (
    'computehost_extra_capabilities', 'computehost_resource_inventory',
    'computehost_trait',
)
_NONE: blazar.Row = {}

# The rows of one entity: the table of each, and its fields.
_Rows = list[tuple[str, blazar.Row]]


@dataclasses.dataclass(frozen=True, slots=True)
class ExportPlan:
    """What an export writes.

    :ivar ledger: the entities of the ledger, also those that are refused
    :ivar known: the rows of Blazar's tables as they were read
    :ivar wanted: the rows as they are to be
    :ivar leases: the leases to export
    :ivar deleted: the leases to delete in Blazar, as an import creates them
    """

    ledger: Plan
    known: blazar.Tables
    wanted: blazar.Tables
    leases: Sequence[ImportedLease]
    deleted: Sequence[ImportedLease]
    refused: Sequence[RefusedRow]
    notes: Sequence[str]


class Planner:
    """A builder of a single plan.

    :param ledger: the entities of the ledger
    :param known: the rows of Blazar's tables
    :param read: returns the plan of an import of Blazar's tables
    """

    def __init__(
        self, ledger: Plan, known: blazar.Tables,
        read: Callable[[blazar.Tables], Plan],
    ) -> None:
        self._ledger = ledger
        self._known = known
        self._read = read
        self._there = read(known)
        self._rows_of = {
            name: {row['id']: row for row in rows}
            for name, rows in known.items()
        }
        self._refused: list[RefusedRow] = []
        self._notes: list[str] = []
        self._events = group(known['events'], 'lease_id')
        self._of_reservation = {
            name: group(known[name]) for name in _OF_RESERVATION
        }
        self._of_host = {
            name: group(known[name], 'computehost_id') for name in _OF_HOST
        }
        self._required = group(
            known['required_floatingips'], 'floatingip_reservation_id'
        )
        self._reservations = group(known['reservations'], 'lease_id')
        # Blazar compares addresses as they were written.
        self._addresses: dict[str, str] = {
            each[floating_ip.ADDRESS]:
                self._rows_of['floatingips'][each['id']][floating_ip.ADDRESS]
            for each in self._there.floating_ips
        }
        self._host_ids = self._choose_host_ids()
        self._floating_ips = {each['id'] for each in ledger.floating_ips}

    def plan(self) -> ExportPlan:
        """Return the plan.

        :raises Conflict: if Blazar's database is of another cloud, or newer
            than the ledger
        :raises Unavailable: if another service does not answer
        """
        self._require_related()
        self._require_older()
        left = self._left()
        resources = self._host_rows(left) + self._floating_ip_rows(left)
        rows = dict(self._lease_rows())
        kept = {id_: list(self._known_rows(id_)) for id_ in left}
        wanted = self._tables([resources, *rows.values(), *kept.values()])
        # The import shows what Blazar's tables cannot hold.
        lost = comparison.differences(
            dataclasses.replace(
                self._ledger,
                leases=[k for k in self._ledger.leases if k.lease.id in rows],
            ),
            self._read(wanted),
        )
        for each in lost:
            if each.kind == 'lease' and each.id in rows:
                del rows[each.id]
                self._refused.append(each)
        leases = [k for k in self._ledger.leases if k.lease.id in rows]
        wanted = self._tables([resources, *rows.values(), *kept.values()])
        self._notes += [n for k in leases for n in lease.notes(k.lease)]
        self._notes += [n for h in self._ledger.hosts for n in host.notes(h)]
        self._notes += self._removed(wanted)
        ours = {k.lease.id for k in self._ledger.leases}
        return ExportPlan(
            self._ledger, self._known, wanted, leases,
            [
                k for k in self._there.leases
                if k.lease.id not in ours and k.lease.id not in left
            ],
            self._refused, self._notes,
        )

    def _removed(self, wanted: blazar.Tables) -> Iterator[str]:
        """Yield a note for each host and floating IP that Blazar loses."""
        for kind, table, name in (
            ('host', 'computehosts', 'hypervisor_hostname'),
            ('floating IP', 'floatingips', 'floating_ip_address'),
        ):
            kept = {row['id'] for row in wanted[table]}
            for row in self._known[table]:
                if row['id'] not in kept:
                    yield (
                        f'{kind} {row["id"]} ({row[name]}) is deleted in '
                        'Blazar'
                    )

    def _require_related(self) -> None:
        """Refuse the database of another cloud, which would lose all leases.

        :raises Conflict: if the ledger is empty, or has none of the hosts
        """
        hosts = {each.hypervisor_hostname for each in self._ledger.hosts}
        theirs = {
            row['hypervisor_hostname'] for row in self._known['computehosts']
        }
        if not (self._ledger.hosts or self._ledger.leases) or (
            theirs and not hosts & theirs
        ):
            raise exception.Conflict(
                "the ledger is empty, or has none of the hosts of Blazar's "
                'database: check the URLs of both databases'
            )

    def _require_older(self) -> None:
        """Refuse a database that Blazar has changed since the import.

        :raises Conflict: naming a lease that Blazar has changed
        """
        changed_here = {
            kept.lease.id: kept.lease.updated_at or 0
            for kept in self._ledger.leases
        }
        for row in self._known['leases']:
            known_at = row['updated_at'] or 0
            if known_at > changed_here.get(row['id'], known_at):
                raise exception.Conflict(
                    f'Blazar has changed lease {row["id"]} ({row["name"]}) '
                    'after the ledger: the leases of Blazar are newer, and '
                    'none are exported'
                )

    def _left(self) -> set[str]:
        """Return the ids of Blazar's leases that the export does not change.

        These are the leases that the import refuses, and those that are newer
        than all that the ledger has: the latter are refused.
        """
        ours = {kept.lease.id for kept in self._ledger.leases}
        refused = {
            each.id: each for each in self._there.refused
            if each.kind == 'lease' and each.id not in ours
        }
        for each in refused.values():
            self._notes.append(
                f'lease {each.id} ({each.name}) of Blazar is left as it is, '
                f'as the import refuses the lease: {each.reason}'
            )
        left = set(refused)
        newest = max(
            (
                *(_stamp(kept.lease) for kept in self._ledger.leases),
                *map(_stamp, self._ledger.hosts),
            )
        )
        for kept in self._there.leases:
            old = kept.lease
            if old.id not in ours and _stamp(old) > newest:
                left.add(old.id)
                self._refused.append(
                    RefusedRow(
                        'lease', old.id, old.name,
                        'only Blazar has the lease, and nothing in the ledger '
                        'is newer: the lease was created after the import, or '
                        'deleted here, and is left in Blazar',
                    )
                )
        return left

    def _known_rows(self, lease_id: str) -> Iterator[tuple[str, blazar.Row]]:
        """Yield the rows of a lease that is not changed."""
        yield 'leases', self._rows_of['leases'][lease_id]
        for row in self._events[lease_id]:
            yield 'events', row
        for row in self._reservations[lease_id]:
            yield 'reservations', row
            for name, rows in self._of_reservation.items():
                for own in rows[row['id']]:
                    yield name, own
                    for address in self._required[own['id']]:
                        yield 'required_floatingips', address

    def _tables(self, entities: Iterable[_Rows]) -> blazar.Tables:
        """Return complete rows by table; an omitted field keeps its value."""
        tables: blazar.Tables = {name: [] for name in self._known}
        for rows in entities:
            for name, fields in rows:
                old = self._rows_of[name].get(fields['id'])
                if old is not None:
                    fields = {**fields, 'created_at': old['created_at']}
                tables[name].append({
                    column: fields.get(column, (old or _NONE).get(column))
                    for column in (*blazar.COLUMNS[name], *blazar.STAMPS)
                })
        return tables

    def _choose_host_ids(self) -> Mapping[str, str]:
        """Return Blazar's ids of the ledger's hosts, by uuid.

        A host that Blazar has keeps its id there. Another host has its own
        number, or its uuid if another host has the number in Blazar.
        """
        # The import takes the first of two rows of the same host.
        known = {
            row['hypervisor_hostname']: row['id']
            for row in reversed(self._known['computehosts'])
        }
        taken = self._rows_of['computehosts']
        return {
            each.uuid: known.get(
                each.hypervisor_hostname,
                each.uuid if each.id in taken else each.id,
            )
            for each in self._ledger.hosts
        }

    def _host_rows(self, left: Iterable[str]) -> _Rows:
        """Return the rows of all hosts and their capabilities."""
        rows: _Rows = []
        ids = set(self._host_ids.values())
        for id_ in self._kept_hosts(left) - ids:
            rows.append(('computehosts', self._rows_of['computehosts'][id_]))
            for name in _OF_HOST:
                rows += [(name, row) for row in self._of_host[name][id_]]
        properties = {
            row['property_name']: row
            for row in self._known['resource_properties']
            if row['resource_type'] == PHYSICAL_HOST
        }
        rows += [
            ('resource_properties', row)
            for row in self._known['resource_properties']
            if row['resource_type'] != PHYSICAL_HOST
        ]
        named = {n for each in self._ledger.hosts for n in each.capabilities}
        property_ids = {}
        for name in sorted({*named, *properties, *self._ledger.properties}):
            row = {
                'id': str(uuid.uuid4()),
                'resource_type': PHYSICAL_HOST,
                'property_name': name,
                **properties.get(name, _NONE),
                'private': self._ledger.properties.get(name, False),
            }
            rows.append(('resource_properties', row))
            property_ids[name] = row['id']
        for each in self._ledger.hosts:
            rows += self._rows_of_host(each, property_ids)
        return rows

    def _kept_hosts(self, left: Iterable[str]) -> set[str]:
        """Return the ids of the hosts that only Blazar has, and keeps.

        These are the hosts that the import refuses, and those that a lease
        needs that is left as it is.
        """
        kept = {e.id for e in self._there.refused if e.kind == 'host'}
        held = self._of_reservation['computehost_allocations']
        for lease_id in left:
            for row in self._reservations[lease_id]:
                kept |= {a['compute_host_id'] for a in held[row['id']]}
        return kept

    def _rows_of_host(
        self, each: Host, property_ids: Mapping[str, str]
    ) -> Iterator[tuple[str, blazar.Row]]:
        id_ = self._host_ids[each.uuid]
        row = self._rows_of['computehosts'].get(id_)
        if row is None:
            others = self._known['computehosts'][-1:]
            trust_id = others[0]['trust_id'] if others else ''
            row = host.to_row(each, id_, trust_id)
            for fields in host.inventory_rows(each, id_):
                yield 'computehost_resource_inventory', fields
            for fields in host.trait_rows(each, id_):
                yield 'computehost_trait', fields
        else:
            for name in _OF_HOST[1:]:
                for fields in self._of_host[name][id_]:
                    yield name, fields
        yield 'computehosts', {**row, 'reservable': each.available}
        held = {
            row['property_id']: row
            for row in self._of_host['computehost_extra_capabilities'][id_]
        }
        for name, value in each.capabilities.items():
            yield 'computehost_extra_capabilities', {
                'id': str(uuid.uuid4()),
                'created_at': each.created_at,
                **held.get(property_ids[name], _NONE),
                'computehost_id': id_,
                'property_id': property_ids[name],
                'capability_value': value,
            }

    def _floating_ip_rows(self, left: Iterable[str]) -> _Rows:
        rows: _Rows = [
            ('floatingips', {**each, floating_ip.ADDRESS: self._written(each)})
            for each in self._ledger.floating_ips
        ]
        kept = {e.id for e in self._there.refused if e.kind == 'floating IP'}
        held = self._of_reservation['floatingip_allocations']
        for lease_id in left:
            for row in self._reservations[lease_id]:
                kept |= {a['floatingip_id'] for a in held[row['id']]}
        known = self._rows_of['floatingips']
        return rows + [
            ('floatingips', known[id_]) for id_ in kept - self._floating_ips
        ]

    def _written(self, each: Resource) -> str:
        """Return the address of a floating IP as Blazar writes it."""
        address: str = each[floating_ip.ADDRESS]
        return self._addresses.get(address, address)

    def _lease_rows(self) -> Iterator[tuple[str, _Rows]]:
        """Yield the rows of each lease that Blazar can have."""
        capabilities = frozenset(
            name for each in self._ledger.hosts for name in each.capabilities
        )
        for kept in self._ledger.leases:
            try:
                lease.check(kept.lease, capabilities)
                yield kept.lease.id, list(self._rows_of_lease(kept))
            except (exception.Conflict, exception.InvalidInput) as e:
                self._refused.append(
                    RefusedRow('lease', kept.lease.id, kept.lease.name, str(e))
                )

    def _rows_of_lease(
        self, kept: ImportedLease
    ) -> Iterator[tuple[str, blazar.Row]]:
        id_ = kept.lease.id
        known = self._rows_of['leases'].get(id_)
        yield 'leases', lease.to_row(kept.lease, known)
        for row in lease.event_rows(kept.lease):
            yield 'events', row
        for row in imported.unknown_events(self._events[id_]):
            yield 'events', row
        for each in kept.lease.reservations:
            yield from self._rows_of_reservation(kept, each)

    def _rows_of_reservation(
        self, kept: ImportedLease, each: Reservation
    ) -> Iterator[tuple[str, blazar.Row]]:
        known = self._of_reservation.get(OWN.get(each.resource_type, ''))
        old = known[each.id] if known else []
        row, own = reservation.to_rows(each, old[0] if old else None)
        yield 'reservations', row
        yield OWN[each.resource_type], {'created_at': each.created_at, **own}
        if each.resource_type == floating_ip.RESOURCE_TYPE:
            yield from self._required_rows(each, str(own['id']))
        is_over = each.status == states.RESERVATION_DELETED
        yield from self._allocation_rows(
            'computehost_allocations', 'compute_host_id', each,
            [] if is_over else [
                self._host_ids[a.host]
                for a in kept.allocations
                if a.reservation_id == each.id
                for _ in range(each.demand.slots_in(a.amounts))
            ],
        )
        # Blazar keeps the floating IPs of a lease until its deletion.
        rows = self._of_reservation['floatingip_allocations'][each.id]
        held = [r['floatingip_id'] for r in rows] if is_over else (
            kept.floating_ips.get(each.id, ())
        )
        yield from self._allocation_rows(
            'floatingip_allocations', 'floatingip_id', each,
            [id_ for id_ in held if id_ in self._floating_ips],
        )

    def _required_rows(
        self, each: Reservation, own_id: str
    ) -> Iterator[tuple[str, blazar.Row]]:
        known = {
            ip_address.parse(row['address'], floating_ip.ADDRESS): row
            for row in self._required[own_id]
        }
        for address in each.demand.encode()[floating_ip.REQUIRED]:
            yield 'required_floatingips', known.get(address) or {
                'id': str(uuid.uuid4()),
                'address': self._addresses.get(address, address),
                'floatingip_reservation_id': own_id,
                'created_at': each.created_at,
            }

    def _allocation_rows(
        self, table: str, column: str, each: Reservation,
        resource_ids: Sequence[str],
    ) -> Iterator[tuple[str, blazar.Row]]:
        """Yield a row for each host of a slot, or for each floating IP.

        The rows that Blazar has already are used first.
        """
        known: dict[str, list[blazar.Row]] = defaultdict(list)
        for row in self._of_reservation[table][each.id]:
            known[row[column]].append(row)
        for id_ in resource_ids:
            yield table, known[id_].pop(0) if known[id_] else {
                'id': str(uuid.uuid4()),
                column: id_,
                'reservation_id': each.id,
                'created_at': each.created_at,
            }


def _stamp(each: Host | Lease) -> int:
    """Return when an entity was created or changed last, 0 if unknown."""
    return max(each.created_at or 0, each.updated_at or 0)
