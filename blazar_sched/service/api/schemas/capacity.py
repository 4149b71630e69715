# SPDX-License-Identifier: Apache-2.0
"""The schema of a query about the capacity."""

from blazar_sched.service.api import meaning
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.schemas.lease import DATE
from blazar_sched.service.api.schemas.reservation import REQUIREMENT

MAX_PARTS = 200
MAX_FLAVOR_ID = 255
WINDOW = (
    Field('start_date', 'Start of the window, now if absent', type=DATE),
    Field(
        'end_date', 'End of the window, a day after the start if absent',
        type=DATE,
    ),
)
QUERY = (
    *WINDOW,
    Field(
        'parts',
        'Number of parts of the window, as equal as whole seconds allow; at '
        'most one part per second',
        type=Type(
            {
                'type': 'integer',
                'minimum': 1,
                'maximum': MAX_PARTS,
                'default': 1,
            }
        ),
    ),
    Field('resource_properties', meaning.REQUIREMENT, type=REQUIREMENT),
    Field(
        'flavor_id',
        'ID of a flavor: its instances are counted too, and only hosts that '
        'meet the requirements of the flavor are considered',
        type=text.up_to(MAX_FLAVOR_ID),
    ),
)
