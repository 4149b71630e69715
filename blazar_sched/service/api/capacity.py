# SPDX-License-Identifier: Apache-2.0
"""The capacity: the route, its query and the view."""

from typing import Any

import falcon

from blazar_sched.domain import duration
from blazar_sched.domain import lease
from blazar_sched.service.api import listing
from blazar_sched.service.api import meaning
from blazar_sched.service.api import microversion
from blazar_sched.service.api import requirement
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import INTEGER_OR_NULL
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.route import Answer
from blazar_sched.service.api.route import Route
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.rule import Rule
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.schemas.lease import DATE
from blazar_sched.service.api.schemas.reservation import REQUIREMENT
from blazar_sched.service.api.times import BOUNDED

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
    *BOUNDED,
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
    *BOUNDED,
    Field(
        'hosts',
        'Number of hosts that match the request and that the project may use',
        2, INTEGER,
    ),
    Field('parts', 'Consecutive parts of the window', type=Many(_PART)),
    name='Capacity', meaning='The capacity of hosts over a window',
)

MAX_PARTS = 200
MAX_FLAVOR_ID = 255
WINDOW_QUERY = (
    Field('start_date', 'Start of the window, now if absent', type=DATE),
    Field(
        'end_date', 'End of the window, a day after the start if absent',
        type=DATE,
    ),
)
QUERY = (
    *WINDOW_QUERY,
    Field(
        'parts',
        'Number of parts of the window, as equal as whole seconds allow; at '
        'most one part per second',
        type=Type({
            'type': 'integer', 'minimum': 1, 'maximum': MAX_PARTS,
            'default': 1,
        }),
    ),
    Field('resource_properties', meaning.REQUIREMENT, type=REQUIREMENT),
    Field(
        'flavor_id',
        'ID of a flavor: its instances are counted too, and only hosts that '
        'meet the requirements of the flavor are considered',
        type=text.up_to(MAX_FLAVOR_ID),
    ),
)

Body = dict[str, Any]


def show_capacity(req: falcon.Request, caller: Caller) -> Body:
    """Show the total and the available capacity of hosts over a window.

    The hosts are those that the project could reserve, and the window is cut
    into parts. The available capacity of a part is what a lease over that part
    alone could get, but for the operator's cleaning time.
    """
    properties = req.get_param('resource_properties', default='')
    requirement.check(caller, properties, 'resource_properties')
    return caller.manager.get_capacity(
        project_id=caller.project_id, **window(req),
        parts=listing.number(req, 'parts', MAX_PARTS) or 1,
        resource_properties=properties,
        flavor_id=listing.text(req, 'flavor_id', MAX_FLAVOR_ID),
    )


def window(req: falcon.Request) -> dict[str, Any]:
    """Return the start and the end of a query.

    :raises InvalidInput: naming the parameter that is wrong
    """
    start = req.get_param('start_date', default=lease.NOW)
    return {
        'start': (
            start if start == lease.NOW
            else duration.parse_time(start, 'start_date')
        ),
        'end': listing.time(req, 'end_date'),
    }


ROUTES = (
    Route(
        'GET', '/v1/capacity', show_capacity,
        Rule('blazar:capacity:get', PROJECT_READER_OR_ADMIN),
        Answer(CAPACITY, 'capacity'), since=microversion.V1_1,
        query=QUERY, also=(requirement.GET_NAMES,),
    ),
)
