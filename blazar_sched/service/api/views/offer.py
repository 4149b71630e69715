# SPDX-License-Identifier: Apache-2.0
"""The view of an offer: the amount and the window for which there is room."""

from operator import itemgetter

from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER_OR_NULL
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.views.time import DATE

OFFER = Object(
    Field(
        'reservation',
        'The position in the request of the reservation that finds no room, '
        'from 0 on',
        None, INTEGER_OR_NULL, lambda offer: offer.get('reservation'),
    ),
    Field(
        'available',
        'How many hosts or instances the window asked for has room for',
        None, INTEGER_OR_NULL, lambda offer: offer.get('available'),
    ),
    Field(
        'start_date',
        'A later start, from which all of a new lease would find room for as '
        'long; the start of a lease that cannot be as long as asked; null if '
        'none is known',
        None, DATE, itemgetter('start'),
    ),
    Field(
        'end_date',
        'The end of that, for a change the latest one that would do; null if '
        'there is none',
        None, DATE, itemgetter('end'),
    ),
)
