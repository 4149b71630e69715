# SPDX-License-Identifier: Apache-2.0
"""Reservations of a request: whether the caller may ask for them."""

import json
from typing import Any

from blazar_sched.domain import exception
from blazar_sched.domain import requirements
from blazar_sched.service.api import requirement
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.rule import ADMIN
from blazar_sched.service.api.rule import PROJECT_MEMBER_OR_ADMIN
from blazar_sched.service.api.rule import Rule

Body = dict[str, Any]

_PROPERTIES = 'resource_properties'

SHARE = Rule(
    'blazar:leases:share', PROJECT_MEMBER_OR_ADMIN,
    'Create or update a lease, create a series or a lease request, or search '
    'for offers, with reservations that are shared with other projects. These '
    'projects get access to the flavors of the leases.',
)
EXTRA_SPECS = Rule(
    'blazar:leases:extra_specs', ADMIN,
    'Create or update a lease, create a series or a lease request, or search '
    'for offers, with reservations that have extra specs. Nova lets only '
    'administrators set the extra specs of flavors.',
)
RULES = (SHARE, EXTRA_SPECS, requirement.GET_NAMES)


def read(
    caller: Caller, reservations: list[Body], lease_id: str = ''
) -> list[Body]:
    """Return reservations that the caller may have.

    The hosts that a reservation names are in its requirement.

    :param lease_id: the lease that the reservations change
    :raises InvalidInput: if a requirement is malformed, or if there is no such
        host, or no such project to share with
    :raises NotEnoughHostsAvailable: if a requirement names what no host has
    :raises NotAuthorized: if a reservation is shared with other projects, or
        has extra specs, and the caller may not do so
    """
    reservations = _with_hosts(
        caller, reservations, caller.scope if lease_id else caller.project_id
    )
    requirement.check_reservations(caller, reservations, lease_id)
    if any(each.get('extra_specs') for each in reservations):
        caller.require(EXTRA_SPECS.name)
    shared = [each.get('projects', ()) for each in reservations]
    if any(shared):
        caller.require(SHARE.name)
    for number, projects in enumerate(shared):
        for project_id in projects:
            # A reservation shared with a name would be shared with nobody.
            if caller.has_project and not caller.has_project(project_id):
                raise exception.InvalidInput(
                    f'no project has the id {project_id}',
                    field=f'reservations[{number}].projects',
                )
    return reservations


def _with_hosts(
    caller: Caller, reservations: list[Body], project_id: str | None
) -> list[Body]:
    """Return reservations with the hosts that they name as requirements.

    A host that is not open to the project is refused as one that does not
    exist. So is any host if the caller may not see the names of hosts: see
    `requirement`.

    :param project_id: the project that gets the hosts, None for any
    """
    unknown = {name for each in reservations for name in each.get('hosts', ())}
    if unknown and requirement.sees_host_names(caller):
        unknown = set(caller.manager.list_unknown_hosts(
            names=sorted(unknown), project_id=project_id
        ))
    read = []
    for number, asked in enumerate(reservations):
        others = dict(asked)
        hosts = others.pop('hosts', ())
        for name in filter(unknown.__contains__, hosts):
            raise exception.InvalidInput(
                f'there is no host {name!r}',
                field=f'reservations[{number}].hosts',
            )
        if hosts:
            others[_PROPERTIES] = _among(
                hosts, others.get(_PROPERTIES, ''),
                f'reservations[{number}].{_PROPERTIES}',
            )
        read.append(others)
    return read


def _among(hosts: list[str], asked: str, field: str) -> str:
    """Return a requirement, as JSON text, that only some hosts meet.

    :param asked: a requirement that the hosts have to meet as well
    """
    text = json.dumps(['in', '$hypervisor_hostname', *hosts])
    if requirements.parse(asked, field) == requirements.ANY:
        return text
    # Combined as text, so that no number in the request is reformatted.
    return f'["and", {text}, {asked}]'
