# SPDX-License-Identifier: Apache-2.0
"""The schema of a query about the capacity."""

from blazar_sched.service.api.field import described
from blazar_sched.service.api.schemas import lease
from blazar_sched.service.api.schemas import meaning
from blazar_sched.service.api.schemas import reservation
from blazar_sched.service.api.schemas import text

MAX_PARTS = 200
MAX_FLAVOR_ID = 255

QUERY = {
    'start_date': described(
        'From when on, now if absent', lease.DATE
    ),
    'end_date': described(
        'Until when, for a day if absent', lease.DATE
    ),
    'parts': {
        'type': 'integer',
        'minimum': 1,
        'maximum': MAX_PARTS,
        'default': 1,
        'description': (
            'In how many parts to cut that, as equal as seconds allow; at '
            'most one a second'
        ),
    },
    'resource_properties': described(
        meaning.REQUIREMENT, reservation.REQUIREMENT
    ),
    'flavor_id': text.asked(
        MAX_FLAVOR_ID,
        'Count instances of this flavor too, and only hosts that have what '
        'it asks for',
    ),
}
