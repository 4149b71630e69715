# SPDX-License-Identifier: Apache-2.0
"""Requirements: what a caller may have hosts chosen by.

A name that no host has is refused, as Blazar does: whoever asks for it waits
for a window that never comes. So is one that is private, in the same words:
else whoever may not see it could read its values bit by bit, by asking what
there is room for.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

from blazar_sched.domain import exception
from blazar_sched.domain import host
from blazar_sched.domain import requirements
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.schemas import lease as schemas

Body = dict[str, Any]


def check_reservations(
    caller: Caller, reservations: list[Body], lease_id: str = ''
) -> None:
    """Refuse here what the placing could not read later, or finds nowhere.

    :param lease_id: of the lease that they are changes of
    :raises InvalidInput: if a requirement is malformed
    :raises NotEnoughHostsAvailable: if it names what no host has
    """
    unknown = _unknown(caller, list(_named(reservations)))
    if unknown and lease_id:
        # What a reservation asks for already it may go on asking for.
        lease = caller.call(
            'get_lease', lease_id=lease_id, project_id=caller.scope
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


def check(caller: Caller, text: str, field: str) -> None:
    """Refuse a requirement of a question about hosts.

    :raises InvalidInput: if it is malformed, or names what no host has
    """
    names = requirements.parse(text, field).names()
    for _, _, property_ in _unknown(caller, [(0, field, names)]):
        raise exception.InvalidInput(
            f'no host has {property_[:64]}', field=field
        )


def _named(
    reservations: list[Body],
) -> Iterator[tuple[int, str, Iterable[str]]]:
    """Yield the position, the parameter, and the names in it."""
    for number, reservation in enumerate(reservations):
        for name in schemas.REQUIREMENTS:
            if name in reservation:
                field = f'reservations[{number}].{name}'
                requirement = requirements.parse(reservation[name], field)
                yield number, name, requirement.names()


def _unknown(
    caller: Caller, named: list[tuple[int, str, Iterable[str]]]
) -> list[tuple[int, str, str]]:
    """Return which of the names no host has, as far as the caller is told.

    Each with its position and parameter. Names that every host has, and
    traits, which are no secret, are not looked for.
    """
    asked = [
        (number, name, property_)
        for number, name, properties in named
        for property_ in sorted(properties)
        if property_ not in host.OWN_PROPERTIES
        and not property_.startswith(host.TRAIT)
    ]
    if not asked:
        return []
    unknown = caller.call(
        'list_unknown_properties',
        names=sorted({property_ for _, _, property_ in asked}),
        private=caller.is_admin,
    )
    return [each for each in asked if each[2] in unknown]
