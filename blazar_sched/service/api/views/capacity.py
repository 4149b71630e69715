# SPDX-License-Identifier: Apache-2.0
"""The view of the capacity: the total and the free capacity, part by part."""

from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import INTEGER_OR_NULL
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.times import WINDOW

_RESOURCE = Object(
    Field('resource_class', 'Resource class in Placement', 'VCPU'),
    Field('total', 'Total amount on the hosts', 32, INTEGER),
    Field(
        'reserved', 'Amount reserved at the start of the part, used or not', 8,
        INTEGER,
    ),
    Field(
        'used',
        'Amount that servers without a reservation use at the start of the '
        'part, as far as the ends of the servers are known',
        4, INTEGER,
    ),
    Field('available', 'Amount available throughout the part', 20, INTEGER),
)
_PART = Object(
    *WINDOW,
    Field(
        'hosts', 'Number of hosts that are free throughout the part', 1,
        INTEGER,
    ),
    Field(
        'instances',
        'Number of instances of the flavor that have room throughout the '
        'part; null if the request has no flavor',
        None, INTEGER_OR_NULL,
    ),
    Field(
        'resources', 'Resource classes that any of the hosts has',
        type=Many(_RESOURCE),
    ),
)
CAPACITY = Object(
    *WINDOW,
    Field(
        'hosts',
        'Number of hosts that match the request and that the project may use',
        2, INTEGER,
    ),
    Field('parts', 'Consecutive parts of the window', type=Many(_PART)),
    name='Capacity', meaning='The capacity of hosts over a window',
)
