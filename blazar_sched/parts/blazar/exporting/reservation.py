# SPDX-License-Identifier: Apache-2.0
"""Conversion of reservations to rows of Blazar's tables."""

from blazar_sched.domain import exception
from blazar_sched.domain import reservation as reservation_rules
from blazar_sched.domain.demand import FLAVOR_INSTANCE
from blazar_sched.domain.demand import PHYSICAL_HOST
from blazar_sched.domain.reservation import Reservation
from blazar_sched.parts.blazar import tables as blazar
from blazar_sched.parts.blazar.importing import reservation as imported
from blazar_sched.parts.blazar.importing.plan import OWN

_COMMON = frozenset(blazar.COLUMNS['reservations']) | frozenset(blazar.STAMPS)


def to_rows(
    reservation: Reservation, known: blazar.Row | None
) -> tuple[blazar.Row, blazar.Row]:
    """Return the row of a reservation, and the row of its parameters.

    The second row belongs to the table OWN of the resource type, and lacks the
    ids of objects in other services that are still to be created.

    :param known: the second row if Blazar has the row already
    :raises InvalidInput: if Blazar does not have the resource type
    """
    type_ = reservation.resource_type
    if type_ not in OWN:
        raise exception.InvalidInput(
            f'resource_type {type_!r} is not a type of Blazar',
            field='resource_type',
        )
    fields = reservation_rules.as_blazar(reservation.encode())
    if known is not None:
        fields['resource_id'] = known['id']
    if type_ == PHYSICAL_HOST:
        fields['count_range'] = f'{fields["min"]}-{fields["max"]}'
        if (aggregate_id := reservation.made.get('aggregate_id')) is not None:
            fields['aggregate_id'] = aggregate_id
    own = {n: fields[n] for n in blazar.COLUMNS[OWN[type_]] if n in fields}
    own |= {'id': fields['resource_id'], 'reservation_id': reservation.id}
    if (
        known is not None
        and type_ == FLAVOR_INSTANCE
        and imported.flavor(known) == imported.flavor(own)
    ):
        # Blazar may have stored more of the flavor.
        own['resource_properties'] = known['resource_properties']
    return {name: fields[name] for name in _COMMON}, own
