# SPDX-License-Identifier: Apache-2.0
"""Reservations of a request: whether the caller may ask for them."""

from typing import Any

from blazar_sched.domain import exception
from blazar_sched.service.api import requirement
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.rule import ADMIN
from blazar_sched.service.api.rule import PROJECT_MEMBER_OR_ADMIN
from blazar_sched.service.api.rule import Rule

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
RULES = (SHARE, EXTRA_SPECS)


def check(
    caller: Caller, reservations: list[dict[str, Any]], lease_id: str = ''
) -> None:
    """Refuse reservations that the caller may not have.

    :param lease_id: the lease that the reservations change
    :raises InvalidInput: if a requirement is malformed, or if there is no such
        project to share with
    :raises NotEnoughHostsAvailable: if a requirement names what no host has
    :raises NotAuthorized: if a reservation is shared with other projects, or
        has extra specs, and the caller may not do so
    """
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
