# SPDX-License-Identifier: Apache-2.0
"""The timeline: the handler that translates requests into manager calls."""

import json

import falcon

from blazar_sched.domain import requirements
from blazar_sched.domain.lease import NOW
from blazar_sched.placing.timeline import GROUPINGS
from blazar_sched.service.api import etag
from blazar_sched.service.api import listing
from blazar_sched.service.api import microversion
from blazar_sched.service.api import requirement
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.etag import Tagged
from blazar_sched.service.api.route import Answer
from blazar_sched.service.api.route import Route
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.rule import Rule
from blazar_sched.service.api.schemas import timeline as schemas
from blazar_sched.service.api.schemas.capacity import MAX_PARTS
from blazar_sched.service.api.views.timeline import TIMELINE


def show_timeline(req: falcon.Request, caller: Caller) -> Tagged:
    """Show what takes the hosts in a window, row by row.

    A row stands for a host, a zone, a value of a property, or a flavor. Of
    other projects the caller sees only that something is taken, unless the
    policy lets the caller see names.
    """
    names = requirement.sees_host_names(caller)
    properties = req.get_param('resource_properties', default='')
    requirement.check(caller, properties, 'resource_properties', names)
    found = caller.manager.get_timeline(
        known=etag.known(req), project_id=caller.project_id, names=names,
        group_by=_group_by(req, caller, names), start=_start(req),
        end=listing.time(req, 'end_date'), resource_properties=properties,
        resource_class=listing.text(req, 'resource_class', schemas.MAX_TEXT),
        parts=listing.number(req, 'parts', MAX_PARTS),
        limit=listing.number(req, 'limit', schemas.MAX_LIMIT),
        marker=listing.text(req, 'marker', schemas.MAX_TEXT),
    )
    return Tagged(found['tag'], found['timeline'])


def _start(req: falcon.Request) -> int | None:
    """Return the start of the window, None for the minute of now."""
    if req.get_param('start_date') == NOW:
        return None
    return listing.time(req, 'start_date')


def _group_by(req: falcon.Request, caller: Caller, names: bool) -> str:
    """Return what rows stand for: one of GROUPINGS, or `$` and a property."""
    asked = listing.text(req, 'group_by', schemas.MAX_TEXT) or GROUPINGS[0]
    if asked in GROUPINGS:
        return asked
    name = asked.removeprefix('$').removeprefix(requirements.SCOPE)
    wanted = json.dumps(['==', f'${name}', ''])
    requirement.check(caller, wanted, 'group_by', names)
    return f'${name}'


ROUTES = (
    Route(
        'GET', '/v1/timeline', show_timeline,
        Rule(
            'blazar:timeline:get', PROJECT_READER_OR_ADMIN,
            'Show the timeline of hosts, without the names of hosts and the '
            'leases of other projects.',
        ),
        Answer(TIMELINE, 'timeline'), since=microversion.V1_1,
        query=schemas.QUERY, headers=schemas.HEADERS,
        also=(requirement.GET_NAMES,), tagged=True,
    ),
)
