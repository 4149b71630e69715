# SPDX-License-Identifier: Apache-2.0
"""Conversion of Blazar's reservations to reservations of this service."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
import json
from typing import Any

from blazar_sched.domain import exception
from blazar_sched.domain import floating_ip
from blazar_sched.domain import reservation
from blazar_sched.domain import states
from blazar_sched.domain.reservation import Reservation
from blazar_sched.service import resources
from blazar_sched.service.importing.lookup import Lookup
from blazar_sched.service.ledger import blazar

# The statuses in which Blazar has created a reservation's objects in other
# services, at least in part.
_OPENED = (states.RESERVATION_ACTIVE, states.RESERVATION_ERROR)
_SIZE = ('vcpus', 'memory_mb', 'disk_gb')


def from_row(
    row: blazar.Row,
    own: blazar.Row,
    lease: blazar.Row,
    drivers: resources.Drivers,
    lookup: Lookup,
    addresses: Collection[str],
) -> Reservation:
    """Return a Blazar reservation as a reservation of this service.

    :param own: the row in the table of the reservation's resource type; for a
        floating IP reservation also with `required`, the addresses
    :param addresses: the floating IPs that are allocated to the reservation
    :raises InvalidInput: naming the parameter that no reservation of this
        service has
    """
    resource_type = row['resource_type']
    parameters = drivers[resource_type].update(
        _parameters(resource_type, own), {}, False, lease['project_id']
    )
    made = _made(row, own)
    if row['status'] in _OPENED:
        made |= _opened(
            row, lease['project_id'], parameters, lookup, addresses
        )
    return Reservation(
        id=row['id'],
        lease_id=row['lease_id'],
        resource_type=resource_type,
        status=row['status'],
        parameters=parameters,
        missing_resources=row['missing_resources'],
        resources_changed=row['resources_changed'],
        made=made,
        created_at=row['created_at'],
        updated_at=row['updated_at'],
    )


def _parameters(resource_type: str, own: blazar.Row) -> dict[str, Any]:
    """Return the parameters in the form that the driver keeps.

    :raises InvalidInput: if the type is not Blazar's own, or if there are no
        parameters
    """
    read = _PARAMETERS.get(resource_type)
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


def _host(own: blazar.Row) -> dict[str, Any]:
    least, _, most = own['count_range'].partition('-')
    return {
        'min': int(least),
        'max': int(most),
        'hypervisor_properties': own['hypervisor_properties'] or '',
        'resource_properties': own['resource_properties'] or '',
        'before_end': own['before_end'] or '',
    }


def _instance(own: blazar.Row) -> dict[str, Any]:
    return {
        **{name: own[name] for name in (*_SIZE, 'amount', 'affinity')},
        'resource_properties': own['resource_properties'] or '',
        'before_end': reservation.DEFAULT_BEFORE_END,
    }


def _flavor(own: blazar.Row) -> dict[str, Any]:
    """Return the flavor's data that Blazar has stored as shown by Nova."""
    flavor = json.loads(own['resource_properties'])
    return {
        'flavor_id': flavor['id'],
        'amount': own['amount'],
        'affinity': own['affinity'],
        'resource_properties': '',
        'before_end': reservation.DEFAULT_BEFORE_END,
        'asked_properties': '',
        'name': flavor['name'],
        'vcpus': flavor['vcpus'],
        'memory_mb': flavor['ram'],
        'disk_gb': flavor['disk'],
        'ephemeral_gb': flavor['OS-FLV-EXT-DATA:ephemeral'],
        # Nova has long shown a flavor without swap as ''.
        'swap_mb': int(flavor['swap'] or 0),
        'is_public': flavor.get('os-flavor-access:is_public', True),
        'extra_specs': flavor['extra_specs'],
    }


def _floating_ip(own: blazar.Row) -> dict[str, Any]:
    return {
        'network_id': own['network_id'],
        'amount': own['amount'],
        'required_floatingips': own['required'],
    }


_PARAMETERS: Mapping[str, Callable[[blazar.Row], dict[str, Any]]] = {
    reservation.PHYSICAL_HOST: _host,
    reservation.VIRTUAL_INSTANCE: _instance,
    reservation.FLAVOR_INSTANCE: _flavor,
    reservation.FLOATING_IP: _floating_ip,
}


def _made(row: blazar.Row, own: blazar.Row) -> dict[str, Any]:
    """Return the shown ids of objects that Blazar makes before the start."""
    if row['resource_type'] not in reservation.INSTANCES:
        return {}
    return {
        'flavor_id': row['id'],
        'aggregate_id': own['aggregate_id'],
        'server_group_id': own['server_group_id'],
    }


def _opened(
    row: blazar.Row,
    project_id: str,
    parameters: Mapping[str, Any],
    lookup: Lookup,
    addresses: Collection[str],
) -> dict[str, Any]:
    """Return what this service's start records and its end relies on."""
    if row['resource_type'] == reservation.FLOATING_IP:
        held = {floating_ip.parse(address) for address in addresses}
        network_id = parameters['network_id']
        return {
            'floating_ips': lookup.floating_ips(network_id, project_id, held)
        }
    made: dict[str, Any] = {'projects': [project_id], 'in_the_way': []}
    if row['resource_type'] == reservation.PHYSICAL_HOST:
        aggregate = lookup.aggregate(row['id'])
        if aggregate is not None:
            made['aggregate_id'] = aggregate.id
            made['aggregate_uuid'] = aggregate.uuid
    return made
