# SPDX-License-Identifier: Apache-2.0
"""Conversion of Blazar's hosts to hosts of this service."""

from collections.abc import Iterable
import dataclasses
import re

from blazar_sched.domain import exception
from blazar_sched.domain import host
from blazar_sched.domain.demand import PHYSICAL_HOST
from blazar_sched.domain.host import Host
from blazar_sched.parts.blazar import tables as blazar
from blazar_sched.parts.blazar.importing.lookup import Lookup

# The numbers that are valid ids of hosts in this service.
_NUMBER = re.compile('[1-9][0-9]{0,8}')
# The names that no capability can have, because they are the host's fields.
_FIELDS = {field.name for field in dataclasses.fields(Host)}


def from_row(
    row: blazar.Row, capabilities: Iterable[tuple[str, str]], lookup: Lookup
) -> Host:
    """Return a Blazar host as a host to be registered.

    The host is dedicated, because Blazar holds all of its hosts in the same
    aggregate. The id of the host is empty if Blazar's id is not a number that
    is valid as an id.

    :param capabilities: names and values
    :raises Conflict: if Nova or Placement does not know the host, or no
        longer does
    :raises InvalidInput: if a capability has a name that is the host's own
    """
    hypervisor = lookup.hypervisor(row['hypervisor_hostname'])
    named = dict(capabilities)
    for name in named:
        if name in _FIELDS or not host.is_capability(name):
            raise exception.InvalidInput(
                f'the name of capability {name} is reserved for a property '
                'that each host has: rename the capability in Blazar',
                field=name,
            )
    return Host(
        uuid=hypervisor.uuid,
        id=row['id'] if _NUMBER.fullmatch(row['id']) else '',
        hypervisor_hostname=hypervisor.hostname, service_name=hypervisor.host,
        hypervisor_type=hypervisor.type, hypervisor_version=hypervisor.version,
        cpu_info=hypervisor.cpu_info,
        availability_zone=hypervisor.availability_zone,
        movable=hypervisor.movable, inventory=lookup.inventory(hypervisor),
        traits=lookup.traits(hypervisor), region=lookup.region,
        hold=host.DEDICATED, reservable=row['reservable'], capabilities=named,
        created_at=row['created_at'], updated_at=row['updated_at'],
    )


def properties(rows: Iterable[blazar.Row]) -> dict[str, bool]:
    """Return, by capability name, whether the capability is private."""
    return {
        row['property_name']: row['private']
        for row in rows
        if row['resource_type'] == PHYSICAL_HOST
    }
