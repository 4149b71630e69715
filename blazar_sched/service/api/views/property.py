# SPDX-License-Identifier: Apache-2.0
"""The view of a host property."""

from blazar_sched.service.api import meaning
from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT

_CHANGED = 'only in the answer to a change, as Blazar has it'
# A list without details has only the names.
PROPERTY = Object(
    Field('property', meaning.PROPERTY_NAME, 'gpu'),
    *(
        Field(name, f'{means}; {_CHANGED}', get=lambda _: None, required=False)
        for name, means in (
            ('id', 'Name of the property'),
            ('property_name', 'Name of the property'),
            ('resource_type', '`physical:host`'),
        )
    ),
    Field('private', meaning.PRIVATE, False, BOOLEAN, required=False),
    Field(
        'values', 'Values of the property on hosts', ['a100', 'h100'],
        Many(TEXT), required=False,
    ),
    name='Property',
    meaning='A capability of hosts that a requirement can name',
)
_PUBLIC_PROPERTY = Object(
    Field('property', meaning.PROPERTY_NAME, 'gpu'),
    Field(
        'values', 'Values of the property on hosts', ['a100', 'h100'],
        Many(TEXT),
    ),
    Field(
        'values_left_out', 'Number of values that are not shown', 0, INTEGER
    ),
)
PUBLIC_PROPERTIES = Object(
    Field('zones', 'Availability zones of the hosts', ['nova'], Many(TEXT)),
    Field(
        'properties', 'Properties that a requirement can name',
        type=Many(_PUBLIC_PROPERTY),
    ),
    Field(
        'properties_left_out', 'Number of properties that are not shown', 0,
        INTEGER,
    ),
    name='PublicProperties',
    meaning='The zones and the properties of hosts that a project may use',
)
