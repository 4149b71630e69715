# SPDX-License-Identifier: Apache-2.0
"""The view of a threshold."""

from blazar_sched.service.api import meaning
from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT_OR_NULL
from blazar_sched.service.api.times import CREATED_AT
from blazar_sched.service.api.times import DATE

_ID = 'e4a7c2d8-0000-4000-8000-000000000011'

THRESHOLD = Object(
    Field('id', meaning.THRESHOLD_ID, _ID),
    Field('name', meaning.THRESHOLD_NAME, 'A100 hosts'),
    Field('project_id', meaning.THRESHOLD_PROJECT, 'p1'),
    Field(
        'resource_properties', meaning.REQUIREMENT, '["==", "$gpu", "a100"]'
    ),
    Field(
        'flavor_id',
        'ID of the flavor whose instances are counted; null if hosts are '
        'counted',
        None, TEXT_OR_NULL,
    ),
    Field('below', meaning.BELOW, 5, INTEGER),
    Field(
        'within',
        'Seconds for which the hosts or instances must be free from now on',
        604800, INTEGER,
    ),
    Field('free', 'Present number of hosts or instances', 3, INTEGER),
    Field(
        'low',
        'Whether the number was less than `below` when the service last '
        'compared it',
        True, BOOLEAN,
    ),
    Field('since', 'Time at which `low` was last changed', 1893456000, DATE),
    CREATED_AT,
    meaning='A number of free hosts or instances below which the operator is '
    'notified',
)
