# SPDX-License-Identifier: Apache-2.0
"""Eligibility: what a host must be for a reservation, whether free or not."""

from collections.abc import Collection
from collections.abc import Iterable

from blazar_sched.domain import exception
from blazar_sched.domain import request_group
from blazar_sched.domain import requirements
from blazar_sched.domain.host import Host
from blazar_sched.domain.request_group import RequestGroups
from blazar_sched.domain.requirements import Requirement
from blazar_sched.domain.reservation import FLAVOR_INSTANCE
from blazar_sched.domain.reservation import INSTANCE_LIFETIME
from blazar_sched.domain.reservation import PHYSICAL_HOST
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.reservation import VIRTUAL_INSTANCE

# The parameters that hold a requirement, by resource type.
_REQUIREMENTS = {
    PHYSICAL_HOST: (
        'hypervisor_properties',
        'resource_properties',
    ),
    VIRTUAL_INSTANCE: ('resource_properties',),
    FLAVOR_INSTANCE: ('resource_properties',),
    INSTANCE_LIFETIME: ('resource_properties',),
}
# The parameter, as it was asked for, that a default requirement replaces.
_ASKED = {
    PHYSICAL_HOST: 'resource_properties',
    VIRTUAL_INSTANCE: 'resource_properties',
    FLAVOR_INSTANCE: 'asked_properties',
    # A server requests hosts by its flavor alone.
    INSTANCE_LIFETIME: 'asked_properties',
}
# The requirement that any host meets.
ANY = requirements.all_of()
# The request groups that any host suits.
NO_GROUPS = RequestGroups()


def unsuited(
    reservation: Reservation, hosts: Collection[Host]
) -> list[Host]:
    """Return the hosts that a reservation has, and could not get again.

    These are the hosts that do not meet the requirement of the reservation
    any more, or do not suit its request groups.

    :param hosts: the hosts of the allocations of the reservation
    """
    if not hosts:
        return []
    wanted, groups = requirement(reservation), groups_of(reservation)
    return [host for host in hosts if not suits(host, wanted, groups)]


def groups_of(reservation: Reservation) -> RequestGroups:
    """Return the request groups that a host must suit for a reservation."""
    if not reservation.has_slots:
        return NO_GROUPS
    return request_group.of_instance(
        reservation.slot(), reservation.parameters.get('groups')
    )


def suits(
    host: Host, wanted: Requirement, groups: RequestGroups
) -> bool:
    """Tell whether a host meets a requirement and suits request groups."""
    return wanted.matches(host.properties()) and groups.suits(host)


def requirement(
    reservation: Reservation,
) -> Requirement:
    """Return the requirement that a host must meet for a reservation.

    :raises InvalidInput: if the resource type or a requirement is wrong
    """
    fields = _REQUIREMENTS.get(reservation.resource_type)
    if fields is None:
        raise exception.InvalidInput(
            f'resource_type {reservation.resource_type!r} is not supported',
            field='resource_type',
        )
    return requirements.all_of(
        *(
            requirements.parse(reservation.parameters.get(field), field)
            for field in fields
        )
    )


def check_size(
    reservations: Iterable[Reservation],
) -> None:
    """Refuse a lease whose requirements together are too large.

    :raises InvalidInput: naming `reservations`
    """
    requirements.check_together(
        (
            str(reservation.parameters.get(field) or '')
            for reservation in reservations
            for field in (
                'hypervisor_properties',
                _ASKED.get(reservation.resource_type, ''),
            )
        ),
        'reservations',
    )


def default_of(
    reservation: Reservation, default: Requirement
) -> Requirement:
    """Return the default if it applies to the reservation, else ANY."""
    if default == ANY or not _takes_default(reservation):
        return ANY
    return default


def _takes_default(reservation: Reservation) -> bool:
    """Tell whether a default requirement may apply to a reservation."""
    field = _ASKED.get(reservation.resource_type)
    if field is None:
        return False
    asked = requirements.parse(reservation.parameters.get(field), field)
    return asked == ANY
