# SPDX-License-Identifier: Apache-2.0
"""The schema of a query about the timeline."""

from blazar_sched.service.api import meaning
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.microversion import V1_1
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.schemas.capacity import MAX_PARTS
from blazar_sched.service.api.schemas.lease import DATE
from blazar_sched.service.api.schemas.reservation import REQUIREMENT

MAX_LIMIT = 500
MAX_TEXT = 255
QUERY = (
    Field(
        'start_date', 'Start of the window, the minute of now if absent',
        type=DATE,
    ),
    Field(
        'end_date', 'End of the window, a week after the start if absent',
        type=DATE,
    ),
    Field(
        'group_by',
        'What a row stands for: `host`, `zone`, `flavor`, or `$` and the name '
        'of a property',
        type=Type({
            'type': 'string', 'minLength': 1, 'maxLength': MAX_TEXT,
            'default': 'host',
        }),
    ),
    Field('resource_properties', meaning.REQUIREMENT, type=REQUIREMENT),
    Field(
        'resource_class',
        'Resource class, such as `VCPU` or `CUSTOM_GPU`, of which shares are '
        'shown, on the hosts that have the class; if absent, on all hosts, of '
        'the class of which the most is taken',
        type=text.up_to(MAX_TEXT), since=V1_1,
    ),
    Field(
        'parts',
        'Number of parts of the window for which each row shows what is free; '
        'at most one part per second; if absent, none for hosts and 1 for '
        'other rows',
        type=Type({'type': 'integer', 'minimum': 1, 'maximum': MAX_PARTS}),
    ),
    Field(
        'limit', 'Maximum number of rows, which a page may not reach',
        type=Type({
            'type': 'integer', 'minimum': 1, 'maximum': MAX_LIMIT,
            'default': 100,
        }),
    ),
    Field(
        'marker', '`marker` of the previous page', type=text.up_to(MAX_TEXT)
    ),
)
HEADERS = (
    Field(
        'If-None-Match',
        'Entity tags of pages that the caller has, or `*` for any tag; a page '
        'with such a tag is answered with 304, without a body',
        type=TEXT,
    ),
)
