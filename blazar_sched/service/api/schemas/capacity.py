# SPDX-License-Identifier: Apache-2.0
"""The schema of a query about the capacity."""

from blazar_sched.service.api.schemas import lease
from blazar_sched.service.api.schemas import meaning
from blazar_sched.service.api.schemas import text

MAX_PARTS = 200
MAX_FLAVOR_ID = 255

QUERY = {
    'start_date': meaning.said(
        'From when on, now if absent', lease.DATE
    ),
    'end_date': meaning.said(
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
    'resource_properties': lease.REQUIREMENT,
    'flavor_id': text.asked(
        MAX_FLAVOR_ID,
        'Count instances of this flavor too, and only hosts that have what '
        'it asks for',
    ),
}
