# SPDX-License-Identifier: Apache-2.0
"""The view of an offer: the amount and the window for which there is room."""

from operator import itemgetter

from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER_OR_NULL
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.times import DATE

OFFER = Object(
    Field(
        'reservation',
        'Position in the request, from 0, of the reservation for which there '
        'is no room',
        None, INTEGER_OR_NULL, lambda offer: offer.get('reservation'),
    ),
    Field(
        'available',
        'Number of hosts or instances for which the requested window has room',
        None, INTEGER_OR_NULL, lambda offer: offer.get('available'),
    ),
    Field(
        'start_date',
        'Start of a window with room for the whole lease: a later start for '
        'the requested length, or the start of a shorter lease; null if no '
        'such window is known',
        None, DATE, itemgetter('start'),
    ),
    Field(
        'end_date',
        'End of that window; for a change, the latest end with room; null if '
        'there is none',
        None, DATE, itemgetter('end'),
    ),
)
