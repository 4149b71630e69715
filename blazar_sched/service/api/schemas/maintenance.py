# SPDX-License-Identifier: Apache-2.0
"""The schemas of requests for maintenances."""

from blazar_sched.domain.maintenance import MAX_NAME
from blazar_sched.domain.maintenance import MAX_REASON
from blazar_sched.service.api import meaning
from blazar_sched.service.api import validation
from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.schemas.lease import date_or_null

# The most hosts that a request names.
MAX_HOSTS = 10_000

_NAME = Field('name', meaning.MAINTENANCE_NAME, type=Type(text.line(MAX_NAME)))
_FORCE = Field(
    'force',
    'Whether to go on although reservations cannot leave the hosts; their '
    'leases are degraded then',
    type=BOOLEAN, required=False,
)
_REASON = Field(
    'reason', meaning.REASON, type=Type(text.line(MAX_REASON)), required=False
)
_END = Field(
    'end_date', meaning.END, type=date_or_null('not known yet'), required=False
)
_CREATE = Object(
    _NAME, _REASON,
    Field(
        'start_date', meaning.START, type=date_or_null('now'), required=False
    ),
    _END,
    Field(
        'hosts', 'Hypervisor hostnames of the hosts',
        type=Type({
            'type': 'array', 'minItems': 1, 'maxItems': MAX_HOSTS,
            'items': text.line(255),
        }),
        required=False,
    ),
    Field(
        'resource_properties',
        'Requirement that the hosts meet at this time, in place of `hosts`, '
        'as `["==", "$rack", "7"]`',
        type=text.up_to(4096), required=False,
    ),
    _FORCE,
)
_UPDATE = Object(
    *(
        Field(each.name, each.meaning, type=each.type, required=False)
        for each in (_NAME, _REASON)
    ),
    Field(
        'start_date', meaning.START, type=date_or_null('now'), required=False
    ),
    _END, _FORCE,
)
CREATE = validation.by_version(_CREATE.schema)
UPDATE = validation.by_version(_UPDATE.schema)
