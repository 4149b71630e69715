# SPDX-License-Identifier: Apache-2.0
"""The capacity: the handler that translates requests into manager calls."""

from typing import Any

import falcon

from blazar_sched.domain import duration
from blazar_sched.domain import lease
from blazar_sched.service.api import listing
from blazar_sched.service.api import microversion
from blazar_sched.service.api import requirement
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.route import Answer
from blazar_sched.service.api.route import Route
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.rule import Rule
from blazar_sched.service.api.schemas import capacity as schemas
from blazar_sched.service.api.views.capacity import CAPACITY

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
        parts=listing.number(req, 'parts', schemas.MAX_PARTS) or 1,
        resource_properties=properties,
        flavor_id=listing.text(req, 'flavor_id', schemas.MAX_FLAVOR_ID),
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
        query=schemas.QUERY,
    ),
)
