# SPDX-License-Identifier: Apache-2.0
"""Comparison of the ledger with Blazar's database, entity by entity.

Both sides are compared as entities of this service: the ledger's own, and the
entities that an import of Blazar's database would create. What Blazar cannot
have is left out: seconds, and what is not promised to users of a lease.
"""

from collections import defaultdict
from collections.abc import Iterator
from collections.abc import Mapping

from blazar_sched.domain import event
from blazar_sched.domain import states
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import BEFORE_END
from blazar_sched.domain.demand import DEFAULT_BEFORE_END
from blazar_sched.domain.demand import FLAVOR_INSTANCE
from blazar_sched.domain.demand import INSTANCES
from blazar_sched.domain.host import Host
from blazar_sched.domain.reservation import Reservation
from blazar_sched.parts.blazar.importing.floating_ip import ADDRESS
from blazar_sched.parts.blazar.importing.floating_ip import RESOURCE_TYPE
from blazar_sched.parts.blazar.importing.plan import ImportedLease
from blazar_sched.parts.blazar.importing.plan import Plan
from blazar_sched.parts.blazar.importing.plan import RefusedRow
from blazar_sched.service.ledger.off_hosts import Resource
from blazar_sched.service.ledger.reader import Reader

_MINUTE = 60
# The parameters of a flavor:instance by which its hosts were chosen. Blazar
# chooses no other hosts for such a reservation.
_CHOSEN_BY = ('asked_properties', 'resource_properties')


def contents(source: Reader) -> Plan:
    """Return all entities of a ledger that Blazar knows, and held offers."""
    allocations: dict[str, list[Allocation]] = defaultdict(list)
    for allocation, lease_id in source.allocations():
        allocations[lease_id].append(allocation)
    return Plan(
        hosts=source.hosts(), properties=source.properties(),
        floating_ips=source.off_hosts(RESOURCE_TYPE),
        leases=[
            ImportedLease(
                lease, allocations[lease.id],
                {
                    r.id: [
                        each['id']
                        for each in source.off_hosts(RESOURCE_TYPE, r.id)
                    ]
                    for r in lease.reservations
                    if r.resource_type == RESOURCE_TYPE
                },
            )
            for lease in (*source.leases(), *source.offers(None))
        ],
    )


def minute(at: int) -> int:
    """Return the begin of a minute: Blazar's API has no seconds."""
    return at - at % _MINUTE


def differences(ours: Plan, blazars: Plan) -> list[RefusedRow]:
    """Return what differs between the ledger and Blazar.

    :param blazars: the plan of an import of Blazar's database, whose refused
        entities are not compared
    """
    here, there = dict(_entities(ours)), dict(_entities(blazars))
    refused = {(r.kind, r.id): r.reason for r in blazars.refused}
    found = []
    for key in (*here, *(key for key in there if key not in here)):
        if key not in there:
            why = refused.get(key)
            reason = 'Blazar does not have it'
            if why is not None:
                reason = f'it cannot be imported from Blazar: {why}'
            found.append(RefusedRow(*key, here[key][0], reason))
        elif key not in here:
            found.append(RefusedRow(*key, there[key][0], 'only Blazar has it'))
        else:
            name, mine = here[key]
            found += [
                RefusedRow(*key, name, text)
                for text in _unequal(mine, there[key][1])
            ]
    return found


def _unequal(
    mine: Mapping[str, object], blazars: Mapping[str, object]
) -> Iterator[str]:
    for field in dict.fromkeys((*mine, *blazars)):
        here, there = mine.get(field), blazars.get(field)
        if here != there:
            yield f'{field} is {there!r} in Blazar, and {here!r} here'


def _entities(
    plan: Plan
) -> Iterator[tuple[tuple[str, str], tuple[str, Mapping[str, object]]]]:
    for host in plan.hosts:
        yield ('host', host.uuid), (host.hypervisor_hostname, _host(host))
    for each in plan.floating_ips:
        yield ('floating IP', each['id']), (each[ADDRESS], _compared(each))
    for kept in plan.leases:
        yield ('lease', kept.lease.id), (kept.lease.name, _lease(kept))
    named = {name for host in plan.hosts for name in host.capabilities}
    for name in sorted(named | set(plan.properties)):
        private = plan.properties.get(name, False)
        yield ('property', name), (name, {'private': private})


def _host(host: Host) -> dict[str, object]:
    return {
        'hypervisor_hostname': host.hypervisor_hostname,
        'reservable': host.available,
        'capabilities': dict(host.capabilities),
    }


def _compared(floating_ip: Resource) -> dict[str, object]:
    left_out = 'id', 'created_at', 'updated_at'
    return {k: v for k, v in floating_ip.items() if k not in left_out}


def _lease(kept: ImportedLease) -> dict[str, object]:
    lease = kept.lease
    fields: dict[str, object] = {
        'name': lease.name,
        'project_id': lease.project_id,
        'user_id': lease.user_id,
        'start_date': minute(lease.start),
        'end_date': minute(lease.end),
        'status': lease.status,
        'degraded': lease.degraded,
    }
    is_over = lease.status == states.LEASE_TERMINATED
    if not is_over:
        # The trust of a lease that is over is of no use any more.
        fields['trust_id'] = lease.trust_id
    for each in lease.events:
        if each.event_type in event.BLAZARS:
            fields[f'event {each.event_type}'] = (
                each.id, minute(each.time), each.status,
            )
    for reservation in lease.reservations:
        for name, value in _reservation(reservation, kept, is_over):
            fields[f'{name} of reservation {reservation.id}'] = value
    return fields


def _reservation(
    reservation: Reservation, kept: ImportedLease, is_over: bool
) -> Iterator[tuple[str, object]]:
    yield 'resource_type', reservation.resource_type
    yield 'status', reservation.status
    yield 'missing_resources', reservation.missing_resources
    yield 'resources_changed', reservation.resources_changed
    if is_over:
        return
    yield from _parameters(reservation).items()
    yield 'hosts', {
        a.host: 'all' if a.whole else dict(a.amounts)
        for a in kept.allocations
        if a.reservation_id == reservation.id
    }
    yield 'floating IPs', sorted(kept.floating_ips.get(reservation.id, ()))


def _parameters(reservation: Reservation) -> dict[str, object]:
    parameters: dict[str, object] = reservation.demand.encode()
    if reservation.resource_type == FLAVOR_INSTANCE:
        for name in _CHOSEN_BY:
            del parameters[name]
    if reservation.resource_type in INSTANCES:
        # Blazar has no action before the end of such a reservation.
        parameters[BEFORE_END] = parameters[BEFORE_END] or DEFAULT_BEFORE_END
    return parameters
