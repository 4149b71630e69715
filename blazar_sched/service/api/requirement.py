# SPDX-License-Identifier: Apache-2.0
"""Requirements: the properties by which a caller may choose hosts.

A name that no host has is refused, as in Blazar: a request for such a name
would wait for a window that never comes. A private name is refused in the
same words: otherwise a caller who may not see the name could read its values
bit by bit, by asking what there is room for. For the same reason, only an
administrator may compare the names of hosts by order.

The requirement of a reservation may name hosts in every version, as in Blazar.
A query, which reserves nothing, may name hosts only if the caller sees the
names of hosts: capacity and timeline would tell when a host is free.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

from blazar_sched.domain import exception
from blazar_sched.domain import host
from blazar_sched.domain import requirements
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.rule import ADMIN
from blazar_sched.service.api.rule import Rule
from blazar_sched.service.api.schemas.reservation import REQUIREMENTS

Body = dict[str, Any]

GET_NAMES = Rule(
    'blazar:timeline:get_names', ADMIN,
    'See all hosts, the names of hosts, private properties, and the leases '
    'and servers of all projects in the timeline, and in the refusals of '
    'leases. Name hosts in queries, and in the `hosts` of a reservation.',
)


def check_reservations(
    caller: Caller, reservations: list[Body], lease_id: str = ''
) -> None:
    """Refuse requirements that are malformed or that no host can meet.

    The requirements are refused here, because the placement could not read
    such a requirement later, or would find no host.

    :param lease_id: the lease that the reservations change
    :raises InvalidInput: if a requirement is malformed, or compares the names
        of hosts by order
    :raises NotEnoughHostsAvailable: if a requirement names a property that no
        host has
    """
    named = list(_named(caller, reservations))
    unknown = _unknown(caller, named, caller.is_admin)
    if unknown and lease_id:
        # A requirement that a reservation already has may remain.
        lease = caller.manager.get_lease(
            lease_id=lease_id, project_id=caller.scope
        )
        known = {r['id']: r['parameters'] for r in lease['reservations']}
        unknown = [
            (number, name, property_)
            for number, name, property_ in unknown
            if known.get(reservations[number].get('id'), {}).get(name)
            != reservations[number][name]
        ]
    for number, name, property_ in unknown:
        raise exception.NotEnoughHostsAvailable(
            f'no host has {property_[:64]}',
            field=f'reservations[{number}].{name}',
            offer={
                'reservation': number,
                'available': 0,
                'start': None,
                'end': None,
            },
        )


def check(
    caller: Caller, text: str, field: str, private: bool | None = None
) -> None:
    """Refuse an invalid requirement in a query about hosts.

    :param private: whether the caller may name private properties, by default
        an administrator
    :raises InvalidInput: if the requirement is malformed, names what no host
        has or what the caller does not see, or compares the names of hosts by
        order
    """
    names = _names(caller, text, field)
    hidden = sorted(names & host.HOST_NAMES)
    if hidden and not sees_host_names(caller):
        raise exception.InvalidInput(
            f'{hidden[0]} is only for callers who see the names of hosts',
            field=field,
        )
    if private is None:
        private = caller.is_admin
    for _, _, property_ in _unknown(caller, [(0, field, names)], private):
        raise exception.InvalidInput(
            f'no host has {property_[:64]}', field=field
        )


def sees_host_names(caller: Caller) -> bool:
    """Tell whether the timeline shows the names of hosts to a caller."""
    try:
        caller.require(GET_NAMES.name)
    except exception.NotAuthorized:
        return False
    return True


def _names(
    caller: Caller, text: str | list[Any] | None, field: str
) -> set[str]:
    """Return the names of the properties that a requirement reads.

    :raises InvalidInput: as `check`
    """
    requirement = requirements.parse(text, field)
    if not caller.is_admin:
        for name in sorted(host.HOST_NAMES & requirement.ordered()):
            raise exception.InvalidInput(
                f'{name} can be compared by ==, != and in only', field=field
            )
    return requirement.names()


def _named(
    caller: Caller, reservations: list[Body]
) -> Iterator[tuple[int, str, Iterable[str]]]:
    """Yield the position, the parameter, and the names of each requirement."""
    for number, reservation in enumerate(reservations):
        for name in REQUIREMENTS:
            if name in reservation:
                field = f'reservations[{number}].{name}'
                names = _names(caller, reservation[name], field)
                yield number, name, names


def _unknown(
    caller: Caller, named: list[tuple[int, str, Iterable[str]]], private: bool
) -> list[tuple[int, str, str]]:
    """Return the names that no host has, as far as the caller may know.

    Each name comes with its position and parameter. Names that every host has,
    traits and resource classes, which are not secret, are not checked.
    """
    asked = [
        (number, name, property_)
        for number, name, properties in named
        for property_ in sorted(properties)
        if host.is_capability(property_)
    ]
    names = {property_ for _, _, property_ in asked}
    unknown = set(caller.manager.list_unknown_properties(
        names=sorted(names), private=private, project_id=caller.scope
    )) if names else set()
    return [each for each in asked if each[2] in unknown]
