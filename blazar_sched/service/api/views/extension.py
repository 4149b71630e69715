# SPDX-License-Identifier: Apache-2.0
"""The view of how far a lease can be prolonged."""

from operator import itemgetter

from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER_OR_NULL
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.times import DATE

EXTENSION = Object(
    Field(
        'end_date',
        'Latest end with which an update would be accepted now, at most the '
        'requested end; the present end of the lease if there is no later '
        'one; null for a lease without an end',
        1767232800, DATE, itemgetter('end'),
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
        None, DATE,
    ),
    name='Extension',
    meaning='How far a lease can be prolonged; nothing is reserved',
)
