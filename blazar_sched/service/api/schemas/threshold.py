# SPDX-License-Identifier: Apache-2.0
"""The schema of a request for a threshold."""

from blazar_sched.domain.threshold import MAX_NAME
from blazar_sched.service.api import meaning
from blazar_sched.service.api import validation
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.schemas.capacity import MAX_FLAVOR_ID
from blazar_sched.service.api.schemas.lease import DURATION
from blazar_sched.service.api.schemas.reservation import REQUIREMENT

_CREATE = Object(
    Field(
        'name', meaning.THRESHOLD_NAME, type=Type(text.line(MAX_NAME))
    ),
    Field(
        'below', meaning.BELOW,
        type=Type({'type': 'integer', 'minimum': 1, 'maximum': 2**31 - 1}),
    ),
    Field(
        'within',
        'How long the hosts or instances must be free from now on; only the '
        'present counts if absent',
        type=DURATION, required=False,
    ),
    Field(
        'resource_properties', meaning.REQUIREMENT, type=REQUIREMENT,
        required=False,
    ),
    Field(
        'flavor_id',
        'ID of the flavor whose instances are counted; hosts are counted if '
        'absent',
        type=text.up_to(MAX_FLAVOR_ID), required=False,
    ),
    Field(
        'project_id',
        f'{meaning.THRESHOLD_PROJECT}, by default the project of the caller',
        type=text.up_to(255), required=False,
    ),
)
CREATE = validation.by_version(_CREATE.schema)
