# SPDX-License-Identifier: Apache-2.0
"""The view of the capacity: the total and the free capacity, part by part."""

from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import INTEGER_OR_NULL
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.views.time import WINDOW

_RESOURCE = Object(
    Field('resource_class', "Placement's resource class", 'VCPU'),
    Field('total', 'What the hosts have of it', 32, INTEGER),
    Field(
        'reserved', "What is reserved at the part's start, used or not",
        8, INTEGER,
    ),
    Field(
        'used',
        'What servers have then that draw on no reservation, as far as their '
        'ends are known',
        4, INTEGER,
    ),
    Field('available', 'What is free throughout the part', 20, INTEGER),
)
_PART = Object(
    *WINDOW,
    Field(
        'hosts', 'How many of them are wholly free throughout', 1, INTEGER
    ),
    Field(
        'instances',
        'How many instances of the flavor have room throughout; null if none '
        'was asked for',
        None, INTEGER_OR_NULL,
    ),
    Field(
        'resources', 'Each resource class that any of the hosts has',
        type=Many(_RESOURCE),
    ),
)
CAPACITY = Object(
    *WINDOW,
    Field(
        'hosts',
        'How many hosts it is about: those that are asked for, and that the '
        'project may use',
        2, INTEGER,
    ),
    Field('parts', 'One after the other', type=Many(_PART)),
    meaning='What there is of hosts in a window',
)
