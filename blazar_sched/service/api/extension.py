# SPDX-License-Identifier: Apache-2.0
"""Extensions: how far a lease can be prolonged."""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any
from typing import TypedDict

import falcon

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain.lease import NOW
from blazar_sched.domain.window import FOREVER
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER_OR_NULL
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.schemas import lease
from blazar_sched.service.api.schemas.lease import AS_FAR_AS_POSSIBLE
from blazar_sched.service.api.times import DATE_OR_NULL

EXTENSION = Object(
    Field(
        'end_date',
        'Latest end with which an update would be accepted now, at most the '
        'requested end; the present end of the lease if there is no later '
        'one; null for a lease without an end',
        1767232800, DATE_OR_NULL, itemgetter('end'),
    ),
    Field(
        'limited_by',
        'Why a later end would be refused: `capacity` if resources are '
        'lacking, `policy` if a limit of the project forbids it; null if '
        '`end_date` is as late as requested, or the search was given up',
        'capacity', Type({'enum': ['capacity', 'policy', None]}),
    ),
    Field(
        'reservation',
        'Position in the lease, from 0, of the reservation for which there is '
        'no room until a later end; null if it is not known',
        0, INTEGER_OR_NULL,
    ),
    Field(
        'available',
        'Number of hosts or instances for which there is room until a later '
        'end; null if it is not known',
        1, INTEGER_OR_NULL,
    ),
    Field(
        'searched_until',
        'End at which the search was given up because it took too long; null '
        'if it was not',
        None, DATE_OR_NULL,
    ),
    name='Extension',
    meaning='How far a lease can be prolonged; nothing is reserved',
)

QUERY = (
    Field(
        'end_date', 'Latest end that is of interest, any end if absent',
        type=lease.DATE,
    ),
)

Body = dict[str, Any]

# The fields that cannot be changed while the end is being chosen.
_FIXED = ('start_date', 'before_end_date', 'reservations')


def show_extension(req: falcon.Request, caller: Caller, lease_id: str) -> Body:
    """Show how far a lease can be prolonged.

    Nothing is reserved. At the revision that the response names, an update to
    the end would be accepted, and an update to the next second refused; other
    requests may take the room afterwards. Another service that has to approve
    of leases is not called.
    """
    end = req.get_param('end_date')
    return caller.manager.get_extension(
        lease_id=lease_id, project_id=caller.scope,
        end=FOREVER if end is None else duration.parse_time(end, 'end_date'),
    )


class Argument(TypedDict, total=False):
    as_far_as_possible: bool


def as_far_as_possible(body: Mapping[str, Any]) -> Argument:
    """Return the argument of an update that is to end as late as possible.

    :param body: the valid body of the request for the update
    :returns: no argument if the request does not say so
    :raises InvalidInput: naming the field that is missing or too much
    """
    if not body.get(AS_FAR_AS_POSSIBLE):
        return {}
    if body.get('end_date', NOW) == NOW:
        raise exception.InvalidInput(
            f'{AS_FAR_AS_POSSIBLE} needs an end_date, which is not now',
            field=AS_FAR_AS_POSSIBLE,
        )
    for field in _FIXED:
        if field in body:
            raise exception.InvalidInput(
                f'{field} cannot be changed together with '
                f'{AS_FAR_AS_POSSIBLE}',
                field=field,
            )
    return {'as_far_as_possible': True}
