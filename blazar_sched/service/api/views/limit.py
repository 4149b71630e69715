# SPDX-License-Identifier: Apache-2.0
"""The view of a limit."""

from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import Type

LIMIT = Object(
    Field(
        'name',
        'Name of the option of the service; `max_webhooks` and '
        '`max_calendars` are no options', 'max_leases_per_project',
    ),
    Field(
        'unit',
        'What is counted: `leases`, `hosts`, `instances`, `seconds`, '
        '`weight`, `weight x hours`, `offers`, `series`, `requests`, '
        '`webhooks` or `calendars`, or a resource class',
        'leases',
    ),
    Field('limit', 'Largest number that is allowed, -1 for any', 5, INTEGER),
    Field(
        'used',
        'Number that counts for the next one of the project; null if the '
        'limit is for each lease',
        3, Type({'type': ['number', 'null']}),
    ),
    name='Limit', meaning='A limit of a project',
)
