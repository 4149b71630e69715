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
        'Start of the window, now if absent', lease.DATE
    ),
    'end_date': described(
        'End of the window, a day after the start if absent', lease.DATE
    ),
    'parts': {
        'type': 'integer',
        'minimum': 1,
        'maximum': MAX_PARTS,
        'default': 1,
        'description': (
            'Number of parts of the window, as equal as whole seconds allow; '
            'at most one part per second'
        ),
    },
    'resource_properties': described(
        meaning.REQUIREMENT, reservation.REQUIREMENT
    ),
    'flavor_id': text.asked(
        MAX_FLAVOR_ID,
        'ID of a flavor: its instances are counted too, and only hosts that '
        'meet the requirements of the flavor are considered',
    ),
}
