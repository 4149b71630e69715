# SPDX-License-Identifier: Apache-2.0
"""Conversion of Blazar's reservations to reservations of this service."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
import json
from typing import Any

from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain import states
from blazar_sched.domain.demand import Demand
from blazar_sched.domain.demand import FLAVOR_INSTANCE
from blazar_sched.domain.demand import Hosts
from blazar_sched.domain.demand import INSTANCES
from blazar_sched.domain.demand import PHYSICAL_HOST
from blazar_sched.domain.demand import Slots
from blazar_sched.domain.demand import VIRTUAL_INSTANCE
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.reservation import Reservation
from blazar_sched.parts.blazar import tables as blazar
from blazar_sched.parts.blazar.importing import floating_ip
from blazar_sched.parts.blazar.importing.lookup import Lookup
from blazar_sched.service import resources
from blazar_sched.service.ledger.off_hosts import Resource

# The statuses in which Blazar has created a reservation's objects in other
# services, at least in part.
_OPENED = (states.RESERVATION_ACTIVE, states.RESERVATION_ERROR)


def from_row(
    row: blazar.Row, own: blazar.Row, lease: blazar.Row,
    drivers: resources.Drivers, lookup: Lookup,
    floating_ips: Collection[Resource],
) -> Reservation:
    """Return a Blazar reservation as a reservation of this service.

    :param own: the row in the table of the reservation's resource type; for a
        floating IP reservation also with `required`, the addresses
    :param floating_ips: those that are allocated to the reservation
    :raises InvalidInput: naming the parameter that no reservation of this
        service has
    """
    resource_type = row['resource_type']
    driver, project_id = drivers[resource_type], lease['project_id']
    demand = driver.update(_demand(resource_type, own), {}, False, project_id)
    made = _made(row, own)
    if row['status'] in _OPENED:
        made |= driver.adopt(project_id, demand, floating_ips)
        if demand.is_on_hosts(active=True):
            made |= _opened(row, project_id, demand, lookup)
    return Reservation(
        id=row['id'], lease_id=row['lease_id'], status=row['status'],
        demand=demand, missing_resources=row['missing_resources'],
        resources_changed=row['resources_changed'], made=made,
        created_at=row['created_at'], updated_at=row['updated_at'],
    )


def _demand(resource_type: str, own: blazar.Row) -> Demand:
    """Return the demand, not checked yet.

    :raises InvalidInput: if the type is not Blazar's own, or if there are no
        parameters
    """
    read = _READ.get(resource_type)
    if read is None:
        raise exception.InvalidInput(
            f'resource_type {resource_type!r} is not a type of Blazar',
            field='resource_type',
        )
    if not own:
        raise exception.InvalidInput(
            f'a reservation of type {resource_type} has no parameters',
            field='reservations',
        )
    try:
        return read(own)
    except (KeyError, TypeError, ValueError) as e:
        raise exception.InvalidInput(
            f'the parameters of a reservation of type {resource_type} cannot '
            f'be read: {e!r}',
            field='reservations',
        ) from e


def _host(own: blazar.Row) -> Hosts:
    least, _, most = own['count_range'].partition('-')
    return Hosts(
        int(least), int(most), own['hypervisor_properties'] or '',
        own['resource_properties'] or '', own['before_end'] or '',
    )


def _instance(own: blazar.Row) -> Slots:
    required = own['resource_properties'] or ''
    return Slots(
        {
            inventory.VCPU: own['vcpus'],
            inventory.MEMORY_MB: own['memory_mb'],
            inventory.DISK_GB: own['disk_gb'],
        },
        own['amount'], own['affinity'], required, asked_properties=required,
    )


def flavor(own: blazar.Row) -> Flavor:
    """Return the flavor that Blazar has stored as shown by Nova.

    :raises KeyError: if the row has no such flavor; ValueError likewise
    """
    shown = json.loads(own['resource_properties'])
    return Flavor(
        shown['id'], shown['name'], shown['vcpus'], shown['ram'],
        shown['disk'], shown['OS-FLV-EXT-DATA:ephemeral'],
        # Nova has long shown a flavor without swap as ''.
        int(shown['swap'] or 0),
        shown['extra_specs'],
        None if shown.get('os-flavor-access:is_public', True) else (),
    )


def _flavor(own: blazar.Row) -> Slots:
    return Slots({}, own['amount'], own['affinity'], flavor=flavor(own))


_READ: Mapping[str, Callable[[blazar.Row], Demand]] = {
    PHYSICAL_HOST: _host,
    VIRTUAL_INSTANCE: _instance,
    FLAVOR_INSTANCE: _flavor,
    floating_ip.RESOURCE_TYPE: floating_ip.demand,
}


def _made(row: blazar.Row, own: blazar.Row) -> dict[str, Any]:
    """Return the shown ids of objects that Blazar makes before the start."""
    if row['resource_type'] not in INSTANCES:
        return {}
    return {
        'flavor_id': row['id'],
        'aggregate_id': own['aggregate_id'],
        'server_group_id': own['server_group_id'],
    }


def _opened(
    row: blazar.Row, project_id: str, demand: Demand, lookup: Lookup
) -> dict[str, Any]:
    """Return what this service's start records and its end relies on."""
    made: dict[str, Any] = {'projects': [project_id], 'in_the_way': []}
    if demand.whole:
        aggregate = lookup.aggregate(row['id'])
        if aggregate is not None:
            made['aggregate_id'] = aggregate.id
            made['aggregate_uuid'] = aggregate.uuid
    return made
